#pragma once

#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "planner/data/npz.h"
#include "planner/plan/io/node.h"

namespace mergeplan::plan_io {

using StoredArrays = absl::flat_hash_map<std::string, NpyArray>;

// The arrays of the .npz that the table [arrays] of a plan file names, with one axis, or two
// (level, coordinate) where they are tables; none without that table. DATA_LOSS where the .npz has
// another hash than the table says, NOT_FOUND where it is missing.
absl::StatusOr<StoredArrays> ReadStoredArrays(const NodeReader& read, const Node& root);

}  // namespace mergeplan::plan_io
