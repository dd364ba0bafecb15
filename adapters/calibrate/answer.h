#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "adapters/calibrate/fit.h"
#include "adapters/calibrate/judge.h"
#include "adapters/calibrate/linear.h"
#include "adapters/calibrate/measurements.h"
#include "planner/measured/lead.h"
#include "planner/measured/solve.h"

namespace mergeplan::calibrate {

struct AnswerQuestion {
  int student_steps = 1;
  std::int64_t iterations = 0;
  std::string source;  // of the tables, for people
  LinearModel::Data linear;
  int draws = 1000;
  double linear_seconds = 10;  // that the search for the linear plan may take
  std::function<bool()> interrupted;
};

// One plan under both models.
struct PlanRow {
  std::string name;
  Plan plan;
  ErrorRange measured;               // the same updates for every merge
  std::optional<ErrorRange> shared;  // as many in all as BOOT makes, shared by its merges at best
  double linear = 0;                 // the linear model, the same time for every merge
};

// What follows from measurements.
struct Answer {
  Fit fit;  // of the rule chosen
  Judgement judgement;
  double linear_time = 0;                     // s that fits the pilots best
  MeasuredResult plan;                        // the measured model's, updates per merge
  std::optional<MeasuredResult> shared_plan;  // of the same total; none for T > 256
  std::int64_t shared_updates = 0;
  Plan linear_plan;
  std::string linear_status;    // what is proven of it
  std::vector<PlanRow> rows;    // the measured plan, the linear one, the four strategies
  Lead lead;                    // of the measured plan
  double lead_over_linear = 0;  // share of the draws in which the measured plan is better than it
};

// Fits both rules, judges them, plans with the better one. Errors of FitTables and of the models.
absl::StatusOr<Answer> MakeAnswer(const Measurements& m, const AnswerQuestion& question);

// What was measured, judged and planned, as text and as one JSON object.
struct Heading {
  std::string teacher, start, inputs, training;
  std::int64_t iterations = 0;
  bool stopped = false;
  std::string why;
  std::string output, arrays, plan;  // files that were written; empty: none
  std::string output_sha256;         // of `output`
};
// The object is also what `mergeplan report` makes a page of (planner/cli/calibration_results.h).
std::string AnswerText(const Measurements& m, const Answer& answer, const Heading& heading);
std::string AnswerJson(const Measurements& m, const Answer& answer, const Heading& heading);

}  // namespace mergeplan::calibrate
