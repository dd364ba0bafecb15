#include "adapters/experts/executor.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "planner/base/status_macros.h"

namespace mergeplan::experts {
namespace {

// How long an Advance should take, between questions whether to stop.
constexpr double kAdvanceSeconds = 0.1;
// Of all students that train together.
constexpr double kGroupBytes = 512e6;
absl::Status CheckOptions(const ExecutorOptions& options) {
  const auto at_least = [](const char* what, std::int64_t found, std::int64_t least) {
    if (found >= least) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat(what, " is ", found, ", expected ", least, " or more"));
  };
  if (options.seeds.empty()) return absl::InvalidArgumentError("no seeds: there is no trial");
  MP_RETURN_IF_ERROR(at_least("the number of updates of the fit", options.fit_updates, 0));
  MP_RETURN_IF_ERROR(at_least("the number of updates per merge", options.iterations, 1));
  MP_RETURN_IF_ERROR(at_least("the batch", options.batch, 1));
  MP_RETURN_IF_ERROR(at_least("the number of held-out rows", options.held_out_rows, 2));
  MP_RETURN_IF_ERROR(at_least("the number of threads", options.threads, 1));
  if (options.inputs == InputKind::kPool) {
    MP_RETURN_IF_ERROR(at_least("the number of rows of the pool", options.pool_rows, 1));
  }
  MP_RETURN_IF_ERROR(Validate(options.shape));
  return Validate(options.optimizer);
}

}  // namespace

absl::StatusOr<Executor> Executor::Create(const GaussianMixture& mixture, const Schedule& schedule,
                                          const Plan& plan, ExecutorOptions options) {
  MP_RETURN_IF_ERROR(CheckOptions(options));
  if (plan.teacher_steps() != schedule.steps()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the plan has ", plan.teacher_steps(), " teacher steps, the schedule ", schedule.steps()));
  }
  if (options.shape.dimensions != mixture.dimensions()) {
    return absl::InvalidArgumentError(absl::StrCat("the student has ", options.shape.dimensions,
                                                   " dimensions, the mixture ",
                                                   mixture.dimensions()));
  }
  MP_ASSIGN_OR_RETURN(MixtureTrajectory trajectory, MixtureTrajectory::Create(mixture, schedule));
  auto teacher = std::make_shared<const MixtureTrajectory>(std::move(trajectory));
  Inputs inputs(teacher);
  if (options.inputs == InputKind::kData) {
    std::vector<double> data = options.data;
    for (double& x : data) x /= schedule.data_scale;
    MP_ASSIGN_OR_RETURN(inputs, Inputs::FromData(teacher, std::move(data)));
  } else if (!options.data.empty()) {
    return absl::InvalidArgumentError(absl::StrCat("training data are given, but the inputs are '",
                                                   std::string(ToString(options.inputs)),
                                                   "'; expected 'data'"));
  }
  return Executor(std::move(teacher), std::move(inputs), plan, schedule, std::move(options));
}

Executor::Executor(std::shared_ptr<const MixtureTrajectory> teacher, Inputs inputs,
                   const Plan& plan, const Schedule& schedule, ExecutorOptions options)
    : teacher_(std::move(teacher)),
      inputs_(std::move(inputs)),
      plan_(plan),
      schedule_(schedule),
      options_(std::move(options)),
      holds_(plan.size()) {
  trainer_options_.shape = options_.shape;
  trainer_options_.precision = options_.precision;
  trainer_options_.optimizer = options_.optimizer;
  trainer_options_.batch = options_.batch;
  trainer_options_.inputs = options_.inputs;
  trainer_options_.pool_rows = options_.pool_rows;
  trainer_options_.threads = options_.threads;
  trainer_options_.communicator = options_.communicator;
  trainer_options_.elsewhere = options_.elsewhere;
  state_.trials.resize(options_.seeds.size());
  for (TrialRecord& trial : state_.trials) trial.merges.resize(plan.size());
}

std::string Executor::Name(Job job) const {
  const std::string seed = absl::StrCat(" of seed ", options_.seeds[job.trial]);
  if (job.merge < 0) return absl::StrCat("the fit to single steps", seed);
  const Merge& merge = plan_.merges()[job.merge];
  return absl::StrCat("merge [", merge.first, ", ", merge.last, "]", seed);
}

