#include "adapters/calibrate/pilots.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "adapters/network/snapshots.h"
#include "adapters/network/wrapper.h"
#include "planner/base/memory.h"
#include "planner/base/status_macros.h"
#include "planner/operators/canonical.h"

namespace mergeplan::calibrate {
namespace {

using network::ErrorEstimate;
using network::Link;
using network::Module;
using network::Trainer;
using network::TrainTask;

double SecondsSince(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

// From the noisiest: trained children are jumps, steps side by side one link of the teacher.
template <typename SnapshotOf, typename LandingOf>
std::vector<Link> LinksOf(const Pilot& pilot, const SnapshotOf& snapshot,
                          const LandingOf& landing) {
  std::vector<Link> links;
  int at = pilot.range.last;
  for (auto child = pilot.trained.rbegin(); child != pilot.trained.rend(); ++child) {
    if (child->last < at) links.push_back({at, child->last, -1, 0});
    links.push_back({child->last, child->first - 1, snapshot(*child), landing(*child)});
    at = child->first - 1;
  }
  if (at > pilot.range.first - 1) links.push_back({at, pilot.range.first - 1, -1, 0});
  return links;
}

}  // namespace

Pilots::Pilots(Setting setting, network::Frozen frozen)
    : setting_(std::move(setting)),
      frozen_(std::move(frozen)),
      held_out_(
          frozen_,
          setting_.options.held_out_inputs ? setting_.options.held_out_inputs : setting_.inputs,
          setting_.options.held_out_seed, setting_.options.held_out_rows, setting_.options.block) {}

absl::StatusOr<std::unique_ptr<Pilots>> Pilots::Create(Setting setting) {
  const int T = setting.steps->schedule().steps();
  // The executor's own checks of options, teacher and every merge that a plan can have.
  for (const Strategy strategy : {Strategy::kVanilla, Strategy::kBoot, Strategy::kConsistency}) {
    MP_ASSIGN_OR_RETURN(const Plan plan, CanonicalPlan(strategy, T));
    network::ExecutorOptions options = setting.options;
    options.total_updates = 0;
    MP_RETURN_IF_ERROR(network::Executor::Create(setting.teacher, *setting.student, *setting.steps,
                                                 setting.inputs, plan, std::move(options))
                           .status());
  }
  network::Frozen frozen;
  frozen.teacher = setting.teacher;
  frozen.student = setting.steps;
  MP_ASSIGN_OR_RETURN(
      frozen.snapshots,
      network::Snapshots::Create(*setting.student, setting.options.folder, setting.options.memory));
  MP_ASSIGN_OR_RETURN(std::unique_ptr<Module> base, setting.student->Clone());
  base->SetTraining(false);
  std::unique_ptr<Pilots> out(new Pilots(std::move(setting), std::move(frozen)));
  out->base_ = std::move(base);
  MP_RETURN_IF_ERROR(out->Fit());
  return out;
}

network::TrainerOptions Pilots::OptionsOf(int replicate) const {
  const network::ExecutorOptions& o = setting_.options;
  network::TrainerOptions options;
  options.recipe = o.recipe;
  options.lr = o.lr;
  options.updates = o.iterations;
  options.batch = o.batch;
  options.precision = o.precision;
  options.seed = o.seed + static_cast<std::uint64_t>(replicate);
  options.fit_loss = o.fit_loss;
  return options;
}

absl::Status Pilots::Fit() {
  if (setting_.options.fit_updates == 0) return absl::OkStatus();
  network::TrainerOptions options = OptionsOf(0);
  options.updates = setting_.options.fit_updates;
  MP_ASSIGN_OR_RETURN(std::unique_ptr<Module> module, base_->Clone());
  MP_ASSIGN_OR_RETURN(const std::unique_ptr<Trainer> trainer,
                      Trainer::Create(std::move(module), {}, frozen_, setting_.inputs, options));
  while (!trainer->done()) {
    if (setting_.options.stop && setting_.options.stop()) {
      return absl::CancelledError("stopped in the fit to single steps");
    }
    MP_RETURN_IF_ERROR(trainer->Update());
  }
  fit_calls_ = trainer->calls().front();
  MP_ASSIGN_OR_RETURN(base_, trainer->Finish());
  return absl::OkStatus();
}

int Pilots::LandingOf(Range range) const {
  const Init init = setting_.options.init;
  return init == Init::kJump || init == Init::kChildJump ? range.first - 1 : range.last - 1;
}

absl::StatusOr<TrainTask> Pilots::TaskOf(const Pilot& pilot) const {
  TrainTask task;
  task.name = absl::StrCat("pilot ", pilot.ToString());
  task.range = pilot.range;
  task.landing = LandingOf(pilot.range);
  task.target = LinksOf(
      pilot,
      [&](Range child) {
        return snapshots_.at({child.first, child.last});
      },
      [&](Range child) { return LandingOf(child); });
  MP_ASSIGN_OR_RETURN(task.factor,
                      network::LossFactor(setting_.options.loss, setting_.steps->schedule(),
                                          pilot.range.last, task.landing));
  return task;
}

absl::StatusOr<std::unique_ptr<Trainer>> Pilots::TrainerOf(const Pilot& pilot) const {
  std::shared_ptr<Module> from = base_;
  const Init init = setting_.options.init;
  if ((init == Init::kChild || init == Init::kChildJump) && pilot.start() < pilot.range.last) {
    const Range& child = pilot.trained.back();
    MP_ASSIGN_OR_RETURN(from, frozen_.snapshots->Get(snapshots_.at({child.first, child.last})));
  }
  MP_ASSIGN_OR_RETURN(std::unique_ptr<Module> module, from->Clone());
  MP_ASSIGN_OR_RETURN(TrainTask task, TaskOf(pilot));
  std::vector<TrainTask> tasks;
  tasks.push_back(std::move(task));
  return Trainer::Create(std::move(module), std::move(tasks), frozen_, setting_.inputs,
                         OptionsOf(pilot.replicate));
}

// Of the network that would be frozen now: where there is an average, that.
absl::StatusOr<ErrorEstimate> Pilots::ErrorNow(const Pilot& pilot, Trainer& trainer,
                                               const at::Tensor& z,
                                               const at::Tensor& target) const {
  Module* module = &trainer.module();
  std::unique_ptr<Module> averaged;
  if (setting_.options.recipe.ema > 0 && trainer.updates() > 0) {
    MP_ASSIGN_OR_RETURN(const std::unique_ptr<Trainer> copy, TrainerOf(pilot));
    MP_RETURN_IF_ERROR(copy->Restore(trainer.Save()));
    MP_ASSIGN_OR_RETURN(averaged, copy->Finish());
    module = averaged.get();
  }
  MP_ASSIGN_OR_RETURN(const at::Tensor jump,
                      held_out_.Jump(*module, z, pilot.range.last, LandingOf(pilot.range),
                                     held_out_.Labels(pilot.range.last)));
  return network::SquaredDistance(jump, target);
}

absl::StatusOr<PilotResult> Pilots::Train(const Pilot& pilot,
                                          const std::vector<std::int64_t>& checkpoints) {
  for (const Range& child : pilot.trained) {
    if (snapshots_.contains({child.first, child.last})) continue;
    Keep(child);
    MP_RETURN_IF_ERROR(Train({child, {}, 0, false}, checkpoints).status());
  }
  const auto begin = std::chrono::steady_clock::now();
  MP_ASSIGN_OR_RETURN(const std::unique_ptr<Trainer> trainer, TrainerOf(pilot));
  const int from = pilot.range.last, to = pilot.range.first - 1;
  MP_ASSIGN_OR_RETURN(const at::Tensor z, held_out_.States(from));
  MP_ASSIGN_OR_RETURN(const at::Tensor truth, held_out_.Teacher(from, to));
  at::Tensor target = truth;
  if (!pilot.trained.empty()) {
    MP_ASSIGN_OR_RETURN(target,
                        held_out_.Run(trainer->tasks().front().target, z, held_out_.Labels(from)));
  }
  PilotResult result;
  result.pilot = pilot;
  MP_ASSIGN_OR_RETURN(const ErrorEstimate start, ErrorNow(pilot, *trainer, z, target));
  result.start = start.mean;
  for (const std::int64_t checkpoint : checkpoints) {
    while (trainer->updates() < checkpoint) {
      if (setting_.options.stop && setting_.options.stop()) {
        return absl::CancelledError(absl::StrCat("stopped in the pilot ", pilot.ToString()));
      }
      MP_RETURN_IF_ERROR(trainer->Update());
    }
    MP_ASSIGN_OR_RETURN(const ErrorEstimate error, ErrorNow(pilot, *trainer, z, target));
    if (!std::isfinite(error.mean)) {
      return absl::FailedPreconditionError(absl::StrCat(
          "pilot ", pilot.ToString(), ": the held-out error after update ", checkpoint, " is ",
          error.mean, ", expected a finite number; lower the learning rate (--lr)"));
    }
    result.updates.push_back(checkpoint);
    result.error.push_back(error.mean);
    result.standard_error.push_back(error.standard_error);
  }
  result.teacher_calls = trainer->calls().front();
  MP_ASSIGN_OR_RETURN(last_, trainer->Finish());
  MP_ASSIGN_OR_RETURN(const at::Tensor jump, held_out_.Jump(*last_, z, from, LandingOf(pilot.range),
                                                            held_out_.Labels(from)));
  MP_ASSIGN_OR_RETURN(const ErrorEstimate teacher, network::SquaredDistance(jump, truth));
  result.teacher = teacher.mean;
  result.teacher_error = teacher.standard_error;
  result.seconds = SecondsSince(begin);
  result.peak_memory = PeakMemoryBytes();
  const std::pair<int, int> key{pilot.range.first, pilot.range.last};
  if (pilot.trained.empty() && pilot.replicate == 0 && kept_.contains(key) &&
      !snapshots_.contains(key)) {
    MP_ASSIGN_OR_RETURN(std::unique_ptr<Module> copy, last_->Clone());
    MP_ASSIGN_OR_RETURN(snapshots_[key], frozen_.snapshots->Put(std::move(copy)));
  }
  return result;
}

void Pilots::Drop(Range range) {
  kept_.erase({range.first, range.last});
  const auto found = snapshots_.find({range.first, range.last});
  if (found == snapshots_.end()) return;
  frozen_.snapshots->Release(found->second);
  snapshots_.erase(found);
}

absl::StatusOr<double> Pilots::SecondsPerUpdate(Range range) {
  MP_ASSIGN_OR_RETURN(const std::unique_ptr<Trainer> trainer, TrainerOf({range, {}, 0, false}));
  constexpr int kTimed = 2;
  auto begin = std::chrono::steady_clock::now();
  for (int k = 0; k <= kTimed && !trainer->done(); ++k) {
    if (k == 1) begin = std::chrono::steady_clock::now();  // the first one makes its memory
    MP_RETURN_IF_ERROR(trainer->Update());
  }
  const auto timed = static_cast<double>(std::max<std::int64_t>(1, trainer->updates() - 1));
  return SecondsSince(begin) / timed;
}

}  // namespace mergeplan::calibrate
