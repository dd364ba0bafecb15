#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace mergeplan::judge {

// What samples are compared by.
class Features {
 public:
  virtual ~Features() = default;

  // Numbers of one picture each, [B, d] float64 on the CPU, from pixels 0..255 [B, C, H, W], or
  // from data that is no picture as it is. Finite, or FAILED_PRECONDITION.
  virtual absl::StatusOr<at::Tensor> Of(const at::Tensor& pixels) const = 0;
  // What it is, for every output: "small Fashion-MNIST classifier (64 features; not Inception)".
  virtual const std::string& name() const = 0;
  // SHA-256 of what determines its numbers.
  virtual const std::string& id() const = 0;
};

// `path`: a folder of `mergeplan features`, or a TorchScript file whose forward takes one tensor,
// float32 [B, C, H, W] of pixels 0..255 (rounded to whole ones), and gives [B, d] or [B, d, 1, 1];
// empty: the classifier that comes with mergeplan. `shape` is that of the samples; INVALID_ARGUMENT
// where a classifier is of others, and says what to do. With `resize` pictures of another size are
// brought to the classifier's (bicubic, antialiased, rounded to whole pixels), and its name says
// so.
absl::StatusOr<std::unique_ptr<Features>> OpenFeatures(const std::string& path,
                                                       const std::vector<std::int64_t>& shape,
                                                       bool resize = false);
// The TorchScript kind.
absl::StatusOr<std::unique_ptr<Features>> OpenScriptFeatures(const std::string& path);

// Where the classifier lies that comes with mergeplan: MERGEPLAN_FEATURES, or
// share/mergeplan/features of the build or installation.
std::string ShippedFeatures();

// Samples in the units of the data to what Features::Of takes: where `scaling` says how pixels
// became data they are turned back, cut to 0..255 and rounded, as a file of pictures would hold
// them.
absl::StatusOr<at::Tensor> ToPixels(const at::Tensor& samples, const std::string& scaling);

// Features of all rows, `block` at a time, rows x d. `stop` is asked between blocks.
struct FeatureRows {
  std::vector<double> values;
  int dimensions = 0;
};
absl::StatusOr<FeatureRows> Extract(const Features& features, const at::Tensor& samples,
                                    const std::string& scaling, const std::function<bool()>& stop);

}  // namespace mergeplan::judge
