#include "adapters/network/executor.h"

#include <ATen/Context.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <optional>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "adapters/network/fingerprint.h"
#include "adapters/network/wrapper.h"
#include "planner/base/status_macros.h"

namespace mergeplan::network {
namespace {

// Between two calls of `checkpoint` and `progress`.
constexpr double kKeepSeconds = 0.2;

absl::Status CheckOptions(const ExecutorOptions& options, const Plan& plan) {
  const auto at_least = [](const char* what, std::int64_t found, std::int64_t least) {
    if (found >= least) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat(what, " is ", found, ", expected ", least, " or more"));
  };
  MP_RETURN_IF_ERROR(at_least("the batch", options.batch, 1));
  MP_RETURN_IF_ERROR(at_least("the total number of updates", options.total_updates, 0));
  if (options.total_updates == 0 && plan.size() > 0) {
    MP_RETURN_IF_ERROR(at_least("the number of updates per merge", options.iterations, 1));
  }
  if (options.total_updates > 0) {
    MP_RETURN_IF_ERROR(at_least("the total number of updates", options.total_updates, plan.size()));
  }
  MP_RETURN_IF_ERROR(at_least("the number of updates of the fit", options.fit_updates, 0));
  MP_RETURN_IF_ERROR(at_least("the number of held-out rows", options.held_out_rows, 2));
  return at_least("the number of rows measured at a time", options.block, 1);
}

}  // namespace

Executor::Executor(Frozen frozen, NetworkSteps steps, std::shared_ptr<Inputs> inputs,
                   const Plan& plan, ExecutorOptions options)
    : steps_(std::move(steps)),
      frozen_([&] {
        frozen.student = &steps_;
        return std::move(frozen);
      }()),
      inputs_(std::move(inputs)),
      plan_(plan),
      options_(std::move(options)),
      held_out_(MakeHeldOut()),
      holds_(plan.size()) {
  state_.merges.resize(plan.size());
  updates_ = options_.iterations;
  if (options_.total_updates > 0 && plan.size() > 0) {
    updates_ = std::max<std::int64_t>(
        1, std::llround(static_cast<double>(options_.total_updates) / plan.size()));
  }
}

