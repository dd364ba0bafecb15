#include "planner/report/facts.h"

#include <algorithm>
#include <cmath>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "planner/base/status_macros.h"
#include "planner/operators/canonical.h"
#include "planner/operators/model.h"
#include "planner/report/charts.h"
#include "planner/report/text.h"

namespace mergeplan {
namespace {

absl::Status CheckLength(const std::string& what, size_t found, int expected, bool may_be_empty) {
  if (found == static_cast<size_t>(expected) || (may_be_empty && found == 0)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrFormat(
      "%s has %d values, expected %d; report runs of one problem together", what, found, expected));
}

absl::Status CheckSpectrum(const Spectrum& spectrum) {
  const int d = spectrum.dimensions();
  if (d < 1) {
    return absl::InvalidArgumentError("the spectrum has no dimensions, expected at least one");
  }
  for (const Basis* basis : BasesOf(spectrum)) {
    const std::string name = absl::StrCat("basis \"", basis->name, "\" of the spectrum");
    MP_RETURN_IF_ERROR(CheckLength(absl::StrCat(name, ", variances"), basis->variances.size(), d,
                                   /*may_be_empty=*/false));
    MP_RETURN_IF_ERROR(
        CheckLength(absl::StrCat(name, ", lower bounds"), basis->variances_low.size(), d, true));
    MP_RETURN_IF_ERROR(
        CheckLength(absl::StrCat(name, ", upper bounds"), basis->variances_high.size(), d, true));
  }
  for (const auto& [name, matrix] :
       {std::pair{"covariance", &spectrum.covariance}, std::pair{"vectors", &spectrum.vectors}}) {
    if (matrix == &spectrum.vectors && !spectrum.has_pca()) continue;
    if (matrix == &spectrum.covariance && !spectrum.has_covariance()) continue;
    if (matrix->size() != static_cast<size_t>(d) * d) {
      return absl::InvalidArgumentError(absl::StrFormat(
          "array %s of the spectrum has %d entries, expected %d x %d", name, matrix->size(), d, d));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckStrategy(const StrategyResult& strategy, const PlanDocument& plan) {
  const std::string name = absl::StrCat("strategy \"", strategy.name, "\"");
  const PlanDocument& own = strategy.document;
  const auto differs = [&](const std::string& what) {
    return absl::InvalidArgumentError(absl::StrCat(name, " was run with ", what,
                                                   " than the plan; report runs of one problem "
                                                   "together"));
  };
  if (own.plan.teacher_steps() != plan.plan.teacher_steps()) {
    return differs(absl::StrCat(own.plan.teacher_steps(), " teacher steps, another number (",
                                plan.plan.teacher_steps(), ")"));
  }
  if (own.alpha != plan.alpha || own.sigma != plan.sigma || own.data_scale != plan.data_scale) {
    return differs("another noise schedule");
  }
  if (own.variances != plan.variances) return differs("other variances");
  if (own.weights != plan.weights) return differs("other weights");
  if (own.reference != plan.reference) {
    return differs(absl::StrCat("another reference (", std::string(ToString(own.reference)), ")"));
  }
  const int d = plan.dimensions();
  MP_RETURN_IF_ERROR(CheckLength(absl::StrCat(name, ", value"), strategy.value.size(), d, true));
  MP_RETURN_IF_ERROR(
      CheckLength(absl::StrCat(name, ", expected value"), strategy.expected_value.size(), d, true));
  return CheckLength(absl::StrCat(name, ", spread of the value"), strategy.value_spread.size(), d,
                     true);
}

// "boot", or "vanilla and boot" where two are equal, with the least of the plan's figures.
struct LeastFigure {
  std::vector<std::string> names;
  double value = INFINITY;
  void Add(const std::string& name, double figure) {
    if (!std::isfinite(figure)) return;
    if (figure < value) {
      value = figure;
      names.clear();
    }
    if (figure == value && std::find(names.begin(), names.end(), name) == names.end()) {
      names.push_back(name);
    }
  }
};

std::string Bold(const std::string& text) { return absl::StrCat("<b>", Escape(text), "</b>"); }

std::string BoldList(std::vector<std::string> names) {
  for (std::string& name : names) name = Bold(name);
  return Listed(names);
}

// How much more `other` is than `less`, both > 0: "3.1 % more", "2.4 times as much".
std::string More(double less, double other) {
  const double ratio = other / less;
  if (!(less > 0) || !std::isfinite(ratio)) return "more";
  if (ratio < 1.5) return absl::StrCat(Percent(ratio - 1), " more");
  return absl::StrCat(ShortNumber(ratio, ratio < 100 ? 2 : 3), " times as much");
}

std::string UntrainedVerdict(const PlanDocument& plan) {
  std::string out =
      absl::StrCat("Nothing has been trained yet. By the linear model the plan ends ",
                   NumberHtml(plan.objective), " from ", ReferenceWords(plan.reference));
  LeastFigure canonical;
  for (const StrategyFigures& figures : plan.strategies) {
    if (ParseStrategy(figures.name).ok()) canonical.Add(figures.name, figures.objective);
  }
  if (canonical.names.empty()) return absl::StrCat(out, ".");
  absl::StrAppend(&out, "; the best canonical strategy, ", BoldList(canonical.names), ", ends ",
                  NumberHtml(canonical.value), " away");
  if (plan.objective > 0 && canonical.value > plan.objective) {
    absl::StrAppend(&out, ", ", More(plan.objective, canonical.value));
  }
  return absl::StrCat(out, ".");
}

}  // namespace

std::string ReferenceWords(Reference reference) {
  return absl::StrCat("the ", std::string(ToString(reference)));
}

absl::StatusOr<ReportFacts> CheckInput(const ReportInput& input) {
  ReportFacts facts;
  facts.plan = input.plan;
  if (facts.plan == nullptr && !input.strategies.empty()) {
    facts.plan = &input.strategies.front().document;
  }
  if (facts.plan == nullptr && input.spectrum == nullptr) {
    return absl::InvalidArgumentError(
        "neither a spectrum nor a plan nor a run was given, expected at least one");
  }
  if (input.spectrum != nullptr) MP_RETURN_IF_ERROR(CheckSpectrum(*input.spectrum));
  if (facts.plan == nullptr) return facts;

  const PlanDocument& plan = *facts.plan;
  if (plan.tables) {
    return absl::InvalidArgumentError(
        "the plan is one of bare tables, without the schedule and variances that a report draws; "
        "name a plan that was made with them");
  }
  const int d = plan.dimensions();
  const int steps = plan.plan.teacher_steps();
  if (steps < 1 || plan.alpha.size() != static_cast<size_t>(steps) + 1) {
    return absl::InvalidArgumentError(
        absl::StrFormat("the plan has %d steps and a schedule of %d levels, expected one "
                        "level more than steps",
                        steps, plan.alpha.size()));
  }
  if (input.spectrum != nullptr && input.spectrum->dimensions() != d) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "the spectrum has %d dimensions and the plan %d; name the spectrum that the plan "
        "was made from",
        input.spectrum->dimensions(), d));
  }
  for (const StrategyResult& strategy : input.strategies) {
    MP_RETURN_IF_ERROR(CheckStrategy(strategy, plan));
  }

