#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "planner/data/samples.h"
#include "planner/spectrum/dct.h"
#include "planner/spectrum/kernels.h"

namespace mergeplan {

// What a second pass over the data measures once mean and directions are known.
struct SecondPass {
  std::vector<double> pca_skewness, pca_kurtosis;  // along the principal directions; or empty
  std::vector<double> dct_skewness, dct_kurtosis;  // along the DCT's axes; or empty
  // Bootstrap standard errors of the logarithms of the variances; or empty.
  std::vector<double> diagonal_errors, pca_errors, dct_errors;
  double fourth_norm = 0;  // mean of |x - mean|^4 in units of unit^4
};

struct SecondPassOptions {
  int replicates = 0;  // of the bootstrap; 0: none
  std::uint64_t seed = 0;
  int threads = 1;
};

// `mean`, `unit` (the largest standard deviation, which keeps float32 in range) and the data are as
// stored: skewness and kurtosis do not depend on the scaling. Projected in float32, whose rounding
// is far below the sampling error of these moments. `vectors` is k x d or empty, `dct` may be null.
// DATA_LOSS where the data has another number of samples now.
absl::StatusOr<SecondPass> RunSecondPass(const std::vector<double>& vectors, const Dct* dct,
                                         const std::vector<double>& mean, double unit,
                                         std::int64_t samples, SampleSource& source,
                                         const Kernels& kernels, const SecondPassOptions& options);

}  // namespace mergeplan
