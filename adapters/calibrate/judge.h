#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "adapters/calibrate/fit.h"
#include "adapters/calibrate/linear.h"
#include "adapters/calibrate/measurements.h"
#include "planner/measured/model.h"
#include "planner/measured/plan_error.h"

namespace mergeplan::calibrate {

// A merge that was trained beside what models say of it: root mean squares against the teacher's
// steps, native.
struct Judged {
  Pilot pilot;
  double measured = 0, measured_error = 0;  // and its sampling error
  double own = 0;                           // measured against its own target
  ErrorRange sum, rms;                      // the measured model by both rules
  ErrorRange own_sum, own_rms;              // r g + f alone, which is against its own target
  double linear = 0;
  double start = 0, start_predicted = 0;  // distance of the start, measured and from the tables
};

// How far predictions are off: root mean square of the log of predicted over measured.
struct Score {
  double off = 0;   // log
  double bias = 0;  // mean log: above 0 too much is predicted
  int merges = 0;
  int within = 0;         // inside the predicted interval (measured model only)
  double factor() const;  // exp(off): "typically wrong by a factor of"
};

struct Judgement {
  std::vector<Judged> held_out;
  std::vector<Judged> fitted;  // what the fit has seen, for comparison
  Score sum, rms, linear;      // over held_out
  Combine rule = Combine::kSum;
  bool chosen = false;  // false: nothing was held out, and `sum` is a bound
  // Does the linear model predict held-out merges better than the rule chosen?
  bool linear_is_better() const { return chosen && linear.off < best().off; }
  const Score& best() const { return rule == Combine::kSum ? sum : rms; }
};

// Compares both rules and the linear model on the merges that no fit has seen. The rule with the
// smaller error is chosen.
absl::StatusOr<Judgement> Judge(const Measurements& m, const MeasuredModel& sum,
                                const MeasuredModel& rms, const LinearModel& linear);

// The measured model's prediction for one pilot after `updates` each.
ErrorRange PredictPilot(const MeasuredModel& model, Combine combine, const Pilot& pilot,
                        std::int64_t updates);

// The same against its own target: what the merge itself adds.
ErrorRange PredictOwn(const MeasuredModel& model, Combine combine, const Pilot& pilot,
                      std::int64_t updates);

}  // namespace mergeplan::calibrate
