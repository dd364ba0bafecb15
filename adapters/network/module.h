#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace mergeplan::network {

// A time-conditioned network as people have it: a pretrained one, or a student. What it predicts
// (x0, epsilon, v, flow) and which time it wants at a level are said beside it.
class Module {
 public:
  using Named = std::pair<std::string, at::Tensor>;

  virtual ~Module() = default;

  // z: [B, ...] in the network's dtype and device; time: [B], what the network calls its timestep
  // or sigma; label: [B] int64 where the network is class conditional, else undefined. Returns
  // [B, ...] of z's shape. Differentiable in z and in the parameters. INVALID_ARGUMENT for shapes
  // that the network cannot take: it says what was found and what was expected.
  virtual absl::StatusOr<at::Tensor> Forward(const at::Tensor& z, const at::Tensor& time,
                                             const at::Tensor& label) = 0;

  // Leaves, in an order that does not change; the same tensors at every call.
  virtual std::vector<Named> Parameters() const = 0;
  virtual std::vector<Named> Buffers() const = 0;

  // Parameters and buffers of their own, with the same values; leaves that ask for a gradient as
  // the original's do.
  virtual absl::StatusOr<std::unique_ptr<Module>> Clone() const = 0;
  // Dropout and the like on (training) or off.
  virtual void SetTraining(bool on) = 0;
  virtual absl::Status To(at::Device device, at::ScalarType dtype) = 0;
  // What `backward` needs of the blocks is computed again there instead of being kept: less memory,
  // about a fifth more time, the same gradients. Clones do as the original. UNIMPLEMENTED where the
  // network cannot.
  virtual absl::Status SetGradientCheckpointing(bool on) {
    return on ? absl::UnimplementedError("gradient checkpointing: this kind of network has none")
              : absl::OkStatus();
  }

  // Writes the network in its own format, so that what it came from can load it: a file or a
  // folder, made whole or not at all.
  virtual absl::Status Save(const std::string& path) const = 0;
};

}  // namespace mergeplan::network
