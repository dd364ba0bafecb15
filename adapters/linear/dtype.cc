#include "adapters/linear/dtype.h"

#include "absl/strings/str_cat.h"

namespace mergeplan {

absl::StatusOr<DType> ParseDType(const std::string& word) {
  if (word == "float32") return DType::kFloat32;
  if (word == "float64") return DType::kFloat64;
  return absl::InvalidArgumentError(
      absl::StrCat("dtype '", word, "': expected float32 or float64"));
}

std::string ToString(DType dtype) { return dtype == DType::kFloat32 ? "float32" : "float64"; }

}  // namespace mergeplan
