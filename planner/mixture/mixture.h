#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "planner/mixture/step_tables.h"

namespace mergeplan {

// "diagonal", "low-rank", "full".
std::string_view ToString(CovarianceKind kind);

// The numbers of a mixture, row-major. Arrays that the kind does not use stay empty.
struct MixtureSpec {
  std::string name;  // for people
  CovarianceKind kind = CovarianceKind::kDiagonal;
  int components = 0;               // K
  int dimensions = 0;               // d
  int rank = 0;                     // r, of kLowRank; else 0
  std::vector<double> weights;      // K
  std::vector<double> means;        // K x d
  std::vector<double> variances;    // K x d, of kDiagonal and kLowRank
  std::vector<double> factors;      // K x d x r, of kLowRank
  std::vector<double> covariances;  // K x d x d, of kFull

  bool operator==(const MixtureSpec&) const = default;
};

inline constexpr int kMaxMixtureComponents = 65536;
inline constexpr int kMaxMixtureDimensions = 20000;
// Of the largest array, 2 GiB.
inline constexpr std::int64_t kMaxMixtureNumbers = std::int64_t{1} << 28;

// The data's law as a Gaussian mixture, sum_k weight_k N(mean_k, covariance_k) (eq:gmm_assumption),
// checked, with what every noise level needs of its covariances. Copies share the numbers.
class GaussianMixture {
 public:
  // Checks and completes. Weights that miss 1 by more than rounding, but at most 1e-6, are divided
  // by their sum, and full covariances that are not quite symmetric become the mean of both halves;
  // notes() says so. INVALID_ARGUMENT names the array, the index, what was found and what was
  // expected:
  //   1 <= K <= kMaxMixtureComponents, 1 <= d <= kMaxMixtureDimensions, 1 <= r <= d, no array of
  //   more than kMaxMixtureNumbers; finite numbers; weights > 0; variances >= 0; full covariances
  //   symmetric and without eigenvalues below 0, both within 1e-6 of their largest entry (what
  //   float32 leaves).
  // RESOURCE_EXHAUSTED. O(K d^3) of kFull, O(K d r^2) of kLowRank, else O(K d).
  static absl::StatusOr<GaussianMixture> Create(MixtureSpec spec);

  const MixtureSpec& spec() const { return data_->spec; }
  const std::string& name() const { return spec().name; }
  CovarianceKind kind() const { return spec().kind; }
  int components() const { return spec().components; }
  int dimensions() const { return spec().dimensions; }
  int rank() const { return spec().rank; }
  absl::Span<const double> weights() const { return spec().weights; }
  absl::Span<const double> mean(int k) const { return Row(spec().means, k); }
  const std::vector<std::string>& notes() const { return data_->notes; }

  // The covariance of component k, d x d, row-major.
  std::vector<double> Covariance(int k) const;

  // The law of factor * x; factor > 0 and finite, and so must be the numbers that come out.
  absl::StatusOr<GaussianMixture> Scaled(double factor) const;

  // What was derived from the covariances.
  struct Derived {
    // Per component directions of unit length as rows, and the same transposed: of kFull d x d, the
    // eigenvectors by falling eigenvalue. Of kLowRank r x d, the left singular vectors of the
    // factors; there only where every component's variances are all alike (then they are also
    // those of every noise level).
    std::vector<double> axes, axes_transposed;
    // K x d eigenvalues >= 0 of kFull; K x r singular values of the factors, where axes are there.
    std::vector<double> values;
  };
  const Derived& derived() const { return data_->derived; }

  bool operator==(const GaussianMixture& other) const { return spec() == other.spec(); }

 private:
  struct Data {
    MixtureSpec spec;
    std::vector<std::string> notes;
    Derived derived;
  };
  explicit GaussianMixture(std::shared_ptr<const Data> data) : data_(std::move(data)) {}
  absl::Span<const double> Row(const std::vector<double>& values, int k) const {
    const std::size_t d = spec().dimensions;
    return absl::MakeConstSpan(values).subspan(static_cast<std::size_t>(k) * d, d);
  }

  std::shared_ptr<const Data> data_;
};

// K modes of equal weight and covariance spread^2 I, evenly spaced on a circle in two dimensions,
// the first at (radius, 0). With the defaults the paper's mixture
// (subsec:gaussian_mixtures_dataset), which leaves the weights and the first angle open.
// INVALID_ARGUMENT as Create.
absl::StatusOr<GaussianMixture> CircleMixture(int components = 8, double radius = 5.0,
                                              double spread = 0.3);

}  // namespace mergeplan
