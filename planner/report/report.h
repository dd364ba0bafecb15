#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "planner/plan/io/document.h"
#include "planner/runs/merge_record.h"
#include "planner/spectrum/spectrum.h"

namespace mergeplan {

// Do the achieved operators look like draws from the predicted law?
struct LawVerdict {
  double smallest_p = 1;        // the least p-value over all dimensions, before any correction
  double adjusted_p = 1;        // the same after Holm's correction over `hypotheses`
  double level = 0.01;          // the law is rejected where adjusted_p < level
  std::int64_t hypotheses = 0;  // p-values in the family (all dimensions of all strategies)
  std::int64_t rejected = 0;    // dimensions of this strategy that are rejected
  std::int64_t draws = 0;       // draws of the law behind each p-value
};

// One strategy as it was run. Vectors have one entry per dimension of the plan, or none where the
// figure is not known.
struct StrategyResult {
  std::string name;
  std::string run_folder;
  PlanDocument document;  // the plan that was executed, with what it rests on

  // Is every value a draw of the law of SGD (planner/operators/law.h)? Else there may be a
  // predicted objective, and no noise, or neither: NaN.
  bool has_law = false;
  double predicted_objective = 0;   // at the mean of the law: sum_k w_k (tau_k - E V_k)^2
  double predicted_with_noise = 0;  // mean over the law: adds w_k Var V_k, the noise of SGD
  // Standard deviation over the law of the achieved objective, from run to run.
  std::optional<double> spread;
  // Are the students linear? Else the prediction is that of linear ones with the data's moments.
  bool linear = true;
  double achieved_objective = 0;          // against the reference of the plan
  std::optional<double> standard_error;   // of it, where it is a mean over drawn rows
  double achieved_objective_teacher = 0;  // against the product of the teacher's steps
  // Predicted objective at equal total time. Empty: taken from the plan's figures.
  std::optional<double> equal_total_time;

  std::vector<double> value;           // achieved V
  std::vector<double> expected_value;  // E V
  std::vector<double> value_spread;    // standard deviation of V over the law
  // What student and teacher make of the same unit noise, in the data's units: rows x d, row-major;
  // of students that are not linear.
  std::vector<double> samples, teacher_samples;
  // The same as the bytes of PNG files, where they are pictures; else empty.
  std::string picture, teacher_picture;

  std::vector<MergeRecord> merges;
  std::optional<LawVerdict> law_test;
  double seconds = 0;
};

struct ReportInput {
  std::string title;
  const Spectrum* spectrum = nullptr;      // may be absent: its sections say so
  bool channels_with_spectrum = true;      // list them in its section
  const PlanDocument* plan = nullptr;      // may be absent where there are strategies
  std::vector<StrategyResult> strategies;  // in the order to show
  std::uint64_t seed = 0;                  // of the sample images
  std::string spectrum_path, plan_path;    // as shown
  std::vector<std::string> commands;       // that made the inputs, in order
  std::vector<std::string> notes;          // anything a reader must know, one sentence each
};

// The report as one HTML page that needs nothing else: no scripts, fonts, styles or pictures from
// outside (SVG stands in the page, PNG in base64). The same input gives the same bytes.
//
// INVALID_ARGUMENT where the parts do not belong together: a strategy or a spectrum of another
// number of dimensions, a strategy of another teacher (steps, schedule, variances) than the plan,
// vectors or a covariance of a wrong length, neither plan, strategy nor spectrum. Figures that are
// not finite are shown as "not finite". O(d^2 + strategies (T + d) + samples d^2).
absl::StatusOr<std::string> RenderHtml(const ReportInput& input);

}  // namespace mergeplan
