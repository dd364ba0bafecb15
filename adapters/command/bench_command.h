#pragma once

#include <string>

#include "adapters/command/bench.h"

namespace mergeplan {

struct BenchOutput {
  bool quiet = false;  // no progress
  bool json = false;   // one JSON object instead of tables
  std::string file;    // also written there: .csv or .json
  bool file_given = false;
};

// Runs `mergeplan bench` and prints what it found. Returns the exit code: 0 done, 1 a strategy (or
// all) failed, 2 misuse, 3 stopped by a signal with the rows that were finished.
int RunBenchCommand(const BenchArguments& arguments, const BenchOutput& output);

// The tables as text, as JSON and as CSV.
std::string BenchText(const BenchResult& result);
std::string BenchJson(const BenchResult& result);
std::string BenchCsv(const BenchResult& result);

}  // namespace mergeplan
