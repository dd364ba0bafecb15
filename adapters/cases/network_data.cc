#include "adapters/cases/network_data.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "adapters/network/data.h"
#include "adapters/network/labels.h"
#include "adapters/runtime/arguments.h"
#include "planner/base/file.h"
#include "planner/base/status_macros.h"

namespace mergeplan {
namespace {

at::ScalarType TypeOf(const std::string& dtype) {
  if (dtype == "float64") return at::kDouble;
  if (dtype == "float16") return at::kHalf;
  if (dtype == "bfloat16") return at::kBFloat16;
  return at::kFloat;
}

}  // namespace

at::Device DeviceOf(const Device& device) {
  return device.cuda ? at::Device(at::kCUDA, static_cast<at::DeviceIndex>(device.index))
                     : at::Device(at::kCPU);
}

at::TensorOptions StatesOf(const network::NetworkSteps& steps, const Device& device) {
  return at::TensorOptions().dtype(steps.state_type()).device(DeviceOf(device));
}

absl::Status MoveNetwork(network::Module& module, const Device& device,
                         const network::Signature& signature) {
  return module.To(DeviceOf(device), TypeOf(signature.dtype));
}

absl::StatusOr<LoadedData> LoadTrainingData(const std::string& path, const std::string& array,
                                            std::int64_t rows,
                                            const network::Signature& signature) {
  SamplesOptions options;
  options.array = array;
  LoadedData out;
  MP_ASSIGN_OR_RETURN(out.samples,
                      network::LoadData(path, options, signature.scaling, signature.shape, rows));
  out.sha256 = HashOfNumbers(out.samples);
  return out;
}

absl::StatusOr<LoadedLabels> LoadTrainingLabels(const std::string& path, const std::string& array,
                                                const std::string& data, std::int64_t classes,
                                                std::int64_t samples, bool part) {
  LoadedLabels out;
  out.path = path;
  out.array = array;
  if (path.empty()) {
    out.path = data;
    out.array = network::LabelArrayOf(data);
    if (out.array.empty()) {
      return Misuse(absl::StrCat(
          "--inputs data: the network is told one of ", classes,
          " classes; give that of every sample by --labels FILE (IDX, .npy, or an .npz; an .npz of "
          "--data may hold them as labels), or take --inputs rollout"));
    }
  }
  MP_ASSIGN_OR_RETURN(out.labels, network::LoadLabels(out.path, out.array, classes, samples, part));
  out.sha256 = HashOfNumbers(out.labels);
  return out;
}

std::string HashOfNumbers(const at::Tensor& tensor) {
  const at::Tensor bytes = tensor.contiguous();
  return Sha256(std::string_view(static_cast<const char*>(bytes.const_data_ptr()),
                                 static_cast<std::size_t>(bytes.nbytes())));
}

absl::Status TryNetworks(const network::NetworkSteps& steps, network::Module& student,
                         network::Teacher& teacher, const Device& device) {
  std::vector<std::int64_t> shape = steps.signature().shape;
  shape.insert(shape.begin(), 3);
  const int T = steps.schedule().steps();
  const at::Tensor z = at::zeros(shape, StatesOf(steps, device));
  const c10::NoGradGuard no_gradients;
  const auto check = [&](const char* who, const absl::StatusOr<at::Tensor>& out) {
    const std::string where = absl::StrCat("the ", who, ", tried on zeros at level ", T, ": ");
    if (!out.ok()) {
      return absl::Status(out.status().code(),
                          absl::StrCat(where, std::string(out.status().message()),
                                       "; see shape, arguments, time and dtype of its sidecar"));
    }
    if (at::isfinite(*out).all().item<bool>()) return absl::OkStatus();
    return absl::FailedPreconditionError(
        absl::StrCat(where,
                     "gives numbers that are not finite, expected finite ones; check the "
                     "network, its weights and the schedule"));
  };
  const at::Tensor label = steps.signature().classes > 0
                               ? at::zeros({z.size(0)}, at::TensorOptions().dtype(at::kLong))
                               : at::Tensor();
  MP_RETURN_IF_ERROR(check("student's network", steps.Jump(student, z, T, T - 1, label)));
  return check("teacher", teacher.Jump(z, T, T - 1, label));
}

}  // namespace mergeplan
