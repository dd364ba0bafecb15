#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "adapters/network/cuda/kernels.h"

namespace mergeplan::network {

// Averages of parameters, moved in one launch for all of them. The tensors' memory must stay where
// it is.
class FusedAverage {
 public:
  // Null where LibTorch has to do it: away from CUDA, without nvcc, for parameters that are not all
  // float or all double, on one device, and laid out in memory as their averages are. With
  // `kernels` these, wherever the tensors lie: for tests. Throws c10::Error.
  static std::shared_ptr<const FusedAverage> Create(
      const std::vector<at::Tensor>& averages, const std::vector<at::Tensor>& parameters,
      const network_device::Kernels* kernels = nullptr);

  // average += weight (parameter - average). Throws c10::Error.
  absl::Status Move(double weight) const;

 private:
  FusedAverage() = default;

  const network_device::Kernels* kernels_ = nullptr;
  at::Tensor table_;  // of Piece, as bytes on the device
  std::vector<at::Tensor> held_;
  std::int64_t pieces_ = 0;
  bool wide_ = false;
};

}  // namespace mergeplan::network
