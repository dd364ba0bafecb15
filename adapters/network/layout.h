#pragma once

#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "adapters/network/module.h"

namespace mergeplan::network {

// How a network's pictures lie in memory inside its forward and backward passes: plane after plane,
// or with the channels of a pixel side by side. The numbers are the same but for rounding.
enum class Layout { kContiguous, kChannelsLast };
// "contiguous", "channels_last".
std::string_view ToString(Layout layout);
absl::StatusOr<Layout> ParseLayout(std::string_view word);

// Does a network have kernels of convolutions, whose layout decides that of its pictures?
bool HasKernels(const Module& module);
// Lays the kernels out anew, in the same leaves with the same values; gradients are dropped. Clones
// have the layout of the original. What is saved is as it would be without.
absl::Status SetLayout(Module& module, Layout layout);

}  // namespace mergeplan::network
