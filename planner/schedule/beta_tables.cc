#include "planner/schedule/beta_tables.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace mergeplan {
namespace {

double Round(double x, TablePrecision precision) {
  return precision == TablePrecision::kSingle ? Single(x) : x;
}

double CosineAlphaBar(double t) {
  const double c = std::cos((t + 0.008) / 1.008 * std::numbers::pi / 2);
  return c * c;
}

double ExponentialAlphaBar(double t) { return std::exp(-12.0 * t); }

double LaplaceAlphaBar(double t) {
  const double log_snr =
      -0.5 * std::copysign(1.0, 0.5 - t) * std::log(1 - 2 * std::abs(0.5 - t) + 1e-6);
  const double snr = std::exp(log_snr);
  return std::sqrt(snr / (1 + snr));
}

// Betas of a curve alpha_bar(t), t in [0, 1].
std::vector<double> BetasOfCurve(double (*alpha_bar)(double), int count, TablePrecision precision) {
  std::vector<double> betas(count);
  for (int i = 0; i < count; ++i) {
    const double here = alpha_bar(static_cast<double>(i) / count);
    const double next = alpha_bar(static_cast<double>(i + 1) / count);
    betas[i] = Round(std::min(1 - next / here, 0.999), precision);
  }
  return betas;
}

std::vector<double> Line(double first, double last, int count, TablePrecision precision) {
  return precision == TablePrecision::kSingle ? SingleLinspace(first, last, count)
                                              : DoubleLinspace(first, last, count);
}

}  // namespace

std::vector<double> SingleLinspace(double first, double last, int count) {
  std::vector<double> line(std::max(count, 0));
  if (count == 1) {
    line[0] = Single(first);
    return line;
  }
  const float a = static_cast<float>(first);
  const float b = static_cast<float>(last);
  const float step = count > 1 ? (b - a) / static_cast<float>(count - 1) : 0.0f;
  for (int i = 0; i < count; ++i) {
    line[i] = i < count / 2 ? std::fma(step, static_cast<float>(i), a)
                            : std::fma(-step, static_cast<float>(count - i - 1), b);
  }
  return line;
}

std::vector<double> DoubleLinspace(double first, double last, int count, bool endpoint) {
  std::vector<double> line(std::max(count, 0));
  const int parts = endpoint ? count - 1 : count;
  const double step = parts > 0 ? (last - first) / parts : 0.0;
  for (int i = 0; i < count; ++i) line[i] = i * step + first;
  if (endpoint && count > 1) line.back() = last;
  return line;
}

absl::StatusOr<std::vector<double>> MakeBetas(std::string_view schedule, double beta_start,
                                              double beta_end, int count,
                                              TablePrecision precision) {
  if (schedule == "linear") return Line(beta_start, beta_end, count, precision);
  if (schedule == "scaled_linear") {
    std::vector<double> betas = Line(std::sqrt(beta_start), std::sqrt(beta_end), count, precision);
    for (double& beta : betas) beta = Round(beta * beta, precision);
    return betas;
  }
  if (schedule == "squaredcos_cap_v2") return BetasOfCurve(CosineAlphaBar, count, precision);
  if (schedule == "exp") return BetasOfCurve(ExponentialAlphaBar, count, precision);
  if (schedule == "laplace") return BetasOfCurve(LaplaceAlphaBar, count, precision);
  if (schedule == "sigmoid") {
    std::vector<double> betas = Line(-6, 6, count, precision);
    for (double& beta : betas) {
      const double s = Round(1 / (1 + std::exp(-beta)), precision);
      const double scaled = Round(s * Round(beta_end - beta_start, precision), precision);
      beta = Round(scaled + Round(beta_start, precision), precision);
    }
    return betas;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("unknown beta schedule \"", std::string(schedule), "\""));
}

std::vector<double> CumulativeAlphas(absl::Span<const double> betas, TablePrecision precision) {
  std::vector<double> products(betas.size());
  double product = 1;
  for (size_t i = 0; i < betas.size(); ++i) {
    product *= Round(1 - betas[i], precision);
    products[i] = Round(product, precision);
  }
  return products;
}

std::vector<double> RescaleToZeroTerminalSnr(absl::Span<const double> alphas_cumprod,
                                             TablePrecision precision) {
  std::vector<double> table(alphas_cumprod.begin(), alphas_cumprod.end());
  for (double& x : table) x = Round(std::sqrt(x), precision);
  const double first = table.front();
  const double last = table.back();
  const double scale = Round(first / Round(first - last, precision), precision);
  for (double& x : table) {
    x = Round(Round(x - last, precision) * scale, precision);
    x = Round(x * x, precision);
  }
  return table;
}

std::vector<double> RescaleBetasToZeroTerminalSnr(absl::Span<const double> betas) {
  const TablePrecision single = TablePrecision::kSingle;
  const std::vector<double> table =
      RescaleToZeroTerminalSnr(CumulativeAlphas(betas, single), single);
  std::vector<double> rescaled(table.size());
  for (size_t i = 0; i < table.size(); ++i) {
    rescaled[i] = Single(1 - Single(i == 0 ? table[0] : table[i] / table[i - 1]));
  }
  return rescaled;
}

}  // namespace mergeplan
