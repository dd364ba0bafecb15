// The state of a run, kept and taken up.
#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "adapters/network/executor.h"
#include "adapters/network/state_file.h"
#include "planner/base/status_macros.h"

namespace mergeplan::network {

ExecutorState Executor::Save() const {
  ExecutorState state = state_;
  state.next_snapshot = frozen_.snapshots->next();
  if (training_ == nullptr) return state;
  ActiveTraining active;
  active.merges = *training_merges_;
  active.initial_losses = *training_initial_;
  active.seconds = training_seconds_;
  active.state = training_->Save();
  state.active.push_back(std::move(active));
  return state;
}

absl::Status Executor::WriteState(const std::string& path, const std::string& fingerprint) {
  MP_RETURN_IF_ERROR(frozen_.snapshots->Persist());
  MP_RETURN_IF_ERROR(mergeplan::network::WriteState(Save(), fingerprint, path));
  frozen_.snapshots->Sweep();
  return absl::OkStatus();
}

absl::Status Executor::ReadState(const std::string& path, const std::string& fingerprint) {
  MP_ASSIGN_OR_RETURN(ExecutorState state, mergeplan::network::ReadState(fingerprint, path));
  if (static_cast<int>(state.merges.size()) != plan_.size()) {
    return absl::DataLossError(absl::StrCat(path, ": saved state of ", state.merges.size(),
                                            " merges, the plan has ", plan_.size()));
  }
  std::map<std::int64_t, int> references;
  const auto count = [&](const StudentRecord& record) {
    if (record.snapshot >= 0) ++references[record.snapshot];
  };
  count(state.fit);
  for (std::size_t k = 0; k < state.merges.size(); ++k) {
    if (state.merges[k].snapshot >= 0 && !state.merges[k].trained) {
      return absl::DataLossError(absl::StrCat(path, ": saved state: ", Name(static_cast<int>(k)),
                                              " has weights and has not been trained"));
    }
    count(state.merges[k]);
  }
  for (const ActiveTraining& active : state.active) {
    bool fits = active.initial_losses.size() == active.merges.size();
    for (const int merge : active.merges) {
      fits = fits && merge >= 0 && merge < plan_.size() && !state.merges[merge].trained;
    }
    if (!fits || (active.merges.empty() && state.fit.trained)) {
      return absl::DataLossError(
          absl::StrCat(path, ": saved state: a training in progress that cannot be"));
    }
  }
  // A store of its own, so that one which does not read whole leaves this executor as it was.
  MP_ASSIGN_OR_RETURN(const std::shared_ptr<Module> like,
                      frozen_.snapshots->Get(state_.fit.snapshot));
  MP_ASSIGN_OR_RETURN(std::shared_ptr<Snapshots> store,
                      Snapshots::Create(*like, options_.folder, options_.memory));
  for (const auto& [id, uses] : references) MP_RETURN_IF_ERROR(store->Adopt(id, uses));
  store->SetNext(std::max(state.next_snapshot, store->next()));
  frozen_.snapshots = std::move(store);
  held_out_ = MakeHeldOut();
  state_ = std::move(state);
  return absl::OkStatus();
}

}  // namespace mergeplan::network
