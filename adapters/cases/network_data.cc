#include "adapters/cases/network_data.h"

#include <ATen/ATen.h>

#include <filesystem>
#include <string_view>

#include "adapters/network/data.h"
#include "planner/base/file.h"
#include "planner/base/status_macros.h"

namespace mergeplan {
namespace {

at::Device DeviceOf(const Device& device) {
  return device.cuda ? at::Device(at::kCUDA, static_cast<at::DeviceIndex>(device.index))
                     : at::Device(at::kCPU);
}

at::ScalarType TypeOf(const std::string& dtype) {
  if (dtype == "float64") return at::kDouble;
  if (dtype == "float16") return at::kHalf;
  if (dtype == "bfloat16") return at::kBFloat16;
  return at::kFloat;
}

}  // namespace

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
  const at::Tensor bytes = out.samples.contiguous();
  out.sha256 = Sha256(std::string_view(static_cast<const char*>(bytes.const_data_ptr()),
                                       static_cast<std::size_t>(bytes.nbytes())));
  return out;
}

std::string AbsolutePath(const std::string& path) {
  return path.empty() ? path : std::filesystem::absolute(path).string();
}

}  // namespace mergeplan
