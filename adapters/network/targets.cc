#include "adapters/network/targets.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/tensor.h>

#include <algorithm>
#include <utility>

#include "adapters/network/try.h"
#include "planner/base/status_macros.h"

namespace mergeplan::network {
namespace {

// Rows of a pool whose targets are made together.
constexpr std::int64_t kBlock = 64;

}  // namespace

Targets::Targets(std::vector<Link> links, int level) : links_(std::move(links)), level_(level) {}

absl::StatusOr<at::Tensor> Targets::Of(const Frozen& frozen, Inputs& inputs,
                                       const RowStream& stream, std::uint64_t first_row,
                                       const at::Tensor& z, std::int64_t* calls) {
  const std::int64_t pool = inputs.pool_rows();
  // The pool itself has what nothing but steps of the teacher lead to.
  if (pool == 0 || stream.lane != Lane::kTraining ||
      (links_.size() == 1 && links_.front().snapshot < 0)) {
    return ApplyToRows(links_, frozen, inputs, stream, first_row, z, calls);
  }
  const std::vector<std::int64_t> rows = inputs.PoolRows(stream, first_row, z.size(0));
  made_.resize(static_cast<std::size_t>((pool + kBlock - 1) / kBlock));
  for (const std::int64_t row : rows) {
    const std::int64_t block = row / kBlock, begin = block * kBlock;
    if (made_[static_cast<std::size_t>(block)]) continue;
    const std::int64_t count = std::min(kBlock, pool - begin);
    RowStream own = stream;
    own.lane = Lane::kPool;
    const auto first = static_cast<std::uint64_t>(begin);
    MP_ASSIGN_OR_RETURN(const at::Tensor states, inputs.Draw(level_, own, first, count));
    MP_ASSIGN_OR_RETURN(const at::Tensor made,
                        ApplyToRows(links_, frozen, inputs, own, first, states, calls));
    MP_RETURN_IF_ERROR(Try("targets", [&] {
      if (!kept_.defined()) {
        std::vector<std::int64_t> sizes = made.sizes().vec();
        sizes.front() = pool;
        kept_ = at::empty(sizes, made.options().device(at::kCPU));
      }
      kept_.narrow(0, begin, count).copy_(made);
      return absl::OkStatus();
    }));
    made_[static_cast<std::size_t>(block)] = true;
  }
  return Try("targets", [&]() -> absl::StatusOr<at::Tensor> {
    return kept_.index_select(0, at::tensor(rows, at::kLong)).to(z.device());
  });
}

}  // namespace mergeplan::network
