#include "planner/schedule/sigmas.h"

#include <algorithm>
#include <cmath>
#include <unsupported/Eigen/SpecialFunctions>

#include "absl/status/status.h"
#include "absl/strings/str_format.h"
#include "planner/schedule/beta_tables.h"

namespace mergeplan {

absl::StatusOr<std::vector<double>> SigmasOfTable(absl::Span<const double> alphas_cumprod) {
  std::vector<double> sigmas(alphas_cumprod.size());
  for (size_t i = 0; i < sigmas.size(); ++i) {
    const double a = alphas_cumprod[i];
    sigmas[i] = Single(std::sqrt(Single(Single(1 - a) / a)));
    if (!(sigmas[i] > 0) || !std::isfinite(sigmas[i])) {
      return absl::InvalidArgumentError(absl::StrFormat(
          "alphas_cumprod is %g at timestep %d, expected a number between 0 and 1 there", a, i));
    }
  }
  return sigmas;
}

std::vector<double> KarrasSigmas(double sigma_max, double sigma_min, double rho, int count) {
  const double top = std::pow(sigma_max, 1 / rho);
  const double bottom = std::pow(sigma_min, 1 / rho);
  std::vector<double> sigmas = DoubleLinspace(0, 1, count);
  for (double& x : sigmas) x = std::pow(top + x * (bottom - top), rho);
  return sigmas;
}

std::vector<double> ExponentialSigmas(double sigma_max, double sigma_min, int count) {
  std::vector<double> sigmas = DoubleLinspace(std::log(sigma_max), std::log(sigma_min), count);
  for (double& x : sigmas) x = std::exp(x);
  return sigmas;
}

std::vector<double> BetaSigmas(double sigma_max, double sigma_min, int count) {
  std::vector<double> sigmas = DoubleLinspace(0, 1, count);
  for (double& x : sigmas) {
    x = sigma_min + SymmetricBetaQuantile(1 - x, 0.6) * (sigma_max - sigma_min);
  }
  return sigmas;
}

double SymmetricBetaQuantile(double p, double a) {
  if (p > 0.5) return 1 - SymmetricBetaQuantile(1 - p, a);
  if (p <= 0) return 0;
  double low = 0;
  double high = 0.5;
  for (;;) {
    const double middle = low + (high - low) / 2;
    if (middle <= low || middle >= high) return middle;
    (Eigen::numext::betainc(a, a, middle) < p ? low : high) = middle;
  }
}

double Interpolate(absl::Span<const double> table, double x) {
  const double last = static_cast<double>(table.size() - 1);
  if (!(x > 0)) return table.front();
  if (x >= last) return table.back();
  const auto i = static_cast<size_t>(x);
  return (table[i + 1] - table[i]) * (x - static_cast<double>(i)) + table[i];
}

double SigmaToTimestep(double sigma, absl::Span<const double> log_sigmas) {
  const double log_sigma = std::log(std::max(sigma, 1e-10));
  if (log_sigmas.size() < 2) return 0;
  const auto above = std::upper_bound(log_sigmas.begin(), log_sigmas.end(), log_sigma);
  const auto count = static_cast<size_t>(above - log_sigmas.begin());
  const size_t low = std::min(count == 0 ? 0 : count - 1, log_sigmas.size() - 2);
  const double width = log_sigmas[low] - log_sigmas[low + 1];
  double w = width == 0 ? 0.0 : (log_sigmas[low] - log_sigma) / width;
  w = std::clamp(w, 0.0, 1.0);
  return (1 - w) * static_cast<double>(low) + w * static_cast<double>(low + 1);
}

}  // namespace mergeplan
