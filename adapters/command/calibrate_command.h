#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "adapters/runtime/arguments.h"

namespace mergeplan {

// What `mergeplan calibrate` was told.
struct CalibrateArguments {
  // The question, the teacher and how is trained; `plan`, `strategy`, `parameters`, `output` and
  // `resume` stay empty.
  DistillArguments question;
  std::string budget;                         // updates=K,calls=C,minutes=M
  std::optional<std::int64_t> pilot_updates;  // absent: --iterations
  int replicates = 2;
  std::optional<double> time_limit;  // seconds
  bool resume = false;
  bool json = false, quiet = false;
  std::string output;       // .toml: the tables
  std::string plan_output;  // a plan file for distill; empty: none
};

// Runs `mergeplan calibrate`: trains pilot merges, fills the measured model and prints what it
// says. Writes OUTPUT, STEM.npz and STEM.pilots.json beside it. Returns the exit code: 0 done, 1
// failed, 2 misuse, 3 stopped early (Ctrl-C, a limit), which --resume goes on from. Errors are one
// line on stderr.
int RunCalibrateCommand(const CalibrateArguments& arguments);

}  // namespace mergeplan
