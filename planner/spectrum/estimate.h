#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "planner/data/samples.h"
#include "planner/spectrum/kernels.h"
#include "planner/spectrum/spectrum.h"

namespace mergeplan {

// The covariance takes d^2 doubles (3.2 GB at the limit) and the eigenvectors as much again.
inline constexpr int kMaxDimensions = 20000;
inline constexpr int kMaxDiagonalDimensions = 1 << 26;  // without covariance
// Up to which all principal directions are computed unless they are asked for: about 9 d^3
// operations on one thread.
inline constexpr int kMaxAllDirections = 4096;

// Samples of a batch, count x d values: as float where that holds all that is stored.
using Rows = std::variant<absl::Span<const float>, absl::Span<const double>>;

struct EstimateOptions {
  // Not set: "-1:1" for 8-bit pixels, else "none".
  std::optional<Scaling> scaling;
  double confidence = 0.95;  // of the intervals, 0 < confidence < 1
  int threads = 0;           // 0: one per processor
  std::string source;        // name of the data, for the result and for errors
  std::string source_sha256;
  std::vector<SpectrumPart> parts;  // which samples these are, for the result
  // If not, neither want_pca nor want_dct nor shrinkage nor the bootstrap can be had (want_leading
  // can); a plain file
  // is then read by several threads at once (diagonal_pass.h), without begin and observe.
  bool want_covariance = true;
  bool want_pca = true;
  // Beyond that many dimensions want_pca gives leading directions in the place of all.
  int pca_up_to = kMaxAllDirections;
  // How many, with up to 40 products of the covariance (leading.h). 0: none.
  int leading = 128;
  // Leading directions whatever the number of dimensions; without covariance, too, where they cost
  // up to 40 passes over the data and need `reopen`.
  bool want_leading = false;
  bool want_dct = true;  // where the samples have spatial axes (dct.h)
  // Share of the covariance's energy off the diagonal, beyond what chance gives, up to which a
  // basis is good enough. The cheapest that is gets recommended: diagonal, dct, pca.
  double off_diagonal_bound = 0.01;
  // "none", "oas" or "ledoit-wolf", which needs `reopen` (shrinkage.h).
  std::string shrinkage_rule = "none";
  // Replicates of a Poisson bootstrap over the samples, from which the intervals of all bases are
  // made then; needs `reopen`. 0: none.
  int bootstrap = 0;
  std::uint64_t seed = 1;  // of the bootstrap
  // Called once before the first pass, when shape and number of dimensions are known.
  std::function<void(const std::vector<std::int64_t>& shape, int dimensions)> begin;
  // Called with every batch of the first pass, as stored, in order.
  std::function<void(const Rows& rows, int count)> observe;
  // Opens the same data once more. If set, the intervals along the principal directions and the
  // DCT's axes rest on the fourth moments of the data along them (a second pass); if not, on those
  // of a Gaussian.
  std::function<absl::StatusOr<std::unique_ptr<SampleSource>>()> reopen;
  // Asked every now and then, by the thread that called, while eigenvectors are computed; true ends
  // with CANCELLED. What cannot be stopped half-way then goes on for seconds on a thread that
  // nobody waits for.
  std::function<bool()> stop;
  // Which compiled copy of the inner loops to use; null: the fastest that the processor can run.
  const Kernels* kernels = nullptr;
};

// Streams `source` to its end and returns everything that the data's first two moments say: mean,
// unbiased covariance, variances along the data's own axes, along those of the DCT where the
// samples have spatial axes and, with want_pca, along the principal directions (eigenvectors of the
// covariance, largest eigenvalue first, the largest component of each positive; rounding below zero
// is set to zero). All in data units, x = value * multiply + add.
//
// Intervals: log of a sample variance v of n values with kurtosis k is close to normal with
// variance (k - (n-3)/(n-1)) / n, hence v * exp(+-z * its root); valid for any distribution with a
// fourth moment as n grows, not for small samples of heavy tails. Along principal directions this
// further assumes n >> d and distinct eigenvalues (the bias of sample eigenvalues is not
// corrected). Without `reopen` k = 3. With `bootstrap` the standard deviation of log v over the
// replicates takes the root's place. Basis::interval says which was used. A dimension of variance
// 0 has the interval [0, 0].
//
// Errors, naming `options.source`: INVALID_ARGUMENT for fewer than 2 samples, values that are not
// finite, d = 0, d > kMaxDimensions or a confidence outside (0, 1); DATA_LOSS when the second pass
// sees other data than the first; RESOURCE_EXHAUSTED; those of the source as they are.
//
// Time: n d^2 for the covariance, about 9 d^3 for the eigenvectors (one thread), 2 n d^2 in float32
// for the second pass; for k leading directions up to 100 k d^2, or 200 n k d without covariance.
// Memory: 4 d^2 doubles at most, and batches; independent of n. The result does not depend on how
// the source cuts its batches nor on `threads`; between instruction sets it differs by rounding.
absl::StatusOr<Spectrum> EstimateSpectrum(SampleSource& source, const EstimateOptions& options);

}  // namespace mergeplan
