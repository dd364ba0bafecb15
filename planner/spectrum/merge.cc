#include "planner/spectrum/merge.h"

#include <cmath>
#include <cstddef>
#include <new>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "planner/base/status_macros.h"
#include "planner/spectrum/from_moments.h"
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

CentralMoments MomentsOf(const Spectrum& part) {
  CentralMoments out;
  const double n = static_cast<double>(part.samples);
  out.count = part.samples;
  out.shape = part.shape;
  out.mean = part.mean;
  out.comoment = part.covariance;
  for (double& value : out.comoment) value *= n - 1;
  for (std::size_t i = 0; i < part.mean.size(); ++i) {
    const double m2 = part.diagonal.variances[i] * (n - 1);
    out.m2.push_back(m2);
    if (part.diagonal.kurtosis.empty()) continue;
    out.m3.push_back(part.diagonal.skewness[i] * m2 * std::sqrt(m2 / n));
    out.m4.push_back(part.diagonal.kurtosis[i] * m2 * m2 / n);
  }
  return out;
}

absl::StatusOr<Spectrum> Merge(const std::vector<Spectrum>& parts, const EstimateOptions& options) {
  if (parts.empty()) return absl::InvalidArgumentError("there is no spectrum to merge");
  EstimateOptions whole = options;
  whole.parts.clear();
  for (std::size_t k = 0; k < parts.size(); ++k) {
    MP_RETURN_IF_ERROR(CheckPart(parts, k));
    if (const absl::Status apart = AddParts(parts[k].parts, whole.parts); !apart.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat("part ", k + 1, " (", parts[k].source, "): ", apart.message()));
    }
  }
  MP_RETURN_IF_ERROR(MissingParts(whole.parts).status());
  whole.scaling = parts.front().scaling;
  CentralMoments moments = MomentsOf(parts.front());
  std::int64_t skipped = 0;
  for (std::size_t k = 0; k < parts.size(); ++k) {
    const std::int64_t before = k == 0 ? 0 : moments.count;
    if (parts[k].samples > kMostSamples - before || parts[k].skipped > kMostSamples - skipped) {
      return absl::InvalidArgumentError(absl::StrCat(
          "the parts up to ", k + 1, " (", parts[k].source, ") have more than ", kMostSamples,
          " samples together, which no double can count; a file of them is damaged"));
    }
    skipped += parts[k].skipped;
    if (k > 0) AddMoments(MomentsOf(parts[k]), moments);
  }
  MP_ASSIGN_OR_RETURN(Spectrum out, SpectrumFromMoments(std::move(moments), whole));
  out.skipped = skipped;
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