StudentRecord& Executor::Record(Job job) {
  TrialRecord& trial = state_.trials[job.trial];
  return job.merge < 0 ? trial.fit : trial.merges[job.merge];
}

int Executor::merges_trained() const {
  int count = 0;
  for (const TrialRecord& trial : state_.trials) {
    for (const StudentRecord& merge : trial.merges) count += merge.trained ? 1 : 0;
  }
  return count;
}

int Executor::students_held() const {
  int count = 0;
  for (const TrialRecord& trial : state_.trials) {
    count += trial.fit.parameters != nullptr ? 1 : 0;
    for (const StudentRecord& merge : trial.merges) count += merge.parameters != nullptr ? 1 : 0;
  }
  return count;
}

void Executor::Hold(int merge) { ++holds_[merge]; }

void Executor::Release(int merge) {
  --holds_[merge];
  for (int trial = 0; trial < trials(); ++trial) Drop({trial, merge});
}

absl::StatusOr<OperatorPointer> Executor::Node(int trial, int node) const {
  if (plan_.is_step(node)) return MakeTeacher(teacher_, node + 1, node + 1);
  const int merge = node - plan_.teacher_steps();
  const Merge& merged = plan_.merges()[merge];
  const StudentRecord& record = state_.trials[trial].merges[merge];
  if (record.trained) {
    if (record.parameters == nullptr) {
      return absl::FailedPreconditionError(
          absl::StrCat(Name({trial, merge}),
                       ": its student has been dropped, since no later merge needs it; "
                       "hold it before its parent is trained"));
    }
    return MakeStudent(options_.shape, static_cast<double>(merged.last) / plan_.teacher_steps(),
                       *record.parameters, options_.precision);
  }
  // Single steps side by side become one operator, which is faster.
  std::vector<OperatorPointer> parts;  // from the noisiest
  for (auto child = merged.children.rbegin(); child != merged.children.rend(); ++child) {
    if (!plan_.is_step(*child)) {
      MP_ASSIGN_OR_RETURN(OperatorPointer part, Node(trial, *child));
      parts.push_back(std::move(part));
      continue;
    }
    const int last = *child + 1;
    while (child + 1 != merged.children.rend() && plan_.is_step(*(child + 1))) ++child;
    parts.push_back(MakeTeacher(teacher_, *child + 1, last));
  }
  return MakeComposition(std::move(parts));
}

absl::StatusOr<OperatorPointer> Executor::Student(int trial) const {
  // With one step there is nothing to merge: what was learnt is the fit.
  const StudentRecord& fit = state_.trials[trial].fit;
  if (plan_.teacher_steps() == 1 && fit.parameters != nullptr) {
    return MakeStudent(options_.shape, /*time=*/1, *fit.parameters, options_.precision);
  }
  std::vector<OperatorPointer> parts;
  for (auto block = plan_.blocks().rbegin(); block != plan_.blocks().rend(); ++block) {
    MP_ASSIGN_OR_RETURN(OperatorPointer part, Node(trial, *block));
    parts.push_back(std::move(part));
  }
  return MakeComposition(std::move(parts));
}

// Does this merge start from the student of single steps?
bool Executor::NeedsFit(int merge) const {
  if (options_.init == Init::kTeacher || options_.init == Init::kJump) return true;
  return plan_.is_step(plan_.merges()[merge].children.back());
}

absl::StatusOr<std::vector<double>> Executor::Start(Job job) const {
  const TrialRecord& trial = state_.trials[job.trial];
  if (job.merge < 0) return InitialParameters(options_.shape, options_.seeds[job.trial]);
  const Merge& merge = plan_.merges()[job.merge];
  const int noisiest = merge.children.back();
  const bool from_fit = NeedsFit(job.merge);
  const SharedNumbers& from =
      from_fit ? trial.fit.parameters : trial.merges[noisiest - plan_.teacher_steps()].parameters;
  if (from == nullptr) {
    return absl::FailedPreconditionError(
        absl::StrCat(Name(job), ": the student that it starts from has been dropped"));
  }
  std::vector<double> start = *from;
  if (options_.init == Init::kJump || options_.init == Init::kChildJump) {
    // The x0 estimate that the student implies, which leads from level j to level m (the fit: to
    // j - 1), used down to level i - 1.
    const int i = merge.first, j = merge.last;
    const int m = from_fit ? j - 1 : plan_.range(noisiest).first - 1;
    const double whole = SignalNoiseDeterminant(schedule_, m, j);
    FoldWrapper(options_.shape, SignalNoiseDeterminant(schedule_, i - 1, j) / whole,
                -SignalNoiseDeterminant(schedule_, i - 1, m) / whole, start);
  }
  return start;
}

