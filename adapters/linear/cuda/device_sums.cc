#include <algorithm>
#include <cstddef>
#include <utility>

#include "adapters/linear/cuda/backend.h"
#include "adapters/linear/unit_sums.h"
#include "planner/base/status_macros.h"

namespace mergeplan {
namespace {

using linear_device::Backend;
using linear_device::kSliceRows;

// Numbers of the slices that are in memory at one time, about: 128 MiB.
constexpr std::int64_t kPartial = std::int64_t{1} << 24;

class DeviceSums : public UnitSums {
 public:
  DeviceSums(UnitSumsShape shape, std::unique_ptr<Backend> backend)
      : shape_(std::move(shape)),
        backend_(std::move(backend)),
        merges_(static_cast<std::int64_t>(shape_.names.size())),
        slices_((shape_.row_end - shape_.row_begin + kSliceRows - 1) / kSliceRows) {}
  ~DeviceSums() override {
    if (!backend_->Use().ok()) return;
    for (void* memory : {names_, partial_, sums_}) {
      if (memory != nullptr) backend_->Release(memory);
    }
  }

  absl::Status Sum(std::uint64_t first, std::int64_t count, double* sums) override {
    MP_RETURN_IF_ERROR(backend_->Use());
    const std::int64_t of_update = std::max<std::int64_t>(1, merges_ * slices_ * shape_.d);
    const std::int64_t together = std::clamp<std::int64_t>(kPartial / of_update, 1, count);
    std::vector<double> part;
    for (std::int64_t begin = 0; begin < count; begin += together) {
      const std::int64_t some = std::min(together, count - begin);
      const std::int64_t size = some * shape_.d;  // of a merge
      part.resize(static_cast<std::size_t>(merges_ * size));
      MP_RETURN_IF_ERROR(Part(first + static_cast<std::uint64_t>(begin), some, part.data()));
      for (std::int64_t i = 0; i < merges_; ++i) {
        std::copy_n(part.data() + i * size, size, sums + (i * count + begin) * shape_.d);
      }
    }
    return absl::OkStatus();
  }

 private:
  absl::Status Part(std::uint64_t first, std::int64_t count, double* sums) {
    const std::int64_t all = merges_ * count * shape_.d;
    MP_RETURN_IF_ERROR(Room(all));
    const linear_device::SliceArgs slices{merges_,
                                          count,
                                          slices_,
                                          shape_.d,
                                          shape_.rows,
                                          shape_.row_begin,
                                          shape_.row_end,
                                          first,
                                          static_cast<const StreamName*>(names_),
                                          static_cast<double*>(partial_)};
    MP_RETURN_IF_ERROR(backend_->Run(slices));
    const linear_device::SumArgs add{all, slices_, shape_.d, static_cast<const double*>(partial_),
                                     static_cast<double*>(sums_)};
    MP_RETURN_IF_ERROR(backend_->Run(add));
    return backend_->Download(sums, sums_, static_cast<std::size_t>(all) * sizeof(double));
  }

  // Memory for that many sums.
  absl::Status Room(std::int64_t all) {
    if (names_ == nullptr) {
      const std::size_t bytes = shape_.names.size() * sizeof(StreamName);
      MP_ASSIGN_OR_RETURN(names_, backend_->Allocate(bytes));
      MP_RETURN_IF_ERROR(backend_->Upload(names_, shape_.names.data(), bytes));
    }
    if (all <= room_) return absl::OkStatus();
    for (void** memory : {&partial_, &sums_}) {
      if (*memory != nullptr) backend_->Release(*memory);
      *memory = nullptr;
    }
    room_ = 0;
    const auto bytes = static_cast<std::size_t>(all) * sizeof(double);
    MP_ASSIGN_OR_RETURN(partial_, backend_->Allocate(bytes * static_cast<std::size_t>(slices_)));
    MP_ASSIGN_OR_RETURN(sums_, backend_->Allocate(bytes));
    room_ = all;
    return absl::OkStatus();
  }

  const UnitSumsShape shape_;
  const std::unique_ptr<Backend> backend_;
  const std::int64_t merges_, slices_;
  void *names_ = nullptr, *partial_ = nullptr, *sums_ = nullptr;  // the device's
  std::int64_t room_ = 0;                                         // sums that there is memory for
};

}  // namespace

absl::StatusOr<std::unique_ptr<UnitSums>> CudaUnitSums(const UnitSumsShape& shape, int device) {
  MP_ASSIGN_OR_RETURN(std::unique_ptr<Backend> backend, linear_device::OpenCuda(device));
  return std::make_unique<DeviceSums>(shape, std::move(backend));
}

std::unique_ptr<UnitSums> EmulatedUnitSums(const UnitSumsShape& shape) {
  return std::make_unique<DeviceSums>(shape, linear_device::Emulation());
}

}  // namespace mergeplan
