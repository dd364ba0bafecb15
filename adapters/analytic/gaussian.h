#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace mergeplan {

// The teacher whose truth is known: data ~ N(mean, covariance), as `mergeplan analyze` measured it,
// seen along the axes of one basis, where the covariance is taken as diagonal
// (as:real_data_distribution).
//
// Everything is trained on centred data in that basis: coordinate k has variance variances()[k],
// the optimal denoiser is x0 = alpha lambda / n z (prop:optimal_denoising_estimator) and a DDIM
// step is the number A_t (cor:optimal_single_operator), which the tables of Model hold. Decode
// leads back to the data's units; there the mean comes back.
class GaussianTeacher {
 public:
  // Reads a spectrum.toml with its .npz. `basis`: "diagonal", "dct", "pca", or empty for the one
  // that the spectrum recommends. Errors of ReadSpectrum, and NOT_FOUND for an unknown basis.
  static absl::StatusOr<GaussianTeacher> Load(const std::string& path, const std::string& basis);

  const std::string& path() const { return path_; }
  const std::string& sha256() const {
    return sha256_;
  }  // of the TOML, which holds the arrays' hash
  const std::string& basis() const { return basis_; }
  int dimensions() const { return static_cast<int>(variances_.size()); }
  const std::vector<double>& variances() const { return variances_; }  // d, of the (scaled) data
  const std::vector<double>& mean() const { return mean_; }            // d, in the data's axes
  const std::vector<std::int64_t>& shape() const { return shape_; }    // of one sample
  const std::string& scaling() const { return scaling_; }              // Scaling::text of the data

  // Turns `rows` (any number of rows x d, row-major), centred coordinates in the basis, into data:
  // mean + W^T row, W being the basis. O(rows d^2), O(rows d) for "diagonal".
  std::vector<double> Decode(absl::Span<const double> rows) const;

 private:
  GaussianTeacher() = default;
  std::string path_, sha256_, basis_;
  std::vector<double> variances_, mean_;
  std::vector<std::int64_t> shape_;
  std::string scaling_;
  std::vector<double> vectors_;  // d x d, row i is axis i; empty: the data's own axes
};

}  // namespace mergeplan
