#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "adapters/denoising/log.h"
#include "adapters/denoising/trainer.h"

namespace mergeplan::denoising {

// checkpoint.safetensors: how far a training has come, exactly. Its texts: format, fingerprint,
// sha256. Its tensors: counts (updates, skipped, good, optimizer steps), scale,
// log (Log::Numbers), and parameter.<i>, buffer.<i>, average.<i>, first.<i>, second.<i>.
struct Checkpoint {
  TrainerState trainer;
  Log log;
};

absl::Status WriteCheckpoint(const Checkpoint& checkpoint, const std::string& fingerprint,
                             const std::string& path);
// NOT_FOUND; DATA_LOSS names what is damaged; FAILED_PRECONDITION for one of another run or format.
// Trainer::Restore checks that it fits the network.
// `parts` of the log.
absl::StatusOr<Checkpoint> ReadCheckpoint(const std::string& fingerprint, const std::string& path,
                                          std::vector<std::string> parts = {});

}  // namespace mergeplan::denoising