  // tau does not depend on the budget.
  ModelSpec spec;
  spec.schedule.spec = plan.schedule_spec;
  spec.schedule.alpha = plan.alpha;
  spec.schedule.sigma = plan.sigma;
  spec.schedule.level_scale.assign(plan.alpha.size(), 1.0);
  spec.schedule.data_scale = plan.data_scale;
  spec.variances = plan.variances;
  spec.weights = plan.weights;
  spec.budget = Budget::Flow(1);
  MP_ASSIGN_OR_RETURN(const Model model, Model::Create(std::move(spec)));
  const auto copy = [&](Reference reference) {
    const absl::Span<const double> tau = model.tau(reference);
    return std::vector<double>(tau.begin(), tau.end());
  };
  facts.tau = copy(plan.reference);
  facts.tau_surrogate = copy(Reference::kSurrogate);
  facts.tau_teacher = copy(Reference::kTeacher);

  std::vector<int> order;
  for (size_t k = 0; k < input.strategies.size(); ++k) {
    if (std::isfinite(input.strategies[k].achieved_objective)) order.push_back(static_cast<int>(k));
  }
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
    return input.strategies[a].achieved_objective < input.strategies[b].achieved_objective;
  });
  if (!order.empty()) facts.best = order[0];
  if (order.size() > 1) facts.runner_up = order[1];
  return facts;
}

