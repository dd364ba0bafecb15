#include "adapters/stream/stream.h"

#include <c10/core/impl/VirtualGuardImpl.h>

#include "adapters/stream/use_cuda.h"
#include "planner/base/status_macros.h"

namespace mergeplan {

absl::StatusOr<void*> StreamOf(const at::Tensor& tensor) {
  if (!tensor.is_cuda()) return nullptr;
  const at::Device device = tensor.device();
  MP_RETURN_IF_ERROR(UseCuda(device.index()));
  const c10::impl::VirtualGuardImpl guard(device.type());
  return guard.getStreamNativeHandle(guard.getStream(device));
}

std::optional<device::Number> NumberOf(at::ScalarType type) {
  switch (type) {
    case at::kFloat:
      return device::Number::kFloat;
    case at::kDouble:
      return device::Number::kDouble;
    case at::kHalf:
      return device::Number::kHalf;
    case at::kBFloat16:
      return device::Number::kBfloat;
    default:
      return std::nullopt;
  }
}

}  // namespace mergeplan
