#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace mergeplan::cli {

// Flags of the measured model (planner/measured), beside those of the linear one.
struct MeasuredFlags {
  const CLI::App* app = nullptr;  // whose flags they are
  std::string file;               // empty: the linear model is asked
  std::int64_t updates = 0;
  std::int64_t total_updates = 0;
  std::string combine;
  int max_children = 0;
  int max_merges = 0;
  int draws = 1000;
  std::int64_t seed = 1;
};
// Goes after the flags of the linear model, of which none is required any more. `plans`: flags of
// the search and of its lead too.
void AddMeasuredFlags(CLI::App& app, MeasuredFlags& flags, bool plans);

// What the linear model wants of the flags, where --measured is not given: misuse for the first one
// that belongs to the measured model, or for a --schedule that is missing.
absl::Status CheckLinearFlags(const MeasuredFlags& flags);

// `mergeplan plan --measured FILE` and `mergeplan compare --measured FILE`. Misuse names the first
// flag of the linear model. `output`: a .json file for the object that --json prints, or empty.
absl::StatusOr<int> RunPlanMeasured(const MeasuredFlags& flags, int student_steps, bool json,
                                    const std::string& output);
absl::StatusOr<int> RunCompareMeasured(const MeasuredFlags& flags, int student_steps, bool json);

}  // namespace mergeplan::cli
