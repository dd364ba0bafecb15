#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "adapters/vae_latent/vae.h"
#include "planner/data/samples.h"
#include "planner/spectrum/spectrum.h"

namespace mergeplan::vae {

// Height and width that pictures are brought to; 0: as they are.
struct PictureSize {
  std::int64_t height = 0, width = 0;
};
// "128" or "128x96". INVALID_ARGUMENT.
absl::StatusOr<PictureSize> ParsePictureSize(const std::string& text);

// How samples of a data set become what an encoder takes.
class Pictures {
 public:
  // INVALID_ARGUMENT where the shapes cannot meet, with the flag that would help.
  static absl::StatusOr<Pictures> Plan(const SampleSource& source, const std::string& input,
                                       const VaeDescription& vae, const PictureSize& size,
                                       const std::string& scale);

  // Shape of one picture as the encoder gets it: [C, H, W].
  const std::vector<std::int64_t>& shape() const { return shape_; }
  const Scaling& scaling() const { return scaling_; }
  bool grey_repeated() const { return repeat_ > 1; }

  // `count` samples as the source gave them to [count, C, H, W], float32 on the CPU. Resizing is
  // bicubic with antialiasing, in the picture's own units before scaling, and pixels are kept
  // between 0 and 255.
  at::Tensor Make(absl::Span<const double> rows, std::int64_t count) const;

 private:
  std::vector<std::int64_t> from_;   // [C, H, W] of the source
  std::vector<std::int64_t> shape_;  // [C, H, W] of the encoder
  std::int64_t repeat_ = 1;          // channels made of one
  bool pixels_ = false;
  Scaling scaling_;
};

}  // namespace mergeplan::vae
