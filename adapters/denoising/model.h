#pragma once

#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "adapters/denoising/scheduler.h"
#include "adapters/network/module.h"
#include "adapters/network/signature.h"

namespace mergeplan::denoising {

// A network to be trained, on the CPU, and all that is known of it.
struct Model {
  std::string kind;  // kUnetTeacher, kScriptTeacher
  std::shared_ptr<network::Module> module;
  network::Signature signature;        // with the table of its levels
  std::optional<Scheduler> scheduler;  // of a UNet2DModel
  std::string sha256;                  // of what it is and of its numbers
};

struct ModelRequest {
  std::string model;       // config.json, a diffusers folder, or a TorchScript network's sidecar
  std::string schedule;    // "": what the model says
  std::string prediction;  // "": what schedule or model say
  std::uint64_t seed = 0;  // of the weights of a config.json
};

// Reads, or makes with random weights, what is to be trained. INVALID_ARGUMENT where model,
// schedule and prediction do not go together; errors of what is read.
absl::StatusOr<Model> FindModel(const ModelRequest& request);

// SHA-256 of `what` and of a network's numbers.
absl::StatusOr<std::string> HashOfNetwork(const network::Module& module, const std::string& what);

// Writes a network of this model's kind: unet/, scheduler/ and model_index.json, which diffusers
// loads as a pipeline, or network/model.ts with its sidecar. Files that are there are replaced.
absl::Status WriteModel(const network::Module& module, const Model& like,
                        const std::string& folder);
// What WriteModel wrote.
absl::StatusOr<Model> LoadModel(const std::string& kind, const std::string& folder);

}  // namespace mergeplan::denoising
