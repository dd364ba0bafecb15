#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "adapters/command/bench_command.h"

namespace mergeplan {
namespace {

using Json = nlohmann::ordered_json;

std::string_view BudgetWord(bool total) { return total ? "total" : "per-merge"; }

constexpr double kNobodyKnows = std::numeric_limits<double>::quiet_NaN();

// What nobody knows is left out.
std::string Number(double value) {
  return std::isnan(value) ? "-" : absl::StrFormat("%.6g", value);
}
std::string CsvNumber(double value) {
  return std::isnan(value) ? "" : absl::StrFormat("%.17g", value);
}

Json SpreadJson(const Spread& spread, int trials) {
  Json out = {{"mean", spread.mean}};
  if (trials > 1) {
    out["standard_deviation"] = spread.deviation;
    out["interval_95"] = {spread.mean - spread.half_width, spread.mean + spread.half_width};
  }
  return out;
}

// A field of a CSV file, in quotes where it needs them.
std::string Field(const std::string& text) {
  if (text.find_first_of(",\"\n\r") == std::string::npos) return text;
  return absl::StrCat("\"", absl::StrReplaceAll(text, {{"\"", "\"\""}}), "\"");
}

std::string SpreadText(const Spread& spread, int trials) {
  return trials == 1 ? absl::StrFormat("%.6g", spread.mean)
                     : absl::StrFormat("%.6g +- %.2g", spread.mean, spread.half_width);
}

// What samples are like.
std::string JudgedText(const BenchResult& result) {
  if (result.judged.empty()) return "";
  std::string out = absl::StrCat("\n", result.judged, ":\n");
  std::size_t width = 8;
  for (const BenchRow& row : result.rows) width = std::max(width, row.strategy.size());
  const int w = static_cast<int>(width);
  absl::StrAppendFormat(&out, "%-*s %9s %22s %20s %20s %22s %11s\n", w, "strategy", "budget",
                        "Frechet distance", "precision", "recall", "from the teacher's",
                        "peak memory");
  const auto line = [&](const std::string& name, std::string_view budget,
                        const JudgedSamples& judged, int trials, std::int64_t bytes) {
    absl::StrAppendFormat(
        &out, "%-*s %9s %22s %20s %20s %22s %11s\n", w, name, std::string(budget),
        SpreadText(judged.frechet, trials), SpreadText(judged.precision, trials),
        SpreadText(judged.recall, trials),
        judged.distance ? SpreadText(*judged.distance, trials) : "-",
        bytes > 0 ? absl::StrFormat("%.0f MB", static_cast<double>(bytes) / 1e6) : "-");
  };
  if (result.teacher_samples && result.teacher_samples->compared) {
    line("teacher", "-", *result.teacher_samples, 1, 0);
  }
  for (const BenchRow& row : result.rows) {
    if (!row.error.empty() || !row.judged || !row.judged->compared) continue;
    line(row.strategy, BudgetWord(row.total_budget), *row.judged, result.trials,
         row.peak_memory_bytes);
  }
  return out;
}

Json JudgedJson(const JudgedSamples& judged, int trials) {
  Json out = {{"samples", judged.samples}};
  if (judged.compared) {
    out["frechet_distance"] = SpreadJson(judged.frechet, trials);
    out["precision"] = SpreadJson(judged.precision, trials);
    out["recall"] = SpreadJson(judged.recall, trials);
  }
  if (judged.distance) out["distance_from_teacher"] = SpreadJson(*judged.distance, trials);
  if (!judged.grid.empty()) out["grid"] = judged.grid;
  return out;
}

Json ForecastJson(const BenchForecast& forecast) {
  Json out = {{"runs", forecast.runs},
              {"updates", forecast.updates},
              {"teacher_calls", forecast.teacher_calls}};
  if (!std::isnan(forecast.seconds)) out["minutes"] = forecast.seconds / 60;
  if (forecast.snapshot_bytes > 0) out["snapshot_bytes"] = forecast.snapshot_bytes;
  out["above_limits"] = forecast.above;
  return out;
}

}  // namespace

std::string ForecastText(const BenchForecast& forecast) {
  std::string out = absl::StrFormat("%d runs: %.4g updates, %.4g calls of single teacher steps",
                                    forecast.runs, static_cast<double>(forecast.updates),
                                    static_cast<double>(forecast.teacher_calls));
  if (!std::isnan(forecast.seconds)) {
    absl::StrAppendFormat(&out, ", about %.3g minutes by a probe of this machine",
                          forecast.seconds / 60);
  }
  if (forecast.snapshot_bytes > 0) {
    absl::StrAppendFormat(&out, ", up to %.3g MB of frozen networks",
                          static_cast<double>(forecast.snapshot_bytes) / 1e6);
  }
  return out;
}

std::string BenchText(const BenchResult& result) {
  std::string out = absl::StrFormat(
      "%s%s, %d teacher steps (%s) into %d, start %s, batch %d, %d trial%s\n"
      "errors against the %s%s\n%s\n",
      result.teacher,
      result.basis.empty()
          ? " (without --spectrum nothing is predicted)"
          : absl::StrFormat(", basis %s: %d dimensions", result.basis, result.dimensions),
      result.teacher_steps, result.schedule, result.student_steps, result.init, result.batch,
      result.trials, result.trials == 1 ? "" : "s, achieved: mean and half of its 95 % interval",
      std::string(ToString(result.reference)),
      std::any_of(
          result.rows.begin(), result.rows.end(),
          [](const BenchRow& row) { return row.error.empty() && !std::isnan(row.expected); })
          ? "; expected: as predicted, with the noise of SGD"
          : "",
      result.training);
  size_t width = 8;
  for (const BenchRow& row : result.rows) width = std::max(width, row.strategy.size());
  const int w = static_cast<int>(width);
  const BenchRow* before = nullptr;
  for (const BenchRow& row : result.rows) {
    if (before == nullptr || before->total_budget != row.total_budget) {
      absl::StrAppend(&out, "\n",
                      row.total_budget ? "same number of updates in all (what BOOT spends):\n"
                                       : "same number of updates for every merge:\n");
      absl::StrAppendFormat(&out, "%-*s %7s %8s %12s %12s %24s %12s %9s\n", w, "strategy", "merges",
                            "updates", "predicted", "expected", "achieved", "teacher", "time");
      absl::StrAppendFormat(&out, "%-*s %7s %8s %12s %12s %24s %12s %9s\n", w, "", "", "/ merge",
                            "", "", "", "calls", "");
    }
    before = &row;
    if (!row.error.empty()) {
      absl::StrAppendFormat(&out, "%-*s failed: %s\n", w, row.strategy, row.error);
      continue;
    }
    const std::string achieved =
        result.trials == 1
            ? absl::StrFormat("%.6g", row.achieved.mean)
            : absl::StrFormat("%.6g +- %.2g", row.achieved.mean, row.achieved.half_width);
    absl::StrAppendFormat(&out, "%-*s %7d %8d %12s %12s %24s %12.4g %7.2f s\n", w, row.strategy,
                          row.merges, row.iterations, Number(row.predicted), Number(row.expected),
                          achieved, static_cast<double>(row.teacher_calls), row.seconds);
  }
  absl::StrAppend(&out, JudgedText(result));
  absl::StrAppendFormat(&out, "\npeak memory %.0f MB\n",
                        static_cast<double>(result.peak_memory_bytes) / 1e6);
  return out;
}

std::string BenchJson(const BenchResult& result) {
  Json out = {{"teacher", result.teacher},
              {"basis", result.basis.empty() ? Json() : Json(result.basis)},
              {"schedule", result.schedule},
              {"teacher_steps", result.teacher_steps},
              {"student_steps", result.student_steps},
              {"dimensions", result.basis.empty() ? Json() : Json(result.dimensions)},
              {"init", result.init},
              {"reference", std::string(ToString(result.reference))},
              {"batch", result.batch},
              {"trials", result.trials},
              {"training", result.training},
              {"stopped", result.stopped},
              {"peak_memory_bytes", result.peak_memory_bytes},
              {"forecast", ForecastJson(result.forecast)},
              {"rows", Json::array()}};
  if (!result.judged.empty()) {
    out["judged"] = {{"about", result.judged}, {"features", result.features}};
  }
  if (result.teacher_samples) out["teacher_samples"] = JudgedJson(*result.teacher_samples, 1);
  for (const BenchRow& row : result.rows) {
    Json entry = {{"strategy", row.strategy}, {"budget", BudgetWord(row.total_budget)}};
    if (row.error.empty()) {
      entry["merges"] = row.merges;
      entry["rounds"] = row.rounds;
      entry["updates_per_merge"] = row.iterations;
      entry["updates"] = row.updates;
      entry["teacher_calls"] = row.teacher_calls;
      entry["predicted_error"] = row.predicted;
      if (!std::isnan(row.expected)) entry["expected_error"] = row.expected;
      entry["achieved_error"] = SpreadJson(row.achieved, result.trials);
      if (!std::isnan(row.achieved_surrogate.mean)) {
        entry["achieved_surrogate"] = SpreadJson(row.achieved_surrogate, result.trials);
      }
      entry["achieved_teacher"] = SpreadJson(row.achieved_teacher, result.trials);
      entry["seconds"] = row.seconds;
      if (row.peak_memory_bytes > 0) entry["peak_memory_bytes"] = row.peak_memory_bytes;
      if (!row.levels.empty()) {
        entry["error_by_level"] = Json::array();
        for (const LevelFigure& figure : row.levels) {
          entry["error_by_level"].push_back({{"from", figure.last},
                                             {"to", figure.first - 1},
                                             {"error", figure.error},
                                             {"standard_error", figure.standard_error}});
        }
      }
      if (row.judged) entry["samples"] = JudgedJson(*row.judged, result.trials);
    } else {
      entry["error"] = row.error;
    }
    out["rows"].push_back(std::move(entry));
  }
  // Paths need not be UTF-8, JSON must be.
  return out.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string BenchCsv(const BenchResult& result) {
  std::string out =
      "strategy,budget,merges,rounds,updates_per_merge,updates,teacher_calls,predicted_error,"
      "expected_error,achieved_error,achieved_deviation,achieved_half_width_95,"
      "achieved_surrogate,achieved_teacher,seconds,peak_memory_bytes,frechet_distance,precision,"
      "recall,distance_from_teacher,trials,error\n";
  for (const BenchRow& row : result.rows) {
    absl::StrAppend(&out, Field(row.strategy), ",", std::string(BudgetWord(row.total_budget)), ",");
    if (row.error.empty()) {
      absl::StrAppend(&out, row.merges, ",", row.rounds, ",", row.iterations, ",", row.updates, ",",
                      row.teacher_calls);
      const bool spread = result.trials > 1;
      for (const double number : {row.predicted, row.expected, row.achieved.mean,
                                  spread ? row.achieved.deviation : kNobodyKnows,
                                  spread ? row.achieved.half_width : kNobodyKnows,
                                  row.achieved_surrogate.mean, row.achieved_teacher.mean}) {
        absl::StrAppend(&out, ",", CsvNumber(number));
      }
      absl::StrAppendFormat(&out, ",%.6g,", row.seconds);
      if (row.peak_memory_bytes > 0) absl::StrAppend(&out, row.peak_memory_bytes);
      const bool compared = row.judged && row.judged->compared;
      for (const double number :
           {compared ? row.judged->frechet.mean : kNobodyKnows,
            compared ? row.judged->precision.mean : kNobodyKnows,
            compared ? row.judged->recall.mean : kNobodyKnows,
            row.judged && row.judged->distance ? row.judged->distance->mean : kNobodyKnows}) {
        absl::StrAppend(&out, ",", CsvNumber(number));
      }
      absl::StrAppend(&out, ",", result.trials, ",\n");
    } else {
      absl::StrAppend(&out, ",,,,,,,,,,,,,,,,,,", result.trials, ",", Field(row.error), "\n");
    }
  }
  return out;
}

}  // namespace mergeplan
