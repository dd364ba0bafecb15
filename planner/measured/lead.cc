#include "planner/measured/lead.h"

#include <random>
#include <utility>

#include "absl/strings/str_cat.h"
#include "planner/base/status_macros.h"
#include "planner/operators/canonical.h"

namespace mergeplan {

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

  std::vector<std::pair<Rival*, PlanError>> runners;
  lead.rivals.reserve(std::size(kStrategies));
  for (const Strategy strategy : kStrategies) {
    MP_ASSIGN_OR_RETURN(Plan plan, CanonicalPlan(strategy, model.steps(), options.student_steps));
    Rival& rival = lead.rivals.emplace_back();
    rival.name = std::string(ToString(strategy));
    rival.is_the_plan = plan == result.plan;
    absl::StatusOr<std::vector<std::int64_t>> updates =
        rival.is_the_plan ? result.updates : UpdatesOf(model, plan, options);
    rival.plan = std::move(plan);
    rival.affordable = updates.ok();
    if (!rival.affordable) continue;
    rival.updates = *std::move(updates);
    PlanError error(model, rival.plan, rival.updates, options.combine);
    rival.error = error.Range(model);
    rival.certain = lead.error.high < rival.error.low;
    runners.emplace_back(&rival, std::move(error));
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
      beaten = beaten || other < error;
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
