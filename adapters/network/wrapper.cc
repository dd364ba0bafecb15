#include "adapters/network/wrapper.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "planner/base/status_macros.h"

namespace mergeplan::network {
namespace {

constexpr double kNoSignal = 1e-6;

OutputMix MixAt(const Signature& signature, const Schedule& schedule, int from) {
  const double scale = schedule.data_scale;
  switch (signature.prediction) {
    case Prediction::kEpsilon:
      return {1, 0};
    case Prediction::kSample:
      return {0, scale};
    case Prediction::kVPrediction: {
      // alpha/sigma of the native data, times sigma_data: the tangent of the angle.
      const double ratio = signature.sigma_data / scale;
      const double a = schedule.alpha[from] * ratio, s = schedule.sigma[from];
      const double norm = std::hypot(a, s);
      return {a / norm, -s / norm / ratio};
    }
    case Prediction::kFlow:
      return {1, -scale};
  }
  return {1, 0};
}

}  // namespace

absl::StatusOr<OutputMix> OutputAt(const Signature& signature, const Schedule& schedule,
                                   int level) {
  const OutputMix mix = MixAt(signature, schedule, level);
  const double alpha = schedule.alpha[level], sigma = schedule.sigma[level];
  if (!(std::abs(alpha * mix.noise - sigma * mix.data) > kNoSignal * sigma)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "level ", level, " has alpha ", alpha, " and sigma ", sigma,
        " (zero terminal SNR): a network that predicts ",
        std::string(ToString(signature.prediction)),
        " says nothing about x0 there; use one that predicts v_prediction or sample, or a schedule "
        "whose noisiest level keeps some signal"));
  }
  return mix;
}

absl::StatusOr<Landing> LandingAt(const Signature& signature, const Schedule& schedule, int from,
                                  int to) {
  MP_ASSIGN_OR_RETURN(const OutputMix mix, OutputAt(signature, schedule, from));
  const double whole = schedule.alpha[from] * mix.noise - schedule.sigma[from] * mix.data;
  return Landing{(schedule.alpha[to] * mix.noise - schedule.sigma[to] * mix.data) / whole,
                 -SignalNoiseDeterminant(schedule, to, from) / whole};
}

absl::StatusOr<Landing> EstimateAt(const Signature& signature, const Schedule& schedule, int from) {
  MP_ASSIGN_OR_RETURN(const OutputMix mix, OutputAt(signature, schedule, from));
  const double whole = schedule.alpha[from] * mix.noise - schedule.sigma[from] * mix.data;
  return Landing{mix.noise / whole, -schedule.sigma[from] / whole};
}

double EstimatePerLanding(const Schedule& schedule, int from, int to) {
  return schedule.sigma[from] / SignalNoiseDeterminant(schedule, to, from);
}

}  // namespace mergeplan::network
