#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "adapters/linear/trainer.h"
#include "adapters/runtime/device.h"

namespace mergeplan {

// How a step is computed. kFused: our own loops (adapters/linear), CPU only. kTensor: LibTorch's
// tensor operations over [merges, batch, d], any device. kAuto: kFused on the CPU, kTensor
// elsewhere.
enum class StepKind { kAuto, kFused, kTensor };

// The trainer for a device. Errors as MakeLinearTrainer; UNIMPLEMENTED for kFused off the CPU and,
// for kTensor, for a recipe other than SGD on samples (the rate may have a schedule).
absl::StatusOr<std::unique_ptr<Trainer>> MakeTrainer(std::vector<MergeTask> tasks,
                                                     const TrainerOptions& options,
                                                     const Device& device,
                                                     StepKind step = StepKind::kAuto);

// UNIMPLEMENTED, naming the option, for a recipe that this device cannot train by.
absl::Status CheckRecipe(const Recipe& recipe, const Device& device, StepKind step);

// How many merges of this size train together, at most: limits the memory of the tensor step to
// about 1 GiB. At least 1.
std::int64_t MergesTogether(const TrainerOptions& options, std::int64_t d);

// tensor_trainer.cc: of checked tasks and options.
absl::StatusOr<std::unique_ptr<Trainer>> MakeTensorTrainer(std::vector<MergeTask> tasks,
                                                           const TrainerOptions& options,
                                                           const Device& device);

}  // namespace mergeplan
