#include "planner/spectrum/merge.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <new>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "planner/base/status_macros.h"
#include "planner/spectrum/finish.h"
#include "planner/spectrum/intervals.h"

namespace mergeplan {
namespace {

// The intervals follow from the number of samples: a count that was changed by hand, which would
// give the part a wrong weight, does not fit them.
template <typename Refuse>
absl::Status CheckCount(const Spectrum& part, const Refuse& refuse) {
  if (part.diagonal.interval == "bootstrap") return absl::OkStatus();
  Basis expected = part.diagonal;
  SetIntervals(expected, part.samples, part.confidence);
  for (std::size_t i = 0; i < expected.variances.size(); ++i) {
    const double found = part.diagonal.variances_high[i], right = expected.variances_high[i];
    if (std::abs(found - right) <= 1e-6 * right) continue;
    return refuse(absl::StrCat("is of ", part.samples,
                               " samples by its file, but its intervals are those of another "
                               "number, expected an unchanged file: analyze the part again"));
  }
  return absl::OkStatus();
}

absl::Status CheckPart(const std::vector<Spectrum>& parts, std::size_t k) {
  const Spectrum& part = parts[k];
  const Spectrum& first = parts.front();
  const auto refuse = [&](const std::string& what) {
    return absl::InvalidArgumentError(absl::StrCat("part ", k + 1, " (", part.source, ") ", what));
  };
  if (part.samples < 2) {
    return refuse(absl::StrCat("is of ", part.samples, " samples, expected at least 2"));
  }
  if (part.shape != first.shape) {
    return refuse(absl::StrCat("is of samples of the shape [", absl::StrJoin(part.shape, ", "),
                               "], expected [", absl::StrJoin(first.shape, ", "),
                               "] as in the first"));
  }
  if (part.scaling != first.scaling) {
    return refuse(absl::StrCat("has the scaling \"", part.scaling.text, "\", expected \"",
                               first.scaling.text, "\" as in the first"));
  }
  if (part.shrinkage_rule != "none") {
    return refuse(
        absl::StrCat("was shrunk by ", part.shrinkage_rule,
                     ", expected the plain covariance: analyze the parts without --shrink"));
  }
  MP_RETURN_IF_ERROR(CheckCount(part, refuse));
  for (std::size_t j = 0; j < k; ++j) {
    if (parts[j].samples == part.samples && parts[j].mean == part.mean &&
        parts[j].covariance == part.covariance) {
      return refuse(absl::StrCat("is the same data as part ", j + 1, " (", parts[j].source,
                                 "), expected parts without common samples"));
    }
  }
  return absl::OkStatus();
}

// Moments of a growing set: sums of powers of the deviations from the mean.
struct Sums {
  double n = 0;
  std::vector<double> mean, m2, m3, m4, comoment;
};

Sums SumsOf(const Spectrum& part, bool with_shape, bool with_covariance) {
  Sums out;
  const std::size_t d = part.mean.size();
  out.n = static_cast<double>(part.samples);
  out.mean = part.mean;
  if (with_covariance) out.comoment = part.covariance;
  for (double& value : out.comoment) value *= out.n - 1;
  for (std::size_t i = 0; i < d; ++i) {
    const double m2 = part.diagonal.variances[i] * (out.n - 1);
    out.m2.push_back(m2);
    if (!with_shape) continue;
    out.m3.push_back(part.diagonal.skewness[i] * m2 * std::sqrt(m2 / out.n));
    out.m4.push_back(part.diagonal.kurtosis[i] * m2 * m2 / out.n);
  }
  return out;
}

// The pairwise formulas that MomentAccumulator uses, for two sets of any size.
void Add(const Sums& b, Sums& a, bool with_shape) {
  const std::size_t d = a.mean.size();
  const double n = a.n + b.n, fa = a.n / n, fb = b.n / n;
  std::vector<double> bridge(d);
  for (std::size_t i = 0; i < d; ++i) {
    const double delta = b.mean[i] - a.mean[i], square = delta * delta;
    bridge[i] = std::sqrt(a.n * fb) * delta;
    if (with_shape) {
      a.m4[i] += b.m4[i] + square * square * a.n * fb * (fa * fa - fa * fb + fb * fb) +
                 6 * square * (fa * fa * b.m2[i] + fb * fb * a.m2[i]) +
                 4 * delta * (fa * b.m3[i] - fb * a.m3[i]);
      a.m3[i] += b.m3[i] + square * delta * a.n * fb * (fa - fb) +
                 3 * delta * (fa * b.m2[i] - fb * a.m2[i]);
    }
    a.m2[i] += b.m2[i] + square * a.n * fb;
    a.mean[i] += delta * fb;
  }
  for (std::size_t i = 0; !a.comoment.empty() && i < d; ++i) {
    for (std::size_t j = 0; j < d; ++j) {
      a.comoment[i * d + j] += b.comoment[i * d + j] + bridge[i] * bridge[j];
    }
  }
  a.n = n;
}

absl::StatusOr<Spectrum> Merge(const std::vector<Spectrum>& parts, const EstimateOptions& options) {
  if (parts.empty()) return absl::InvalidArgumentError("there is no spectrum to merge");
  bool with_shape = true, with_covariance = true;
  for (std::size_t k = 0; k < parts.size(); ++k) {
    MP_RETURN_IF_ERROR(CheckPart(parts, k));
    with_shape = with_shape && !parts[k].diagonal.kurtosis.empty();
    with_covariance = with_covariance && parts[k].has_covariance();
  }
  Spectrum out;
  for (std::size_t k = 0; k < parts.size(); ++k) {
    if (const absl::Status apart = AddParts(parts[k].parts, out.parts); !apart.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat("part ", k + 1, " (", parts[k].source, "): ", apart.message()));
    }
  }
  MP_RETURN_IF_ERROR(MissingParts(out.parts).status());
  out.source = options.source;
  out.source_sha256 = options.source_sha256;
  out.shape = parts.front().shape;
  out.scaling = parts.front().scaling;
  out.confidence = options.confidence;
  Sums sums = SumsOf(parts.front(), with_shape, with_covariance);
  for (std::size_t k = 0; k < parts.size(); ++k) {
    if (parts[k].samples > kMostSamples - out.samples ||
        parts[k].skipped > kMostSamples - out.skipped) {
      return absl::InvalidArgumentError(absl::StrCat(
          "the parts up to ", k + 1, " (", parts[k].source, ") have more than ", kMostSamples,
          " samples together, which no double can count; a file of them is damaged"));
    }
    out.samples += parts[k].samples;
    out.skipped += parts[k].skipped;
    if (k > 0) Add(SumsOf(parts[k], with_shape, with_covariance), sums, with_shape);
  }
  out.mean = std::move(sums.mean);
  out.covariance = std::move(sums.comoment);
  for (double& value : out.covariance) value /= sums.n - 1;
  for (std::size_t i = 0; i < sums.m3.size(); ++i) {
    const double m2 = sums.m2[i];
    const double skewness = sums.m3[i] / m2 / std::sqrt(m2) * std::sqrt(sums.n);
    const double kurtosis = sums.m4[i] / m2 / m2 * sums.n;
    const bool known = m2 > 0 && std::isfinite(skewness) && std::isfinite(kurtosis);
    out.diagonal.skewness.push_back(known ? skewness : 0.0);
    out.diagonal.kurtosis.push_back(known ? std::max(1.0, kurtosis) : 3.0);
  }
  EstimateOptions finish = options;
  if (!with_covariance) {
    if (options.shrinkage_rule != "none") {
      return absl::InvalidArgumentError(
          "shrinkage needs the covariance, which a part lacks: analyze it without --diagonal-only");
    }
    finish.want_pca = finish.want_dct = false;
    for (const double m2 : sums.m2) out.diagonal.variances.push_back(m2 / (sums.n - 1));
  }
  MP_RETURN_IF_ERROR(FinishSpectrum(out, finish, nullptr));
  return out;
}

}  // namespace

absl::StatusOr<Spectrum> MergeSpectra(const std::vector<Spectrum>& parts,
                                      const EstimateOptions& options) {
  try {
    return Merge(parts, options);
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError("out of memory for the merged covariance");
  }
}

}  // namespace mergeplan
