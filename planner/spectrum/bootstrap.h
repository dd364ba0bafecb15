#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "planner/spectrum/kernels.h"

namespace mergeplan {

// Poisson weights of bootstrap replicates: in replicate b the sample k counts w(k, b) times, w
// independent Poisson(1). For many samples that is drawing them with replacement, but it needs
// neither their number nor their order: any part of the data can be weighted by itself and added.
// `weights` is count x replicates, for samples first .. first + count - 1; they depend on the seed,
// the sample's number and the replicate only.
void PoissonWeights(std::uint64_t seed, std::int64_t first, int count, int replicates,
                    double* weights);

// Sums of every replicate over a stream of coordinates, and what they say of the variances.
class VarianceBootstrap {
 public:
  VarianceBootstrap(int dimensions, int replicates, const Kernels& kernels, int threads);

  // count x d coordinates, near 0 on average, and their weights (count x replicates).
  absl::Status Add(absl::Span<const double> rows, absl::Span<const double> weights, int count);

  // Standard error of the logarithm of every variance: the standard deviation over the replicates
  // (d); infinite where fewer than two replicates have a variance above 0.
  std::vector<double> LogErrors() const;

 private:
  int d_, replicates_;
  const Kernels& kernels_;
  int threads_;
  std::vector<double> count_;         // replicates
  std::vector<double> sum_, square_;  // replicates x d
  std::vector<double> squares_;       // of the current batch
};

}  // namespace mergeplan
