#pragma once

#include <cstdint>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "adapters/experts/aligned.h"

namespace mergeplan::experts {

enum class OptimizerKind { kAdam, kSgd };
// "adam", "sgd".
std::string_view ToString(OptimizerKind kind);
absl::StatusOr<OptimizerKind> ParseOptimizer(std::string_view word);

// torch.optim.Adam and SGD with these arguments, without decay of weights.
struct OptimizerOptions {
  OptimizerKind kind = OptimizerKind::kAdam;
  double lr = 1e-3;
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;  // of Adam

  bool operator==(const OptimizerOptions&) const = default;
};

// INVALID_ARGUMENT names what is out of range: lr > 0, 0 <= beta < 1, epsilon > 0, all finite.
absl::Status Validate(const OptimizerOptions& options);

// Adam after `step` >= 1 steps, this one included:
//   m <- beta1 m + (1 - beta1) g,  v <- beta2 v + (1 - beta2) g^2
//   p <- p - lr / (1 - beta1^step) m / (sqrt(v) / sqrt(1 - beta2^step) + epsilon)
// SGD: p <- p - lr g; m and v stay empty. All have as many numbers as g.
template <typename T>
void OptimizerStep(const OptimizerOptions& options, std::int64_t step, const AlignedVector<T>& g,
                   AlignedVector<T>& m, AlignedVector<T>& v, AlignedVector<T>& p);

}  // namespace mergeplan::experts
