#pragma once

#include <cstdint>
#include <vector>

#include "adapters/linear/trainer.h"

namespace mergeplan {

// One merge's numbers while it trains, d each; where the recipe has no use for them, null.
template <typename T>
struct MergeNumbers {
  T* a;
  const T* p;
  T *first, *second, *average;
};

// Moves one merge by one update. A linear student's parameters w never have to be stored: with a =
// <w, phi> their gradient is G phi, G the derivative by a, so that
//
//   SGD       momentum and decay keep to the direction phi: one number a dimension
//   Adam(W)   the moments of parameter i are phi_i M and phi_i^2 V, with M and V those of G, and a
//             moves by rate sum_i phi_i^2 M / (|phi_i| sqrt(V) + eps): O(64) a dimension, no
//             storage
//   EMA       the average of <w, phi> is that of w, times phi
//
// For a student of one parameter phi is the number sqrt(F). tests/oracle/linear_training.h has all
// of it written out with the parameters.
template <typename T>
class Optimizer {
 public:
  // `time` of the merge, for the embedding.
  Optimizer(const TrainerOptions& options, double time);

  // Update number u (0-based) of a merge of d dimensions from its sums of squares, sum_b z_b^2.
  // Gives the batch's loss before it.
  double Step(std::int64_t u, std::int64_t d, const T* sums, const MergeNumbers<T>& merge) const;

  // Which numbers the recipe needs.
  static bool HasFirst(const Recipe& recipe) {
    return recipe.optimizer != OptimizerKind::kSgd || recipe.momentum > 0;
  }
  static bool HasSecond(const Recipe& recipe) { return recipe.optimizer != OptimizerKind::kSgd; }
  static bool HasAverage(const Recipe& recipe) { return recipe.ema > 0; }

 private:
  double Loss(std::int64_t d, const T* sums, const MergeNumbers<T>& merge) const;
  // What gradients are multiplied with so that the norm of the whole stays below the recipe's.
  T Clip(std::int64_t d, const T* sums, const MergeNumbers<T>& merge) const;
  void Sgd(T rate, T clip, std::int64_t d, const T* sums, const MergeNumbers<T>& merge) const;
  void Adam(std::int64_t u, T rate, T clip, std::int64_t d, const T* sums,
            const MergeNumbers<T>& merge) const;
  // sum_i phi_i^2 / (|phi_i| root + eps).
  T Reach(T root) const;

  TrainerOptions options_;
  T mean_rate_;         // 2 / B
  std::vector<T> phi_;  // |phi_i|, padded with zeros
};

}  // namespace mergeplan
