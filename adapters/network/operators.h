#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "adapters/network/inputs.h"
#include "adapters/network/snapshots.h"
#include "adapters/network/steps.h"
#include "adapters/network/teachers.h"

namespace mergeplan::network {

// One frozen map of states from the level `from` to the level `to`: a trained jump, which is
// weights, the level that the network is told, and the level where its wrapper lands (the landing
// level of its start, README.md); or steps of the teacher, one after the other.
struct Link {
  int from = 0, to = 0;
  std::int64_t snapshot = -1;  // -1: the teacher
  int landing = 0;             // of a student

  bool operator==(const Link&) const = default;
};

// What links need to run.
struct Frozen {
  std::shared_ptr<Teacher> teacher;
  std::shared_ptr<Snapshots> snapshots;
  const NetworkSteps* student = nullptr;
};

// The links one after the other, from the noisiest, without gradients. `label`: classes of the rows
// where there are some.
absl::StatusOr<at::Tensor> Apply(const std::vector<Link>& links, const Frozen& frozen,
                                 const at::Tensor& z, const at::Tensor& label = {});
// The same for rows of the inputs at the level of the first link: what the inputs know of the
// teacher's steps is taken from them. Adds the single steps that were asked of the teacher, per
// sample, to `calls`.
absl::StatusOr<at::Tensor> ApplyToRows(const std::vector<Link>& links, const Frozen& frozen,
                                       Inputs& inputs, const RowStream& stream,
                                       std::uint64_t first_row, const at::Tensor& z,
                                       std::int64_t* calls);
int TeacherSteps(const std::vector<Link>& links);

}  // namespace mergeplan::network
