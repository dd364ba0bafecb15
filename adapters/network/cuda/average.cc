#include "adapters/network/cuda/average.h"

#include <ATen/ops/from_blob.h>

#include <algorithm>

#include "adapters/stream/stream.h"
#include "planner/base/status_macros.h"

namespace mergeplan::network {

using network_device::kPiece;
using network_device::Piece;

std::shared_ptr<const FusedAverage> FusedAverage::Create(const std::vector<at::Tensor>& averages,
                                                         const std::vector<at::Tensor>& parameters,
                                                         const network_device::Kernels* kernels) {
  if (parameters.empty() || averages.size() != parameters.size()) return nullptr;
  const at::Tensor& first = parameters.front();
  if (kernels == nullptr && first.is_cuda()) kernels = network_device::CudaKernels();
  const at::ScalarType type = first.scalar_type();
  if (kernels == nullptr || (type != at::kFloat && type != at::kDouble)) return nullptr;
  std::vector<Piece> pieces;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const at::Tensor &average = averages[i], &parameter = parameters[i];
    for (const at::Tensor& tensor : {average, parameter}) {
      if (tensor.scalar_type() != type || tensor.device() != first.device()) return nullptr;
    }
    if (!average.sizes().equals(parameter.sizes()) ||
        !average.strides().equals(parameter.strides()) ||
        !parameter.is_non_overlapping_and_dense()) {
      return nullptr;
    }
    auto* to = static_cast<char*>(average.mutable_data_ptr());
    const auto* from = static_cast<const char*>(parameter.const_data_ptr());
    const auto size = static_cast<std::int64_t>(parameter.element_size());
    for (std::int64_t begin = 0; begin < parameter.numel(); begin += kPiece) {
      pieces.push_back(
          {to + begin * size, from + begin * size, std::min(kPiece, parameter.numel() - begin)});
    }
  }
  std::shared_ptr<FusedAverage> out(new FusedAverage());
  out->kernels_ = kernels;
  out->held_ = averages;
  out->held_.insert(out->held_.end(), parameters.begin(), parameters.end());
  out->pieces_ = static_cast<std::int64_t>(pieces.size());
  out->wide_ = type == at::kDouble;
  out->table_ = at::from_blob(pieces.data(),
                              {static_cast<std::int64_t>(pieces.size() * sizeof(Piece))}, at::kByte)
                    .clone()
                    .to(first.device());
  return out;
}

absl::Status FusedAverage::Move(double weight) const {
  MP_ASSIGN_OR_RETURN(void* const stream, StreamOf(held_.front()));
  return kernels_->Run(
      stream, network_device::AverageArgs{
                  pieces_, static_cast<const Piece*>(table_.const_data_ptr()), wide_, weight});
}

}  // namespace mergeplan::network
