#include "planner/spectrum/from_moments.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <new>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "planner/base/status_macros.h"
#include "planner/spectrum/finish.h"
#include "planner/spectrum/intervals.h"

namespace mergeplan {
namespace {

constexpr double kAgree = 1e-9;
// By how much moments may break the inequalities of Cauchy and Schwarz: those of single precision
// do so by rounding.
constexpr double kInequality = 1e-3;
// By how much the eigenvalues, those below zero taken as zero, may miss the trace.
constexpr double kTrace = 1e-6;

absl::Status CheckSize(const char* what, std::size_t found, std::size_t expected) {
  if (found == expected) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(what, " has ", found, " numbers, expected ", expected));
}

absl::Status CheckFinite(const char* what, const std::vector<double>& values, bool never_negative) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (!std::isfinite(values[i])) {
      return absl::InvalidArgumentError(
          absl::StrCat(what, " is ", values[i], " in dimension ", i, ", expected finite numbers"));
    }
    if (never_negative && values[i] < 0) {
      return absl::InvalidArgumentError(absl::StrCat(what, " is ", values[i], " in dimension ", i,
                                                     ", expected no number below 0"));
    }
  }
  return absl::OkStatus();
}

// n sum x^4 >= (sum x^2)^2 and (sum x^3)^2 <= sum x^2 sum x^4 hold for whatever samples there are.
absl::Status CheckPowers(const CentralMoments& moments) {
  const double n = static_cast<double>(moments.count);
  for (std::size_t i = 0; i < moments.m4.size(); ++i) {
    const double m2 = moments.m2[i], m3 = moments.m3[i], m4 = moments.m4[i];
    if (!(m2 > 0) || !std::isfinite(m4 / m2 / m2)) continue;
    if (n * (m4 / m2 / m2) < 1 - kInequality) {
      return absl::InvalidArgumentError(absl::StrCat(
          "m4 is ", m4, " in dimension ", i, ", expected at least m2^2 / count, ", m2 * (m2 / n),
          ": sums of fourth powers of the deviations from the mean, not divided by count"));
    }
    if (std::abs(m3) / std::sqrt(m2) > std::sqrt(m4) * (1 + kInequality)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "m3 is ", m3, " in dimension ", i, ", expected at most sqrt(m2 m4), ",
          std::sqrt(m2) * std::sqrt(m4),
          ", in size: sums of third powers of the deviations from the mean, not divided by count"));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckComoment(const CentralMoments& moments) {
  const std::size_t d = moments.mean.size();
  const std::vector<double>& c = moments.comoment;
  double largest = 0;
  for (std::size_t i = 0; i < d; ++i) {
    largest = std::max(largest, c[i * d + i]);
    if (std::abs(c[i * d + i] - moments.m2[i]) <= kAgree * moments.m2[i]) continue;
    return absl::InvalidArgumentError(absl::StrCat("comoment has ", c[i * d + i],
                                                   " on the diagonal in dimension ", i,
                                                   ", expected m2, ", moments.m2[i]));
  }
  for (std::size_t i = 0; i < d; ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      if (std::abs(c[i * d + j] - c[j * d + i]) <= kAgree * largest) continue;
      return absl::InvalidArgumentError(absl::StrCat(
          "comoment has ", c[i * d + j], " at (", i, ", ", j, ") and ", c[j * d + i], " at (", j,
          ", ", i, "), or numbers that are not finite; expected a symmetric matrix"));
    }
  }
  for (std::size_t i = 0; i < d; ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      const double most = std::sqrt(c[i * d + i]) * std::sqrt(c[j * d + j]);
      if (std::abs(c[i * d + j]) <= most * (1 + kInequality) + kAgree * largest) continue;
      return absl::InvalidArgumentError(
          absl::StrCat("comoment has ", c[i * d + j], " at (", i, ", ", j, "), expected at most ",
                       most, " in size, the root of the product of the diagonal's entries there"));
    }
  }
  return absl::OkStatus();
}

absl::Status Check(const CentralMoments& moments) {
  if (moments.count < 2 || moments.count > kMostSamples) {
    return absl::InvalidArgumentError(
        absl::StrCat("moments of ", moments.count, " samples, expected 2 to ", kMostSamples));
  }
  const std::size_t d = moments.mean.size();
  std::int64_t values = 1;
  for (const std::int64_t axis : moments.shape) {
    values = axis > 0 && values <= (std::int64_t{1} << 40) / axis ? values * axis : -1;
  }
  if (d == 0 || values != static_cast<std::int64_t>(d)) {
    return absl::InvalidArgumentError(absl::StrCat("mean has ", d, " numbers, the shape is [",
                                                   absl::StrJoin(moments.shape, ", "),
                                                   "], expected as many numbers as that has"));
  }
  MP_RETURN_IF_ERROR(CheckSize("m2", moments.m2.size(), d));
  const std::size_t shaped = moments.m3.empty() && moments.m4.empty() ? 0 : d;
  MP_RETURN_IF_ERROR(CheckSize("m3", moments.m3.size(), shaped));
  MP_RETURN_IF_ERROR(CheckSize("m4", moments.m4.size(), shaped));
  MP_RETURN_IF_ERROR(CheckFinite("mean", moments.mean, false));
  MP_RETURN_IF_ERROR(CheckFinite("m2", moments.m2, true));
  MP_RETURN_IF_ERROR(CheckFinite("m3", moments.m3, false));
  MP_RETURN_IF_ERROR(CheckFinite("m4", moments.m4, true));
  MP_RETURN_IF_ERROR(CheckPowers(moments));
  if (moments.comoment.empty()) return absl::OkStatus();
  MP_RETURN_IF_ERROR(CheckSize("comoment", moments.comoment.size(), d * d));
  return CheckComoment(moments);
}

