#include "adapters/vae_latent/tiling.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "planner/base/status_macros.h"

namespace mergeplan::vae {
namespace {

// `later`, whose first `extent` rows (dim 2) or columns (dim 3) fade in over the last of `earlier`.
at::Tensor Blend(const at::Tensor& earlier, const at::Tensor& later, std::int64_t extent, int dim) {
  extent = std::min({extent, earlier.size(dim), later.size(dim)});
  if (extent == 0) return later;
  at::Tensor weight = at::arange(extent, later.options()).div(static_cast<double>(extent));
  weight = dim == 2 ? weight.view({1, 1, -1, 1}) : weight.view({1, 1, 1, -1});
  const at::Tensor mixed = earlier.narrow(dim, earlier.size(dim) - extent, extent) * (1 - weight) +
                           later.narrow(dim, 0, extent) * weight;
  return at::cat({mixed, later.narrow(dim, extent, later.size(dim) - extent)}, dim);
}

absl::Status CheckTiling(const Tiling& tiling, std::int64_t reduction) {
  if (tiling.pixels < reduction || tiling.pixels % reduction != 0) {
    return absl::InvalidArgumentError(absl::StrCat("a tile of ", tiling.pixels,
                                                   " pixels, expected a multiple of ", reduction,
                                                   " (what the network divides lengths by)"));
  }
  // Not: overlap < 0 or >= 1, so that NaN is caught.
  if (!(tiling.overlap >= 0 && tiling.overlap < 1)) {
    return absl::InvalidArgumentError(absl::StrCat("tiles overlap by a share of ", tiling.overlap,
                                                   ", expected 0 or more and less than 1"));
  }
  return absl::OkStatus();
}

// Latents from the start of a tile to that of the next.
std::int64_t LatentStride(const Tiling& tiling, std::int64_t reduction) {
  const double tile = static_cast<double>(tiling.pixels / reduction);
  return std::max<std::int64_t>(1, static_cast<std::int64_t>(tile * (1 - tiling.overlap)));
}

bool Fits(const at::Tensor& x, std::int64_t side) {
  return side == 0 || (x.dim() == 4 && x.size(2) <= side && x.size(3) <= side) || x.dim() != 4;
}

}  // namespace

absl::StatusOr<at::Tensor> MapTiles(
    const at::Tensor& x, std::int64_t tile, std::int64_t stride, std::int64_t out_tile,
    std::int64_t blend, const std::function<absl::StatusOr<at::Tensor>(const at::Tensor&)>& map) {
  std::vector<at::Tensor> above, bands;
  const std::int64_t limit = out_tile - blend;  // what of a tile is not overlapped by the next
  for (std::int64_t i = 0; i < x.size(2); i += stride) {
    std::vector<at::Tensor> row, cut;
    const at::Tensor band = x.narrow(2, i, std::min(tile, x.size(2) - i));
    for (std::int64_t j = 0; j < x.size(3); j += stride) {
      MP_ASSIGN_OR_RETURN(at::Tensor out,
                          map(band.narrow(3, j, std::min(tile, x.size(3) - j)).contiguous()));
      if (!above.empty()) out = Blend(above[row.size()], out, blend, 2);
      if (!row.empty()) out = Blend(row.back(), out, blend, 3);
      row.push_back(out);
      cut.push_back(out.narrow(2, 0, std::min(limit, out.size(2)))
                        .narrow(3, 0, std::min(limit, out.size(3))));
    }
    bands.push_back(at::cat(cut, 3));
    above = std::move(row);
  }
  return at::cat(bands, 2);
}

absl::StatusOr<Encoded> EncodeInTiles(Vae& vae, const at::Tensor& image, const Tiling& tiling) {
  if (Fits(image, tiling.pixels)) return vae.Encode(image);
  const std::int64_t by = vae.description().reduction;
  MP_RETURN_IF_ERROR(CheckTiling(tiling, by));
  const std::int64_t stride = LatentStride(tiling, by), tile = tiling.pixels / by;
  // Mean and log variance go together through one map.
  MP_ASSIGN_OR_RETURN(const at::Tensor both,
                      MapTiles(image, tiling.pixels, stride * by, tile, tile - stride,
                               [&](const at::Tensor& x) -> absl::StatusOr<at::Tensor> {
                                 MP_ASSIGN_OR_RETURN(const Encoded out, vae.Encode(x));
                                 if (!out.log_variance.defined()) return out.mean;
                                 return at::cat({out.mean, out.log_variance}, 1);
                               }));
  const std::int64_t channels = vae.description().latent_channels;
  Encoded out;
  out.mean = both.narrow(1, 0, channels);
  if (both.size(1) > channels) out.log_variance = both.narrow(1, channels, channels);
  return out;
}

absl::StatusOr<at::Tensor> DecodeInTiles(Vae& vae, const at::Tensor& latent, const Tiling& tiling) {
  const std::int64_t by = vae.description().reduction;
  if (Fits(latent, tiling.pixels / by)) return vae.Decode(latent);
  MP_RETURN_IF_ERROR(CheckTiling(tiling, by));
  const std::int64_t stride = LatentStride(tiling, by), tile = tiling.pixels / by;
  return MapTiles(latent, tile, stride, tiling.pixels, (tile - stride) * by,
                  [&](const at::Tensor& x) { return vae.Decode(x); });
}

}  // namespace mergeplan::vae
