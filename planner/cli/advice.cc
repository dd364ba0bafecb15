#include "planner/cli/advice.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "planner/answer/solved.h"
#include "planner/base/status_macros.h"
#include "planner/cli/answer.h"

namespace mergeplan::cli {
namespace {

// "3 of 5 variances are up to 1 (boot is best in each), …; ": what the scalar regimes ask for,
// where their theorems hold.
std::string Regimes(const Model& model, const std::array<int, 4>& count,
                    const Lambda0Range& lambda0, int student_steps) {
  if (model.init() != Init::kChild || model.reference() != Reference::kSurrogate ||
      student_steps != 1 || !model.schedule().variance_preserving()) {
    return "";
  }
  const std::string where[] = {
      "at most 1", absl::StrFormat("between 1 and min lambda_0 = %.4g", lambda0.least),
      absl::StrFormat("between %.4g and %.4g", lambda0.least, lambda0.largest),
      absl::StrFormat("above max lambda_0 = %.4g", lambda0.largest)};
  std::string out;
  for (int k = 0; k < 4; ++k) {
    if (count[k] == 0) continue;
    const std::optional<Strategy> best = BestScalarStrategy(static_cast<VarianceRegime>(k));
    absl::StrAppendFormat(
        &out, "%s%d of %d variances are %s (%s)", out.empty() ? "" : ", ", count[k],
        model.dimensions(), where[k],
        best ? absl::StrCat("each by itself best by ", std::string(ToString(*best)))
             : "no strategy is in general");
  }
  return out + "; ";
}

}  // namespace

absl::StatusOr<Advice> Advise(const Model& model, int student_steps) {
  Advice advice;
  MP_ASSIGN_OR_RETURN(advice.figures, CanonicalFigures(model, student_steps));
  advice.lambda0 = RangeOfLambda0(model.schedule());
  std::array<int, 4> count{};
  for (double lambda : model.lambda()) {
    advice.regimes.push_back(RegimeOf(lambda, advice.lambda0));
    ++count[static_cast<int>(advice.regimes.back())];
  }
  const auto less = [](const StrategyFigures& x, const StrategyFigures& y) {
    return x.objective < y.objective;
  };
  const auto less_total = [](const StrategyFigures& x, const StrategyFigures& y) {
    return *x.objective_equal_total_time < *y.objective_equal_total_time;
  };
  const StrategyFigures& best =
      *std::min_element(advice.figures.begin(), advice.figures.end(), less);
  const StrategyFigures& best_total =
      *std::min_element(advice.figures.begin(), advice.figures.end(), less_total);
  advice.strategy = best.name;

  std::string why;
  if (const std::optional<ProvenStrategy> proven = ProvenBest(model, student_steps)) {
    advice.proven = true;
    advice.strategy = std::string(ToString(proven->strategy));
    why = student_steps == 1
              ? absl::StrFormat("%s is proven best of all plans: %s", advice.strategy,
                                std::string(proven->reason))
              : absl::StrFormat(
                    "every block is best merged by %s, which is proven: %s; mergeplan "
                    "plan finds the best borders",
                    advice.strategy, std::string(proven->reason));
    if (proven->theorem != "no theorem") {
      absl::StrAppendFormat(&why, " (%s of planner/operators/THEOREMS.md)",
                            std::string(proven->theorem));
    }
  } else {
    why = absl::StrFormat(
        "%sno strategy is proven best for all of them together; of the four, %s has the least "
        "predicted error (%.4g) at the same time per merge. A mixed plan may be better: run "
        "mergeplan plan",
        Regimes(model, count, advice.lambda0, student_steps), best.name, best.objective);
  }
  advice.reason = absl::StrFormat("%s. At the same total time %s is predicted best (%.4g).", why,
                                  best_total.name, *best_total.objective_equal_total_time);
  advice.network = NetworkAdvice(model.init());
  return advice;
}

}  // namespace mergeplan::cli
