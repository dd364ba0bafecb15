#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/types/span.h"

namespace mergeplan {

// The two spatial axes of samples, and how many pictures of that size stand in one sample.
struct SpatialAxes {
  std::int64_t planes = 1;  // channels, or frames times channels
  std::int64_t height = 1, width = 1;
};
// The last two axes of samples of shape [H, W], [C, H, W] or [T, C, H, W]; nothing for other
// shapes, and where both extents are 1.
std::optional<SpatialAxes> SpatialAxesOf(absl::Span<const std::int64_t> shape);

// The orthonormal DCT-II over height and width of every plane: coefficient (u, v) of a plane x is
// sum_hw c_u(h) c_v(w) x[h, w] with c_k(i) = sqrt((k == 0 ? 1 : 2) / n) cos(pi (i + 1/2) k / n).
// It needs no data: its axes are the same for all data sets, near the principal ones where
// neighbouring values are alike.
class Dct {
 public:
  explicit Dct(const SpatialAxes& axes);

  std::int64_t dimensions() const { return axes_.planes * axes_.height * axes_.width; }
  // Coefficients of one sample, in place, and the way back. O(d (H + W)). Safe on several threads,
  // each with a `scratch` of its own (resized as needed).
  void Forward(double* sample, std::vector<double>& scratch) const;
  void Backward(double* sample, std::vector<double>& scratch) const;
  // Coefficient k alone, of a sample whose values lie `stride` apart. O(H W).
  double Coefficient(std::int64_t k, const double* sample, std::int64_t stride) const;
  // The axes as rows, d x d, row-major.
  std::vector<double> Matrix() const;

 private:
  void Apply(double* sample, bool forward, std::vector<double>& scratch) const;

  SpatialAxes axes_;
  std::vector<double> rows_, columns_;  // H x H and W x W, coefficient by position
  std::vector<double> turned_columns_;  // position by coefficient
};

}  // namespace mergeplan
