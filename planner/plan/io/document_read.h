#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "planner/plan/io/document.h"
#include "planner/plan/io/node.h"

namespace mergeplan::plan_io {

// TOML: the certificate is a table of its own and long arrays may stand in an .npz. JSON: one flat
// object, which also holds `tree`. All else is the same.
enum class PlanForm { kToml, kJson };

// Reads and checks a document from what a file holds. `path` is the file's: errors name it, and the
// .npz and other files that it names are looked for beside it.
absl::StatusOr<PlanDocument> ReadDocument(const Node& root, const std::string& path, PlanForm form);

}  // namespace mergeplan::plan_io
