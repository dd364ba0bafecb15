#include "planner/search/cuda/offload.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace mergeplan::search {

absl::StatusOr<std::unique_ptr<Offload>> Offload::Make(SearchDevice device,
                                                       std::optional<double> least_work) {
  if (device == SearchDevice::kCpu) return nullptr;
  std::unique_ptr<Offload> offload(new Offload(least_work.value_or(kLeastWork)));
  offload->least_kept_ = least_work ? 0 : kLeastKept;
  if (device == SearchDevice::kAuto) return offload;
  absl::StatusOr<std::unique_ptr<device::Backend>> backend =
      device == SearchDevice::kCuda ? device::OpenCuda() : device::Emulation();
  if (!backend.ok()) {
    return absl::FailedPreconditionError(
        absl::StrCat("the search was to use CUDA: ", std::string(backend.status().message()),
                     "; use the device auto or cpu"));
  }
  offload->engine_ = std::make_unique<device::Engine>(*std::move(backend));
  return offload;
}

Offload::Offload(std::unique_ptr<device::Backend> backend, double least_work,
                 device::EngineSizes sizes)
    : least_work_(least_work),
      engine_(std::make_unique<device::Engine>(std::move(backend), sizes)) {}

bool Offload::WorthPairs(double pairs, std::size_t columns) const {
  return !failed_ && columns > 0 && pairs * static_cast<double>(columns) >= least_work_;
}

bool Offload::WorthFilter(std::size_t candidates, std::size_t kept, std::size_t columns) const {
  return !failed_ && columns > 0 && kept >= least_kept_ &&
         static_cast<double>(candidates) * static_cast<double>(kept) *
                 static_cast<double>(columns) >=
             least_work_;
}

bool Offload::Use(const std::function<absl::Status(device::Engine&)>& call) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (failed_) return false;
  if (!engine_) {
    absl::StatusOr<std::unique_ptr<device::Backend>> backend = device::OpenCuda();
    if (!backend.ok()) {
      failed_ = true;  // there is none: nothing that a user of `auto` need be told
      return false;
    }
    engine_ = std::make_unique<device::Engine>(*std::move(backend));
  }
  const std::string name = engine_->name();
  if (const absl::Status status = call(*engine_); !status.ok()) {
    failed_ = true;
    note_ = absl::StrCat(
        name, " was given up, the search went on without it: ", std::string(status.message()));
    engine_.reset();
    return false;
  }
  used_ = true;
  note_ = name;
  return true;
}

void Offload::NewPass() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (engine_) engine_->Forget();
}

std::string Offload::Used() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!used_ && note_.empty()) return "cpu";
  return note_;
}

}  // namespace mergeplan::search
