#include <ATen/ops/empty.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "adapters/judge/judge.h"
#include "adapters/network/tensor_file.h"
#include "adapters/network/try.h"
#include "planner/base/file.h"
#include "planner/base/status_macros.h"

namespace mergeplan::judge {
namespace {

at::Tensor Tensor(const std::vector<double>& values) {
  at::Tensor out = at::empty({static_cast<std::int64_t>(values.size())}, at::kDouble);
  std::copy(values.begin(), values.end(), out.mutable_data_ptr<double>());
  return out;
}

bool Take(const network::TensorFile& file, const char* name, std::vector<double>* values) {
  const at::Tensor* found = file.Find(name);
  if (found == nullptr || found->scalar_type() != at::kDouble) return false;
  const auto* data = found->const_data_ptr<double>();
  values->assign(data, data + found->numel());
  return std::all_of(values->begin(), values->end(), [](double x) { return std::isfinite(x); });
}

}  // namespace

// The name holds the hash of everything that the statistics depend on, so that a file that is
// there fits; one that is damaged (the hash in it tells) is as good as none.
bool Judge::ReadCache(const std::string& path) {
  const absl::StatusOr<network::TensorFile> file = network::ReadTensorFile(path);
  if (!file.ok()) return false;
  std::vector<double> rows, manifold;
  FeatureGaussian found;
  if (!Take(*file, "rows", &rows) || !Take(*file, "mean", &found.mean) ||
      !Take(*file, "covariance", &found.covariance) || !Take(*file, "manifold", &manifold)) {
    return false;
  }
  const std::size_t d = found.mean.size();
  if (rows.size() != 1 || d == 0 || found.covariance.size() != d * d || manifold.empty() ||
      manifold.size() % d != 0) {
    return false;
  }
  found.rows = static_cast<std::int64_t>(rows[0]);
  reference_ = std::move(found);
  manifold_ = std::move(manifold);
  return true;
}

absl::Status Judge::WriteCache(const std::string& path) const {
  return network::Try(path, [&]() -> absl::Status {
    MP_RETURN_IF_ERROR(MakeDirectories(options_.cache));
    network::TensorFile file;
    file.metadata["about"] = "mergeplan reference statistics";
    file.metadata["features"] = features_->name();
    file.tensors = {{"rows", Tensor({static_cast<double>(reference_.rows)})},
                    {"mean", Tensor(reference_.mean)},
                    {"covariance", Tensor(reference_.covariance)},
                    {"manifold", Tensor(manifold_)}};
    return network::WriteTensorFile(file, path);
  });
}

}  // namespace mergeplan::judge
