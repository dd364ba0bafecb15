#include "adapters/layers/arena.h"

#include <ATen/ops/from_blob.h>
#include <sys/mman.h>

namespace mergeplan::layers {

std::shared_ptr<Arena> Arena::Create(std::int64_t bytes) {
  constexpr std::int64_t kPage = std::int64_t{1} << 21;
  const std::int64_t whole = (bytes + kPage - 1) / kPage * kPage;
  void* data = ::mmap(nullptr, static_cast<size_t>(whole), PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED) return nullptr;
  ::madvise(data, static_cast<size_t>(whole), MADV_HUGEPAGE);  // a wish
  return std::shared_ptr<Arena>(new Arena(static_cast<char*>(data), whole));
}

Arena::~Arena() { ::munmap(data_, static_cast<size_t>(bytes_)); }

at::Tensor Arena::Tensor(const std::shared_ptr<Arena>& arena, std::int64_t offset,
                         const std::vector<std::int64_t>& shape, at::ScalarType dtype) {
  return at::from_blob(
      arena->data_ + offset, shape, [arena](void* /*data*/) {}, at::TensorOptions(dtype));
}

}  // namespace mergeplan::layers
