#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "planner/operators/tables.h"

namespace mergeplan::cli {

// The file of --tables: an .npz with A and gamma of shape (T, d), a row per level from the clean
// end, and optionally p and q of the same shape (default 1 and 0: merges start from their noisiest
// child), tau (d; default: the products of the A) and weights (d; default 1). Errors name the file
// and the array, also for one that is not known. The numbers themselves are checked by
// Model::FromTables.
absl::StatusOr<ModelTables> ReadTablesFile(const std::string& path);

}  // namespace mergeplan::cli
