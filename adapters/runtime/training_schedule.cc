#include "adapters/runtime/training_schedule.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/add.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/index_select.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>

#include <exception>
#include <utility>

#include "absl/strings/str_cat.h"
#include "planner/answer/student_levels.h"
#include "planner/base/status_macros.h"
#include "planner/plan/io/document.h"

namespace mergeplan {
namespace {

// z_to = state z + estimate x0, the DDIM step.
struct Coefficients {
  double state, estimate;
};

Coefficients Ddim(const Schedule& s, int from, int to) {
  const auto j = static_cast<size_t>(from), i = static_cast<size_t>(to);
  return {s.sigma[i] / s.sigma[j], SignalNoiseDeterminant(s, to, from) / s.sigma[j]};
}

absl::Status Thrown(const std::exception& error) {
  const std::string text = error.what();
  return absl::InvalidArgumentError(
      absl::StrCat("training schedule: ", text.substr(0, text.find('\n'))));
}

// [B] numbers as [B, 1, …, 1] of the type and on the device of `like`.
at::Tensor Column(const at::Tensor& numbers, const at::Tensor& like) {
  std::vector<int64_t> shape(static_cast<size_t>(like.dim()), 1);
  shape[0] = numbers.size(0);
  return numbers.to(like.options()).view(shape);
}

// A list of numbers at the places that `index` [B] says.
at::Tensor At(const std::vector<double>& table, const at::Tensor& index) {
  const at::Tensor whole =
      at::from_blob(const_cast<double*>(table.data()), {static_cast<int64_t>(table.size())},
                    at::TensorOptions(at::kDouble))
          .clone();
  return at::index_select(whole.to(index.device()), 0, index);
}

}  // namespace

TrainingSchedule::TrainingSchedule(Plan plan, Schedule schedule)
    : plan_(std::move(plan)), schedule_(std::move(schedule)) {
  const std::vector<std::vector<int>> by_round = plan_.MergesByRound();
  for (size_t number = 1; number < by_round.size(); ++number) {
    Round& round = rounds_.emplace_back();
    round.number = static_cast<int>(number);
    for (const int k : by_round[number]) {
      const Merge& merge = plan_.merges()[static_cast<size_t>(k)];
      TrainingMerge& out = round.merges.emplace_back();
      out.range = merge.range();
      for (const int child : merge.children) out.children.push_back(plan_.range(child));
    }
  }
}

absl::StatusOr<TrainingSchedule> TrainingSchedule::Create(Plan plan, Schedule schedule) {
  if (plan.teacher_steps() != schedule.steps()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the plan has ", plan.teacher_steps(), " teacher steps, the schedule \"",
                     schedule.spec, "\" ", schedule.steps(), "; expected the same number"));
  }
  MP_RETURN_IF_ERROR(ValidateSchedule(schedule));
  return TrainingSchedule(std::move(plan), std::move(schedule));
}

absl::StatusOr<TrainingSchedule> TrainingSchedule::FromFile(const std::string& path) {
  MP_ASSIGN_OR_RETURN(const PlanDocument document, ReadPlan(path));
  if (document.tables) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": a plan of bare tables has no noise levels to train at"));
  }
  absl::StatusOr<Schedule> schedule = ScheduleBehind(document);
  if (!schedule.ok()) {
    schedule = Schedule{};
    schedule->spec = schedule->name = document.schedule_spec;
    schedule->alpha = document.alpha;
    schedule->sigma = document.sigma;
    schedule->data_scale = document.data_scale;
    schedule->level_scale.assign(document.alpha.size(), 1.0);
  }
  MP_ASSIGN_OR_RETURN(TrainingSchedule out, Create(document.plan, *std::move(schedule)));
  out.init_ = document.init;
  return out;
}

std::vector<int> TrainingSchedule::levels() const { return StudentLevels(plan_); }

