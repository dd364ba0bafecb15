#pragma once

#include <optional>

#include "absl/status/statusor.h"
#include "planner/operators/tables.h"
#include "planner/plan/io/node.h"
#include "planner/plan/io/stored_arrays.h"

namespace mergeplan::plan_io {

// The bare tables of a plan file: A, gamma, p, q (a row per level, in the file or in its .npz),
// target and weights; nullopt where it has no A. `target` is filled in where it is left out. Keys
// of a schedule, of variances or of a budget beside A are errors, and so are the other keys of
// tables without A.
absl::StatusOr<std::optional<ModelTables>> ReadTables(const NodeReader& read, const Node& root,
                                                      const StoredArrays& arrays);

}  // namespace mergeplan::plan_io
