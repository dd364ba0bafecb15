#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

namespace mergeplan::network {

// Lists of tensors as states hold them: parameters, buffers, moments, an average. All throw
// c10::Error.

std::vector<at::Tensor> Copies(const std::vector<at::Tensor>& tensors);
// As many as `own`, each of the same shape and type?
bool Fit(const std::vector<at::Tensor>& found, const std::vector<at::Tensor>& own);
// In place, for lists that fit.
void CopyInto(const std::vector<at::Tensor>& from, const std::vector<at::Tensor>& to);

}  // namespace mergeplan::network
