#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace mergeplan::unet {
class UNet2d;
}

namespace mergeplan::model {

// How far one array of a reference is from what the network computes here.
struct Difference {
  std::string what;   // "output", "gradient conv_in.weight"
  std::string dtype;  // of the network: float32 or float64
  // Largest difference over largest value (of a gradient: or over a thousandth, in float64 1e-9, of
  // the network's steepest, since a gradient that is zero is rounding noise).
  double relative = 0;
  double largest = 0;  // the largest value
  // How far the reference's own float32 is from its float64, for gradients in float32: these are
  // compared with the float64 ones, and this much is rounding that any order of sums may have.
  double rounding = 0;

  bool Within(double tolerance) const { return relative <= tolerance + rounding; }
};

// Runs the network on an .npz with `sample` [B, C, H, W], `timesteps` [B] and, where it is class
// conditional, `class_labels`: in float32 against `output` and in float64 against `output_f64`,
// whichever are there; and the gradients of sum(output^2) in the parameters that `grad_names` lists
// against grad_0_f64, grad_1_f64, … (in float32 grad_0, … where there are no others). Leaves the
// network in the dtype of the last.
absl::StatusOr<std::vector<Difference>> CompareUNet(unet::UNet2d& net, const std::string& npz);

}  // namespace mergeplan::model
