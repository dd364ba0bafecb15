#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "planner/mixture/mixture.h"

namespace mergeplan {

struct MixtureFitOptions {
  CovarianceKind kind = CovarianceKind::kDiagonal;
  int components = 1;
  int rank = 0;      // of kLowRank, 1..d-1
  int restarts = 3;  // starts tried; the likeliest end is kept
  int most_iterations = 200;
  double tolerance = 1e-6;  // ends where an iteration gains less log-likelihood per sample
  // No variance (of kFull and kLowRank: no eigenvalue) falls below this share of the data's mean
  // variance, so that no component can close in on a single sample. The farthest percent of the
  // values at either end of every dimension do not count, or a single sample far out would lift the
  // floor above what all others are like.
  double floor = 1e-6;
  std::uint64_t seed = 1;
  int threads = 0;             // 0: one per processor
  std::function<bool()> stop;  // asked between iterations: true ends the fit with CANCELLED
};

struct MixtureFit {
  MixtureSpec spec;
  double log_likelihood = 0;    // of all samples
  std::int64_t parameters = 0;  // free numbers of the spec
  double bic = 0;               // parameters ln n - 2 log_likelihood: less is better
  int iterations = 0;           // of the start that was kept
  bool converged = false;
};

// Maximum likelihood by expectation-maximisation from k-means++ starts: each start draws centres
// from the samples with probabilities that grow with the squared distance from those drawn before,
// refines them by ten rounds of k-means and takes the moments of the clusters.
//
// `rows` is n x d, row-major, in the units that the mixture shall have. kLowRank is a mixture of
// probabilistic principal component analysers (Tipping and Bishop 1999): factors of `rank` columns
// and one variance for all other directions. Components that run empty are dropped, so the result
// may have fewer than asked for; they come by falling weight. The same seed gives the same result
// on any number of threads.
//
// INVALID_ARGUMENT where there are fewer samples than components (or than 2), a value is not
// finite, the data has no variance at all, or an option is out of range; RESOURCE_EXHAUSTED. An
// iteration costs O(n K d), of kFull and kLowRank O(n K d^2 + K d^3). Memory: n K numbers, of kFull
// and kLowRank also 3 K d^2.
absl::StatusOr<MixtureFit> FitMixture(absl::Span<const double> rows, int d,
                                      const MixtureFitOptions& options);

// Of a mixture of these sizes.
std::int64_t MixtureParameters(CovarianceKind kind, int components, int d, int rank);

// Of every row under a mixture: its log density (n), and the probabilities that it is of each
// component (n x K, row-major).
struct MixtureDensities {
  std::vector<double> log_densities, responsibilities;
};
// Covariances must have full rank (INTERNAL otherwise). INVALID_ARGUMENT where the rows are no
// whole samples; errors of GaussianMixture::Create. O(n K d), of kFull and kLowRank O(n K d^2).
absl::StatusOr<MixtureDensities> DensitiesOf(const MixtureSpec& spec,
                                             absl::Span<const double> rows);

}  // namespace mergeplan
