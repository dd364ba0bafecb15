#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "planner/runs/merge_record.h"

namespace mergeplan {

// The last line of a run.
struct RunSummary {
  std::string strategy;
  std::string reference;
  double predicted = 0;  // objective of the plan in the linear model, native units; NaN: none
  double achieved = 0;   // the same of the trained operators
  double seconds = 0;    // of training, over all parts of the run
  int merges = 0;
  std::int64_t updates = 0;
  std::int64_t teacher_calls = 0;
  // Of the achieved error, where it is a mean over drawn rows; none where it is exact.
  std::optional<double> standard_error = {};

  bool operator==(const RunSummary&) const = default;
};

// result.toml: what came out of a finished run. Errors of the student against both references, in
// native units, NaN where the model predicts none, and against the surrogate where there is none;
// the arrays stand in result.npz beside it.
struct RunResult {
  RunSummary summary;
  double predicted_surrogate = 0, achieved_surrogate = 0;
  double predicted_teacher = 0, achieved_teacher = 0;
  std::map<std::string, std::string> training;  // options of training, as run.toml has them
  int dimensions = 0;
  std::int64_t peak_memory_bytes = 0;
  std::vector<MergeRecord> merges;  // children before parents
  std::string arrays_sha256;        // of result.npz

  bool operator==(const RunResult&) const = default;
};

// Replaces FOLDER/result.toml. The arrays, FOLDER/result.npz, are written before.
absl::Status WriteRunResult(const RunResult& result, const std::string& folder);

// FOLDER/result.toml. DATA_LOSS where FOLDER/result.npz does not have the hash that it states;
// other errors name the file, the key and what was expected.
absl::StatusOr<RunResult> ReadRunResult(const std::string& folder);

}  // namespace mergeplan
