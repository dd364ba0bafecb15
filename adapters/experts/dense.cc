#include "adapters/experts/dense.h"

#include <cmath>

#include "planner/base/clones.h"

#define MP_EACH inline __attribute__((always_inline))

namespace mergeplan::experts {
namespace {

// Partial sums side by side, so that the compiler may use registers of any width.
constexpr std::size_t kLanes = 16;

template <typename T>
MP_EACH void MultiplyAny(const T* m, std::size_t rows, std::size_t columns, std::size_t stride,
                         const T* x, const T* bias, T* out) {
  for (std::size_t i = 0; i < rows; ++i, m += stride) {
    T lanes[kLanes] = {};
    std::size_t j = 0;
    for (; j + kLanes <= columns; j += kLanes) {
      for (std::size_t l = 0; l < kLanes; ++l) lanes[l] += m[j + l] * x[j + l];
    }
    T sum = bias[i];
    for (; j < columns; ++j) sum += m[j] * x[j];
    for (std::size_t half = kLanes / 2; half > 0; half /= 2) {
      for (std::size_t l = 0; l < half; ++l) lanes[l] += lanes[l + half];
    }
    out[i] = sum + lanes[0];
  }
}

template <typename T>
MP_EACH void MultiplyTransposedAny(const T* m, std::size_t rows, std::size_t columns,
                                   std::size_t stride, const T* y, T* __restrict out) {
  for (std::size_t j = 0; j < columns; ++j) out[j] = 0;
  for (std::size_t i = 0; i < rows; ++i, m += stride) {
    for (std::size_t j = 0; j < columns; ++j) out[j] += y[i] * m[j];
  }
}

template <typename T>
MP_EACH void AddOuterAny(const T* y, const T* x, std::size_t rows, std::size_t columns,
                         std::size_t stride, T* __restrict m) {
  for (std::size_t i = 0; i < rows; ++i, m += stride) {
    for (std::size_t j = 0; j < columns; ++j) m[j] += y[i] * x[j];
  }
}

template <typename T>
MP_EACH void AdamAny(std::size_t count, T beta1, T beta2, T root_scale, T epsilon, T rate,
                     const T* __restrict g, T* __restrict m, T* __restrict v, T* __restrict p) {
  for (std::size_t i = 0; i < count; ++i) {
    m[i] += (1 - beta1) * (g[i] - m[i]);
    v[i] = beta2 * v[i] + (1 - beta2) * (g[i] * g[i]);
    p[i] -= rate * (m[i] / (std::sqrt(v[i]) * root_scale + epsilon));
  }
}

// A finite number times 0 is 0, anything else is NaN.
template <typename T>
MP_EACH bool AllFiniteAny(const T* values, std::size_t count) {
  T lanes[kLanes] = {};
  std::size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (std::size_t l = 0; l < kLanes; ++l) lanes[l] += values[i + l] * 0;
  }
  for (; i < count; ++i) lanes[0] += values[i] * 0;
  T sum = 0;
  for (const T lane : lanes) sum += lane;
  return sum == 0;
}

}  // namespace

// NOLINTBEGIN(bugprone-macro-parentheses): T is a type.
#define MP_DENSE(T)                                                                              \
  MP_CLONES void Multiply(const T* m, std::size_t rows, std::size_t columns, std::size_t stride, \
                          const T* x, const T* bias, T* out) {                                   \
    MultiplyAny(m, rows, columns, stride, x, bias, out);                                         \
  }                                                                                              \
  MP_CLONES void MultiplyTransposed(const T* m, std::size_t rows, std::size_t columns,           \
                                    std::size_t stride, const T* y, T* out) {                    \
    MultiplyTransposedAny(m, rows, columns, stride, y, out);                                     \
  }                                                                                              \
  MP_CLONES void AddOuter(const T* y, const T* x, std::size_t rows, std::size_t columns,         \
                          std::size_t stride, T* m) {                                            \
    AddOuterAny(y, x, rows, columns, stride, m);                                                 \
  }                                                                                              \
  MP_CLONES void Add(const T* from, std::size_t count, T* to) {                                  \
    for (std::size_t i = 0; i < count; ++i) to[i] += from[i];                                    \
  }                                                                                              \
  MP_CLONES bool AllFinite(const T* values, std::size_t count) {                                 \
    return AllFiniteAny(values, count);                                                          \
  }                                                                                              \
  MP_CLONES void AdamLoop(std::size_t count, T beta1, T beta2, T root_scale, T epsilon, T rate,  \
                          const T* g, T* m, T* v, T* p) {                                        \
    AdamAny(count, beta1, beta2, root_scale, epsilon, rate, g, m, v, p);                         \
  }                                                                                              \
  MP_CLONES void SgdLoop(std::size_t count, T rate, const T* g, T* p) {                          \
    for (std::size_t i = 0; i < count; ++i) p[i] -= rate * g[i];                                 \
  }

// NOLINTEND(bugprone-macro-parentheses)
MP_DENSE(float)
MP_DENSE(double)
#undef MP_DENSE

}  // namespace mergeplan::experts