absl::StatusOr<std::unique_ptr<Executor>> Executor::Create(
    std::shared_ptr<Teacher> teacher, const Module& student, const NetworkSteps& steps,
    std::shared_ptr<Inputs> inputs, const Plan& plan, ExecutorOptions options) {
  MP_RETURN_IF_ERROR(CheckOptions(options, plan));
  const Schedule& schedule = steps.schedule();
  if (plan.teacher_steps() != schedule.steps() || teacher->steps() != schedule.steps()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the plan has ", plan.teacher_steps(), " teacher steps, the teacher ",
                     teacher->steps(), ", the schedule ", schedule.steps(), ", expected the same"));
  }
  if (teacher->shape() != steps.signature().shape) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the teacher's samples have the shape [", absl::StrJoin(teacher->shape(), ", "),
        "], the student's [", absl::StrJoin(steps.signature().shape, ", "), "]"));
  }
  if (teacher->classes() != steps.signature().classes) {
    return absl::InvalidArgumentError(
        absl::StrCat("the teacher has ", teacher->classes(), " classes, the student ",
                     steps.signature().classes, ", expected the same"));
  }
  // Training keeps its own numbers in full; what runs inside is the precision's business.
  if (steps.network_type() != at::kFloat && steps.network_type() != at::kDouble) {
    return absl::InvalidArgumentError(
        absl::StrCat("the student's dtype is ", steps.signature().dtype,
                     ", expected float32 or float64; for training in half precision convert it to "
                     "float32 and use precision bf16 or fp16"));
  }
  if (options.precision == Precision::kFloat16 && steps.network_type() == at::kDouble) {
    return absl::InvalidArgumentError("precision fp16 needs a student of dtype float32");
  }
  if (options.deterministic) at::globalContext().setDeterministicAlgorithms(true, false);
  Frozen frozen;
  frozen.teacher = std::move(teacher);
  MP_ASSIGN_OR_RETURN(frozen.snapshots, Snapshots::Create(student, options.folder, options.memory));
  MP_ASSIGN_OR_RETURN(const NetworkSteps own,
                      NetworkSteps::Create(steps.signature(), schedule, options.precision));
  std::unique_ptr<Executor> executor(
      new Executor(std::move(frozen), own, std::move(inputs), plan, std::move(options)));
  for (const Merge& merge : plan.merges()) {
    const int landing = executor->LandingOf(merge);
    MP_RETURN_IF_ERROR(LandingAt(steps.signature(), schedule, merge.last, landing).status());
    MP_RETURN_IF_ERROR(LossFactor(executor->options_.loss, schedule, merge.last, landing).status());
  }
  MP_ASSIGN_OR_RETURN(executor->fingerprint_,
                      FingerprintOf(student, executor->steps_, plan, executor->options_));
  MP_ASSIGN_OR_RETURN(std::unique_ptr<Module> copy, student.Clone());
  copy->SetTraining(false);
  MP_ASSIGN_OR_RETURN(executor->state_.fit.snapshot,
                      executor->frozen_.snapshots->Put(std::move(copy)));
  // A rate or recipe that does not fit is found here, not after the first round.
  if (plan.size() > 0) {
    MP_ASSIGN_OR_RETURN(std::unique_ptr<Module> again, student.Clone());
    TrainerOptions trainer;
    trainer.recipe = executor->options_.recipe;
    trainer.lr = executor->options_.lr;
    trainer.updates = executor->updates_;
    trainer.batch = executor->options_.batch;
    trainer.gain_bound = executor->options_.gain_bound;
    trainer.fit_loss = executor->options_.fit_loss;
    trainer.communicator = executor->options_.communicator;
    TrainTask none;
    none.range = {1, 1};
    std::vector<TrainTask> tasks;
    if (executor->options_.fit_updates == 0) tasks.push_back(none);
    MP_RETURN_IF_ERROR(Trainer::Create(std::move(again), std::move(tasks), executor->frozen_,
                                       executor->inputs_, trainer)
                           .status());
  }
  return executor;
}

HeldOut Executor::MakeHeldOut() const {
  // `stop` is asked where all processes measure the same, not by one that looks at the student.
  const auto stop = [this] { return in_group_ && options_.stop && options_.stop(); };
  return HeldOut(frozen_, options_.held_out_inputs ? options_.held_out_inputs : inputs_,
                 options_.held_out_seed, options_.held_out_rows, options_.block, stop);
}

std::string Executor::Name(int merge) const {
  const Merge& m = plan_.merges()[merge];
  return absl::StrCat("merge [", m.first, ", ", m.last, "]");
}

int Executor::merges_trained() const {
  return static_cast<int>(std::count_if(state_.merges.begin(), state_.merges.end(),
                                        [](const StudentRecord& r) { return r.trained; }));
}

// Where the wrapper lands: with its own landing level c_k over [m+1, j] started from the same rule,
// down to the single step j, so that is j - 1.
int Executor::LandingOf(const Merge& merge) const {
  const bool whole = options_.init == Init::kJump || options_.init == Init::kChildJump;
  return whole ? merge.first - 1 : merge.last - 1;
}

bool Executor::StartsFromFit(int merge) const {
  if (options_.init == Init::kTeacher || options_.init == Init::kJump) return true;
  return plan_.is_step(plan_.merges()[merge].children.back());
}

// The snapshot whose weights a merge starts with.
std::int64_t Executor::StartOf(int merge) const {
  if (StartsFromFit(merge)) return state_.fit.snapshot;
  return state_.merges[plan_.merges()[merge].children.back() - plan_.teacher_steps()].snapshot;
}

absl::StatusOr<TrainTask> Executor::MakeTask(int merge) const {
  const Merge& merged = plan_.merges()[merge];
  TrainTask task;
  task.name = Name(merge);
  task.range = merged.range();
  task.landing = LandingOf(merged);
  MP_ASSIGN_OR_RETURN(task.target, Node(plan_.teacher_steps() + merge));
  MP_ASSIGN_OR_RETURN(task.factor,
                      LossFactor(options_.loss, schedule(), merged.last, task.landing));
  return task;
}

