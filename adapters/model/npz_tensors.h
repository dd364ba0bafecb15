#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace mergeplan::model {

// The arrays of an .npz as tensors.
class NpzTensors {
 public:
  static absl::StatusOr<NpzTensors> Open(const std::string& path);
  bool Has(const std::string& name) const;
  // Whole numbers become int64, all others `dtype`. NOT_FOUND lists the names that there are.
  absl::StatusOr<at::Tensor> Read(const std::string& name, at::ScalarType dtype) const;
  // A list of byte strings.
  absl::StatusOr<std::vector<std::string>> Names(const std::string& name) const;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
  std::vector<std::string> names_;
};

// The largest difference divided by the largest value of `expected`, or by `least` where that is
// more (by 1 where both are 0); infinite where something is not a number or the shapes differ.
double RelativeDifference(const at::Tensor& found, const at::Tensor& expected, double least = 0);

}  // namespace mergeplan::model