std::optional<double> EqualTotalTime(const StrategyResult& strategy, const ReportInput& input) {
  if (strategy.equal_total_time) return strategy.equal_total_time;
  const PlanDocument* sources[] = {input.plan, &strategy.document};
  for (const PlanDocument* source : sources) {
    if (source == nullptr) continue;
    for (const StrategyFigures& figures : source->strategies) {
      if (figures.name == strategy.name) return figures.objective_equal_total_time;
    }
  }
  // The plan itself, under whatever name it was run.
  for (const PlanDocument* source : sources) {
    if (source != nullptr && !source->status.empty() && source->plan == strategy.document.plan) {
      return source->objective_equal_total_time;
    }
  }
  return std::nullopt;
}

std::string Verdict(const ReportInput& input, const ReportFacts& facts) {
  if (facts.plan == nullptr) {
    const Basis& basis = *BasesOf(*input.spectrum).back();
    return absl::StrCat("Of ", Count(input.spectrum->dimensions(), "dimension"), ", ",
                        Percent(basis.fraction_above_one), " have a variance above one ",
                        Along(basis), "; no plan has been made yet.");
  }
  if (input.strategies.empty()) return UntrainedVerdict(*facts.plan);
  if (facts.best < 0) {
    return absl::StrCat("None of the ", Count(static_cast<int>(input.strategies.size()), "run"),
                        " ended with a finite error.");
  }
  const StrategyResult& best = input.strategies[facts.best];
  const std::string reference = ReferenceWords(facts.plan->reference);
  const auto figures = [](const StrategyResult& s) {
    return absl::StrCat(NumberHtml(s.achieved_objective), " achieved",
                        std::isnan(s.predicted_objective)
                            ? ", none predicted"
                            : absl::StrCat(", ", NumberHtml(s.predicted_objective), " predicted"));
  };
  if (input.strategies.size() == 1) {
    return absl::StrCat(Bold(best.name), " ended this far from ", reference, ": ", figures(best),
                        ".");
  }
  bool same_budget = true;
  for (const StrategyResult& s : input.strategies) {
    same_budget = same_budget && s.document.budget == best.document.budget;
  }
  std::string out =
      absl::StrCat("Of ", Count(static_cast<int>(input.strategies.size()), "run"),
                   same_budget ? " with the same time per merge, " : ", each with its own budget, ",
                   Bold(best.name), " came closest to ", reference, ": ", figures(best));
  if (facts.runner_up >= 0) {
    const StrategyResult& next = input.strategies[facts.runner_up];
    absl::StrAppend(&out, "; next is ", Bold(next.name), " with ",
                    NumberHtml(next.achieved_objective));
    if (next.achieved_objective == best.achieved_objective) {
      out += ", the same";
    } else {
      absl::StrAppend(&out, ", ", More(best.achieved_objective, next.achieved_objective));
    }
  }
  return absl::StrCat(out, ".");
}

