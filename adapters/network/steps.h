#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "adapters/network/levels.h"
#include "adapters/network/module.h"
#include "adapters/network/precision.h"
#include "adapters/network/signature.h"
#include "planner/schedule/schedule.h"

namespace mergeplan::network {

// A network of this signature seen along a schedule: the DDIM wrapper, with the time and the scale
// of the input at every level. States are [B, shape] in the schedule's coordinates, float32 (or
// float64 where the network is).
class NetworkSteps {
 public:
  // Errors of LevelInputs and Validate.
  static absl::StatusOr<NetworkSteps> Create(const Signature& signature, const Schedule& schedule,
                                             Precision precision = Precision::kFull);

  // The network's output at z_from, turned into a state at the level `to` < `from`. Differentiable
  // where gradients are on. Errors of LandingAt and of the network.
  // `label`: classes of the rows, [B] int64, where the network has some.
  absl::StatusOr<at::Tensor> Jump(Module& module, const at::Tensor& z, int from, int to,
                                  const at::Tensor& label = {}) const;
  // The same with levels of its own for every row; one call of the network.
  absl::StatusOr<at::Tensor> JumpRows(Module& module, const at::Tensor& z,
                                      absl::Span<const int> from, absl::Span<const int> to,
                                      const at::Tensor& label = {}) const;

  const Signature& signature() const { return signature_; }
  const Schedule& schedule() const { return schedule_; }
  const LevelInput& input(int level) const { return inputs_[level]; }
  at::ScalarType network_type() const { return type_; }
  // Of states.
  at::ScalarType state_type() const { return type_ == at::kDouble ? at::kDouble : at::kFloat; }

 private:
  NetworkSteps(Signature signature, Schedule schedule, std::vector<LevelInput> inputs,
               Precision precision);

  Signature signature_;
  Schedule schedule_;
  std::vector<LevelInput> inputs_;
  Precision precision_;
  at::ScalarType type_;
};

}  // namespace mergeplan::network
