#include "adapters/linear/optimizer.h"

#include <algorithm>
#include <cmath>

#include "adapters/linear/embedding.h"

namespace mergeplan {
namespace {

constexpr int kLanes = 8;  // partial sums, in an order of their own

// x^n by squaring, the same on every machine.
double Power(double x, std::int64_t n) {
  double out = 1;
  for (; n > 0; n >>= 1, x *= x) {
    if ((n & 1) != 0) out *= x;
  }
  return out;
}

}  // namespace

template <typename T>
Optimizer<T>::Optimizer(const TrainerOptions& options, double time)
    : options_(options), mean_rate_(static_cast<T>(2.0 / static_cast<double>(options.rows()))) {
  if (options.recipe.student == StudentKind::kEmbedding) {
    for (const double phi : SinusoidalEmbedding(time)) {
      phi_.push_back(static_cast<T>(std::abs(phi)));
    }
  } else {
    phi_ = {static_cast<T>(std::sqrt(options.feature_norm))};
  }
}

template <typename T>
double Optimizer<T>::Loss(std::int64_t d, const T* sums, const MergeNumbers<T>& merge) const {
  T part[kLanes] = {};
  std::int64_t k = 0;
  for (; k + kLanes <= d; k += kLanes) {
    for (int l = 0; l < kLanes; ++l) {
      const T error = merge.a[k + l] - merge.p[k + l];
      part[l] += sums[k + l] * error * error;
    }
  }
  for (; k < d; ++k) {
    const T error = merge.a[k] - merge.p[k];
    part[0] += sums[k] * error * error;
  }
  double sum = 0;
  for (const T x : part) sum += static_cast<double>(x);
  return sum / static_cast<double>(options_.rows());
}

template <typename T>
T Optimizer<T>::Clip(std::int64_t d, const T* sums, const MergeNumbers<T>& merge) const {
  if (options_.recipe.clip_norm == 0) return 1;
  double squares = 0;
  for (std::int64_t k = 0; k < d; ++k) {
    const double g = mean_rate_ * sums[k] * (merge.a[k] - merge.p[k]);
    squares += g * g;
  }
  const double norm = std::sqrt(options_.feature_norm * squares);
  return static_cast<T>(std::min(1.0, options_.recipe.clip_norm / (norm + 1e-6)));
}

template <typename T>
void Optimizer<T>::Sgd(T rate, T clip, std::int64_t d, const T* sums,
                       const MergeNumbers<T>& merge) const {
  T* a = merge.a;
  const T* p = merge.p;
  const T norm = static_cast<T>(options_.feature_norm) * mean_rate_ * clip;
  const T decay = static_cast<T>(options_.recipe.weight_decay);
  if (merge.first == nullptr && decay == 0) {
    const T factor = rate * norm;
    for (std::int64_t k = 0; k < d; ++k) a[k] -= factor * sums[k] * (a[k] - p[k]);
    return;
  }
  const T momentum = static_cast<T>(options_.recipe.momentum);
  T* first = merge.first;
  for (std::int64_t k = 0; k < d; ++k) {
    T direction = norm * sums[k] * (a[k] - p[k]) + decay * a[k];
    if (first != nullptr) direction = first[k] = momentum * first[k] + direction;
    a[k] -= rate * direction;
  }
}

template <typename T>
T Optimizer<T>::Reach(T root) const {
  const T eps = static_cast<T>(options_.recipe.eps);
  if (phi_.size() == 1) return phi_[0] * phi_[0] / (phi_[0] * root + eps);
  T part[kLanes] = {};
  for (int i = 0; i < kEmbeddingSize; i += kLanes) {
    for (int l = 0; l < kLanes; ++l) {
      const T phi = phi_[i + l];
      part[l] += phi * phi / (phi * root + eps);
    }
  }
  return ((part[0] + part[4]) + (part[1] + part[5])) + ((part[2] + part[6]) + (part[3] + part[7]));
}

template <typename T>
void Optimizer<T>::Adam(std::int64_t u, T rate, T clip, std::int64_t d, const T* sums,
                        const MergeNumbers<T>& merge) const {
  const Recipe& recipe = options_.recipe;
  const T beta1 = static_cast<T>(recipe.beta1), beta2 = static_cast<T>(recipe.beta2);
  const T rest1 = static_cast<T>(1 - recipe.beta1), rest2 = static_cast<T>(1 - recipe.beta2);
  const T step = static_cast<T>(static_cast<double>(rate) / (1 - Power(recipe.beta1, u + 1)));
  const T root2 = static_cast<T>(1 / std::sqrt(1 - Power(recipe.beta2, u + 1)));
  const bool decoupled = recipe.optimizer == OptimizerKind::kAdamW;
  const T shrink = decoupled ? 1 - rate * static_cast<T>(recipe.weight_decay) : T{1};
  // Of one parameter w = a / sqrt(F): the decay's gradient, as one by a.
  const T decay = decoupled ? T{0} : static_cast<T>(recipe.weight_decay / options_.feature_norm);
  const T mean = mean_rate_ * clip;
  for (std::int64_t k = 0; k < d; ++k) {
    T& a = merge.a[k];
    const T g = mean * sums[k] * (a - merge.p[k]) + decay * a;
    T& first = merge.first[k];
    T& second = merge.second[k];
    first = beta1 * first + rest1 * g;
    second = beta2 * second + rest2 * g * g;
    a = shrink * a - step * first * Reach(std::sqrt(second) * root2);
  }
}

template <typename T>
double Optimizer<T>::Step(std::int64_t u, std::int64_t d, const T* sums,
                          const MergeNumbers<T>& merge) const {
  const Recipe& recipe = options_.recipe;
  const double loss = Loss(d, sums, merge);
  const T rate = static_cast<T>(options_.lr * recipe.RateFactor(u, options_.updates));
  const T clip = Clip(d, sums, merge);
  if (recipe.optimizer == OptimizerKind::kSgd) {
    Sgd(rate, clip, d, sums, merge);
  } else {
    Adam(u, rate, clip, d, sums, merge);
  }
  if (merge.average != nullptr) {
    const T keep = static_cast<T>(recipe.ema), rest = static_cast<T>(1 - recipe.ema);
    for (std::int64_t k = 0; k < d; ++k) {
      merge.average[k] = keep * merge.average[k] + rest * merge.a[k];
    }
  }
  return loss;
}

template class Optimizer<double>;
template class Optimizer<float>;

}  // namespace mergeplan
