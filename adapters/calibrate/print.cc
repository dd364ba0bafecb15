// What a calibration found, for people and for programs.
#include <cmath>
#include <utility>

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "adapters/calibrate/answer.h"
#include "planner/base/utf8.h"
#include "planner/plan/costs.h"

namespace mergeplan::calibrate {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kWidestPlan = 60;

std::string RangeText(Range r) { return absl::StrFormat("[%d, %d]", r.first, r.last); }
std::string ShortPlan(const Plan& plan) {
  std::string text = plan.ToString();
  if (text.size() > kWidestPlan) text = text.substr(0, kWidestPlan - 3) + "...";
  return text;
}

std::int64_t Updates(const Measurements& m) {
  std::int64_t out = 0;
  for (const PilotResult& r : m.pilots) out += r.updates.back();
  return out;
}
std::int64_t Calls(const Measurements& m) {
  std::int64_t out = m.probe_calls;
  for (const PilotResult& r : m.pilots) out += r.teacher_calls;
  return out;
}
double Seconds(const Measurements& m) {
  double out = m.probe_seconds;
  for (const PilotResult& r : m.pilots) out += r.seconds;
  return out;
}

std::string FittedTable(const Answer& a, Combine rule) {
  std::string out = absl::StrFormat("%-12s %10s %10s %10s %9s %10s\n", "merge", "g", "error", "f",
                                    "trained", "scatter");
  for (const FittedMerge& f : a.fit.merges) {
    absl::StrAppendFormat(&out, "%-12s %10.4g %10.4g %10.4g %8dx %9.1f%%\n", RangeText(f.range),
                          f.distance, f.after, f.floor, f.replicates, 100 * f.scatter);
  }
  absl::StrAppendFormat(
      &out,
      "error: after %d updates, from the teacher's weights; f: what stays wherever a merge "
      "starts, by the rule %s (%s)\n",
      a.fit.pilot_updates, std::string(ToString(rule)),
      a.fit.floor_share_measured
          ? absl::StrFormat("%.0f %% of what its curve does not learn, by merges over merges",
                            100 * a.fit.floor_share)
          : "all that its curve does not learn: no merge over merges was fitted");
  absl::StrAppendFormat(&out, "errors of one merge differ by %.1f %% %s\n", 100 * a.fit.spread,
                        a.fit.spread_freedom > 0
                            ? "from one seed to the next"
                            : "around their curves; seeds were not repeated, so intervals do not "
                              "hold their spread");
  return out;
}

std::string HeldOutTable(const Answer& a) {
  const Judgement& j = a.judgement;
  const bool sum = j.rule == Combine::kSum;
  std::string out =
      absl::StrFormat("%-34s %10s %10s %21s %8s %10s %8s\n", "merge that no fit has seen",
                      "measured", "predicted", "interval", "factor", "linear", "factor");
  const auto add = [&](const Judged& row, const char* remark) {
    const ErrorRange& p = sum ? row.sum : row.rms;
    const auto factor = [&](double predicted) {
      return row.measured > 0 ? absl::StrFormat("%.3g", predicted / row.measured)
                              : std::string("-");
    };
    absl::StrAppendFormat(&out, "%-34s %10.4g %10.4g %21s %8s %10.4g %8s%s\n", row.pilot.ToString(),
                          row.measured, p.value, absl::StrFormat("%.4g..%.4g", p.low, p.high),
                          factor(p.value), row.linear, factor(row.linear), remark);
  };
  for (const Judged& row : j.held_out) add(row, "");
  for (const Judged& row : j.fitted) {
    if (!row.pilot.trained.empty()) add(row, "  (its own error was fitted, not this one)");
  }
  return out;
}

std::string Verdict(const Answer& a) {
  const Judgement& j = a.judgement;
  if (!j.chosen) {
    return "no merge was held out, so nothing says how well this model predicts; sum, which is a "
           "bound, is taken\n";
  }
  const bool sum = j.rule == Combine::kSum;
  std::string out = absl::StrFormat(
      "%s predicts held-out merges better: typically off by a factor of %.3g (%s: %.3g), %d of %d "
      "inside their intervals; the linear model with its best time, s = %.3g, by %.3g\n",
      std::string(ToString(j.rule)), j.best().factor(), sum ? "rms" : "sum",
      (sum ? j.rms : j.sum).factor(), j.best().within, j.best().merges, a.linear_time,
      j.linear.factor());
  if (j.linear_is_better()) {
    out +=
        "THE LINEAR MODEL PREDICTS BETTER HERE than the measured one; trust neither plan without "
        "a bench, or calibrate with more updates and replicates\n";
  } else if (j.best().factor() > 1.5) {
    out += "THIS IS A POOR FIT: differences between plans below that factor mean nothing\n";
  } else if (2 * j.best().within < j.best().merges) {
    out +=
        "the intervals are too narrow: most held-out merges lie outside of theirs, so what is "
        "said of draws is too sure\n";
  }
  return out;
}

// Distances are to perfect children; what trained ones made of it.
std::string StartNote(const Answer& a) {
  double farthest = 1;
  std::string which;
  for (const auto* rows : {&a.judgement.held_out, &a.judgement.fitted}) {
    for (const Judged& row : *rows) {
      if (row.pilot.trained.empty() || !(row.start_predicted > 0)) continue;
      const double ratio = row.start / row.start_predicted;
      if (ratio > farthest) farthest = ratio, which = row.pilot.ToString();
    }
  }
  if (farthest < 1.2) return "";
  return absl::StrFormat(
      "children that have learnt little: %s starts %.3g times as far from its target as from a "
      "perfect child, which the tables are about, so errors of plans with many merges are likely "
      "too small\n",
      which, farthest);
}

std::string PlanTable(const Answer& a, std::int64_t iterations) {
  std::string out = absl::StrFormat("%-14s %7s %11s %23s %11s %11s  %s\n", "plan", "merges",
                                    "error", "interval", "same total", "linear", "tree");
  for (const PlanRow& row : a.rows) {
    absl::StrAppendFormat(&out, "%-14s %7d %11.4g %23s %11s %11.4g  %s\n", row.name,
                          row.plan.size(), row.measured.value,
                          absl::StrFormat("%.4g..%.4g", row.measured.low, row.measured.high),
                          row.shared ? absl::StrFormat("%.4g", row.shared->value) : "-", row.linear,
                          ShortPlan(row.plan));
  }
  absl::StrAppendFormat(&out,
                        "error: root mean square of student minus teacher, %d updates per merge; "
                        "same total: %d updates in all, shared at best; linear: the linear "
                        "model's, with s = %.3g per merge\n",
                        iterations, a.shared_updates, a.linear_time);
  if (a.shared_plan) {
    absl::StrAppendFormat(&out, "best for the same total: %s, error %.4g\n",
                          ShortPlan(a.shared_plan->plan), a.shared_plan->error);
  }
  return out;
}

std::string Difference(const Answer& a) {
  const PlanRow &ours = a.rows[0], &linear = a.rows[1];
  if (ours.plan == linear.plan) {
    return "both models plan the same\n";
  }
  std::string out = absl::StrFormat(
      "by the measured model its plan is better than the linear one by a factor of %.3g (in %.0f "
      "%% of draws within the intervals better), with %d merges in place of %d\n",
      linear.measured.value / ours.measured.value, 100 * a.lead_over_linear, ours.plan.size(),
      linear.plan.size());
  const Judgement& j = a.judgement;
  if (j.chosen && std::log(linear.measured.value / ours.measured.value) < j.best().off) {
    out += "that is less than the model is typically wrong by: a bench must decide\n";
  }
  return out;
}

Json ErrorJson(const ErrorRange& e) {
  return {{"value", e.value}, {"low", e.low}, {"high", e.high}};
}
Json RangeJson(Range r) { return Json::array({r.first, r.last}); }

Json JudgedJson(const Judged& j) {
  Json trained = Json::array();
  for (const Range& child : j.pilot.trained) trained.push_back(RangeJson(child));
  return {{"range", RangeJson(j.pilot.range)},
          {"trained_children", std::move(trained)},
          {"measured", j.measured},
          {"measured_standard_error", j.measured_error},
          {"measured_own", j.own},
          {"sum", ErrorJson(j.sum)},
          {"rms", ErrorJson(j.rms)},
          {"own_sum", ErrorJson(j.own_sum)},
          {"own_rms", ErrorJson(j.own_rms)},
          {"linear", j.linear},
          {"start", j.start},
          {"start_predicted", j.start_predicted}};
}

// The curve of one pilot beside the fit's.
Json CurveJson(const PilotResult& r, const Measurements& m, const MeasuredModel& model,
               Combine rule) {
  Json trained = Json::array(), errors = Json::array(), sampled = Json::array(),
       fitted = Json::array();
  for (const Range& child : r.pilot.trained) trained.push_back(RangeJson(child));
  for (std::size_t k = 0; k < r.updates.size(); ++k) {
    const double error = std::sqrt(r.error[k]) * m.data_scale;
    errors.push_back(error);
    sampled.push_back(r.error[k] > 0 ? error * r.standard_error[k] / r.error[k] / 2 : 0);
    fitted.push_back(ErrorJson(PredictOwn(model, rule, r.pilot, r.updates[k])));
  }
  return {{"range", RangeJson(r.pilot.range)},
          {"trained_children", std::move(trained)},
          {"replicate", r.pilot.replicate},
          {"held_out", r.pilot.held_out},
          {"start", std::sqrt(r.start) * m.data_scale},
          {"updates", r.updates},
          {"error", std::move(errors)},
          {"standard_error", std::move(sampled)},
          {"fitted", std::move(fitted)}};
}

Json ScoreJson(const Score& s, bool intervals) {
  Json out = {{"factor", s.factor()}, {"mean_log", s.bias}, {"merges", s.merges}};
  if (intervals) out["within_interval"] = s.within;
  return out;
}

Json PlanJsonOf(const Plan& plan) {
  Json merges = Json::array();
  for (const Merge& merge : plan.merges()) {
    Json children = Json::array();
    for (const int child : merge.children) children.push_back(RangeJson(plan.range(child)));
    merges.push_back({{"first", merge.first},
                      {"last", merge.last},
                      {"round", merge.round},
                      {"children", std::move(children)}});
  }
  return merges;
}

}  // namespace

