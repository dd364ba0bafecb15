#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "adapters/runtime/executor.h"

namespace mergeplan {

enum class RunStatus { kRunning, kStopped, kFinished };
std::string ToString(RunStatus status);  // "running", "stopped", "finished"

// run.toml: what a run is, so that it can be continued and reported.
struct RunInfo {
  RunStatus status = RunStatus::kRunning;
  std::string strategy;  // name of the plugin
  std::string plugin;    // its manifest
  std::string plugin_version;
  std::map<std::string, std::string> parameters;  // of the plugin
  std::string spectrum;                           // absolute path
  std::string spectrum_sha256, variances_sha256;
  std::string basis;
  std::int64_t seed = 0;
  std::string dtype, device;
  int batch = 0;
  std::string plan_sha256;  // of plan.toml
  std::string fingerprint;  // of all that determines the numbers
  std::string mergeplan_version, torch_version;
};

// The last line of a run.
struct RunSummary {
  std::string strategy;
  std::string reference;
  double predicted = 0;  // objective of the plan in the linear model, native units
  double achieved = 0;   // the same of the trained operators
  double seconds = 0;    // of training, over all parts of the run
  int merges = 0;
  std::int64_t updates = 0;
  std::int64_t teacher_calls = 0;
};

// A run's folder:
//   run.toml                  what it is and how far it is
//   plan.toml (plan.npz)      the plan that it executes
//   checkpoint.npz            how far the training has come
//   result.toml, result.npz   when it is finished
// Every file is written beside and renamed. A lock keeps two programs out of one folder.
class RunFolder {
 public:
  // May a run begin (or, with `resume`, go on) here? Misuse when the folder holds a run and
  // `resume` is false, when it holds none and `resume` is true, or when it holds something else.
  // Touches nothing.
  static absl::Status Check(const std::string& path, bool resume);
  // Checks, makes the folder when it is not there, and takes it. FAILED_PRECONDITION when another
  // program works in it. Changes nothing that is in it.
  static absl::StatusOr<RunFolder> Open(const std::string& path, bool resume);
  ~RunFolder();
  RunFolder(RunFolder&& other) noexcept;
  RunFolder& operator=(RunFolder&&) = delete;

  const std::string& path() const { return path_; }
  std::string File(const std::string& name) const { return path_ + "/" + name; }
  // The run that is resumed.
  const std::optional<RunInfo>& previous() const { return previous_; }

  absl::Status WriteInfo(const RunInfo& info) const;

 private:
  RunFolder() = default;
  std::string path_;
  int lock_ = -1;
  std::optional<RunInfo> previous_;
};

// Errors name the file, the key and what was expected.
absl::StatusOr<RunInfo> ReadRunInfo(const std::string& path);

}  // namespace mergeplan
