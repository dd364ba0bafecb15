#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "adapters/network/module.h"
#include "adapters/network/signature.h"
#include "planner/schedule/schedule.h"

namespace mergeplan::denoising {

// What a network draws: DDIM steps down the levels of a schedule from unit noise, which follows
// from the seed; where there are classes `label` [rows] says of which. Returns [rows, shape] in the
// units of its data, on the network's device. No gradients. O(rows * steps) calls of the network,
// `rows` at a time at most 64.
absl::StatusOr<at::Tensor> DrawSamples(network::Module& module, const network::Signature& signature,
                                       const Schedule& schedule, std::int64_t rows,
                                       std::uint64_t seed, at::Device device,
                                       const at::Tensor& label = {});

// Samples of 1 or 3 channels, [N, C, H, W], side by side as a PNG, `columns` to a row (0: as square
// as can be), one pixel between them; values are turned into pixels by the inverse of `scaling`
// ("-1:1") and clipped. INVALID_ARGUMENT for other shapes.
absl::StatusOr<std::string> EncodeGrid(const at::Tensor& samples, const std::string& scaling,
                                       std::int64_t columns = 0);

}  // namespace mergeplan::denoising
