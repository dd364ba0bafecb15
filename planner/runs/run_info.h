#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace mergeplan {

// Kinds of teachers, as `--teacher KIND:FILE` names them.
inline constexpr char kAnalyticTeacher[] = "analytic";  // FILE: spectrum.toml
inline constexpr char kMixtureTeacher[] = "mixture";    // FILE: mixture.toml
inline constexpr char kScriptTeacher[] = "script";  // FILE: a TorchScript network, or its sidecar
inline constexpr char kUnetTeacher[] = "unet";      // FILE: a folder of diffusers' UNet2DModel
// Kinds of students.
inline constexpr char kLinearStudent[] = "linear";    // a multiplication for every dimension
inline constexpr char kExpertsStudent[] = "experts";  // affine mixtures of experts
inline constexpr char kNetworkStudent[] = "network";

enum class RunStatus { kRunning, kStopped, kFinished };
std::string ToString(RunStatus status);  // "running", "stopped", "finished"

// run.toml: what a run is, so that it can be continued and reported.
struct RunInfo {
  RunStatus status = RunStatus::kRunning;
  std::string strategy;  // name of the plugin
  std::string plugin;    // its manifest
  std::string plugin_version;
  std::map<std::string, std::string> parameters;  // of the plugin
  std::string teacher;                            // its kind: kAnalyticTeacher, ...
  std::string teacher_file;                       // absolute path
  std::string teacher_sha256;                     // of that file, or of the files that count in it
  std::string student;                            // its kind: kLinearStudent, ...
  std::string variances_sha256;                   // that the plan was made for
  std::string basis;
  std::int64_t seed = 0;
  std::string dtype, device;
  int batch = 0;
  int threads = 0;  // of LibTorch's operations, whose last bits depend on it; 0: not known
  std::map<std::string, std::string> training;  // options of training by name, without dashes
  // What the linear model says of the run: "law" (every value is a draw of the law of SGD), "mean"
  // (its mean is known), "moments" (the students are not linear; predicted is what linear ones of
  // the Gaussian with the data's moments would reach) or "none".
  std::string prediction;
  std::string plan_sha256;  // of plan.toml
  std::string fingerprint;  // of all that determines the numbers
  std::string mergeplan_version, torch_version;

  bool operator==(const RunInfo&) const = default;
};

// Replaces the file at `path`. Every text must be UTF-8: INVALID_ARGUMENT names the one that is
// not.
absl::Status WriteRunInfo(const RunInfo& info, const std::string& path);
// Errors name the file, the key and what was expected.
absl::StatusOr<RunInfo> ReadRunInfo(const std::string& path);

}  // namespace mergeplan