absl::Status Executor::Fit() {
  if (options_.fit_updates == 0 || state_.fit.trained) return absl::OkStatus();
  return TrainGroup({});
}

absl::Status Executor::Train(absl::Span<const int> merges) {
  std::vector<int> left;
  for (const int merge : merges) {
    if (merge < 0 || merge >= plan_.size()) {
      return absl::NotFoundError(
          absl::StrCat("merge number ", merge, ": the plan has ", plan_.size()));
    }
    if (state_.merges[merge].trained || std::find(left.begin(), left.end(), merge) != left.end()) {
      continue;
    }
    for (const int child : plan_.merges()[merge].children) {
      if (plan_.is_step(child) || state_.merges[child - plan_.teacher_steps()].trained) continue;
      return absl::FailedPreconditionError(
          absl::StrCat(Name(merge), ": its child [", plan_.range(child).first, ", ",
                       plan_.range(child).last, "] has not been trained"));
    }
    left.push_back(merge);
  }
  if (left.empty()) return absl::OkStatus();
  MP_RETURN_IF_ERROR(Fit());
  const auto take = [&](const std::vector<int>& group) {
    left.erase(std::remove_if(left.begin(), left.end(),
                              [&](int merge) {
                                return std::find(group.begin(), group.end(), merge) != group.end();
                              }),
               left.end());
    return TrainGroup(group);
  };
  // What was stopped in the middle goes first, in the company that it had.
  std::vector<std::vector<int>> unfinished;
  for (const ActiveTraining& active : state_.active) unfinished.push_back(active.merges);
  for (const std::vector<int>& group : unfinished) {
    if (std::all_of(group.begin(), group.end(), [&](int merge) {
          return std::find(left.begin(), left.end(), merge) != left.end();
        })) {
      MP_RETURN_IF_ERROR(take(group));
    }
  }
  while (!left.empty()) {
    std::vector<int> group = {left.front()};
    for (std::size_t i = 1; options_.shared && i < left.size(); ++i) {
      if (StartOf(left[i]) == StartOf(left.front())) group.push_back(left[i]);
    }
    MP_RETURN_IF_ERROR(take(group));
  }
  return absl::OkStatus();
}

absl::Status Executor::TrainAll() {
  MP_RETURN_IF_ERROR(Fit());
  for (const std::vector<int>& round : plan_.MergesByRound()) MP_RETURN_IF_ERROR(Train(round));
  return absl::OkStatus();
}

absl::Status Executor::TrainGroup(const std::vector<int>& merges) {
  in_group_ = true;
  const auto end_group = absl::MakeCleanup([this] { in_group_ = false; });
  const std::int64_t start = merges.empty() ? state_.fit.snapshot : StartOf(merges.front());
  MP_ASSIGN_OR_RETURN(std::shared_ptr<Module> from, frozen_.snapshots->Get(start));
  MP_ASSIGN_OR_RETURN(std::unique_ptr<Module> module, from->Clone());
  from.reset();
  std::vector<TrainTask> tasks;
  for (const int merge : merges) {
    MP_ASSIGN_OR_RETURN(TrainTask task, MakeTask(merge));
    tasks.push_back(std::move(task));
  }
  TrainerOptions options;
  options.recipe = options_.recipe;
  options.lr = options_.lr;
  options.updates = merges.empty() ? options_.fit_updates : updates_;
  options.batch = options_.batch;
  options.precision = options_.precision;
  options.seed = options_.seed;
  options.gain_bound = options_.gain_bound;
  options.fit_loss = options_.fit_loss;
  options.graphs = options_.graphs;
  options.note = options_.note;
  options.communicator = options_.communicator;

  std::vector<double> initial_losses;
  double seconds = 0;
  const auto active = std::find_if(state_.active.begin(), state_.active.end(),
                                   [&](const ActiveTraining& a) { return a.merges == merges; });
  if (active == state_.active.end()) {
    for (const TrainTask& task : tasks) {
      ErrorEstimate start;
      const absl::Status measured = HeldOutErrors(task, *module, &start, nullptr);
      if (absl::IsCancelled(measured)) MP_RETURN_IF_ERROR(Keep(/*forced=*/true));
      MP_RETURN_IF_ERROR(measured);
      initial_losses.push_back(start.mean);
    }
  }
  MP_ASSIGN_OR_RETURN(
      const std::unique_ptr<Trainer> trainer,
      Trainer::Create(std::move(module), std::move(tasks), frozen_, inputs_, options));
  if (active != state_.active.end()) {
    MP_RETURN_IF_ERROR(trainer->Restore(active->state));
    initial_losses = active->initial_losses;
    seconds = active->seconds;
    state_.active.erase(active);
  }
  double spent = 0;
  MP_RETURN_IF_ERROR(Loop(*trainer, merges, initial_losses, seconds, &spent));
  // What a stop while errors are measured goes back to: measuring takes the network away.
  std::optional<ActiveTraining> trained;
  if (options_.stop) trained = {merges, initial_losses, spent, trainer->Save()};
  const absl::Status measured = Measure(*trainer, merges, initial_losses, spent);
  if (absl::IsCancelled(measured) && trained) {
    state_.active.push_back(*std::move(trained));
    MP_RETURN_IF_ERROR(Keep(/*forced=*/true));
  }
  MP_RETURN_IF_ERROR(measured);
  return Keep(/*forced=*/false);
}

