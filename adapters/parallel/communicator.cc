#include "adapters/parallel/communicator.h"

#include "planner/base/status_macros.h"

namespace mergeplan {
namespace {

class OneProcess : public Communicator {
 public:
  int rank() const override { return 0; }
  int ranks() const override { return 1; }
  absl::Status Sum(double* /*numbers*/, std::int64_t /*n*/) const override {
    return absl::OkStatus();
  }
  absl::Status Sum(float* /*numbers*/, std::int64_t /*n*/) const override {
    return absl::OkStatus();
  }
  absl::Status Broadcast(void* /*bytes*/, std::int64_t /*n*/) const override {
    return absl::OkStatus();
  }
  absl::Status Barrier() const override { return absl::OkStatus(); }
  void Finish() const override {}
};

}  // namespace

absl::StatusOr<bool> Communicator::Any(bool mine) const {
  double said = mine ? 1 : 0;
  MP_RETURN_IF_ERROR(Sum(&said, 1));
  return said > 0;
}

std::shared_ptr<const Communicator> Alone() { return std::make_shared<OneProcess>(); }

}  // namespace mergeplan
