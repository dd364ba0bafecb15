#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "planner/data/samples.h"
#include "planner/spectrum/kernels.h"
#include "planner/spectrum/spectrum.h"

namespace mergeplan {

// Puts rows (count x d) times the covariance (d x d) into `out` (count x d).
using TimesCovariance = std::function<absl::Status(const double* rows, int count, double* out)>;

// The covariance that the spectrum holds; 2 count d^2. The spectrum must stay where it is.
TimesCovariance TimesKeptCovariance(const Spectrum& spectrum, const Kernels& kernels, int threads);

// The covariance of the data that `reopen` opens, by one pass over it; 4 samples count d. `mean` is
// as stored, `multiply` the scaling's factor. DATA_LOSS where the data has another number of
// samples now.
TimesCovariance TimesCovarianceOfData(
    std::function<absl::StatusOr<std::unique_ptr<SampleSource>>()> reopen, std::vector<double> mean,
    double multiply, std::int64_t samples, const Kernels& kernels, int threads);

struct LeadingOptions {
  int count = 128;             // of directions; at most as many as dimensions are found
  std::uint64_t seed = 1;      // of the directions to begin with
  double tolerance = 1e-3;     // error of each, relative to its variance, that is enough
  int most_products = 40;      // with the covariance, each of up to 1.25 count + 16 rows
  std::function<bool()> stop;  // estimate.h
};

// Sets `leading`, `leading_vectors` and `leading_errors`: leading eigenvectors of the covariance by
// subspace iteration from random directions, accelerated by Chebyshev polynomials, with 1.25 count
// + 16 directions at work. Their variances are Ritz values, never above the eigenvalues of the same
// number; errors[i] = |C v_i - variance_i v_i|, and an eigenvalue of C lies no farther from
// variance_i. Ends when all errors are within the tolerance, or after `most_products`: the errors
// say how far it came, slowest where neighbouring eigenvalues are close. Each direction has its
// largest component positive. Without regard to threads the same for the same seed.
//
// Memory: five times as many numbers as the directions at work have. CANCELLED where `stop` says
// so; errors of `times`.
absl::Status SetLeadingDirections(Spectrum& spectrum, const TimesCovariance& times,
                                  const LeadingOptions& options);

}  // namespace mergeplan
