#include "adapters/network/layout.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "adapters/network/try.h"

namespace mergeplan::network {

std::string_view ToString(Layout layout) {
  return layout == Layout::kContiguous ? "contiguous" : "channels_last";
}

absl::StatusOr<Layout> ParseLayout(std::string_view word) {
  for (const Layout layout : {Layout::kContiguous, Layout::kChannelsLast}) {
    if (word == ToString(layout)) return layout;
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "layout '", std::string(word), "' is unknown, expected contiguous or channels_last"));
}

bool HasKernels(const Module& module) {
  const std::vector<Module::Named> parameters = module.Parameters();
  return std::any_of(parameters.begin(), parameters.end(),
                     [](const Module::Named& named) { return named.second.dim() == 4; });
}

absl::Status SetLayout(Module& module, Layout layout) {
  return Try("layout", [&] {
    const c10::NoGradGuard no_gradients;
    const at::MemoryFormat format = layout == Layout::kContiguous ? at::MemoryFormat::Contiguous
                                                                  : at::MemoryFormat::ChannelsLast;
    for (const auto& [name, tensor] : module.Parameters()) {
      if (tensor.dim() != 4) continue;
      const at::Tensor leaf = tensor;
      leaf.mutable_grad() = at::Tensor();
      leaf.set_data(leaf.detach().contiguous(format));
    }
    return absl::OkStatus();
  });
}

}  // namespace mergeplan::network
