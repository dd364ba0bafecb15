#include "planner/measured/lead.h"

#include <random>
#include <utility>

#include "absl/strings/str_cat.h"
#include "planner/base/status_macros.h"
#include "planner/operators/canonical.h"

namespace mergeplan {

absl::StatusOr<std::vector<Rival>> StrategiesOf(const MeasuredModel& model,
                                                const MeasuredOptions& options) {
  std::vector<Rival> out;
  for (const Strategy strategy : kStrategies) {
    Rival& rival = out.emplace_back();
    rival.name = std::string(ToString(strategy));
    MP_ASSIGN_OR_RETURN(rival.plan, CanonicalPlan(strategy, model.steps(), options.student_steps));
    rival.allowed = KeepsLimits(rival.plan, options);
    absl::StatusOr<std::vector<std::int64_t>> updates = UpdatesOf(model, rival.plan, options);
    rival.affordable = updates.ok();
    if (!rival.affordable) continue;
    rival.updates = *std::move(updates);
    rival.error = PlanError(model, rival.plan, rival.updates, options.combine).Range(model);
  }
  return out;
}

absl::StatusOr<Lead> LeadOver(const MeasuredModel& model, const MeasuredOptions& options,
                              const MeasuredResult& result, const LeadOptions& lead_options) {
  constexpr int kMostDraws = 1'000'000;
  if (lead_options.draws < 0 || lead_options.draws > kMostDraws) {
    return absl::InvalidArgumentError(
        absl::StrCat("draws is ", lead_options.draws, ", expected 0..", kMostDraws));
  }
  Lead lead;
  lead.options = lead_options;
  const PlanError own(model, result.plan, result.updates, options.combine);
  lead.error = own.Range(model);

  MP_ASSIGN_OR_RETURN(lead.rivals, StrategiesOf(model, options));
  std::vector<std::pair<Rival*, PlanError>> runners;
  for (Rival& rival : lead.rivals) {
    rival.is_the_plan = rival.plan == result.plan;
    if (rival.is_the_plan) {
      rival.affordable = true;
      rival.updates = result.updates;
      rival.error = lead.error;
    }
    if (!rival.affordable) continue;
    rival.certain = lead.error.high < rival.error.low;
    runners.emplace_back(&rival, PlanError(model, rival.plan, rival.updates, options.combine));
  }

  std::mt19937_64 random(lead_options.seed);
  std::vector<double> scenario;
  std::vector<int> better(runners.size()), equal(runners.size());
  int best_of_all = 0;
  for (int n = 0; n < lead_options.draws; ++n) {
    model.Draw(random, scenario);
    const double error = own.At(scenario);
    bool beaten = false;
    for (size_t k = 0; k < runners.size(); ++k) {
      const double other = runners[k].second.At(scenario);
      better[k] += error < other ? 1 : 0;
      equal[k] += error == other ? 1 : 0;
      beaten = beaten || (runners[k].first->allowed && other < error);
    }
    best_of_all += beaten ? 0 : 1;
  }
  if (lead_options.draws > 0) {
    const double draws = lead_options.draws;
    for (size_t k = 0; k < runners.size(); ++k) {
      runners[k].first->better = better[k] / draws;
      runners[k].first->equal = equal[k] / draws;
    }
    lead.best_of_all = best_of_all / draws;
  }
  return lead;
}

}  // namespace mergeplan
