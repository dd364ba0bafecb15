#include "adapters/runtime/ranks.h"

#include <algorithm>
#include <vector>

#include "absl/strings/cord.h"
#include "adapters/runtime/signals.h"
#include "planner/base/status_macros.h"

namespace mergeplan {
namespace {

constexpr char kToldElsewhere[] = "mergeplan/told-elsewhere";

}  // namespace

absl::Status Ranks::Agree(const absl::Status& mine) const {
  if (!several()) return mine;
  std::vector<double> failed(communicator_->ranks());
  failed[communicator_->rank()] = mine.ok() ? 0 : 1;
  MP_RETURN_IF_ERROR(communicator_->Sum(failed.data(), communicator_->ranks()));
  const auto first = std::find(failed.begin(), failed.end(), 1.0) - failed.begin();
  if (first == communicator_->ranks()) return absl::OkStatus();
  if (first == communicator_->rank()) return mine;
  absl::Status other = mine.ok() ? absl::CancelledError("another rank failed") : mine;
  other.SetPayload(kToldElsewhere, absl::Cord("1"));
  return other;
}

bool Ranks::Stop() {
  if (!several()) return StopRequested();
  const absl::StatusOr<bool> any = communicator_->Any(StopRequested());
  // Without the others there is nothing to go on with.
  if (!any.ok() || *any) stopped_ = true;
  return stopped_;
}

bool Ranks::stopped() const { return several() ? stopped_.load() : StopRequested(); }

bool IsToldElsewhere(const absl::Status& status) {
  return status.GetPayload(kToldElsewhere).has_value();
}

}  // namespace mergeplan
