#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "adapters/network/inputs.h"
#include "adapters/network/operators.h"

namespace mergeplan::network {

// What a merge is trained to give at the rows of its inputs: the links of its target applied to
// them. Where the inputs come from a pool every row's target is made once, when it is first asked
// for, in blocks that depend on nothing but the pool (so that the same rows have the same bits
// however training went on), and kept on the CPU: one sample for each row of the pool. The teacher
// is then asked pool_rows times for every step of a target in place of once for every row of every
// update.
class Targets {
 public:
  // Of a merge at `level`, the level of the first link.
  Targets(std::vector<Link> links, int level);

  // Of the rows of the stream, which are z. Adds the steps asked of the teacher to `calls`.
  absl::StatusOr<at::Tensor> Of(const Frozen& frozen, Inputs& inputs, const RowStream& stream,
                                std::uint64_t first_row, const at::Tensor& z, std::int64_t* calls);

 private:
  std::vector<Link> links_;
  int level_;
  at::Tensor kept_;         // [pool_rows, shape], on the CPU
  std::vector<bool> made_;  // by block
};

}  // namespace mergeplan::network
