#pragma once

#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace mergeplan {

// Rounds to float32: diffusers keeps its tables in single precision, and to agree with it every
// step of the arithmetic has to be rounded where it rounds.
inline double Single(double x) { return static_cast<double>(static_cast<float>(x)); }

// `count` numbers from `first` to `last` as torch.linspace gives them in float32 (from both ends
// towards the middle, multiply and add fused). `count` = 1 gives `first`.
std::vector<double> SingleLinspace(double first, double last, int count);
// The same as numpy.linspace gives them in float64. With `endpoint` false `last` is left out.
std::vector<double> DoubleLinspace(double first, double last, int count, bool endpoint = true);

enum class TablePrecision { kSingle, kDouble };

// The betas of a schedule by its name in diffusers, `count` of them:
//   linear             from beta_start to beta_end
//   scaled_linear      the square of a line between the square roots
//   squaredcos_cap_v2  1 - f((i+1)/n)/f(i/n), at most 0.999, f(t) = cos^2(pi/2 (t+0.008)/1.008)
//   exp, laplace       the same with other f
//   sigmoid            sigmoid(line from -6 to 6) (beta_end - beta_start) + beta_start
// INVALID_ARGUMENT for another name.
absl::StatusOr<std::vector<double>> MakeBetas(std::string_view schedule, double beta_start,
                                              double beta_end, int count, TablePrecision precision);

// Running products of 1 - beta, accumulated in float64 and stored in the given precision.
std::vector<double> CumulativeAlphas(absl::Span<const double> betas, TablePrecision precision);

// Moves and scales sqrt(alphas_cumprod) so that its last entry is exactly 0 and the first stays:
// "zero terminal SNR" (Lin et al. 2023, algorithm 1).
std::vector<double> RescaleToZeroTerminalSnr(absl::Span<const double> alphas_cumprod,
                                             TablePrecision precision);
// The same for betas (float32): the betas of the rescaled table.
std::vector<double> RescaleBetasToZeroTerminalSnr(absl::Span<const double> betas);

}  // namespace mergeplan
