#pragma once

#include <optional>
#include <string>

#include "adapters/denoising/run.h"

namespace mergeplan {

// What `mergeplan train-vae` was told; `training` are autoencoding::Options.
struct TrainVaeArguments : TrainingArguments {
  std::optional<std::string> size;
};

// Trains an AutoencoderKL, in its folder, and prints how it went. Exit codes as RunTrainTeacher.
int RunTrainVae(const TrainVaeArguments& arguments);

}  // namespace mergeplan
