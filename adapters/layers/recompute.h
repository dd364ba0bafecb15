#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <vector>

namespace mergeplan::layers {

// Gradient checkpointing: what a part of a network computes is forgotten and computed again in the
// backward pass, so that only its inputs are stored. `part` is called with tensors in the place of
// `inputs` (which may be undefined) and may use `parameters` besides; it must hold on to what it
// uses. `draws`: it draws random numbers from LibTorch's generator, which then stands where it
// stood when it is called again.
at::Tensor Recompute(const std::function<at::Tensor(const std::vector<at::Tensor>& inputs)>& part,
                     const std::vector<at::Tensor>& inputs,
                     const std::vector<at::Tensor>& parameters, bool draws);

}  // namespace mergeplan::layers
