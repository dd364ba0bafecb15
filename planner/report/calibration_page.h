#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "planner/measured/plan_error.h"
#include "planner/measured/tables.h"
#include "planner/plan/plan.h"

namespace mergeplan {

// A merge that was trained, with the children that were trained before it. All errors are root mean
// squares over held-out rows, native.
struct CalibrationPilot {
  Range range;
  std::vector<Range> trained;  // children; the others are single steps
  int replicate = 0;           // of its seed
  bool held_out = false;       // no fit has seen it
  double start = 0;            // the untrained student against the merge's own target
  // Against it after so many updates, with standard errors; what the model's fit says of it.
  std::vector<std::int64_t> updates;
  std::vector<double> error, standard_error;
  std::vector<ErrorRange> fitted;
};

// A merge against the teacher's steps, and what the models say of it.
struct CalibrationJudged {
  Range range;
  std::vector<Range> trained;
  bool held_out = true;  // false: its own error has been fitted
  double measured = 0, standard_error = 0;
  ErrorRange predicted;  // by the measured model, with its rule
  double linear = 0;     // by the linear one, at its best time
};

struct CalibrationPlan {
  std::string name;
  Plan plan;
  ErrorRange error;                      // by the measured model, the same updates for every merge
  std::optional<ErrorRange> same_total;  // as many in all as BOOT makes, shared at best
  double linear = 0;                     // by the linear one
};

// What `mergeplan calibrate` found.
struct CalibrationPage {
  std::string title;
  MeasuredTables tables;
  // For people: teacher, start, inputs and training, in words.
  std::string teacher, start, inputs, training;
  std::int64_t iterations = 0;                  // updates per merge of the plans
  std::int64_t pilot_updates = 0;               // of each pilot
  std::int64_t updates = 0, teacher_calls = 0;  // of all of them
  double seconds = 0;
  bool complete = true;  // false: it was stopped, and the tables are of what was there
  std::string failure;   // of a pilot; may be empty
  // How far predictions of held-out merges are off, as factors; merges 0: none was held out.
  double factor = 1, linear_factor = 1, other_rule_factor = 1;
  int judged_merges = 0, within = 0;  // inside the measured model's intervals
  double linear_time = 0;             // the linear model's best time s
  double spread = 0;                  // of log errors from seed to seed, or around the curves
  bool spread_of_seeds = false;
  double floor_share = 1;  // of what curves do not learn
  std::vector<CalibrationPilot> pilots;
  std::vector<CalibrationJudged> judged;
  std::vector<CalibrationPlan> plans;  // the measured model's, the linear one's, others
  double better_in_draws = 0;          // share in which the first plan is better than the second
  std::vector<std::string> files;      // that belong to it
};

// As one HTML page under the rules of RenderHtml: nothing from outside, valid XML, the same bytes
// for the same input. INVALID_ARGUMENT for fewer than two plans, plans of other steps than the
// tables, or curves of different lengths.
absl::StatusOr<std::string> RenderCalibration(const CalibrationPage& page);

}  // namespace mergeplan
