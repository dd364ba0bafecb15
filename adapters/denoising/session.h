#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "adapters/denoising/folder.h"
#include "adapters/denoising/options.h"
#include "adapters/denoising/run.h"
#include "adapters/denoising/trainer.h"
#include "adapters/network/module.h"

namespace mergeplan::denoising {

// A training with everything found and checked: what differs between commands that train in a
// folder.
class Task {
 public:
  virtual ~Task() = default;

  virtual const Options& options() const = 0;
  virtual TrainInfo& info() = 0;                   // what can be said before it begins
  virtual std::string note() const { return {}; }  // for people; may be empty
  // Once; uses up what it holds.
  virtual absl::StatusOr<std::unique_ptr<Trainer>> MakeTrainer() = 0;
  virtual absl::Status Write(const network::Module& network, const std::string& folder) const = 0;
  // A PNG of what the network does, or nothing.
  virtual absl::StatusOr<std::string> Picture(network::Module& network) const = 0;
};

// A command that trains.
struct TrainingCommand {
  std::string name;                // "train-teacher"
  std::vector<std::string> kinds;  // of train.toml, those that it goes on with
  // Misuse for options that cannot be; errors of what is read. Writes nothing.
  std::function<absl::StatusOr<std::unique_ptr<Task>>()> begin;
  // Do the options that are given with --resume say what the training says? Misuse.
  std::function<absl::Status(const TrainInfo&)> same;
  std::function<absl::StatusOr<std::unique_ptr<Task>>(TrainInfo)> go_on;
};

// Trains, in its folder, and prints how it went. Exit codes as RunTrainTeacher has them.
int RunTraining(const TrainingCommand& command, const TrainingArguments& arguments);

// "90" or "90s", "15m", "2h" in seconds; infinite for "". Misuse for other texts.
absl::StatusOr<double> ParseTimeLimit(const std::string& text);

// What was said, by name without dashes; data by its absolute path. Misuse for an empty text.
absl::StatusOr<std::map<std::string, std::string>> TextsOf(const TrainingArguments& arguments);
// The text of `name`, or `otherwise`.
std::string TextOr(const std::map<std::string, std::string>& texts, const std::string& name,
                   const std::string& otherwise = "");
// --data-rows, 0: all. Misuse.
absl::StatusOr<std::int64_t> DataRows(const std::map<std::string, std::string>& texts);
// --device. Misuse.
// Do the samples of a batch alone, before any network, fit into memory? RESOURCE_EXHAUSTED.
absl::Status CheckBatchMemory(std::int64_t batch, std::int64_t numbers_each);
absl::StatusOr<at::Device> DeviceOf(const std::map<std::string, std::string>& texts);

// Misuse names the first option of `wanted` that the training in `folder` does not have like that;
// `given` is how it was written.
absl::Status CheckSameTexts(const std::map<std::string, std::string>& given,
                            const std::map<std::string, std::string>& wanted, const TrainInfo& info,
                            const std::string& folder);

}  // namespace mergeplan::denoising