absl::StatusOr<TrainingBatch> TrainingSchedule::Sample(const Round& round, const at::Tensor& x0,
                                                       at::Generator generator) const {
  if (round.merges.empty()) return absl::InvalidArgumentError("a round without merges");
  if (x0.dim() < 1 || x0.size(0) < 1 || !x0.is_floating_point()) {
    return absl::InvalidArgumentError(
        "x0: expected a tensor of floats whose first axis counts one sample or more");
  }
  try {
    const at::NoGradGuard no_grad;
    const int64_t rows = x0.size(0);
    const auto count = static_cast<int64_t>(round.merges.size());
    std::vector<double> from, to;
    for (const TrainingMerge& merge : round.merges) {
      from.push_back(merge.from());
      to.push_back(merge.to());
    }
    TrainingBatch out;
    out.merge = at::randint(count, {rows}, generator, x0.options().dtype(at::kLong));
    out.from = At(from, out.merge).to(at::kLong);
    out.to = At(to, out.merge).to(at::kLong);
    const at::Tensor noise = at::randn(x0.sizes(), generator, x0.options());
    const at::Tensor alpha = Column(At(schedule_.alpha, out.from).div(schedule_.data_scale), x0);
    out.z = at::add(at::mul(alpha, x0), at::mul(Column(At(schedule_.sigma, out.from), x0), noise));
    if (!schedule_.timesteps.empty()) out.times = At(schedule_.timesteps, out.from);
    return out;
  } catch (const std::exception& error) {
    return Thrown(error);
  }
}

absl::StatusOr<at::Tensor> TrainingSchedule::Target(const Round& round, const TrainingBatch& batch,
                                                    const Denoiser& teacher,
                                                    const Denoiser& frozen) const {
  try {
    const at::NoGradGuard no_grad;
    at::Tensor out = at::empty(batch.z.sizes(), batch.z.options());
    for (size_t k = 0; k < round.merges.size(); ++k) {
      const TrainingMerge& merge = round.merges[k];
      const at::Tensor rows = batch.merge.eq(static_cast<int64_t>(k)).nonzero().view({-1});
      if (rows.size(0) == 0) continue;
      at::Tensor z = at::index_select(batch.z, 0, rows);
      for (size_t c = merge.children.size(); c-- > 0;) {
        const Range child = merge.children[c];
        const at::Tensor x0 = (child.single() ? teacher : frozen)(z, child.last);
        MP_ASSIGN_OR_RETURN(z, Jump(z, x0, child.last, child.first - 1));
      }
      out.index_copy_(0, rows, z);
    }
    return out;
  } catch (const std::exception& error) {
    return Thrown(error);
  }
}

absl::StatusOr<at::Tensor> TrainingSchedule::Jump(const TrainingBatch& batch,
                                                  const at::Tensor& x0) const {
  try {
    const at::Tensor from_sigma = At(schedule_.sigma, batch.from);
    const at::Tensor to_sigma = At(schedule_.sigma, batch.to);
    const at::Tensor state = to_sigma / from_sigma;
    // D(to, from) / sigma_from = alpha_to - alpha_from sigma_to / sigma_from.
    const at::Tensor estimate =
        At(schedule_.alpha, batch.to) - At(schedule_.alpha, batch.from) * state;
    return at::add(at::mul(Column(state, batch.z), batch.z),
                   at::mul(Column(estimate, batch.z), x0));
  } catch (const std::exception& error) {
    return Thrown(error);
  }
}

absl::StatusOr<at::Tensor> TrainingSchedule::Jump(const at::Tensor& z, const at::Tensor& x0,
                                                  int from, int to) const {
  if (to < 0 || to >= from || from > schedule_.steps()) {
    return absl::InvalidArgumentError(
        absl::StrCat("a jump from level ", from, " to level ", to,
                     ", expected 0 <= to < from <= ", schedule_.steps()));
  }
  try {
    const Coefficients c = Ddim(schedule_, from, to);
    return at::add(at::mul(z, c.state), at::mul(x0, c.estimate));
  } catch (const std::exception& error) {
    return Thrown(error);
  }
}

absl::StatusOr<at::Tensor> TrainingSchedule::Run(at::Tensor z, const Denoiser& student) const {
  const std::vector<int> visited = levels();
  try {
    const at::NoGradGuard no_grad;
    for (size_t k = 0; k + 1 < visited.size(); ++k) {
      MP_ASSIGN_OR_RETURN(z, Jump(z, student(z, visited[k]), visited[k], visited[k + 1]));
    }
    return z;
  } catch (const std::exception& error) {
    return Thrown(error);
  }
}

}  // namespace mergeplan
