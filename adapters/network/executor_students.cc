// What has been trained: its records, its weights for as long as they are needed, its errors.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "adapters/network/executor.h"
#include "planner/base/memory.h"
#include "planner/base/status_macros.h"
#include "planner/runs/curve_updates.h"

namespace mergeplan::network {
namespace {

double Mean(absl::Span<const double> values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

}  // namespace

bool Executor::IsBlock(int merge) const {
  const auto blocks = plan_.blocks();
  return std::find(blocks.begin(), blocks.end(), plan_.teacher_steps() + merge) != blocks.end();
}

void Executor::Hold(int merge) { ++holds_[merge]; }

void Executor::Release(int merge) {
  --holds_[merge];
  Drop(merge);
}

absl::StatusOr<std::shared_ptr<Module>> Executor::Weights(int merge) {
  if (merge < 0 || merge >= plan_.size()) {
    return absl::NotFoundError(
        absl::StrCat("merge number ", merge, ": the plan has ", plan_.size()));
  }
  if (state_.merges[merge].snapshot < 0) {
    return absl::FailedPreconditionError(
        absl::StrCat(Name(merge), state_.merges[merge].trained
                                      ? ": its weights have been dropped, since no later merge "
                                        "needs them; hold it before its parent is trained"
                                      : ": has not been trained"));
  }
  return frozen_.snapshots->Get(state_.merges[merge].snapshot);
}

absl::StatusOr<std::vector<Link>> Executor::Node(int node) const {
  if (plan_.is_step(node)) return std::vector<Link>{{node + 1, node, -1, 0}};
  const int merge = node - plan_.teacher_steps();
  const Merge& merged = plan_.merges()[merge];
  const StudentRecord& record = state_.merges[merge];
  if (record.trained) {
    if (record.snapshot < 0) {
      return absl::FailedPreconditionError(
          absl::StrCat(Name(merge),
                       ": its weights have been dropped, since no later merge needs them; hold it "
                       "before its parent is trained"));
    }
    return std::vector<Link>{{merged.last, merged.first - 1, record.snapshot, record.landing}};
  }
  std::vector<Link> links;
  for (auto child = merged.children.rbegin(); child != merged.children.rend(); ++child) {
    MP_ASSIGN_OR_RETURN(const std::vector<Link> part, Node(*child));
    for (const Link& link : part) {
      // Single steps side by side are one link.
      if (!links.empty() && links.back().snapshot < 0 && link.snapshot < 0) {
        links.back().to = link.to;
      } else {
        links.push_back(link);
      }
    }
  }
  return links;
}

absl::StatusOr<std::vector<Link>> Executor::Student() const {
  std::vector<Link> links;
  for (auto block = plan_.blocks().rbegin(); block != plan_.blocks().rend(); ++block) {
    MP_ASSIGN_OR_RETURN(const std::vector<Link> part, Node(*block));
    links.insert(links.end(), part.begin(), part.end());
  }
  return links;
}

absl::StatusOr<at::Tensor> Executor::Run(const std::vector<Link>& links, const at::Tensor& z,
                                         const at::Tensor& label) const {
  return held_out_.Run(links, z, label);
}

absl::StatusOr<std::vector<LevelError>> Executor::Evaluate() {
  const int T = plan_.teacher_steps();
  MP_ASSIGN_OR_RETURN(at::Tensor z, held_out_.States(T));
  const at::Tensor label = held_out_.Labels(T);
  std::vector<LevelError> out;
  for (auto block = plan_.blocks().rbegin(); block != plan_.blocks().rend(); ++block) {
    MP_ASSIGN_OR_RETURN(const std::vector<Link> links, Node(*block));
    MP_ASSIGN_OR_RETURN(z, held_out_.Run(links, z, label));
    LevelError at;
    at.level = plan_.range(*block).first - 1;
    MP_ASSIGN_OR_RETURN(const at::Tensor truth, held_out_.Teacher(T, at.level));
    MP_ASSIGN_OR_RETURN(const ErrorEstimate error, SquaredDistance(z, truth));
    at.error = Native(error);
    out.push_back(at);
  }
  return out;
}

absl::Status Executor::HeldOutErrors(const TrainTask& task, Module& module, ErrorEstimate* own,
                                     ErrorEstimate* teacher) {
  const int from = task.range.last, to = task.range.first - 1;
  MP_ASSIGN_OR_RETURN(const at::Tensor z, held_out_.States(from));
  const at::Tensor label = held_out_.Labels(from);
  MP_ASSIGN_OR_RETURN(const at::Tensor jump, held_out_.Jump(module, z, from, task.landing, label));
  const bool all_teacher = TeacherSteps(task.target) == from - to;
  if (!all_teacher) {
    MP_ASSIGN_OR_RETURN(const at::Tensor target, held_out_.Run(task.target, z, label));
    MP_ASSIGN_OR_RETURN(*own, SquaredDistance(jump, target));
  }
  if (!all_teacher && teacher == nullptr) return absl::OkStatus();
  MP_ASSIGN_OR_RETURN(const at::Tensor truth, held_out_.Teacher(from, to));
  MP_ASSIGN_OR_RETURN(const ErrorEstimate error, SquaredDistance(jump, truth));
  if (all_teacher) *own = error;
  if (teacher != nullptr) *teacher = Native(error);
  return absl::OkStatus();
}

ErrorEstimate Executor::Native(ErrorEstimate error) const {
  const double scale = schedule().data_scale * schedule().data_scale;
  error.mean *= scale;
  error.standard_error *= scale;
  return error;
}

// Freezes a trained network and fills the records of what it learnt.
absl::Status Executor::Measure(Trainer& trainer, const std::vector<int>& merges,
                               const std::vector<double>& initial_losses, double seconds) {
  MP_ASSIGN_OR_RETURN(std::unique_ptr<Module> module, trainer.Finish());
  std::vector<StudentRecord> records(std::max<std::size_t>(1, merges.size()));
  for (std::size_t k = 0; k < records.size(); ++k) {
    StudentRecord& record = records[k];
    const std::vector<double>& losses = trainer.losses()[k];
    record.trained = true;
    record.updates = trainer.updates();
    record.skipped = trainer.skipped();
    record.stopped_early = trainer.updates() < (merges.empty() ? options_.fit_updates : updates_);
    record.teacher_calls = trainer.calls()[k];
    record.seconds = seconds / static_cast<double>(records.size());
    for (const std::int64_t update : CurveUpdates(record.updates)) {
      record.curve.push_back(losses[update]);
    }
    if (merges.empty()) {
      const std::size_t part = std::max<std::size_t>(1, losses.size() / 16);
      record.initial_loss = Mean(absl::MakeConstSpan(losses).first(part));
      record.final_loss = Mean(absl::MakeConstSpan(losses).last(part));
    } else {
      const TrainTask& task = trainer.tasks()[k];
      record.landing = task.landing;
      record.initial_loss = initial_losses[k];
      MP_RETURN_IF_ERROR(HeldOutErrors(task, *module, &record.own, &record.teacher));
      record.final_loss = record.own.mean;
      if (!std::isfinite(record.final_loss)) {
        return absl::FailedPreconditionError(absl::StrCat(
            task.name, ": the held-out loss after update ", record.updates, " of ", updates_,
            " is ", record.final_loss, ", expected a finite number; lower the learning rate"));
      }
    }
    record.peak_memory = PeakMemoryBytes();
  }
  MP_ASSIGN_OR_RETURN(const std::int64_t id, frozen_.snapshots->Put(std::move(module)));
  if (merges.empty()) {
    records[0].snapshot = id;
    frozen_.snapshots->Release(state_.fit.snapshot);
    state_.fit = std::move(records[0]);
    return absl::OkStatus();
  }
  for (std::size_t k = 0; k < merges.size(); ++k) {
    if (k > 0) frozen_.snapshots->Retain(id);
    records[k].snapshot = id;
    state_.merges[merges[k]] = std::move(records[k]);
  }
  for (const int merge : merges) {
    for (const int child : plan_.merges()[merge].children) {
      if (!plan_.is_step(child)) Drop(child - plan_.teacher_steps());
    }
  }
  DropFit();
  return absl::OkStatus();
}

// Lets go of weights that nothing needs any more.
void Executor::Drop(int merge) {
  StudentRecord& record = state_.merges[merge];
  if (record.snapshot < 0 || holds_[merge] > 0 || IsBlock(merge)) return;
  const int node = plan_.teacher_steps() + merge;
  for (int parent = 0; parent < plan_.size(); ++parent) {
    const std::vector<int>& children = plan_.merges()[parent].children;
    if (std::find(children.begin(), children.end(), node) != children.end() &&
        !state_.merges[parent].trained) {
      return;
    }
  }
  frozen_.snapshots->Release(record.snapshot);
  record.snapshot = -1;
}

void Executor::DropFit() {
  if (state_.fit.snapshot < 0) return;
  for (int merge = 0; merge < plan_.size(); ++merge) {
    if (!state_.merges[merge].trained && StartsFromFit(merge)) return;
  }
  frozen_.snapshots->Release(state_.fit.snapshot);
  state_.fit.snapshot = -1;
}

}  // namespace mergeplan::network
