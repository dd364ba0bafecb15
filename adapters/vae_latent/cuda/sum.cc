#include <algorithm>

#include "adapters/vae_latent/cuda/kernels.h"
#include "planner/base/status_macros.h"

namespace mergeplan::latents_device {

std::int64_t BlocksOf(const Kernels& kernels, std::int64_t rows, std::int64_t d) {
  const std::int64_t most = (rows + kTile - 1) / kTile;
  return std::clamp<std::int64_t>(kernels.threads() / d, 1, most);
}

absl::Status Sum(const Kernels& kernels, void* stream, const Rows& rows, const double* shift,
                 Moments* partial, double* out) {
  const std::int64_t blocks = BlocksOf(kernels, rows.rows, rows.d);
  MP_RETURN_IF_ERROR(kernels.Run(
      stream, SumArgs{rows.rows, rows.d, blocks, rows.data, rows.number, shift, partial}));
  for (std::int64_t step = 1; step < blocks; step *= 2) {
    MP_RETURN_IF_ERROR(kernels.Run(stream, JoinArgs{rows.rows, rows.d, blocks, step, partial}));
  }
  return kernels.Run(stream, FinishArgs{rows.d, partial, shift, out});
}

}  // namespace mergeplan::latents_device
