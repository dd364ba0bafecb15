#pragma once

#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "planner/plan/io/node.h"

namespace mergeplan::plan_io {

using StoredArrays = absl::flat_hash_map<std::string, std::vector<double>>;

// The arrays of the .npz that the table [arrays] of a plan file names; none without that table.
// DATA_LOSS where the .npz has another hash than the table says, NOT_FOUND where it is missing.
absl::StatusOr<StoredArrays> ReadStoredArrays(const NodeReader& read, const Node& root);

}  // namespace mergeplan::plan_io
