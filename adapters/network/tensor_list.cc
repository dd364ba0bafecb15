#include "adapters/network/tensor_list.h"

#include <cstddef>

namespace mergeplan::network {

std::vector<at::Tensor> Copies(const std::vector<at::Tensor>& tensors) {
  std::vector<at::Tensor> out;
  out.reserve(tensors.size());
  for (const at::Tensor& tensor : tensors) out.push_back(tensor.detach().clone());
  return out;
}

bool Fit(const std::vector<at::Tensor>& found, const std::vector<at::Tensor>& own) {
  if (found.size() != own.size()) return false;
  for (std::size_t i = 0; i < own.size(); ++i) {
    if (!found[i].sizes().equals(own[i].sizes()) ||
        found[i].scalar_type() != own[i].scalar_type()) {
      return false;
    }
  }
  return true;
}

void CopyInto(const std::vector<at::Tensor>& from, const std::vector<at::Tensor>& to) {
  for (std::size_t i = 0; i < to.size(); ++i) {
    at::Tensor own = to[i];
    own.copy_(from[i]);
  }
}

}  // namespace mergeplan::network
