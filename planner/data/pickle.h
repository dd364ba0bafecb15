#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace mergeplan {

// A tensor as PyTorch's files describe it: which storage its values lie in, and where.
struct TorchTensor {
  std::string name;  // key in the dictionary (nested: joined by dots); empty for a bare tensor
  std::string storage_type;  // "FloatStorage"
  std::string storage;       // "0": the member data/0
  std::int64_t storage_size = 0;
  std::int64_t offset = 0;  // elements before the first
  std::vector<std::int64_t> shape, strides;
};

// The tensors that a data.pkl describes: a tensor, a parameter, or dictionaries and lists of them.
// Nothing is run: the program is read by a small machine of our own that knows the instructions
// which put tensors, numbers, texts, lists and dictionaries together, and three functions by name
// (_rebuild_tensor_v2, _rebuild_parameter, OrderedDict); everything else is INVALID_ARGUMENT that
// names it, and so are more than 32 levels of nesting and more than a million entries. O(bytes).
absl::StatusOr<std::vector<TorchTensor>> ReadTensorPickle(std::string_view bytes,
                                                          const std::string& where);

}  // namespace mergeplan
