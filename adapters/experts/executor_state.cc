// The state that a run is taken up from.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "adapters/experts/executor.h"

namespace mergeplan::experts {

ExecutorState Executor::Save() const {
  ExecutorState state = state_;
  if (training_ == nullptr) return state;
  for (std::size_t g = 0; g < training_jobs_.size(); ++g) {
    ActiveTask active;
    active.trial = training_jobs_[g].trial;
    active.merge = training_jobs_[g].merge;
    active.seconds = training_seconds_ + seconds_before_[g];
    active.state = training_->Save(static_cast<int>(g));
    state.active.push_back(std::move(active));
  }
  return state;
}

absl::Status Executor::Restore(ExecutorState state) {
  if (state.trials.size() != options_.seeds.size()) {
    return absl::DataLossError(absl::StrCat("saved state: ", state.trials.size(),
                                            " trials, expected one for each of ",
                                            options_.seeds.size(), " seeds"));
  }
  const auto parameters = static_cast<std::size_t>(options_.shape.parameters());
  for (const TrialRecord& trial : state.trials) {
    if (static_cast<int>(trial.merges.size()) != plan_.size()) {
      return absl::DataLossError(absl::StrCat("saved state: ", trial.merges.size(),
                                              " merges, the plan has ", plan_.size()));
    }
    const auto fits = [&](const StudentRecord& record) {
      return record.parameters == nullptr ||
             (record.trained && record.parameters->size() == parameters);
    };
    if (!fits(trial.fit) || !std::all_of(trial.merges.begin(), trial.merges.end(), fits)) {
      return absl::DataLossError(
          absl::StrCat("saved state: a student that does not have ", parameters, " parameters"));
    }
  }
  for (const ActiveTask& active : state.active) {
    if (active.trial < 0 || active.trial >= trials() || active.merge < -1 ||
        active.merge >= plan_.size() ||
        (active.merge < 0 ? state.trials[active.trial].fit
                          : state.trials[active.trial].merges[active.merge])
            .trained) {
      return absl::DataLossError(absl::StrCat("saved state: merge number ", active.merge,
                                              " of trial ", active.trial,
                                              " cannot be in training"));
    }
  }
  state_ = std::move(state);
  return absl::OkStatus();
}

}  // namespace mergeplan::experts