absl::StatusOr<TrainTask> Executor::MakeTask(Job job) const {
  TrainTask task;
  task.name = Name(job);
  MP_ASSIGN_OR_RETURN(task.start, Start(job));
  if (job.merge < 0) {
    task.first_level = 1;
    for (int t = 1; t <= plan_.teacher_steps(); ++t) {
      task.targets.push_back(MakeTeacher(teacher_, t, t));
    }
    task.seed = MixSeed(options_.seeds[job.trial], 0, 0);
    return task;
  }
  const Merge& merge = plan_.merges()[job.merge];
  task.first_level = merge.last;
  MP_ASSIGN_OR_RETURN(OperatorPointer target, Node(job.trial, plan_.teacher_steps() + job.merge));
  task.targets.push_back(std::move(target));
  task.seed = MixSeed(options_.seeds[job.trial], merge.first, merge.last);
  return task;
}

absl::Status Executor::Fit() {
  std::vector<Job> jobs;
  for (int trial = 0; trial < trials(); ++trial) {
    if (!state_.trials[trial].fit.trained) jobs.push_back({trial, -1});
  }
  return TrainJobs(jobs, options_.fit_updates);
}

absl::Status Executor::Train(absl::Span<const int> merges) {
  std::vector<Job> jobs;
  for (const int merge : merges) {
    if (merge < 0 || merge >= plan_.size()) {
      return absl::NotFoundError(
          absl::StrCat("merge number ", merge, ": the plan has ", plan_.size()));
    }
    for (int trial = 0; trial < trials(); ++trial) {
      if (state_.trials[trial].merges[merge].trained) continue;
      for (const int child : plan_.merges()[merge].children) {
        if (plan_.is_step(child)) continue;
        if (state_.trials[trial].merges[child - plan_.teacher_steps()].trained) continue;
        return absl::FailedPreconditionError(
            absl::StrCat(Name({trial, merge}), ": its child [", plan_.range(child).first, ", ",
                         plan_.range(child).last, "] has not been trained"));
      }
      jobs.push_back({trial, merge});
    }
  }
  if (jobs.empty()) return absl::OkStatus();
  MP_RETURN_IF_ERROR(Fit());
  return TrainJobs(jobs, options_.iterations);
}

absl::Status Executor::TrainAll() {
  MP_RETURN_IF_ERROR(Fit());
  for (const std::vector<int>& round : plan_.MergesByRound()) MP_RETURN_IF_ERROR(Train(round));
  return absl::OkStatus();
}

absl::Status Executor::TrainJobs(const std::vector<Job>& jobs, std::int64_t updates) {
  trainer_options_.updates = updates;
  // Groups change nothing but how much memory is taken.
  const auto together = static_cast<std::size_t>(
      std::max(1.0, std::floor(kGroupBytes / TaskBytes(trainer_options_))));
  for (std::size_t begin = 0; begin < jobs.size(); begin += together) {
    MP_RETURN_IF_ERROR(TrainGroup(absl::MakeConstSpan(jobs).subspan(begin, together), updates));
  }
  return absl::OkStatus();
}

