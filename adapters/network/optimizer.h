#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "adapters/linear/recipe.h"
#include "adapters/network/cuda/average.h"

namespace mergeplan::network {

// Moves a list of parameters by their gradients as the recipe says; every optimizer does what
// PyTorch's of the same name does (adapters/linear/recipe.h has options and meanings; `draws` and
// `student` of a recipe belong to linear students and must have their defaults). One fused LibTorch
// operation for all parameters, and for their average one (on CUDA a kernel of ours);
// O(parameters).
class Optimizer {
 public:
  // `parameters` are leaves that ask for gradients; they are moved in place. INVALID_ARGUMENT for a
  // recipe or rate that does not fit, and where there is no parameter.
  static absl::StatusOr<Optimizer> Create(std::vector<at::Tensor> parameters, const Recipe& recipe,
                                          double lr, std::int64_t updates);

  struct Result {
    bool finite = true;  // false: the gradient was not, and nothing was moved
    double norm = 0;     // of the whole gradient, before it was clipped
  };
  // Update number `update` (0-based) of the rate's schedule, from the parameters' grad() divided by
  // `scale`; a parameter without one counts as having gradient 0. Gradients are used up.
  absl::StatusOr<Result> Step(std::int64_t update, double scale = 1);
  // Sets all gradients to nothing.
  void Clear();

  const std::vector<at::Tensor>& parameters() const { return parameters_; }
  // What is frozen when the training ends: the average where there is one, else the parameters.
  const std::vector<at::Tensor>& Frozen() const {
    return average_.empty() ? parameters_ : average_;
  }

  // Everything but the parameters: momentum or moments, the average; names "first.0", …
  struct State {
    std::int64_t steps = 0;  // that were not skipped
    std::vector<at::Tensor> first, second, average;
  };
  State Save() const;  // copies
  // DATA_LOSS where it does not fit.
  absl::Status Restore(const State& state);

 private:
  Optimizer() = default;

  Recipe recipe_;
  double lr_ = 0;
  std::int64_t updates_ = 0;
  std::int64_t steps_ = 0;
  std::vector<at::Tensor> parameters_, first_, second_, average_;
  std::vector<at::Tensor> counts_;                     // steps, as the fused operations want it
  std::shared_ptr<const FusedAverage> fused_average_;  // null: LibTorch moves the average
};

// FAILED_PRECONDITION: `what` ("the loss is nan") at update `update` (0-based) of `updates`, and
// what to do about it.
absl::Status NotFiniteAt(const std::string& what, std::int64_t update, std::int64_t updates);

}  // namespace mergeplan::network
