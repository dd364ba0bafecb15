#include "adapters/model/npz_tensors.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "planner/base/status_macros.h"
#include "planner/data/npz.h"

namespace mergeplan::model {

absl::StatusOr<NpzTensors> NpzTensors::Open(const std::string& path) {
  NpzTensors npz;
  npz.path_ = path;
  MP_ASSIGN_OR_RETURN(npz.names_, NpzNames(path));
  return npz;
}

bool NpzTensors::Has(const std::string& name) const {
  return std::find(names_.begin(), names_.end(), name) != names_.end();
}

absl::StatusOr<at::Tensor> NpzTensors::Read(const std::string& name, at::ScalarType dtype) const {
  MP_ASSIGN_OR_RETURN(const NpyArray array, ReadNpzArray(path_, name));
  if (!array.text.empty() || (array.dtype.size() > 1 && array.dtype[1] == 'S')) {
    return absl::InvalidArgumentError(
        absl::StrCat(path_, ": ", name, " holds texts, expected numbers"));
  }
  at::Tensor wide = at::empty(array.shape, at::kDouble);
  std::copy(array.values.begin(), array.values.end(), wide.data_ptr<double>());
  const char kind = array.dtype.size() > 1 ? array.dtype[1] : 'f';
  return wide.to(kind == 'i' || kind == 'u' ? at::kLong : dtype);
}

absl::StatusOr<std::vector<std::string>> NpzTensors::Names(const std::string& name) const {
  MP_ASSIGN_OR_RETURN(const NpyArray array, ReadNpzArray(path_, name));
  if (array.dtype.size() < 2 || array.dtype[1] != 'S' || array.shape.size() != 1) {
    return absl::InvalidArgumentError(
        absl::StrCat(path_, ": ", name, " is ", array.dtype, ", expected a list of byte strings"));
  }
  std::vector<std::string> list;
  const size_t count = static_cast<size_t>(array.shape[0]);
  const size_t width = count == 0 ? 0 : array.text.size() / count;
  for (size_t k = 0; k < count; ++k) {
    std::string word = array.text.substr(k * width, width);
    word.erase(std::find(word.begin(), word.end(), '\0'), word.end());
    list.push_back(std::move(word));
  }
  return list;
}

double RelativeDifference(const at::Tensor& found, const at::Tensor& expected, double least) {
  constexpr double kInfinite = std::numeric_limits<double>::infinity();
  if (found.sizes() != expected.sizes()) return kInfinite;
  if (expected.numel() == 0) return 0;
  const at::Tensor a = found.detach().to(at::kCPU, at::kDouble), b = expected.to(at::kDouble);
  const double scale = std::max(b.abs().max().item<double>(), least);
  const double most = a.sub(b).abs().max().item<double>();
  const double relative = scale > 0 ? most / scale : most;
  return relative >= 0 && scale < kInfinite ? relative : kInfinite;
}

}  // namespace mergeplan::model
