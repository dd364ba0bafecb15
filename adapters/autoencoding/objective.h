#pragma once

#include <ATen/core/Tensor.h>

#include <memory>

#include "absl/status/statusor.h"
#include "adapters/autoencoding/ms_ssim.h"
#include "adapters/autoencoding/options.h"
#include "adapters/denoising/objective.h"

namespace mergeplan::autoencoding {

// Of a variational autoencoder (an AutoencoderModule): with mean m and log variance v of a
// picture's latent, z = m + exp(v / 2) eps and y the picture that z becomes,
//     loss = 1 - MS-SSIM(x, y)  or  mean (x - y)^2,   plus   kl_weight sum (m^2 + e^v - 1 - v) / 2
// in the mean over the rows of a batch. MS-SSIM sees (x + 1) / 2. Which pictures, mirrored or not,
// and which eps a pass has follows from the seed and the rows' numbers. Its parts are named
// `reconstruction` and `kl` (nats a picture).
//
// `pictures` are [N, C, H, W] in [-1, 1], on the CPU, of the network's type. INVALID_ARGUMENT for
// none, for numbers outside of that range or not finite, for windows that do not fit.
absl::StatusOr<std::unique_ptr<denoising::Objective>> AutoencodingObjective(at::Tensor pictures,
                                                                            const Options& options,
                                                                            at::Device device);

}  // namespace mergeplan::autoencoding