std::string AnswerText(const Measurements& m, const Answer& a, const Heading& h) {
  std::string out =
      absl::StrFormat("%s, T = %d, start %s, inputs by %s, %s, %d updates per merge\n", h.teacher,
                      m.teacher_steps, h.start, h.inputs, h.training, h.iterations);
  absl::StrAppendFormat(&out, "%d pilots: %d updates, %.4g teacher calls, %.3g minutes%s\n\n",
                        m.pilots.size(), Updates(m), static_cast<double>(Calls(m)), Seconds(m) / 60,
                        h.stopped ? " (stopped before all of them)" : "");
  if (!h.why.empty()) absl::StrAppend(&out, "a pilot failed: ", h.why, "\n\n");
  absl::StrAppend(&out, FittedTable(a, a.judgement.rule), "\n", HeldOutTable(a), Verdict(a),
                  StartNote(a), "\n", PlanTable(a, h.iterations), Difference(a));
  for (const auto& [what, file] : {std::pair{"tables", h.output},
                                   {"all measurements", h.arrays},
                                   {"the measured plan, for distill --plan", h.plan}}) {
    if (!file.empty()) absl::StrAppend(&out, what, ": ", file, "\n");
  }
  return out;
}

std::string AnswerJson(const Measurements& m, const Answer& a, const Heading& h) {
  Json out = {{"teacher", ReplaceInvalidUtf8(h.teacher)},
              {"teacher_steps", m.teacher_steps},
              {"student_steps", a.plan.plan.student_steps()},
              {"init", h.start},
              {"inputs", h.inputs},
              {"training", h.training},
              {"iterations", h.iterations},
              {"complete", !h.stopped},
              {"pilots", m.pilots.size()},
              {"pilot_updates", a.fit.pilot_updates},
              {"updates", Updates(m)},
              {"teacher_calls", Calls(m)},
              {"seconds", Seconds(m)}};
  if (!h.why.empty()) out["failure"] = ReplaceInvalidUtf8(h.why);
  out["combine"] = std::string(ToString(a.judgement.rule));
  out["combine_chosen_by_held_out"] = a.judgement.chosen;
  out["floor_share"] = a.fit.floor_share;
  out["floor_share_measured"] = a.fit.floor_share_measured;
  out["spread"] = a.fit.spread;
  out["spread_between_seeds"] = a.fit.spread_freedom > 0;
  out["gain_slope"] = a.fit.gain_slope;
  out["linear_train_time"] = a.linear_time;
  out["fitted"] = Json::array();
  for (const FittedMerge& f : a.fit.merges) {
    out["fitted"].push_back({{"range", RangeJson(f.range)},
                             {"distance", f.distance},
                             {"error", f.after},
                             {"floor", f.floor},
                             {"replicates", f.replicates},
                             {"scatter", f.scatter}});
  }
  out["curves"] = Json::array();
  if (const auto model = MeasuredModel::Create(a.fit.tables); model.ok()) {
    for (const PilotResult& r : m.pilots) {
      out["curves"].push_back(CurveJson(r, m, *model, a.judgement.rule));
    }
  }
  out["held_out"] = Json::array();
  for (const Judged& j : a.judgement.held_out) out["held_out"].push_back(JudgedJson(j));
  out["seen"] = Json::array();
  for (const Judged& j : a.judgement.fitted) out["seen"].push_back(JudgedJson(j));
  out["scores"] = {{"sum", ScoreJson(a.judgement.sum, true)},
                   {"rms", ScoreJson(a.judgement.rms, true)},
                   {"linear", ScoreJson(a.judgement.linear, false)}};
  out["linear_predicts_better"] = a.judgement.linear_is_better();
  out["plans"] = Json::array();
  for (const PlanRow& row : a.rows) {
    Json plan = {{"name", row.name},
                 {"merges_trained", row.plan.size()},
                 {"measured", ErrorJson(row.measured)},
                 {"linear", row.linear}};
    if (row.shared) plan["measured_same_total"] = ErrorJson(*row.shared);
    const PlanCosts costs = CostsOf(row.plan);
    plan["teacher_calls_per_row"] = costs.teacher_calls;
    plan["merges"] = PlanJsonOf(row.plan);
    plan["blocks"] = Json::array();
    for (const Range& block : row.plan.BlockRanges()) plan["blocks"].push_back(RangeJson(block));
    out["plans"].push_back(std::move(plan));
  }
  out["status"] = a.plan.status();
  out["guarantee"] = a.plan.guarantee;
  out["linear_status"] = a.linear_status;
  out["same_plan"] = a.rows[0].plan == a.rows[1].plan;
  out["better_than_linear_in_draws"] = a.lead_over_linear;
  out["not_beaten_by_strategies_in_draws"] = a.lead.best_of_all;
  if (a.shared_plan) {
    out["same_total"] = {{"total_updates", a.shared_updates},
                         {"error", a.shared_plan->error},
                         {"status", a.shared_plan->status()},
                         {"updates", a.shared_plan->updates},
                         {"merges", PlanJsonOf(a.shared_plan->plan)}};
  }
  for (const auto& [key, file] :
       {std::pair{"output", h.output}, {"arrays", h.arrays}, {"plan", h.plan}}) {
    if (!file.empty()) out[key] = ReplaceInvalidUtf8(file);
  }
  if (!h.output_sha256.empty()) out["output_sha256"] = h.output_sha256;
  return out.dump(2) + "\n";
}

}  // namespace mergeplan::calibrate
