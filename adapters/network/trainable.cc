#include "adapters/network/trainable.h"

#include <map>
#include <string>

#include "absl/strings/str_cat.h"

namespace mergeplan::network {

absl::StatusOr<std::vector<at::Tensor>> TrainableParameters(const Module& module) {
  std::vector<at::Tensor> out;
  std::map<const void*, std::string> owners;
  for (const auto& [name, tensor] : module.Parameters()) {
    if (!tensor.requires_grad()) continue;
    if (tensor.numel() > 0) {
      const auto [owner, is_new] = owners.emplace(tensor.const_data_ptr(), name);
      if (!is_new) {
        return absl::InvalidArgumentError(
            absl::StrCat("the network's parameters ", owner->second, " and ", name,
                         " share their memory, expected parameters of their own"));
      }
    }
    out.push_back(tensor);
  }
  return out;
}

}  // namespace mergeplan::network
