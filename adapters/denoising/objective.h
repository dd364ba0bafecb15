#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "adapters/denoising/batches.h"
#include "adapters/network/module.h"
#include "adapters/network/precision.h"

namespace mergeplan::denoising {

// What a training makes small: a loss of a network on batches by number, so that a training can be
// taken up anywhere.
class Objective {
 public:
  virtual ~Objective() = default;

  struct Loss {
    at::Tensor value;           // one number, with what backward() needs
    std::vector<double> parts;  // what it is made of, as `parts` names them, for the log
  };
  // Of the pass `number`. INVALID_ARGUMENT where the network does not fit; c10::Error may be
  // thrown.
  virtual absl::StatusOr<Loss> Of(network::Module& network, std::uint64_t number) const = 0;
  virtual std::vector<std::string> parts() const { return {}; }
};

// To say what a noisy input was made of: the loss of a row is its weight times the mean over the
// dimensions of the squared error of the output, and of a batch the mean over rows.
std::unique_ptr<Objective> DenoisingObjective(Batches batches, network::Precision precision);

}  // namespace mergeplan::denoising
