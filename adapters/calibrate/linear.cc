#include "adapters/calibrate/linear.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "planner/base/status_macros.h"

namespace mergeplan::calibrate {

absl::StatusOr<Plan> PlanOf(const Pilot& pilot, int teacher_steps) {
  std::vector<MergeSpec> merges;
  std::vector<Range> children;
  std::size_t next = 0;
  for (int t = pilot.range.first; t <= pilot.range.last;) {
    Range child{t, t};
    if (next < pilot.trained.size() && pilot.trained[next].first == t) {
      child = pilot.trained[next++];
      MergeSpec inner{child, {}};
      for (int s = child.first; s <= child.last; ++s) inner.children.push_back({s, s});
      merges.push_back(std::move(inner));
    }
    children.push_back(child);
    t = child.last + 1;
  }
  merges.push_back({pilot.range, std::move(children)});
  std::vector<Range> blocks;
  for (int t = 1; t < pilot.range.first; ++t) blocks.push_back({t, t});
  blocks.push_back(pilot.range);
  for (int t = pilot.range.last + 1; t <= teacher_steps; ++t) blocks.push_back({t, t});
  return Plan::Create(teacher_steps, merges, blocks);
}

absl::StatusOr<LinearModel> LinearModel::At(const Data& data, double time) {
  ModelSpec spec;
  spec.schedule = data.schedule;
  spec.variances = data.variances;
  spec.budget = Budget::Flow(time);
  spec.init = data.init;
  spec.reference = Reference::kTeacher;
  MP_ASSIGN_OR_RETURN(Model model, Model::Create(std::move(spec)));
  return LinearModel(data, time, std::move(model));
}

absl::StatusOr<double> LinearModel::ErrorOf(const Pilot& pilot) const {
  MP_ASSIGN_OR_RETURN(const Plan plan, PlanOf(pilot, model_.steps()));
  const std::vector<double> values = model_.NodeValues(plan);
  const int d = model_.dimensions();
  const std::size_t node = static_cast<std::size_t>(plan.teacher_steps() + plan.size() - 1) * d;
  const absl::Span<const double> n = model_.n(pilot.range.last);
  double sum = 0;
  for (int k = 0; k < d; ++k) {
    double product = 1;
    for (int t = pilot.range.first; t <= pilot.range.last; ++t) product *= model_.A(t)[k];
    const double off = values[node + k] - product;
    sum += n[k] * off * off;
  }
  return std::sqrt(sum * data_.copies) * data_.schedule.data_scale;
}

double LinearModel::ErrorOf(const Plan& plan) const {
  const std::vector<double> value = model_.Value(plan);
  const int T = model_.steps();
  double sum = 0;
  for (int k = 0; k < model_.dimensions(); ++k) {
    const double off = value[k] - model_.tau(Reference::kTeacher)[k];
    sum += model_.n(T)[k] * off * off;
  }
  return std::sqrt(sum * data_.copies) * data_.schedule.data_scale;
}

absl::StatusOr<LinearModel> LinearModel::Fit(Data data, const Measurements& m) {
  std::vector<const PilotResult*> pilots;
  for (const PilotResult& r : m.pilots) {
    if (!r.pilot.held_out && r.pilot.trained.empty() && r.error.back() > 0) pilots.push_back(&r);
  }
  if (pilots.empty()) return absl::FailedPreconditionError("no pilot has been trained");
  const auto cost = [&](double log_time) -> absl::StatusOr<double> {
    MP_ASSIGN_OR_RETURN(const LinearModel model, At(data, std::exp(log_time)));
    double sum = 0;
    for (const PilotResult* r : pilots) {
      MP_ASSIGN_OR_RETURN(const double predicted, model.ErrorOf(r->pilot));
      // A prediction of nothing is wrong by a factor, not by infinitely much.
      const double measured = std::sqrt(r->error.back()) * m.data_scale;
      const double off = std::log(std::max(predicted, 1e-12 * measured) / measured);
      sum += off * off;
    }
    return sum;
  };
  double best = 0, least = std::numeric_limits<double>::infinity();
  constexpr double kStep = 0.5;
  constexpr int kTrials = 37;  // 1e-4 .. 1e4
  for (int trial = 0; trial < kTrials; ++trial) {
    const double x = std::log(1e-4) + kStep * trial;
    MP_ASSIGN_OR_RETURN(const double at, cost(x));
    if (at < least) least = at, best = x;
  }
  double low = best - kStep, high = best + kStep;
  for (int k = 0; k < 24; ++k) {
    const double third = (high - low) / 3;
    MP_ASSIGN_OR_RETURN(const double left, cost(low + third));
    MP_ASSIGN_OR_RETURN(const double right, cost(high - third));
    (left < right ? high : low) = left < right ? high - third : low + third;
  }
  return At(data, std::exp((low + high) / 2));
}

}  // namespace mergeplan::calibrate
