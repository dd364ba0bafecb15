#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "adapters/network/module.h"
#include "adapters/network/signature.h"
#include "adapters/runtime/arguments.h"
#include "adapters/unet/config.h"

namespace mergeplan {

// A network as it lies on disk.
struct NetworkFile {
  std::shared_ptr<network::Module> module;
  network::Signature signature;
  std::string kind, path;  // as it was named: script:model.toml
  std::string sha256;      // of the files that determine what it computes
  std::string scheduler;   // unet: its scheduler_config.json
};

// What is known of a UNet2DModel of this config that was trained at the levels of a table. `where`
// begins errors: UNIMPLEMENTED for labels that are vectors, INVALID_ARGUMENT for a config without a
// size or without a number of classes.
absl::StatusOr<network::Signature> UnetSignature(const unet::Config& config,
                                                 network::Prediction prediction,
                                                 network::TrainingTable table,
                                                 const std::string& where);

// Loads KIND:PATH. Misuse for a kind that is no network; errors of LoadScript and UNet2d::Load.
absl::StatusOr<NetworkFile> LoadNetwork(const TeacherName& name);
// The shape of one sample of such a network, by its sidecar or config alone: no weights are read.
absl::StatusOr<std::vector<std::int64_t>> ShapeOfNetwork(const TeacherName& name);
// Writes a network of the same kind, trained, so that it can be loaded as KIND:FOLDER/.... What a
// UNet2DModel's folder does not say, the scheduler, is copied to FOLDER/../scheduler, as in a
// pipeline.
absl::Status SaveNetwork(const network::Module& module, const NetworkFile& like,
                         const std::string& folder);

}  // namespace mergeplan
