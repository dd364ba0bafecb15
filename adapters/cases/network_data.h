#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "adapters/network/module.h"
#include "adapters/network/signature.h"
#include "adapters/network/steps.h"
#include "adapters/network/teachers.h"
#include "adapters/runtime/device.h"

namespace mergeplan {

// What of a network job touches tensors.

at::Device DeviceOf(const Device& device);
// Type and device of states.
at::TensorOptions StatesOf(const network::NetworkSteps& steps, const Device& device);
// To the device, with numbers of the signature's type.
absl::Status MoveNetwork(network::Module& module, const Device& device,
                         const network::Signature& signature);

// One step of student and teacher on zeros: what cannot run at all is said before a run's folder is
// made. Errors name which of them.
absl::Status TryNetworks(const network::NetworkSteps& steps, network::Module& student,
                         network::Teacher& teacher, const Device& device);

struct LoadedData {
  at::Tensor samples;  // [N, shape], on the CPU
  std::string sha256;  // of their numbers
};

// Classes of samples, and where they were found.
struct LoadedLabels {
  at::Tensor labels;  // [N], on the CPU
  std::string sha256, path, array;
};
// Of the file `path`; where it is empty, of an array of labels in `data`, an .npz. Misuse where
// there is neither; errors of LoadLabels.
absl::StatusOr<LoadedLabels> LoadTrainingLabels(const std::string& path, const std::string& array,
                                                const std::string& data, std::int64_t classes,
                                                std::int64_t samples, bool part);

// The SHA-256 of a tensor's numbers.
std::string HashOfNumbers(const at::Tensor& tensor);
absl::StatusOr<LoadedData> LoadTrainingData(const std::string& path, const std::string& array,
                                            std::int64_t rows, const network::Signature& signature);

}  // namespace mergeplan
