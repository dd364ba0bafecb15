#include "adapters/cases/executor.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "adapters/linear/mean.h"
#include "adapters/linear/merge_task.h"
#include "adapters/linear/trials.h"
#include "planner/base/status_macros.h"

namespace mergeplan {
namespace {

double SecondsSince(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

std::string Name(Range range) {
  return absl::StrCat("merge [", range.first, ", ", range.last, "]");
}

}  // namespace

absl::StatusOr<Executor> Executor::Create(const Model& model, const Plan& plan,
                                          ExecutorOptions options) {
  if (!model.budget().sgd) {
    return absl::InvalidArgumentError(
        "the budget is a gradient-flow time; training needs a learning rate and a number of "
        "updates (--lr and --iterations)");
  }
  if (plan.teacher_steps() != model.steps()) {
    return absl::InvalidArgumentError(absl::StrCat("the plan has ", plan.teacher_steps(),
                                                   " teacher steps, the schedule ", model.steps()));
  }
  TrainerOptions trainer_options;
  trainer_options.dtype = options.dtype;
  trainer_options.threads = options.threads;
  trainer_options.communicator = options.communicator;
  trainer_options.recipe = options.recipe;
  if (options.device.cuda) {
    trainer_options.unit_sums = [index = options.device.index](const UnitSumsShape& shape) {
      return CudaUnitSums(shape, index);
    };
  }
  trainer_options = WithBudget(trainer_options, model.budget());
  MP_RETURN_IF_ERROR(
      options.recipe.Validate(trainer_options.updates, trainer_options.feature_norm));
  return Executor(model, plan, std::move(options), trainer_options);
}

Executor::Executor(const Model& model, const Plan& plan, ExecutorOptions options,
                   const TrainerOptions& trainer_options)
    : model_(model),
      plan_(plan),
      options_(std::move(options)),
      trainer_options_(trainer_options),
      predicted_(PredictedNodeValues(model, plan, trainer_options)) {
  state_.merges.resize(plan.size());
}

int Executor::merges_trained() const {
  return static_cast<int>(std::count_if(state_.merges.begin(), state_.merges.end(),
                                        [](const TrainedMerge& r) { return r.trained; }));
}

absl::Span<const double> Executor::predicted(int node) const {
  const auto d = static_cast<size_t>(model_.dimensions());
  return absl::MakeConstSpan(predicted_).subspan(static_cast<size_t>(node) * d, d);
}

std::vector<double> Executor::PredictedValue() const {
  std::vector<double> product(model_.dimensions(), 1.0);
  for (const int block : plan_.blocks()) {
    const absl::Span<const double> factor = predicted(block);
    for (size_t k = 0; k < product.size(); ++k) product[k] *= factor[k];
  }
  return product;
}

std::vector<double> Executor::NodeValue(int node) const {
  if (plan_.is_step(node)) {
    const absl::Span<const double> step = model_.A(node + 1);
    return {step.begin(), step.end()};
  }
  const int merge = node - plan_.teacher_steps();
  if (state_.merges[merge].trained) return state_.merges[merge].value;
  std::vector<double> product(model_.dimensions(), 1.0);
  for (const int child : plan_.merges()[merge].children) {
    const std::vector<double> factor = NodeValue(child);
    for (size_t k = 0; k < product.size(); ++k) product[k] *= factor[k];
  }
  return product;
}

std::vector<double> Executor::Value() const {
  std::vector<double> product(model_.dimensions(), 1.0);
  for (const int block : plan_.blocks()) {
    const std::vector<double> factor = NodeValue(block);
    for (size_t k = 0; k < product.size(); ++k) product[k] *= factor[k];
  }
  return product;
}

std::vector<double> Executor::TeacherComposite(Range range) const {
  std::vector<double> product(model_.dimensions(), 1.0);
  for (int t = range.first; t <= range.last; ++t) {
    const absl::Span<const double> step = model_.A(t);
    for (size_t k = 0; k < product.size(); ++k) product[k] *= step[k];
  }
  return product;
}

double Executor::MergeError(int merge, absl::Span<const double> value) const {
  const std::vector<double> teacher = TeacherComposite(plan_.merges()[merge].range());
  const absl::Span<const double> weights = model_.objective_weights();
  double sum = 0;
  for (size_t k = 0; k < teacher.size(); ++k) {
    const double difference = teacher[k] - value[k];
    sum += weights[k] * difference * difference;
  }
  return sum;
}

// Start, target and input of one merge, from what its children have learnt.
MergeTask Executor::Task(int merge) const {
  MergeTask task =
      MakeMergeTask(model_, plan_, merge, [this](int node) { return NodeValue(node); });
  task.seed = options_.seed;
  return task;
}

double Executor::ExpectedLoss(const MergeTask& task, absl::Span<const double> value) const {
  double sum = 0;
  for (size_t k = 0; k < value.size(); ++k) {
    const double error = task.scale[k] * (value[k] - task.target[k]);
    sum += error * error;
  }
  return sum;
}

std::optional<double> Executor::EffectiveTime(int merge) const {
  const TrainedMerge& record = state_.merges[merge];
  if (options_.recipe.optimizer != OptimizerKind::kSgd || !record.trained ||
      !(record.final_loss > 0) || !(record.final_loss < record.initial_loss)) {
    return std::nullopt;
  }
  const MergeTask task = Task(merge);
  const auto left_after = [&](double s) {
    double sum = 0;
    for (size_t k = 0; k < task.start.size(); ++k) {
      const double n = task.scale[k] * task.scale[k];
      const double error = task.start[k] - task.target[k];
      sum += n * error * error * std::exp(-4 * s * n);
    }
    return sum;
  };
  // It falls with s, to below any positive loss.
  double low = 0, high = 1;
  while (left_after(high) > record.final_loss) high *= 2;
  for (int i = 0; i < 100 && high - low > 1e-15 * high; ++i) {
    const double middle = (low + high) / 2;
    (left_after(middle) > record.final_loss ? low : high) = middle;
  }
  return high;
}

absl::Status Executor::Train(absl::Span<const int> merges) {
  std::vector<int> todo;
  for (const int merge : merges) {
    if (merge < 0 || merge >= plan_.size()) {
      return absl::NotFoundError(
          absl::StrCat("merge number ", merge, ": the plan has ", plan_.size()));
    }
    if (state_.merges[merge].trained) continue;
    for (const int child : plan_.merges()[merge].children) {
      if (!plan_.is_step(child) && !state_.merges[child - plan_.teacher_steps()].trained) {
        return absl::FailedPreconditionError(absl::StrCat(
            Name(plan_.merges()[merge].range()), ": its child [", plan_.range(child).first, ", ",
            plan_.range(child).last, "] has not been trained"));
      }
    }
    todo.push_back(merge);
  }
  return todo.empty() ? absl::OkStatus() : TrainGroup(todo);
}

absl::Status Executor::TrainGroup(const std::vector<int>& group) {
  std::vector<MergeTask> tasks;
  tasks.reserve(group.size());
  for (const int merge : group) tasks.push_back(Task(merge));
  MP_ASSIGN_OR_RETURN(std::unique_ptr<Trainer> trainer, MakeLinearTrainer(tasks, trainer_options_));
  double seconds_before = 0;
  if (state_.active.merges == group) {
    MP_RETURN_IF_ERROR(trainer->Restore(state_.active.state));
    seconds_before = state_.active.seconds;
  }
  state_.active = {};

  training_ = trainer.get();
  training_group_ = group;
  const auto end_training = absl::MakeCleanup([this] {
    training_ = nullptr;
    training_group_.clear();
  });
  const auto start = std::chrono::steady_clock::now();
  while (!trainer->done()) {
    if (options_.stop && options_.stop()) {
      training_seconds_ = seconds_before + SecondsSince(start);
      absl::Status kept = Keep(/*forced=*/true);
      state_.active = Save().active;
      if (!kept.ok()) return kept;
      return absl::CancelledError(absl::StrCat("stopped in ", Name(tasks.front().range),
                                               " after update ", trainer->updates(), " of ",
                                               trainer_options_.updates));
    }
    MP_RETURN_IF_ERROR(trainer->Advance());
    training_seconds_ = seconds_before + SecondsSince(start);
    if (!trainer->done()) MP_RETURN_IF_ERROR(Keep(/*forced=*/false));
    if (options_.progress) Report(group, *trainer);
  }

  const TrainerState end = trainer->Save();
  const auto d = static_cast<size_t>(model_.dimensions());
  const size_t points = end.curve.size() / group.size();
  for (size_t g = 0; g < group.size(); ++g) {
    TrainedMerge& record = state_.merges[group[g]];
    const Merge& merge = plan_.merges()[group[g]];
    record.trained = true;
    record.value.assign(end.Frozen().begin() + g * d, end.Frozen().begin() + (g + 1) * d);
    record.curve.assign(end.curve.begin() + g * points, end.curve.begin() + (g + 1) * points);
    record.initial_loss = ExpectedLoss(tasks[g], tasks[g].start);
    record.final_loss = ExpectedLoss(tasks[g], record.value);
    record.updates = end.updates;
    const auto steps = std::count_if(merge.children.begin(), merge.children.end(),
                                     [this](int child) { return plan_.is_step(child); });
    record.teacher_calls = steps * end.updates * trainer_options_.rows();
    record.seconds = training_seconds_ / static_cast<double>(group.size());
  }
  training_ = nullptr;
  return Keep(/*forced=*/false);
}

absl::Status Executor::Keep(bool forced) {
  return options_.checkpoint ? options_.checkpoint(*this, forced) : absl::OkStatus();
}

void Executor::Report(const std::vector<int>& group, const Trainer& trainer) {
  TrainingProgress progress;
  progress.merges_total = plan_.size();
  progress.merges_done = merges_trained();
  progress.updates_total = plan_.size() * trainer_options_.updates;
  progress.updates_done = progress.merges_done * trainer_options_.updates +
                          static_cast<std::int64_t>(group.size()) * trainer.updates();
  progress.first_of_group = plan_.merges()[group.front()].range();
  progress.group = static_cast<int>(group.size());
  options_.progress(progress);
}

ExecutorState Executor::Save() const {
  ExecutorState state = state_;
  if (training_ != nullptr) {
    state.active.merges = training_group_;
    state.active.state = training_->Save();
    state.active.seconds = training_seconds_;
  }
  return state;
}

absl::Status Executor::Restore(ExecutorState state) {
  const auto d = static_cast<size_t>(model_.dimensions());
  if (state.merges.size() != state_.merges.size()) {
    return absl::DataLossError(absl::StrCat("checkpoint: ", state.merges.size(),
                                            " merges, the plan has ", state_.merges.size()));
  }
  for (const TrainedMerge& record : state.merges) {
    if (record.trained && record.value.size() != d) {
      return absl::DataLossError(absl::StrCat("checkpoint: an operator of ", record.value.size(),
                                              " dimensions, expected ", d));
    }
  }
  for (const int merge : state.active.merges) {
    if (merge < 0 || merge >= plan_.size() || state.merges[merge].trained) {
      return absl::DataLossError(
          absl::StrCat("checkpoint: merge number ", merge, " cannot be in training"));
    }
  }
  state_ = std::move(state);
  return absl::OkStatus();
}

}  // namespace mergeplan
