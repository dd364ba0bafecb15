#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>

#include "absl/status/statusor.h"
#include "adapters/vae_latent/vae.h"

namespace mergeplan::vae {

// Large pictures in overlapping square tiles, so that memory is bounded by a tile. As diffusers'
// AutoencoderKL has it: tiles begin every pixels * (1 - overlap), and where two overlap the later
// one fades in linearly over the overlap. Pictures that fit into one tile are not cut.
struct Tiling {
  std::int64_t pixels =
      0;                  // side of a tile in the picture, a multiple of the reduction; 0: no tiles
  double overlap = 0.25;  // share of a tile
};

// INVALID_ARGUMENT where a tile is no multiple of the reduction, or the overlap is not in [0, 1) or
// leaves no whole latents. Errors of Vae.
absl::StatusOr<Encoded> EncodeInTiles(Vae& vae, const at::Tensor& image, const Tiling& tiling);
absl::StatusOr<at::Tensor> DecodeInTiles(Vae& vae, const at::Tensor& latent, const Tiling& tiling);

// The part that knows no network: `map` is done on tiles of `x` of side `tile`, which begin every
// `stride`; it multiplies lengths by to / from, and neighbours blend over `blend` of its output.
absl::StatusOr<at::Tensor> MapTiles(
    const at::Tensor& x, std::int64_t tile, std::int64_t stride, std::int64_t out_tile,
    std::int64_t blend, const std::function<absl::StatusOr<at::Tensor>(const at::Tensor&)>& map);

}  // namespace mergeplan::vae
