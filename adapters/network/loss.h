#pragma once

#include <string_view>

#include "absl/status/statusor.h"
#include "planner/schedule/schedule.h"

namespace mergeplan::network {

// In what the squared error of a jump is measured. With e = |z^ - z*|^2 in the state where the
// jump lands (l, from level j; the schedule's coordinates), D = D(l, j) and n_j = alpha_j^2 +
// sigma_j^2, all are multiples of it:
//   z        e
//   x0       (sigma_j / D)^2 e
//   epsilon  (alpha_j / D)^2 e    = x0 * SNR
//   v        (n_j / D)^2 e        = x0 * n_j^2 / sigma_j^2; x0 * (SNR + 1) where n_j = 1
enum class LossSpace { kZ, kX0, kEpsilon, kV };
// "z", "x0", "epsilon", "v".
std::string_view ToString(LossSpace space);
absl::StatusOr<LossSpace> ParseLossSpace(std::string_view word);

// Weightings over levels, SNR = alpha_j^2 / sigma_j^2. They are stated for the x0 error, as in the
// literature (Salimans and Ho 2022 for the first three, Hang et al. 2023 for the last), and what
// multiplies the error of another prediction is the weight over the factor above: min-SNR-gamma
// becomes min(SNR, gamma) / SNR for epsilon and min(SNR, gamma) / (SNR + 1) for v. So with a
// weighting the loss in x0, epsilon and v is the same number; the space tells only where the
// weighting is uniform. Of z, which has no such convention, the weight multiplies e itself.
enum class Weighting { kUniform, kSnr, kTruncatedSnr, kMinSnrGamma };
// "uniform", "snr", "truncated-snr" (max(SNR, 1)), "min-snr-gamma".
std::string_view ToString(Weighting weighting);
absl::StatusOr<Weighting> ParseWeighting(std::string_view word);

struct LossOptions {
  LossSpace space = LossSpace::kZ;
  Weighting weighting = Weighting::kUniform;
  double gamma = 5;  // of min-snr-gamma

  bool operator==(const LossOptions&) const = default;
};

// What e is multiplied with for the jump from level `from` to `to`. INVALID_ARGUMENT where that is
// 0 or not finite (at a level without signal: epsilon, snr, min-snr-gamma), which says what to use.
absl::StatusOr<double> LossFactor(const LossOptions& options, const Schedule& schedule, int from,
                                  int to);

}  // namespace mergeplan::network
