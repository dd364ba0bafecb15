#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "adapters/runtime/folder_lock.h"
#include "planner/runs/run_info.h"

namespace mergeplan::denoising {

// The kind of a training that is no teacher's (adapters/autoencoding).
inline constexpr char kAutoencoder[] = "autoencoder";

// train.toml: what a training is, and how far.
struct TrainInfo {
  RunStatus status = RunStatus::kRunning;
  std::string kind;  // of the network: kUnetTeacher, kScriptTeacher, kAutoencoder
  std::map<std::string, std::string> options;  // by name without dashes, all that decide numbers
  std::string model_sha256, data_sha256;       // of the network that it began with; of the samples
  std::string fingerprint;                     // of all that determines the numbers
  std::string mergeplan_version, torch_version;
  int threads = 0;  // of LibTorch's operations, whose last bits depend on it; 0: not known
  // How far.
  std::int64_t parameters = 0, updates = 0, skipped = 0;
  double loss = 0;  // mean of the last hundredth of the updates, at least 100; NaN: none yet
  double seconds = 0;

  bool operator==(const TrainInfo&) const = default;
};

// INVALID_ARGUMENT for a text that is not UTF-8.
absl::Status WriteTrainInfo(const TrainInfo& info, const std::string& path);
// Errors name the file, the key and what was expected.
absl::StatusOr<TrainInfo> ReadTrainInfo(const std::string& path);

// The folder of a training, which is the trained network's as well:
//   train.toml, log.csv          what it is and how it went
//   checkpoint.safetensors       how far it has come, until it is finished
//   unet/, scheduler/, model_index.json   diffusers' pipeline (or network/, TorchScript; or vae/)
//   samples.png, samples-N.png   what it draws, at the end and after N updates
//   lock                         keeps two programs out
class Folder {
 public:
  // May a training begin (or, with `resume`, go on) here? Misuse. Touches nothing.
  static absl::Status Check(const std::string& path, bool resume);
  // Checks, makes the folder when it is not there, and takes it. FAILED_PRECONDITION when another
  // program works in it.
  static absl::StatusOr<Folder> Open(const std::string& path, bool resume);

  const std::string& path() const { return path_; }
  std::string File(const std::string& name) const { return path_ + "/" + name; }

 private:
  Folder() = default;
  std::string path_;
  std::optional<FolderLock> lock_;
};

}  // namespace mergeplan::denoising
