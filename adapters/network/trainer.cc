#include "adapters/network/trainer.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "adapters/network/stopping.h"
#include "adapters/network/trainable.h"
#include "adapters/network/try.h"
#include "planner/base/status_macros.h"

namespace mergeplan::network {
namespace {

// Different levels in one batch of a fit.
constexpr std::int64_t kMostSlices = 16;
// A stop is considered every so many updates.
constexpr std::int64_t kStopEvery = 16;

}  // namespace

Trainer::Trainer(std::unique_ptr<Module> module, std::vector<TrainTask> tasks, Frozen frozen,
                 std::shared_ptr<Inputs> inputs, const TrainerOptions& options, Optimizer optimizer)
    : module_(std::move(module)),
      tasks_(std::move(tasks)),
      frozen_(std::move(frozen)),
      inputs_(std::move(inputs)),
      options_(options),
      optimizer_(std::move(optimizer)),
      scale_(options_.precision),
      losses_(std::max<std::size_t>(1, tasks_.size())),
      calls_(losses_.size()) {
  if (options_.communicator == nullptr) options_.communicator = Alone();
  for (const TrainTask& task : tasks_) targets_.emplace_back(task.target, task.range.last);
  // The levels of a fit are others in every update.
  if (options_.graphs != nullptr && !tasks_.empty()) {
    graphs_ = std::make_unique<StepGraphs>(options_.graphs, optimizer_.parameters(), tasks_.size(),
                                           options_.note);
  }
}

absl::StatusOr<std::unique_ptr<Trainer>> Trainer::Create(std::unique_ptr<Module> module,
                                                         std::vector<TrainTask> tasks,
                                                         Frozen frozen,
                                                         std::shared_ptr<Inputs> inputs,
                                                         const TrainerOptions& options) {
  if (options.updates < 1 || options.batch < 1) {
    return absl::InvalidArgumentError(absl::StrCat("training takes ", options.updates,
                                                   " updates with batches of ", options.batch,
                                                   ", expected 1 or more of both"));
  }
  if (!(options.gain_bound >= 0 && options.gain_bound < 1)) {
    return absl::InvalidArgumentError(absl::StrCat("the bound on the remaining gain is ",
                                                   options.gain_bound,
                                                   ", expected 0 or more, below 1"));
  }
  module->SetTraining(false);
  MP_ASSIGN_OR_RETURN(std::vector<at::Tensor> parameters, TrainableParameters(*module));
  MP_ASSIGN_OR_RETURN(Optimizer optimizer, Optimizer::Create(std::move(parameters), options.recipe,
                                                             options.lr, options.updates));
  std::unique_ptr<Trainer> trainer(new Trainer(std::move(module), std::move(tasks),
                                               std::move(frozen), std::move(inputs), options,
                                               std::move(optimizer)));
  if (trainer->tasks_.empty()) {
    const Schedule& schedule = trainer->frozen_.student->schedule();
    trainer->fit_factors_.resize(schedule.steps() + 1);
    for (int t = 1; t <= schedule.steps(); ++t) {
      MP_ASSIGN_OR_RETURN(trainer->fit_factors_[t],
                          LossFactor(trainer->options_.fit_loss, schedule, t, t - 1));
    }
  }
  return trainer;
}

absl::Status Trainer::NotFinite(const std::string& what) const {
  return NotFiniteAt(what, updates_, options_.updates);
}

// What a batch's loss counts in the gradient.
double Trainer::Weight(double factor) const {
  return factor * scale_.scale() / options_.recipe.accumulate;
}

absl::StatusOr<double> Trainer::Backward(const at::Tensor& loss, double factor) {
  const double value = loss.item<double>();
  if (std::isfinite(value) || scale_.on()) {
    (loss * Weight(factor)).backward();
  }
  return value;
}

// The part that these rows have in the batch's mean.
at::Tensor Trainer::OfTheBatch(const at::Tensor& errors) const {
  if (options_.communicator->ranks() == 1) return errors.mean();
  return errors.sum() / static_cast<double>(options_.batch);
}

absl::Status Trainer::AddOverRanks(const std::vector<std::int64_t>& calls_before,
                                   std::vector<double>* losses) {
  const Communicator& ranks = *options_.communicator;
  if (ranks.ranks() == 1) return absl::OkStatus();
  const std::size_t n = losses->size();
  std::vector<double> numbers = *losses;
  for (std::size_t k = 0; k < n; ++k) {
    numbers.push_back(static_cast<double>(calls_[k] - calls_before[k]));
  }
  MP_RETURN_IF_ERROR(ranks.Sum(numbers.data(), static_cast<std::int64_t>(numbers.size())));
  for (std::size_t k = 0; k < n; ++k) {
    (*losses)[k] = numbers[k];
    calls_[k] = calls_before[k] + static_cast<std::int64_t>(numbers[n + k]);
  }
  return Try("gradients", [&]() -> absl::Status {
    const c10::NoGradGuard no_gradients;
    for (const at::Tensor& parameter : optimizer_.parameters()) {
      at::Tensor owner = parameter;
      at::Tensor& gradient = owner.mutable_grad();
      // Numbers lie as the parameter's do, which the optimizer counts on.
      if (!gradient.defined()) gradient = at::zeros_like(parameter);
      if (!gradient.strides().equals(parameter.strides())) {
        gradient = at::empty_like(parameter).copy_(gradient);
      }
      const std::int64_t count = gradient.numel();
      if (gradient.scalar_type() == at::kDouble) {
        MP_RETURN_IF_ERROR(ranks.Sum(gradient.mutable_data_ptr<double>(), count));
      } else {
        MP_RETURN_IF_ERROR(ranks.Sum(gradient.mutable_data_ptr<float>(), count));
      }
    }
    return absl::OkStatus();
  });
}

absl::StatusOr<double> Trainer::Batch(std::size_t index, std::uint64_t first_row) {
  const TrainTask& task = tasks_[index];
  RowStream stream;
  stream.seed = options_.seed;
  stream.first = task.range.first;
  stream.last = task.range.last;
  const Communicator& ranks = *options_.communicator;
  const std::int64_t begin = ranks.ShareBegin(options_.batch), end = ranks.ShareEnd(options_.batch);
  if (begin == end) return 0.0;
  first_row += static_cast<std::uint64_t>(begin);
  const std::int64_t before = inputs_->teacher_calls();
  MP_ASSIGN_OR_RETURN(const at::Tensor z,
                      inputs_->Draw(task.range.last, stream, first_row, end - begin));
  MP_ASSIGN_OR_RETURN(const at::Tensor target,
                      targets_[index].Of(frozen_, *inputs_, stream, first_row, z, &calls_[index]));
  calls_[index] += inputs_->teacher_calls() - before;
  const std::vector<at::Tensor> inputs = {z, target,
                                          inputs_->Labels(stream, first_row, end - begin)};
  const auto loss = [this, &task](const std::vector<at::Tensor>& of) -> absl::StatusOr<at::Tensor> {
    MP_ASSIGN_OR_RETURN(
        const at::Tensor out,
        frozen_.student->Jump(*module_, of[0], task.range.last, task.landing, of[2]));
    return OfTheBatch((out - of[1]).flatten(1).square().sum(1));
  };
  return Try(task.name, [&]() -> absl::StatusOr<double> {
    if (graphs_ != nullptr) return graphs_->Run(index, inputs, Weight(task.factor), loss);
    MP_ASSIGN_OR_RETURN(const at::Tensor number, loss(inputs));
    return Backward(number, task.factor);
  });
}

absl::StatusOr<double> Trainer::FitBatch(std::uint64_t batch) {
  const int T = frozen_.student->schedule().steps();
  const auto slices = static_cast<int>(std::min<std::int64_t>({kMostSlices, T, options_.batch}));
  RowStream stream;
  stream.seed = options_.seed;
  std::vector<at::Tensor> states, targets, labels;
  std::vector<int> from;
  std::vector<double> factors;
  const std::int64_t before = inputs_->teacher_calls();
  const Communicator& ranks = *options_.communicator;
  const auto first = static_cast<int>(ranks.ShareBegin(slices));
  const auto last = static_cast<int>(ranks.ShareEnd(slices));
  if (first == last) return 0.0;
  for (int slice = first; slice < last; ++slice) {
    const std::int64_t begin = options_.batch * slice / slices;
    const std::int64_t rows = options_.batch * (slice + 1) / slices - begin;
    const int level = PickLevel(T, stream, batch, slice, slices);
    const std::uint64_t first_row =
        batch * static_cast<std::uint64_t>(options_.batch) + static_cast<std::uint64_t>(begin);
    MP_ASSIGN_OR_RETURN(const at::Tensor z, inputs_->Draw(level, stream, first_row, rows));
    MP_ASSIGN_OR_RETURN(const at::Tensor target,
                        ApplyToRows({{level, level - 1, -1, 0}}, frozen_, *inputs_, stream,
                                    first_row, z, &calls_[0]));
    if (const at::Tensor label = inputs_->Labels(stream, first_row, rows); label.defined()) {
      labels.push_back(label);
    }
    states.push_back(z);
    targets.push_back(target);
    from.insert(from.end(), rows, level);
    factors.insert(factors.end(), rows, fit_factors_[level]);
  }
  calls_[0] += inputs_->teacher_calls() - before;
  std::vector<int> to = from;
  for (int& level : to) --level;
  return Try("the fit to single steps", [&]() -> absl::StatusOr<double> {
    MP_ASSIGN_OR_RETURN(const at::Tensor out,
                        frozen_.student->JumpRows(*module_, at::cat(states), from, to,
                                                  labels.empty() ? at::Tensor() : at::cat(labels)));
    const at::Tensor errors = (out - at::cat(targets)).flatten(1).square().sum(1);
    return Backward(OfTheBatch(errors * at::tensor(factors, at::kDouble).to(errors.options())), 1);
  });
}

absl::Status Trainer::Update() {
  const auto accumulate = static_cast<std::uint64_t>(options_.recipe.accumulate);
  std::vector<double> losses(losses_.size());
  const std::vector<std::int64_t> calls_before = calls_;
  const auto fail = [&](absl::Status status) {
    optimizer_.Clear();
    calls_ = calls_before;
    return status;
  };
  bool finite = true;
  if (graphs_ != nullptr) {
    MP_RETURN_IF_ERROR(Try("gradients", [&] {
      graphs_->Begin();
      return absl::OkStatus();
    }));
  }
  for (std::size_t task = 0; task < losses.size(); ++task) {
    for (std::uint64_t a = 0; a < accumulate; ++a) {
      const std::uint64_t batch = static_cast<std::uint64_t>(updates_) * accumulate + a;
      const absl::StatusOr<double> loss =
          tasks_.empty() ? FitBatch(batch)
                         : Batch(task, batch * static_cast<std::uint64_t>(options_.batch));
      if (!loss.ok()) return fail(loss.status());
      losses[task] += *loss / static_cast<double>(accumulate);
    }
  }
  const absl::Status added = AddOverRanks(calls_before, &losses);
  if (!added.ok()) return fail(added);
  for (std::size_t task = 0; task < losses.size(); ++task) {
    if (std::isfinite(losses[task])) continue;
    finite = false;
    if (!scale_.on()) {
      return fail(
          NotFinite(absl::StrCat(tasks_.empty() ? "the fit to single steps" : tasks_[task].name,
                                 ": the loss is ", losses[task])));
    }
  }
  if (finite) {
    const absl::StatusOr<Optimizer::Result> result = optimizer_.Step(updates_, scale_.scale());
    if (!result.ok()) return fail(result.status());
    finite = result->finite;
  }
  const std::string name = tasks_.empty() ? "the fit to single steps" : tasks_.front().name;
  const double scale = scale_.scale();
  if (!scale_.Update(finite)) {
    scale_.Restore(scale, scale_.good());
    return fail(NotFinite(absl::StrCat(name, ": the gradient is not finite",
                                       scale_.on() ? ", at "
                                                     "any scale of the loss,"
                                                   : "")));
  }
  if (!finite) {
    optimizer_.Clear();
    ++skipped_;
  }
  for (std::size_t task = 0; task < losses.size(); ++task) losses_[task].push_back(losses[task]);
  ++updates_;
  if (options_.gain_bound > 0 && updates_ % kStopEvery == 0) stopped_early_ = NothingToGain();
  return absl::OkStatus();
}

bool Trainer::NothingToGain() const {
  return std::all_of(losses_.begin(), losses_.end(), [&](const std::vector<double>& losses) {
    return RemainingGain(losses, options_.updates) < options_.gain_bound;
  });
}

TrainerState Trainer::Save() const {
  const c10::NoGradGuard no_gradients;
  TrainerState state;
  state.updates = updates_;
  state.skipped = skipped_;
  state.scale = scale_.scale();
  state.good = scale_.good();
  for (const at::Tensor& parameter : optimizer_.parameters()) {
    state.parameters.push_back(parameter.detach().clone());
  }
  state.optimizer = optimizer_.Save();
  state.losses = losses_;
  state.calls = calls_;
  return state;
}

absl::Status Trainer::Restore(const TrainerState& state) {
  const std::vector<at::Tensor>& own = optimizer_.parameters();
  bool fits = state.updates >= 0 && state.updates <= options_.updates &&
              state.parameters.size() == own.size() && state.losses.size() == losses_.size() &&
              state.calls.size() == calls_.size();
  for (const std::vector<double>& losses : state.losses) {
    fits = fits && static_cast<std::int64_t>(losses.size()) == state.updates;
  }
  for (std::size_t i = 0; fits && i < own.size(); ++i) {
    fits = own[i].sizes().equals(state.parameters[i].sizes()) &&
           own[i].scalar_type() == state.parameters[i].scalar_type();
  }
  if (!fits) {
    return absl::DataLossError(
        "saved state: the training in progress does not fit the student, its tasks or its updates");
  }
  MP_RETURN_IF_ERROR(optimizer_.Restore(state.optimizer));
  MP_RETURN_IF_ERROR(Try("saved state", [&] {
    const c10::NoGradGuard no_gradients;
    for (std::size_t i = 0; i < own.size(); ++i) {
      at::Tensor parameter = own[i];
      parameter.copy_(state.parameters[i]);
    }
    return absl::OkStatus();
  }));
  updates_ = state.updates;
  skipped_ = state.skipped;
  scale_.Restore(state.scale, state.good);
  losses_ = state.losses;
  calls_ = state.calls;
  stopped_early_ =
      options_.gain_bound > 0 && updates_ > 0 && updates_ % kStopEvery == 0 && NothingToGain();
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Module>> Trainer::Finish() {
  const std::vector<at::Tensor>& parameters = optimizer_.parameters();
  const std::vector<at::Tensor>& frozen = optimizer_.Frozen();
  MP_RETURN_IF_ERROR(Try("training", [&] {
    const c10::NoGradGuard no_gradients;
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      at::Tensor parameter = parameters[i];
      if (!parameter.is_same(frozen[i])) parameter.copy_(frozen[i]);
    }
    return absl::OkStatus();
  }));
  return std::move(module_);
}

}  // namespace mergeplan::network