absl::Status Executor::Loop(Trainer& trainer, const std::vector<int>& merges,
                            const std::vector<double>& initial_losses, double seconds_before,
                            double* seconds) {
  const auto begin = std::chrono::steady_clock::now();
  training_ = &trainer;
  training_merges_ = &merges;
  training_initial_ = &initial_losses;
  const auto end_training = absl::MakeCleanup([this] {
    training_ = nullptr;
    training_merges_ = nullptr;
    training_initial_ = nullptr;
  });
  const auto passed = [&] {
    const std::chrono::duration<double> since = std::chrono::steady_clock::now() - begin;
    return since.count();
  };
  training_seconds_ = seconds_before;
  double kept = 0;
  while (!trainer.done()) {
    if (options_.stop && options_.stop()) {
      const absl::Status status = Keep(/*forced=*/true);
      state_.active = Save().active;
      MP_RETURN_IF_ERROR(status);
      return absl::CancelledError(absl::StrCat(
          "stopped in ", merges.empty() ? "the fit to single steps" : Name(merges.front()),
          " after update ", trainer.updates(), " of ",
          merges.empty() ? options_.fit_updates : updates_));
    }
    absl::Status status = trainer.Update();
    training_seconds_ = seconds_before + passed();
    if (!status.ok()) {
      state_.active = Save().active;
      return status;
    }
    if (trainer.done() || passed() - kept < kKeepSeconds) continue;
    kept = passed();
    MP_RETURN_IF_ERROR(Keep(/*forced=*/false));
    if (options_.progress) Report(trainer, merges);
  }
  if (options_.progress) Report(trainer, merges);
  *seconds = training_seconds_;
  return absl::OkStatus();
}

absl::Status Executor::Keep(bool forced) {
  if (options_.checkpoint) return options_.checkpoint(*this, forced);
  frozen_.snapshots->Sweep();  // no state names them
  return absl::OkStatus();
}

void Executor::Report(const Trainer& trainer, const std::vector<int>& merges) const {
  ExecutorProgress progress;
  const auto group = static_cast<std::int64_t>(std::max<std::size_t>(1, merges.size()));
  progress.merges_total = plan_.size();
  progress.merges_done = merges_trained();
  progress.updates_total = plan_.size() * updates_ + options_.fit_updates;
  progress.updates_done = progress.merges_done * updates_ + group * trainer.updates();
  if (!merges.empty()) {
    progress.updates_done += options_.fit_updates;
    progress.first_of_group = plan_.merges()[merges.front()].range();
  }
  progress.group = static_cast<int>(group);
  if (!trainer.losses().front().empty()) progress.loss = trainer.losses().front().back();
  options_.progress(progress);
}

}  // namespace mergeplan::network
