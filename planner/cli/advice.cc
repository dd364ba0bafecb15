#include "planner/cli/advice.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "planner/base/status_macros.h"
#include "planner/cli/answer.h"

namespace mergeplan::cli {

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

  const int d = model.dimensions();
  const bool theorems = model.init() == Init::kChild &&
                        model.reference() == Reference::kSurrogate && student_steps == 1 &&
                        model.schedule().variance_preserving();
  std::string why;
  if (theorems && count[0] == d) {
    why =
        "every variance is at most 1, where BOOT is the best plan in each dimension "
        "(thm:sequential_boot_optimality)";
  } else if (theorems && count[3] == d) {
    why = absl::StrFormat(
        "every variance is above lambda_0 = %.4g, where vanilla is the best plan in each dimension "
        "(thm:vanilla_distillation_optimality)",
        advice.lambda0.largest);
  } else {
    why = absl::StrFormat(
        "%d of %d variances are at most 1 and %d above %.4g, which ask for different strategies; "
        "of the four, %s has the least "
        "predicted error (%.4g) at the same time per merge. A mixed plan may be better: run "
        "mergeplan plan",
        count[0], d, count[3], advice.lambda0.largest, best.name, best.objective);
  }
  advice.reason = absl::StrFormat("%s. At the same total time %s is predicted best (%.4g).", why,
                                  best_total.name, *best_total.objective_equal_total_time);
  return advice;
}

}  // namespace mergeplan::cli
