#include "adapters/runtime/kernel.h"

// One version of each function for processors with AVX2 and FMA and one for all others, chosen when
// the program starts.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define MERGEPLAN_CLONES __attribute__((target_clones("arch=haswell", "default")))
#define MERGEPLAN_INLINE __attribute__((always_inline)) inline
#else
#define MERGEPLAN_CLONES
#define MERGEPLAN_INLINE inline
#endif

namespace mergeplan {
namespace {

// `Width` neighbouring dimensions at once: their sums stay in registers while the samples go by.
template <int Width, typename T>
MERGEPLAN_INLINE void Tile(const float* noise, std::int64_t samples, std::int64_t stride,
                           const T* scale, const T* a, const T* p, T* gradient, T* loss) {
  T gradient_sum[Width] = {};
  T loss_sum[Width] = {};
  for (std::int64_t b = 0; b < samples; ++b) {
    const float* row = noise + b * stride;
    for (int k = 0; k < Width; ++k) {
      const T z = scale[k] * static_cast<T>(row[k]);
      const T error = a[k] * z - p[k] * z;
      gradient_sum[k] += z * error;
      loss_sum[k] += error * error;
    }
  }
  for (int k = 0; k < Width; ++k) {
    gradient[k] += gradient_sum[k];
    loss[k] += loss_sum[k];
  }
}

template <typename T>
MERGEPLAN_INLINE void Accumulate(const float* noise, std::int64_t samples, std::int64_t d,
                                 const T* scale, const T* a, const T* p, T* gradient, T* loss) {
  constexpr int kWidth = 16;
  std::int64_t k = 0;
  for (; k + kWidth <= d; k += kWidth) {
    Tile<kWidth>(noise + k, samples, d, scale + k, a + k, p + k, gradient + k, loss + k);
  }
  for (; k < d; ++k) {
    Tile<1>(noise + k, samples, d, scale + k, a + k, p + k, gradient + k, loss + k);
  }
}

}  // namespace

MERGEPLAN_CLONES void AccumulateGradient(const float* noise, std::int64_t samples, std::int64_t d,
                                         const double* scale, const double* a, const double* p,
                                         double* gradient, double* loss) {
  Accumulate(noise, samples, d, scale, a, p, gradient, loss);
}

MERGEPLAN_CLONES void AccumulateGradient(const float* noise, std::int64_t samples, std::int64_t d,
                                         const float* scale, const float* a, const float* p,
                                         float* gradient, float* loss) {
  Accumulate(noise, samples, d, scale, a, p, gradient, loss);
}

}  // namespace mergeplan
