#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <vector>

namespace mergeplan::layers {

// One piece of memory in large pages for all tensors of a network, given back when the last of them
// goes. Where gigabytes are read, faulting in pages of 4 KiB takes longer than copying.
class Arena {
 public:
  // Null where the system has none to give; memory is then better taken tensor by tensor.
  static std::shared_ptr<Arena> Create(std::int64_t bytes);
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  // How much room a tensor takes: starts lie where vector instructions like them.
  static std::int64_t Room(std::int64_t bytes) { return (bytes + 63) / 64 * 64; }
  // A tensor over the bytes from `offset` on, which no other has.
  static at::Tensor Tensor(const std::shared_ptr<Arena>& arena, std::int64_t offset,
                           const std::vector<std::int64_t>& shape, at::ScalarType dtype);

 private:
  Arena(char* data, std::int64_t bytes) : data_(data), bytes_(bytes) {}

  char* data_;
  std::int64_t bytes_;
};

}  // namespace mergeplan::layers
