#include "adapters/model/compare.h"

#include <ATen/core/Tensor.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "adapters/model/npz_tensors.h"
#include "adapters/unet/unet.h"
#include "planner/base/status_macros.h"

namespace mergeplan::model {
namespace {

using Parameters = std::map<std::string, at::Tensor>;

// In one precision; `suffix` is what its arrays end in.
absl::Status CompareIn(unet::UNet2d& net, const NpzTensors& npz, at::ScalarType dtype,
                       const std::string& suffix, std::vector<Difference>& differences) {
  const std::string word = dtype == at::kDouble ? "float64" : "float32";
  MP_RETURN_IF_ERROR(net.To(at::kCPU, dtype));
  MP_ASSIGN_OR_RETURN(const at::Tensor sample, npz.Read("sample", dtype));
  // A time that is no whole number stays in float32, as the library is given it.
  MP_ASSIGN_OR_RETURN(const at::Tensor time, npz.Read("timesteps", at::kFloat));
  at::Tensor label;
  if (npz.Has("class_labels")) {
    MP_ASSIGN_OR_RETURN(label, npz.Read("class_labels", at::kFloat));
  }
  MP_ASSIGN_OR_RETURN(const at::Tensor expected, npz.Read("output" + suffix, at::kDouble));
  MP_ASSIGN_OR_RETURN(const at::Tensor output, net.Forward(sample, time, label));
  if (output.sizes() != expected.sizes()) {
    return absl::InvalidArgumentError(absl::StrCat(
        npz.path(), ": output", suffix, " has another shape than what the network gives"));
  }
  differences.push_back({"output", word, RelativeDifference(output, expected),
                         expected.numel() > 0 ? expected.abs().max().item<double>() : 0, 0});
  if (!npz.Has("grad_names")) return absl::OkStatus();
  MP_ASSIGN_OR_RETURN(const std::vector<std::string> names, npz.Names("grad_names"));
  Parameters parameters;
  for (auto& [name, tensor] : net.Parameters()) {
    tensor.mutable_grad() = at::Tensor();
    parameters.emplace(name, tensor);
  }
  output.square().sum().backward();
  double steepest = 0;
  for (const auto& [name, tensor] : parameters) {
    if (tensor.grad().defined()) {
      steepest = std::max(steepest, tensor.grad().abs().max().item<double>());
    }
  }
  // Some gradients are zero, such as that of a key's bias, and their values are rounding of
  // others'.
  const double least = steepest * (dtype == at::kFloat ? 1e-3 : 1e-9);
  for (size_t k = 0; k < names.size(); ++k) {
    const std::string narrow = absl::StrCat("grad_", k), wide = narrow + "_f64";
    const std::string key = npz.Has(wide) ? wide : narrow;
    if (!npz.Has(key) || (key == narrow && dtype == at::kDouble)) continue;
    const auto at = parameters.find(names[k]);
    if (at == parameters.end()) {
      return absl::InvalidArgumentError(absl::StrCat(npz.path(), ": grad_names has ", names[k],
                                                     ", which is no parameter of the network"));
    }
    MP_ASSIGN_OR_RETURN(const at::Tensor gradient, npz.Read(key, at::kDouble));
    if (!at->second.grad().defined() || at->second.grad().sizes() != gradient.sizes()) {
      return absl::InvalidArgumentError(
          absl::StrCat(npz.path(), ": ", key, " has another shape than ", names[k]));
    }
    Difference difference{"gradient " + names[k], word,
                          RelativeDifference(at->second.grad(), gradient, least),
                          gradient.numel() > 0 ? gradient.abs().max().item<double>() : 0, 0};
    if (dtype == at::kFloat && key == wide && npz.Has(narrow)) {
      MP_ASSIGN_OR_RETURN(const at::Tensor rounded, npz.Read(narrow, at::kDouble));
      difference.rounding = RelativeDifference(rounded, gradient, least);
    }
    differences.push_back(std::move(difference));
  }
  for (auto& [name, tensor] : parameters) tensor.mutable_grad() = at::Tensor();
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<Difference>> CompareUNet(unet::UNet2d& net, const std::string& path) {
  MP_ASSIGN_OR_RETURN(const NpzTensors npz, NpzTensors::Open(path));
  if (!npz.Has("output") && !npz.Has("output_f64")) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": has neither output nor output_f64 to compare with"));
  }
  std::vector<Difference> differences;
  absl::Status status;
  try {
    if (npz.Has("output")) status = CompareIn(net, npz, at::kFloat, "", differences);
    if (status.ok() && npz.Has("output_f64")) {
      status = CompareIn(net, npz, at::kDouble, "_f64", differences);
    }
  } catch (const c10::Error& error) {
    status = absl::InternalError(absl::StrCat(path, ": ", error.what_without_backtrace()));
  }
  MP_RETURN_IF_ERROR(status);
  return differences;
}

}  // namespace mergeplan::model
