#include "planner/spectrum/second_pass.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <memory>

#include "absl/strings/str_cat.h"
#include "planner/base/status_macros.h"
#include "planner/spectrum/batches.h"
#include "planner/spectrum/moments.h"
#include "planner/spectrum/parallel.h"

namespace mergeplan {

absl::StatusOr<SecondPass> RunSecondPass(const std::vector<double>& vectors, const Dct* dct,
                                         const std::vector<double>& mean, double unit,
                                         std::int64_t samples, SampleSource& source,
                                         const Kernels& kernels, int threads) {
  constexpr int kRows = 128;
  const int d = static_cast<int>(mean.size());
  const std::vector<float> directions(vectors.begin(), vectors.end());
  MomentAccumulator along_pca(d, /*with_covariance=*/false, threads, kernels);
  MomentAccumulator along_dct(d, /*with_covariance=*/false, threads, kernels);
  BatchReader reader(source, d);
  std::vector<double> widened(static_cast<std::size_t>(reader.capacity()) * d);
  std::vector<float> centred(directions.empty() ? 0 : widened.size()), projected(centred.size());
  std::vector<double> norms(static_cast<std::size_t>(reader.capacity()));
  std::int64_t seen = 0;
  long double fourth = 0;
  while (true) {
    MP_ASSIGN_OR_RETURN(const int count, reader.Next());
    if (count == 0) break;
    seen += count;
    const double* stored = reader.samples(count).data();
    const std::size_t used = static_cast<std::size_t>(count) * d;
    // Samples without their mean, and in float32 projected.
    MP_RETURN_IF_ERROR(ParallelFor((count + kRows - 1) / kRows, threads, [&](int task) {
      const int first = task * kRows, rows = std::min(kRows, count - first);
      const std::size_t begin = static_cast<std::size_t>(first) * d;
      for (int r = 0; r < rows; ++r) {
        const std::size_t row = begin + static_cast<std::size_t>(r) * d;
        double norm = 0;
        for (int i = 0; i < d; ++i) {
          const double x = (stored[row + i] - mean[i]) / unit;
          widened[row + i] = x;
          norm += x * x;
        }
        norms[static_cast<std::size_t>(first + r)] = norm;
      }
      if (directions.empty()) return true;
      std::copy_n(widened.begin() + static_cast<std::ptrdiff_t>(begin),
                  static_cast<std::size_t>(rows) * d,
                  centred.begin() + static_cast<std::ptrdiff_t>(begin));
      return kernels.multiply_transposed_f32(centred.data() + begin, rows, d, directions.data(),
                                             projected.data() + begin);
    }));
    for (int r = 0; r < count; ++r) fourth += norms[r] * norms[r];
    if (dct != nullptr) {
      MP_RETURN_IF_ERROR(ParallelFor((count + kRows - 1) / kRows, threads, [&](int task) {
        const int first = task * kRows, rows = std::min(kRows, count - first);
        std::vector<double> scratch;
        for (int r = 0; r < rows; ++r) {
          dct->Forward(widened.data() + static_cast<std::size_t>(first + r) * d, scratch);
        }
        return true;
      }));
      MP_RETURN_IF_ERROR(along_dct.Add(absl::MakeConstSpan(widened).subspan(0, used), count));
    }
    if (!directions.empty()) {
      std::copy_n(projected.begin(), used, widened.begin());
      MP_RETURN_IF_ERROR(along_pca.Add(absl::MakeConstSpan(widened).subspan(0, used), count));
    }
  }
  if (seen != samples) {
    return absl::DataLossError(absl::StrCat("the second pass read ", seen, " samples, the first ",
                                            samples, "; the data changed meanwhile, run it again"));
  }
  SecondPass out;
  if (!directions.empty()) {
    out.pca_skewness = along_pca.Skewness();
    out.pca_kurtosis = along_pca.Kurtosis();
  }
  if (dct != nullptr) {
    out.dct_skewness = along_dct.Skewness();
    out.dct_kurtosis = along_dct.Kurtosis();
  }
  out.fourth_norm = static_cast<double>(fourth / static_cast<long double>(seen));
  return out;
}

}  // namespace mergeplan
