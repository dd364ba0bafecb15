#include "adapters/network/loss.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "absl/strings/str_cat.h"

namespace mergeplan::network {

std::string_view ToString(LossSpace space) {
  switch (space) {
    case LossSpace::kZ:
      return "z";
    case LossSpace::kX0:
      return "x0";
    case LossSpace::kEpsilon:
      return "epsilon";
    case LossSpace::kV:
      break;
  }
  return "v";
}

absl::StatusOr<LossSpace> ParseLossSpace(std::string_view word) {
  for (const LossSpace space :
       {LossSpace::kZ, LossSpace::kX0, LossSpace::kEpsilon, LossSpace::kV}) {
    if (word == ToString(space)) return space;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("a loss in '", std::string(word), "' is unknown, expected z, x0, epsilon or v"));
}

std::string_view ToString(Weighting weighting) {
  switch (weighting) {
    case Weighting::kUniform:
      return "uniform";
    case Weighting::kSnr:
      return "snr";
    case Weighting::kTruncatedSnr:
      return "truncated-snr";
    case Weighting::kMinSnrGamma:
      break;
  }
  return "min-snr-gamma";
}

absl::StatusOr<Weighting> ParseWeighting(std::string_view word) {
  for (const Weighting weighting :
       {Weighting::kUniform, Weighting::kSnr, Weighting::kTruncatedSnr, Weighting::kMinSnrGamma}) {
    if (word == ToString(weighting)) return weighting;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("weighting '", std::string(word),
                   "' is unknown, expected uniform, snr, truncated-snr or min-snr-gamma"));
}

absl::StatusOr<double> LossFactor(const LossOptions& options, const Schedule& schedule, int from,
                                  int to) {
  if (options.weighting == Weighting::kMinSnrGamma &&
      !(options.gamma > 0 && std::isfinite(options.gamma))) {
    return absl::InvalidArgumentError(
        absl::StrCat("min-snr-gamma: gamma is ", options.gamma, ", expected a positive number"));
  }
  const double alpha = schedule.alpha[from], sigma = schedule.sigma[from];
  const double D = SignalNoiseDeterminant(schedule, to, from);
  const double snr = alpha / sigma * (alpha / sigma);
  const double x0 = sigma / D * (sigma / D);
  double factor = 1;
  switch (options.weighting) {
    case Weighting::kUniform:
      switch (options.space) {
        case LossSpace::kZ:
          break;
        case LossSpace::kX0:
          factor = x0;
          break;
        case LossSpace::kEpsilon:
          factor = alpha / D * (alpha / D);
          break;
        case LossSpace::kV: {
          const double n = alpha * alpha + sigma * sigma;
          factor = n / D * (n / D);
          break;
        }
      }
      break;
    case Weighting::kSnr:
      factor = snr;
      break;
    case Weighting::kTruncatedSnr:
      factor = std::max(snr, 1.0);
      break;
    case Weighting::kMinSnrGamma:
      factor = std::min(snr, options.gamma);
      break;
  }
  if (options.weighting != Weighting::kUniform && options.space != LossSpace::kZ) factor *= x0;
  if (!(factor > 0) || !std::isfinite(factor)) {
    return absl::InvalidArgumentError(
        absl::StrCat("the loss in ", std::string(ToString(options.space)), " with weighting ",
                     std::string(ToString(options.weighting)), " has the factor ", factor,
                     " at level ", from, " (alpha ", alpha, ", sigma ", sigma,
                     "), expected a positive number; use x0 or v, with uniform or truncated-snr"));
  }
  return factor;
}

}  // namespace mergeplan::network
