#pragma once

#include <string>

#include "absl/status/statusor.h"

#include "adapters/command/bench.h"

namespace mergeplan {

struct BenchOutput {
  bool quiet = false;  // no progress
  bool json = false;   // one JSON object instead of tables
  // Also written there: .csv, .json, or a folder with bench.json, bench.csv, bench.html and
  // pictures.
  std::string file;
  bool file_given = false;
};

// Runs `mergeplan bench` and prints what it found. Returns the exit code: 0 done, 1 a strategy (or
// all) failed, 2 misuse, 3 stopped by a signal with the rows that were finished.
int RunBenchCommand(const BenchArguments& arguments, const BenchOutput& output);

// The tables as text, as JSON and as CSV.
std::string ForecastText(const BenchForecast& forecast);
std::string BenchText(const BenchResult& result);
std::string BenchJson(const BenchResult& result);
std::string BenchCsv(const BenchResult& result);
// One page with the tables and the pictures that lie in `folder`. Errors of reading those.
absl::StatusOr<std::string> BenchHtml(const BenchResult& result, const std::string& folder);

}  // namespace mergeplan
