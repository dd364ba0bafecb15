#include "planner/cli/scaling_curve.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "planner/base/status_macros.h"
#include "planner/cli/advice.h"
#include "planner/cli/command.h"
#include "planner/plan/costs.h"
#include "planner/search/search.h"
#include "planner/spectrum/figures.h"

namespace mergeplan::cli {
namespace {

constexpr double kLeastFactor = 1e-100, kLargestFactor = 1e100;

}  // namespace

absl::StatusOr<std::vector<CurvePoint>> ScalingCurve(const Basis& basis, const ModelSpec* spec,
                                                     const CurveOptions& options) {
  std::vector<CurvePoint> curve;
  for (int k = 0; k < options.points; ++k) {
    const double t = static_cast<double>(k) / (options.points - 1);
    CurvePoint point;
    point.factor = std::exp((1 - t) * std::log(options.low) + t * std::log(options.high));
    if (k == 0) point.factor = options.low;
    if (k + 1 == options.points) point.factor = options.high;
    // What is meant for 1 should be 1.
    if (std::abs(point.factor - 1) < 1e-12) point.factor = 1;
    curve.push_back(point);
  }
  const auto mark = [&](double factor, const std::string& name) {
    for (CurvePoint& point : curve) {
      if (point.factor != factor) continue;
      point.mark = point.mark.empty() ? name : absl::StrCat(point.mark, ", ", name);
      return;
    }
    CurvePoint point;
    point.factor = factor;
    point.mark = name;
    curve.push_back(std::move(point));
  };
  mark(1, "as it is");
  if (options.unit_variance > 0) mark(options.unit_variance, "unit variance");
  std::sort(curve.begin(), curve.end(),
            [](const CurvePoint& a, const CurvePoint& b) { return a.factor < b.factor; });
  for (CurvePoint& point : curve) {
    Basis scaled = basis;
    const double square = point.factor * point.factor;
    for (std::vector<double>* values :
         {&scaled.variances, &scaled.variances_low, &scaled.variances_high}) {
      for (double& value : *values) value *= square;
    }
    for (const double value : scaled.variances_high) {
      if (std::isfinite(value)) continue;
      return Misuse(absl::StrFormat(
          "--scaling-curve: at the factor %.4g a variance is more than float64 can hold; give a "
          "--scaling-range nearer to 1",
          point.factor));
    }
    SummarizeVariances(scaled);
    point.regime = scaled.regime;
    point.fraction_above_one = scaled.fraction_above_one;
    point.energy_above_one = FiguresOf(scaled, 0.95).energy_above_one;
    if (spec == nullptr) continue;
    const auto named = [&](const absl::Status& status) {
      return Misuse(absl::InvalidArgumentError(absl::StrFormat(
          "--scaling-curve: at the factor %.4g: %s", point.factor, std::string(status.message()))));
    };
    ModelSpec one = *spec;
    one.variances = scaled.variances;
    const absl::StatusOr<Model> model = Model::Create(std::move(one));
    if (!model.ok()) return named(model.status());
    const absl::StatusOr<Advice> advice = Advise(*model, options.student_steps);
    if (!advice.ok()) return named(advice.status());
    point.strategy = advice->strategy;
    point.proven = advice->proven;
    for (const StrategyFigures& row : advice->figures) {
      if (row.name == point.strategy) point.objective = row.objective;
    }
    SearchOptions search;
    search.student_steps = options.student_steps;
    search.gap = 1e-2;
    search.time_limit_seconds = options.seconds_each;
    MP_ASSIGN_OR_RETURN(const SearchResult found, Solve(*model, search));
    point.plan_objective = found.objective;
    point.plan_lower_bound = found.lower_bound;
    point.plan_merges = found.plan.size();
  }
  return curve;
}

absl::Status ParseRange(const std::string& text, CurveOptions& options) {
  const std::vector<std::string> ends = absl::StrSplit(text, ':');
  const bool read = ends.size() == 2 && absl::SimpleAtod(ends[0], &options.low) &&
                    absl::SimpleAtod(ends[1], &options.high);
  if (!read || !(0 < options.low && options.low < options.high)) {
    return Misuse(absl::StrCat("--scaling-range: \"", text,
                               "\" is no range, expected LOW:HIGH with 0 < LOW < HIGH, such as "
                               "0.125:8"));
  }
  if (options.low < kLeastFactor || options.high > kLargestFactor) {
    return Misuse(absl::StrFormat(
        "--scaling-range: \"%s\" leaves %g:%g, beyond which float64 cannot hold the variances",
        text, kLeastFactor, kLargestFactor));
  }
  return absl::OkStatus();
}

nlohmann::ordered_json CurveJson(const std::vector<CurvePoint>& curve) {
  nlohmann::ordered_json out = nlohmann::ordered_json::array();
  for (const CurvePoint& point : curve) {
    nlohmann::ordered_json row = {{"factor", point.factor},
                                  {"regime", std::string(ToString(point.regime))},
                                  {"fraction_above_one", point.fraction_above_one},
                                  {"energy_above_one", point.energy_above_one}};
    if (!point.mark.empty()) row["mark"] = point.mark;
    if (!point.strategy.empty()) {
      row["recommended_strategy"] = point.strategy;
      row["proven"] = point.proven;
      row["objective"] = point.objective;
      row["plan_objective"] = point.plan_objective;
      row["plan_lower_bound"] = point.plan_lower_bound;
      row["plan_merges"] = point.plan_merges;
    }
    out.push_back(std::move(row));
  }
  return out;
}

std::string CurveText(const std::vector<CurvePoint>& curve) {
  const bool model = !curve.empty() && !curve.front().strategy.empty();
  std::string out = absl::StrFormat("%10s  %-6s %8s %8s", "factor", "regime", "above 1", "energy");
  if (model) absl::StrAppendFormat(&out, "  %-12s %11s %11s", "strategy", "its error", "plan's");
  out += "\n";
  for (const CurvePoint& point : curve) {
    absl::StrAppendFormat(&out, "%10.4g  %-6s %7.1f%% %7.1f%%", point.factor,
                          std::string(ToString(point.regime)), 100 * point.fraction_above_one,
                          100 * point.energy_above_one);
    if (model) {
      absl::StrAppendFormat(&out, "  %-12s %11.4g %11.4g", point.strategy, point.objective,
                            point.plan_objective);
    }
    absl::StrAppend(&out, point.mark.empty() ? "" : "  ", point.mark, "\n");
  }
  return out;
}

}  // namespace mergeplan::cli
