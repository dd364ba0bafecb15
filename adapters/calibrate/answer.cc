#include "adapters/calibrate/answer.h"

#include <random>
#include <utility>

#include "planner/base/status_macros.h"
#include "planner/operators/canonical.h"
#include "planner/search/search.h"

namespace mergeplan::calibrate {
namespace {

absl::StatusOr<PlanRow> RowOf(std::string name, const Plan& plan, const MeasuredModel& model,
                              const LinearModel& linear, const MeasuredOptions& each,
                              const MeasuredOptions& shared) {
  PlanRow row;
  row.name = std::move(name);
  row.plan = plan;
  MP_ASSIGN_OR_RETURN(const std::vector<std::int64_t> updates, UpdatesOf(model, plan, each));
  row.measured = PlanError(model, plan, updates, each.combine).Range(model);
  const absl::StatusOr<std::vector<std::int64_t>> parts = UpdatesOf(model, plan, shared);
  if (parts.ok()) row.shared = PlanError(model, plan, *parts, each.combine).Range(model);
  row.linear = linear.ErrorOf(plan);
  return row;
}

// In how many of the draws within the intervals `plan` is better than `other`.
double ShareBetter(const MeasuredModel& model, const PlanRow& plan, const PlanRow& other,
                   const MeasuredOptions& each, int draws) {
  if (draws < 1 || plan.plan == other.plan) return 0;
  const std::vector<std::int64_t> a(plan.plan.size(), each.updates);
  const std::vector<std::int64_t> b(other.plan.size(), each.updates);
  const PlanError ours(model, plan.plan, a, each.combine),
      theirs(model, other.plan, b, each.combine);
  std::mt19937_64 random(1);
  std::vector<double> scenario;
  int better = 0;
  for (int k = 0; k < draws; ++k) {
    model.Draw(random, scenario);
    better += ours.At(scenario) < theirs.At(scenario) ? 1 : 0;
  }
  return static_cast<double>(better) / draws;
}

}  // namespace

absl::StatusOr<Answer> MakeAnswer(const Measurements& m, const AnswerQuestion& q) {
  Answer out;
  const int T = m.teacher_steps;
  out.shared_updates = q.iterations * (T - q.student_steps);
  FitOptions options;
  options.iterations = q.iterations;
  options.most_updates = out.shared_updates;
  MP_ASSIGN_OR_RETURN(Fit sum, FitTables(m, Combine::kSum, options));
  MP_ASSIGN_OR_RETURN(Fit rms, FitTables(m, Combine::kRms, options));
  MP_ASSIGN_OR_RETURN(const MeasuredModel sum_model, MeasuredModel::Create(sum.tables));
  MP_ASSIGN_OR_RETURN(const MeasuredModel rms_model, MeasuredModel::Create(rms.tables));
  MP_ASSIGN_OR_RETURN(const LinearModel linear, LinearModel::Fit(q.linear, m));
  out.linear_time = linear.train_time();
  MP_ASSIGN_OR_RETURN(out.judgement, Judge(m, sum_model, rms_model, linear));
  const bool is_sum = out.judgement.rule == Combine::kSum;
  const MeasuredModel& model = is_sum ? sum_model : rms_model;
  out.fit = is_sum ? std::move(sum) : std::move(rms);
  out.fit.tables.source = q.source;

  MeasuredOptions each;
  each.student_steps = q.student_steps;
  each.combine = out.judgement.rule;
  each.updates = q.iterations;
  MeasuredOptions shared = each;
  shared.updates = 0;
  shared.total_updates = out.shared_updates;
  MP_ASSIGN_OR_RETURN(out.plan, SolveMeasured(model, each));
  absl::StatusOr<MeasuredResult> shared_plan = SolveMeasured(model, shared);
  if (shared_plan.ok()) out.shared_plan = *std::move(shared_plan);

  SearchOptions search;
  search.student_steps = q.student_steps;
  search.time_limit_seconds = q.linear_seconds;
  search.interrupted = q.interrupted;
  MP_ASSIGN_OR_RETURN(const SearchResult best, Solve(linear.model(), search));
  out.linear_plan = best.plan;
  out.linear_status = std::string(ToString(best.status));

  const auto add = [&](std::string name, const Plan& plan) -> absl::Status {
    MP_ASSIGN_OR_RETURN(PlanRow row, RowOf(std::move(name), plan, model, linear, each, shared));
    out.rows.push_back(std::move(row));
    return absl::OkStatus();
  };
  MP_RETURN_IF_ERROR(add("measured plan", out.plan.plan));
  MP_RETURN_IF_ERROR(add("linear plan", out.linear_plan));
  for (const Strategy strategy : kStrategies) {
    MP_ASSIGN_OR_RETURN(const Plan plan, CanonicalPlan(strategy, T, q.student_steps));
    MP_RETURN_IF_ERROR(add(std::string(ToString(strategy)), plan));
  }
  LeadOptions draws;
  draws.draws = q.draws;
  MP_ASSIGN_OR_RETURN(out.lead, LeadOver(model, each, out.plan, draws));
  out.lead_over_linear = ShareBetter(model, out.rows[0], out.rows[1], each, q.draws);
  return out;
}

}  // namespace mergeplan::calibrate