absl::Status Executor::TrainGroup(absl::Span<const Job> group, std::int64_t updates) {
  const auto start = std::chrono::steady_clock::now();
  std::vector<TrainTask> tasks;
  tasks.reserve(group.size());
  for (const Job job : group) {
    MP_ASSIGN_OR_RETURN(TrainTask task, MakeTask(job));
    tasks.push_back(std::move(task));
  }
  MP_ASSIGN_OR_RETURN(const std::unique_ptr<Trainer> trainer,
                      Trainer::Create(tasks, inputs_, trainer_options_));
  seconds_before_.assign(group.size(), 0);
  for (std::size_t g = 0; g < group.size(); ++g) {
    const auto active =
        std::find_if(state_.active.begin(), state_.active.end(), [&](const ActiveTask& a) {
          return a.trial == group[g].trial && a.merge == group[g].merge;
        });
    if (active == state_.active.end()) continue;
    MP_RETURN_IF_ERROR(trainer->Restore(static_cast<int>(g), active->state));
    seconds_before_[g] = active->seconds;
    state_.active.erase(active);
  }

  training_ = trainer.get();
  training_jobs_.assign(group.begin(), group.end());
  const auto end_training = absl::MakeCleanup([this] {
    training_ = nullptr;
    training_jobs_.clear();
  });
  const auto count_time = [&] {
    const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start;
    training_seconds_ = passed.count() / static_cast<double>(group.size());
  };
  count_time();
  while (!trainer->done()) {
    if (options_.stop && options_.stop()) {
      absl::Status kept = Keep(/*forced=*/true);
      state_.active = Save().active;
      if (!kept.ok()) return kept;
      return absl::CancelledError(absl::StrCat("stopped in ", tasks.front().name, " after update ",
                                               trainer->Save(0).updates, " of ", updates));
    }
    absl::Status advanced = trainer->Advance(kAdvanceSeconds);
    count_time();
    if (!advanced.ok()) {
      state_.active = Save().active;
      return advanced;
    }
    if (!trainer->done()) MP_RETURN_IF_ERROR(Keep(/*forced=*/false));
    if (options_.progress) Report(group);
  }
  for (std::size_t g = 0; g < group.size(); ++g) {
    Measure(group[g], tasks[g], trainer->Save(static_cast<int>(g)),
            training_seconds_ + seconds_before_[g]);
  }
  training_ = nullptr;
  for (const Job job : group) {
    if (job.merge < 0) continue;
    for (const int child : plan_.merges()[job.merge].children) {
      if (!plan_.is_step(child)) Drop({job.trial, child - plan_.teacher_steps()});
    }
    Drop({job.trial, -1});
  }
  return Keep(/*forced=*/false);
}

// Lets go of a student that nothing needs any more.
void Executor::Drop(Job job) {
  StudentRecord& record = Record(job);
  const std::vector<StudentRecord>& merges = state_.trials[job.trial].merges;
  if (record.parameters == nullptr) return;
  if (job.merge < 0) {
    if (plan_.teacher_steps() == 1) return;  // it is the student
    for (int merge = 0; merge < plan_.size(); ++merge) {
      if (!merges[merge].trained && NeedsFit(merge)) return;
    }
  } else {
    if (holds_[job.merge] > 0) return;
    // Needed until its parent is trained; a block has none.
    const int node = plan_.teacher_steps() + job.merge;
    const auto blocks = plan_.blocks();
    if (std::find(blocks.begin(), blocks.end(), node) != blocks.end()) return;
    for (int merge = 0; merge < plan_.size(); ++merge) {
      const std::vector<int>& children = plan_.merges()[merge].children;
      const bool parent = std::find(children.begin(), children.end(), node) != children.end();
      if (parent && !merges[merge].trained) return;
    }
  }
  record.parameters = nullptr;
}

absl::Status Executor::Keep(bool forced) {
  return options_.checkpoint ? options_.checkpoint(*this, forced) : absl::OkStatus();
}

void Executor::Report(absl::Span<const Job> group) {
  ExecutorProgress progress;
  progress.merges_total = plan_.size() * trials();
  progress.merges_done = merges_trained();
  progress.updates_total =
      progress.merges_total * options_.iterations + trials() * options_.fit_updates;
  progress.updates_done = progress.merges_done * options_.iterations + training_->updates_made();
  for (const TrialRecord& trial : state_.trials) {
    progress.updates_done += trial.fit.trained ? options_.fit_updates : 0;
  }
  if (group.front().merge >= 0)
    progress.first_of_group = plan_.merges()[group.front().merge].range();
  progress.group = static_cast<int>(group.size());
  options_.progress(progress);
}

}  // namespace mergeplan::experts
