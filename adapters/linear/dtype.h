#pragma once

#include <string>

#include "absl/status/statusor.h"

namespace mergeplan {

// The arithmetic of a training.
enum class DType { kFloat32, kFloat64 };
absl::StatusOr<DType> ParseDType(const std::string& word);  // "float32", "float64"
std::string ToString(DType dtype);

}  // namespace mergeplan
