#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "planner/search/cuda/backend.h"

namespace mergeplan::search::device {

// The backends that tests run on, by name: "emulation" and "cuda". Tests are written for both,
// their names end in the backend's; those for CUDA skip where there is no device (tests/gpu.sh runs
// them where there is one).
absl::StatusOr<std::unique_ptr<Backend>> OpenBackend(const std::string& name);

// For names of parameterised tests.
inline std::string NameOf(const std::string& backend) { return backend; }

}  // namespace mergeplan::search::device

// Opens the backend of a parameterised test as `backend`, or skips.
#define MERGEPLAN_OPEN_BACKEND(backend)                                \
  auto backend = ::mergeplan::search::device::OpenBackend(GetParam()); \
  if (!backend.ok()) GTEST_SKIP() << backend.status().message()