absl::StatusOr<Spectrum> FromMoments(CentralMoments moments, const EstimateOptions& options) {
  MP_RETURN_IF_ERROR(CheckConfidence(options.confidence));
  MP_RETURN_IF_ERROR(Check(moments));
  const int most = moments.comoment.empty() ? kMaxDiagonalDimensions : kMaxDimensions;
  if (moments.mean.size() > static_cast<std::size_t>(most)) {
    return absl::InvalidArgumentError(
        absl::StrCat("moments of ", moments.mean.size(), " dimensions, expected at most ", most));
  }
  const double n = static_cast<double>(moments.count);
  Spectrum out;
  out.source = options.source;
  out.source_sha256 = options.source_sha256;
  out.parts = options.parts;
  out.shape = std::move(moments.shape);
  out.samples = moments.count;
  if (options.scaling) out.scaling = *options.scaling;
  out.confidence = options.confidence;
  out.mean = std::move(moments.mean);
  out.covariance = std::move(moments.comoment);
  for (double& value : out.covariance) value /= n - 1;
  for (std::size_t i = 0; i < moments.m3.size(); ++i) {
    const double m2 = moments.m2[i];
    const double skewness = moments.m3[i] / m2 / std::sqrt(m2) * std::sqrt(n);
    const double kurtosis = moments.m4[i] / m2 / m2 * n;
    const bool known = m2 > 0 && std::isfinite(skewness) && std::isfinite(kurtosis);
    out.diagonal.skewness.push_back(known ? skewness : 0.0);
    out.diagonal.kurtosis.push_back(known ? std::max(1.0, kurtosis) : 3.0);
  }
  EstimateOptions finish = options;
  if (!out.has_covariance()) {
    if (options.shrinkage_rule != "none") {
      return absl::InvalidArgumentError(
          "shrinkage needs the covariance, which a part lacks: analyze it without --diagonal-only");
    }
    finish.want_pca = finish.want_dct = false;
    for (const double m2 : moments.m2) out.diagonal.variances.push_back(m2 / (n - 1));
  }
  double trace = 0;
  for (std::size_t i = 0; i < out.mean.size() && out.has_covariance(); ++i) {
    trace += out.covariance[i * out.mean.size() + i];
  }
  MP_RETURN_IF_ERROR(FinishSpectrum(out, finish, nullptr));
  if (out.has_pca()) {
    const double found = std::accumulate(out.pca.variances.begin(), out.pca.variances.end(), 0.0);
    if (std::abs(found - trace) > kTrace * trace) {
      return absl::InvalidArgumentError(absl::StrCat(
          "comoment has directions of negative variance, ", (trace - found) / 2,
          " in all, expected sums of products of the samples' deviations, which have none"));
    }
  }
  return out;
}

}  // namespace

void AddMoments(const CentralMoments& b, CentralMoments& a) {
  if (b.m4.empty() || a.m4.empty()) {
    a.m3.clear();
    a.m4.clear();
  }
  if (b.comoment.empty()) a.comoment.clear();
  const std::size_t d = a.mean.size();
  const double na = static_cast<double>(a.count), nb = static_cast<double>(b.count);
  const double fa = na / (na + nb), fb = nb / (na + nb);
  std::vector<double> bridge(d);
  for (std::size_t i = 0; i < d; ++i) {
    const double delta = b.mean[i] - a.mean[i], square = delta * delta;
    bridge[i] = std::sqrt(na * fb) * delta;
    if (!a.m4.empty()) {
      a.m4[i] += b.m4[i] + square * square * na * fb * (fa * fa - fa * fb + fb * fb) +
                 6 * square * (fa * fa * b.m2[i] + fb * fb * a.m2[i]) +
                 4 * delta * (fa * b.m3[i] - fb * a.m3[i]);
      a.m3[i] += b.m3[i] + square * delta * na * fb * (fa - fb) +
                 3 * delta * (fa * b.m2[i] - fb * a.m2[i]);
    }
    a.m2[i] += b.m2[i] + square * na * fb;
    a.mean[i] += delta * fb;
  }
  for (std::size_t i = 0; !a.comoment.empty() && i < d; ++i) {
    for (std::size_t j = 0; j < d; ++j) {
      a.comoment[i * d + j] += b.comoment[i * d + j] + bridge[i] * bridge[j];
    }
  }
  a.count += b.count;
}

absl::StatusOr<Spectrum> SpectrumFromMoments(CentralMoments moments,
                                             const EstimateOptions& options) {
  try {
    return FromMoments(std::move(moments), options);
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError("out of memory for the covariance");
  }
}

}  // namespace mergeplan
