#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "adapters/encoding/encode.h"
#include "adapters/vae_latent/pictures.h"
#include "adapters/vae_latent/vae.h"
#include "planner/data/samples.h"

namespace mergeplan::encoding {

// Latents of a batch on the CPU, float32, contiguous, all finite.
struct Latents {
  at::Tensor mean;          // [B, C, h, w]; one draw where --content says so
  at::Tensor log_variance;  // the same shape, or undefined unless asked for
};

// Network and pictures, opened, and what becomes of a batch.
class Encoder {
 public:
  // INVALID_ARGUMENT names the flag; errors of OpenSamples, OpenVae, OpenEncoder.
  static absl::StatusOr<Encoder> Open(const EncodeArguments& arguments);

  SampleSource& source() { return *source_; }
  const vae::Pictures& pictures() const { return pictures_; }
  // How many pictures there are, at most --limit: read once where the format does not say.
  absl::StatusOr<std::int64_t> Count() const;
  // What the result says of network and shapes.
  EncodeResult Description() const;

  // Of `count` samples, the first of which is number `first` of the input. DATA_LOSS names the
  // sample whose latent is not finite.
  absl::StatusOr<Latents> Encode(absl::Span<const double> rows, std::int64_t count,
                                 std::int64_t first);

 private:
  Encoder(const EncodeArguments& arguments, at::Device device)
      : arguments_(arguments), device_(device) {}
  absl::Status CheckRange(const at::Tensor& pictures, std::int64_t first) const;
  at::Tensor Noise(const at::Tensor& like, std::int64_t first) const;
  absl::Status CheckFinite(const at::Tensor& values, std::int64_t first) const;

  EncodeArguments arguments_;
  at::Device device_;
  std::unique_ptr<vae::Vae> vae_;
  std::unique_ptr<SampleSource> source_;
  vae::Pictures pictures_;
};

}  // namespace mergeplan::encoding
