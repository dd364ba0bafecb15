#include "planner/spectrum/shrinkage.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "absl/strings/str_cat.h"

namespace mergeplan {
namespace {

struct Sums {
  double trace = 0, square = 0;  // tr S, ||S||_F^2
};

Sums SumsOf(const Spectrum& spectrum, double factor) {
  Sums sums;
  for (const double variance : spectrum.diagonal.variances) sums.trace += factor * variance;
  for (const double value : spectrum.covariance) sums.square += factor * value * factor * value;
  return sums;
}

// Divided by n, as both papers have it, where the spectrum divides by n - 1.
double Biased(const Spectrum& spectrum) {
  const double n = static_cast<double>(spectrum.samples);
  return (n - 1) / n;
}

}  // namespace

double OasIntensity(const Spectrum& spectrum) {
  const double n = static_cast<double>(spectrum.samples), d = spectrum.dimensions();
  const Sums s = SumsOf(spectrum, Biased(spectrum));
  const double above = (1 - 2 / d) * s.square + s.trace * s.trace;
  const double below = (n + 1 - 2 / d) * (s.square - s.trace * s.trace / d);
  return below > 0 && above < below ? std::max(0.0, above / below) : 1.0;
}

double LedoitWolfIntensity(const Spectrum& spectrum, double fourth_norm) {
  const double n = static_cast<double>(spectrum.samples), d = spectrum.dimensions();
  const Sums s = SumsOf(spectrum, Biased(spectrum));
  const double distance = s.square - s.trace * s.trace / d;
  const double error = std::max(0.0, (fourth_norm - s.square) / n);
  return distance > 0 && error < distance ? error / distance : 1.0;
}

void Shrink(Spectrum& spectrum, const std::string& rule, double intensity) {
  const std::size_t d = spectrum.mean.size();
  double trace = 0;
  for (const double variance : spectrum.diagonal.variances) trace += variance;
  const double target = trace / static_cast<double>(d);
  const auto pull = [&](double& value) { value = (1 - intensity) * value + intensity * target; };
  double before = 0, after = 0;
  for (std::size_t i = 0; i < d; ++i) {
    for (std::size_t j = 0; j < d; ++j) {
      double& value = spectrum.covariance[i * d + j];
      before += value * value;
      i == j ? pull(value) : void(value *= 1 - intensity);
      after += value * value;
    }
  }
  for (double& error : spectrum.leading_errors) error *= 1 - intensity;
  for (Basis* basis : {&spectrum.diagonal, &spectrum.dct, &spectrum.pca, &spectrum.leading}) {
    for (std::vector<double>* values :
         {&basis->variances, &basis->variances_low, &basis->variances_high}) {
      for (double& value : *values) pull(value);
    }
    const double off = basis->off_diagonal_energy * before * (1 - intensity) * (1 - intensity);
    basis->off_diagonal_energy = after > 0 ? std::clamp(off / after, 0.0, 1.0) : 0.0;
  }
  spectrum.shrinkage_rule = rule;
  spectrum.shrinkage = intensity;
}

absl::Status CheckShrinkageRule(const std::string& rule) {
  if (rule == "none" || rule == "oas" || rule == "ledoit-wolf") return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("shrinkage \"", rule, "\" is unknown; expected none, oas or ledoit-wolf"));
}

}  // namespace mergeplan
