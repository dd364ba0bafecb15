#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "planner/data/safetensors.h"

namespace mergeplan::layers {

// The folder of a model as diffusers writes it: config.json and weights in one .safetensors file or
// in several with an index.

// The folder itself, or the folder `name` inside it where that holds the model (a pipeline's).
// NOT_FOUND where neither has a config.json.
absl::StatusOr<std::string> FindModelFolder(const std::string& path, const std::string& name);

// Opens the weights: diffusion_pytorch_model.safetensors, the same behind an index, model.… of both
// kinds, then the variants fp16 and bf16. An index and its files must agree. A folder that only has
// .bin files is an error that says how to convert them: they are pickles, which run code when read.
absl::StatusOr<std::vector<std::unique_ptr<SafetensorsFile>>> OpenWeights(
    const std::string& folder);

// Makes a folder whole or not at all: `write` fills a new one beside it, which then takes its
// place. A folder that stands there already is replaced where all it holds is such a model, else
// FAILED_PRECONDITION names what is in the way. Folders above it are made.
absl::Status WriteModelFolder(const std::string& path,
                              const std::function<absl::Status(const std::string& folder)>& write);

}  // namespace mergeplan::layers
