#include "planner/spectrum/second_pass.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <memory>
#include <optional>

#include "absl/strings/str_cat.h"
#include "planner/base/status_macros.h"
#include "planner/spectrum/batches.h"
#include "planner/spectrum/bootstrap.h"
#include "planner/spectrum/moments.h"
#include "planner/spectrum/parallel.h"

namespace mergeplan {

absl::StatusOr<SecondPass> RunSecondPass(const std::vector<double>& vectors, const Dct* dct,
                                         const std::vector<double>& mean, double unit,
                                         std::int64_t samples, SampleSource& source,
                                         const Kernels& kernels, const SecondPassOptions& options) {
  constexpr int kRows = 128;
  const int threads = options.threads;
  const int d = static_cast<int>(mean.size());
  const int k = static_cast<int>(vectors.size() / mean.size());
  const std::vector<float> directions(vectors.begin(), vectors.end());
  MomentAccumulator along_pca(k, /*with_covariance=*/false, threads, kernels);
  MomentAccumulator along_dct(d, /*with_covariance=*/false, threads, kernels);
  BatchReader<double> reader(source, d, threads);
  std::vector<double> widened(static_cast<std::size_t>(reader.capacity()) * d);
  std::vector<float> centred(directions.empty() ? 0 : widened.size()),
      projected(static_cast<std::size_t>(reader.capacity()) * static_cast<std::size_t>(k));
  std::vector<double> norms(static_cast<std::size_t>(reader.capacity()));
  std::int64_t seen = 0;
  std::optional<VarianceBootstrap> of_diagonal, of_dct, of_pca;
  std::vector<double> weights;
  if (options.replicates > 0) {
    of_diagonal.emplace(d, options.replicates, kernels, threads);
    if (dct != nullptr) of_dct.emplace(d, options.replicates, kernels, threads);
    if (!vectors.empty()) of_pca.emplace(k, options.replicates, kernels, threads);
    weights.resize(static_cast<std::size_t>(reader.capacity()) *
                   static_cast<std::size_t>(options.replicates));
  }
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
      return kernels.multiply_transposed_f32(centred.data() + begin, rows, d, directions.data(), k,
                                             projected.data() + std::ptrdiff_t{first} * k);
    }));
    const auto rows = absl::MakeConstSpan(widened).subspan(0, used);
    if (of_diagonal) {
      PoissonWeights(options.seed, seen - count, count, options.replicates, weights.data());
      MP_RETURN_IF_ERROR(of_diagonal->Add(rows, weights, count));
    }
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
      MP_RETURN_IF_ERROR(along_dct.Add(rows, count));
      if (of_dct) MP_RETURN_IF_ERROR(of_dct->Add(rows, weights, count));
    }
    if (!directions.empty()) {
      const std::size_t all = static_cast<std::size_t>(count) * static_cast<std::size_t>(k);
      std::copy_n(projected.begin(), all, widened.begin());
      const auto coordinates = rows.subspan(0, all);
      MP_RETURN_IF_ERROR(along_pca.Add(coordinates, count));
      if (of_pca) MP_RETURN_IF_ERROR(of_pca->Add(coordinates, weights, count));
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
  if (of_diagonal) out.diagonal_errors = of_diagonal->LogErrors();
  if (of_dct) out.dct_errors = of_dct->LogErrors();
  if (of_pca) out.pca_errors = of_pca->LogErrors();
  out.fourth_norm = static_cast<double>(fourth / static_cast<long double>(seen));
  return out;
}

}  // namespace mergeplan