namespace {

std::string SpreadSentence(const ReportInput& input, const ReportFacts& facts) {
  if (facts.runner_up < 0) return "";
  const StrategyResult& best = input.strategies[facts.best];
  const StrategyResult& next = input.strategies[facts.runner_up];
  if (!best.spread || !next.spread) return "";
  const double difference = next.achieved_objective - best.achieved_objective;
  const double spread = std::hypot(*best.spread, *next.spread);
  if (!(difference <= 2 * spread)) return "";
  return absl::StrCat("<p>", Bold(best.name), " and ", Bold(next.name), " differ by ",
                      NumberHtml(difference, 3),
                      ", which is within twice the spread of a run: other seeds may put them the "
                      "other way round.</p>\n");
}

std::string BudgetParagraphs(const ReportInput& input, const PlanDocument& plan) {
  LeastFigure per_merge, equal_total;
  int fewest = 1 << 30, most = 0;
  const auto merges = [&](int count) {
    fewest = std::min(fewest, count);
    most = std::max(most, count);
  };
  for (const StrategyFigures& figures : plan.strategies) {
    per_merge.Add(figures.name, figures.objective);
    if (figures.objective_equal_total_time)
      equal_total.Add(figures.name, *figures.objective_equal_total_time);
    merges(figures.merges_trained);
  }
  if (!plan.status.empty()) {
    // Listed under the name of the run that executed it, where there is one.
    std::string name = "the plan";
    for (const StrategyResult& s : input.strategies) {
      if (s.document.plan == plan.plan && !ParseStrategy(s.name).ok()) name = s.name;
    }
    per_merge.Add(name, plan.objective);
    if (plan.objective_equal_total_time) equal_total.Add(name, *plan.objective_equal_total_time);
    merges(plan.plan.size());
  }
  for (const StrategyResult& s : input.strategies) {
    if (!std::isnan(s.predicted_objective)) per_merge.Add(s.name, s.predicted_objective);
    if (const auto figure = EqualTotalTime(s, input)) equal_total.Add(s.name, *figure);
    merges(s.document.plan.size());
  }
  const bool linear = std::all_of(input.strategies.begin(), input.strategies.end(),
                                  [](const StrategyResult& s) { return s.linear; });
  std::string out;
  if (!per_merge.names.empty()) {
    absl::StrAppend(&out, "<p><b>Same time per merge</b> (",
                    input.strategies.empty() ? "what the plan was made for"
                    : linear                 ? "what was run"
                                             : "of the linear model behind the predictions",
                    "): ", Escape(plan.budget.ToString()), ". The model expects ",
                    BoldList(per_merge.names), " to be best, with ", NumberHtml(per_merge.value),
                    ".");
    if (most > fewest) {
      absl::StrAppend(&out, " Strategies that merge more often spend more in all: between ", fewest,
                      " and ", Count(most, "merge"), " here.");
    }
    out += "</p>\n";
  }
  if (!equal_total.names.empty()) {
    const int total = plan.plan.teacher_steps() - plan.plan.student_steps();
    const bool turned = !per_merge.names.empty() && per_merge.names != equal_total.names;
    absl::StrAppend(&out, "<p><b>Same time in all</b> (predicted, not run): ",
                    turned ? "the order changes. If" : "if",
                    " every strategy may spend the time of ", Count(total, "merge"),
                    ", what BOOT spends, the model expects ", BoldList(equal_total.names),
                    " to be best, with ", NumberHtml(equal_total.value), ".</p>\n");
  }
  return out;
}

std::string LawParagraph(const ReportInput& input) {
  std::vector<std::string> rejected;
  int tested = 0;
  double least = 1;
  double level = 0;
  for (const StrategyResult& s : input.strategies) {
    if (!s.law_test) continue;
    ++tested;
    least = std::min(least, s.law_test->adjusted_p);
    level = s.law_test->level;
    if (!(s.law_test->adjusted_p >= s.law_test->level)) rejected.push_back(Bold(s.name));
  }
  if (tested == 0) return "";
  if (rejected.empty()) {
    return absl::StrCat("<p>What was achieved agrees with the predicted law in ",
                        tested == 1 ? "the one run tested" : absl::StrCat("all ", tested, " runs"),
                        ": the least p-value, corrected for the number of tests (Holm), is ",
                        NumberHtml(least, 2), ", above the level of ", Percent(level), ".</p>\n");
  }
  return absl::StrCat(
      "<p class=\"bad\">What was achieved does not agree with the predicted law for ",
      Listed(rejected), " (p = ", NumberHtml(least, 2), " after Holm's correction, level ",
      Percent(level),
      "): learning rate, inputs or arithmetic are not what the prediction "
      "assumes.</p>\n");
}

}  // namespace

std::string VerdictDetails(const ReportInput& input, const ReportFacts& facts) {
  if (facts.plan == nullptr) return "";
  return absl::StrCat(facts.best >= 0 ? SpreadSentence(input, facts) : "",
                      BudgetParagraphs(input, *facts.plan), LawParagraph(input));
}

}  // namespace mergeplan
