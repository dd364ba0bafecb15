#include "planner/schedule/schedule.h"

#include <cmath>
#include <numbers>

#include "absl/strings/str_format.h"

namespace mergeplan {

bool Schedule::variance_preserving() const {
  for (size_t t = 0; t < alpha.size(); ++t) {
    if (std::abs(alpha[t] * alpha[t] + sigma[t] * sigma[t] - 1) > 1e-6) return false;
  }
  return true;
}

absl::Status ValidateSchedule(const Schedule& schedule) {
  const std::vector<double>& alpha = schedule.alpha;
  const std::vector<double>& sigma = schedule.sigma;
  if (alpha.size() != sigma.size() || alpha.size() < 2) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "schedule: alpha has %d values and sigma %d, expected the same number, T + 1 >= 2 of each",
        alpha.size(), sigma.size()));
  }
  for (size_t t = 0; t < alpha.size(); ++t) {
    const bool finite = std::isfinite(alpha[t]) && std::isfinite(sigma[t]);
    if (!finite || alpha[t] < 0 || sigma[t] < 0 || (t > 0 && sigma[t] == 0)) {
      return absl::InvalidArgumentError(
          absl::StrFormat("schedule: at t = %d alpha is %g and sigma %g, expected finite numbers, "
                          "alpha >= 0, and sigma %s 0",
                          t, alpha[t], sigma[t], t > 0 ? ">" : ">="));
    }
    if (t > 0 &&
        !(SignalNoiseDeterminant(schedule, static_cast<int>(t) - 1, static_cast<int>(t)) > 0)) {
      return absl::InvalidArgumentError(
          absl::StrFormat("schedule: alpha/sigma must fall strictly, but does not from t = %d "
                          "(%g/%g) to t = %d (%g/%g)",
                          t - 1, alpha[t - 1], sigma[t - 1], t, alpha[t], sigma[t]));
    }
  }
  return absl::OkStatus();
}

Schedule CosineSchedule(int teacher_steps) {
  Schedule s;
  s.spec = s.name = "cosine";
  for (int t = 0; t <= teacher_steps; ++t) {
    const double angle = std::numbers::pi / 2 * t / teacher_steps;
    s.alpha.push_back(t == teacher_steps ? 0.0 : std::cos(angle));
    s.sigma.push_back(t == teacher_steps ? 1.0 : std::sin(angle));
  }
  s.level_scale.assign(s.alpha.size(), 1.0);
  return s;
}

double SignalNoiseDeterminant(const Schedule& schedule, int a, int b) {
  const double product = schedule.alpha[b] * schedule.sigma[a];
  const double rounding = std::fma(-schedule.alpha[b], schedule.sigma[a], product);
  return std::fma(schedule.alpha[a], schedule.sigma[b], -product) + rounding;
}

}  // namespace mergeplan
