#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace mergeplan::autoencoding {

// Multiscale structural similarity (Wang, Simoncelli and Bovik 2003) of pictures with values in
// [0, 1]. At every scale a Gaussian window gives local means, variances and the covariance of the
// two pictures; scale s + 1 is made of the means of 2 x 2 pixels of scale s. Windows stand wholly
// inside, so a scale of h x w has (h - window + 1) (w - window + 1) of them. With c1 = 0.01^2,
// c2 = 0.03^2:
//     contrast and structure   v_s = mean (2 cov + c2) / (var + var' + c2)       but for the last
//     similarity               v_S = mean of that times (2 m m' + c1) / (m^2 + m'^2 + c1)
//     result                   prod_s v_s^weight_s, by picture and channel, then the channels' mean
struct MsSsimOptions {
  std::int64_t window = 11;  // pixels, odd
  double sigma = 1.5;        // of the window, pixels
  int scales = 5;            // 1 to 5

  // Window 11 and five scales where they fit (176 pixels), else window 7 and as many scales as fit,
  // at most five. INVALID_ARGUMENT for sides below 7.
  static absl::StatusOr<MsSsimOptions> For(std::int64_t height, std::int64_t width);
  // INVALID_ARGUMENT says what fits a picture of this size.
  absl::Status Validate(std::int64_t height, std::int64_t width) const;
  // The first `scales` of the authors' 0.0448, 0.2856, 0.3001, 0.2363, 0.1333; fewer than five
  // divided by their sum.
  std::vector<double> Weights() const;
};

// [B] of two tensors [B, C, H, W] of one floating type. Differentiable in both. Below kFloor, where
// a power has no useful gradient (nor any value below 0), log v goes on as a straight line: values
// stay positive, and rise with every v. O(B C H W window). Throws c10::Error.
inline constexpr double kFloor = 0.05;
at::Tensor MsSsim(const at::Tensor& a, const at::Tensor& b, const MsSsimOptions& options);

}  // namespace mergeplan::autoencoding
