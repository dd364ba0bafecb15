#include "adapters/judge/sample_noise.h"

#include <ATen/ops/empty.h>

#include "absl/strings/str_cat.h"
#include "adapters/network/try.h"
#include "adapters/noise/noise.h"

namespace mergeplan::judge {

absl::StatusOr<at::Tensor> SampleNoise(std::uint64_t seed, std::uint64_t first, std::int64_t rows,
                                       const std::vector<std::int64_t>& shape) {
  std::int64_t d = 1;
  for (const std::int64_t extent : shape) d *= extent;
  std::vector<std::int64_t> sizes = {rows};
  sizes.insert(sizes.end(), shape.begin(), shape.end());
  return network::Try("noise of samples", [&]() -> absl::StatusOr<at::Tensor> {
    at::Tensor out = at::empty(sizes, at::TensorOptions().dtype(at::kFloat));
    // No merge has the range [0, 0], so that no training uses this stream.
    NoiseStream(seed, 0, 0, 0)
        .FillAt(first * static_cast<std::uint64_t>(d), out.mutable_data_ptr<float>(), rows * d);
    return out;
  });
}

}  // namespace mergeplan::judge
