#include "planner/spectrum/spectrum_check.h"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "planner/base/status_macros.h"
#include "planner/base/utf8.h"
#include "planner/spectrum/dct.h"
#include "planner/spectrum/shrinkage.h"

namespace mergeplan {
namespace {

absl::Status Invalid(const std::string& what) { return absl::InvalidArgumentError(what); }

absl::Status CheckArray(const std::string& name, const std::vector<double>& values,
                        std::size_t size) {
  if (values.size() != size) {
    return Invalid(
        absl::StrCat("array ", name, " holds ", values.size(), " numbers; expected ", size));
  }
  for (std::size_t i = 0; i < size; ++i) {
    if (!std::isfinite(values[i])) {
      return Invalid(absl::StrCat("array ", name, " is not finite at index ", i));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckBasis(const Basis& basis, const std::string& name, std::size_t d) {
  const std::string prefix = absl::StrCat("basis.", name, ".");
  if (basis.name != name) return Invalid(absl::StrCat(prefix, "name is \"", basis.name, "\""));
  MP_RETURN_IF_ERROR(CheckArray(absl::StrCat(name, "_variances"), basis.variances, d));
  MP_RETURN_IF_ERROR(CheckArray(absl::StrCat(name, "_variances_low"), basis.variances_low, d));
  MP_RETURN_IF_ERROR(CheckArray(absl::StrCat(name, "_variances_high"), basis.variances_high, d));
  for (const auto& [what, values] :
       {std::pair{"_skewness", &basis.skewness}, {"_kurtosis", &basis.kurtosis}}) {
    if (!values->empty()) MP_RETURN_IF_ERROR(CheckArray(absl::StrCat(name, what), *values, d));
  }
  if (basis.skewness.empty() != basis.kurtosis.empty()) {
    return Invalid(
        absl::StrCat("array ", name, "_skewness and ", name,
                     "_kurtosis: one is there without the other, expected both or none"));
  }
  for (std::size_t i = 0; i < d; ++i) {
    if (!(0 <= basis.variances_low[i] && basis.variances_low[i] <= basis.variances[i] &&
          basis.variances[i] <= basis.variances_high[i])) {
      return Invalid(absl::StrCat("array ", name, "_variances at index ", i, " is ",
                                  basis.variances[i],
                                  "; expected 0 <= low <= variance <= high, the interval is [",
                                  basis.variances_low[i], ", ", basis.variances_high[i], "]"));
    }
  }
  Basis expected = basis;
  SummarizeVariances(expected);
  if (basis.regime != expected.regime) {
    return Invalid(absl::StrCat(prefix, "regime is \"", std::string(ToString(basis.regime)),
                                "\", but the variances say \"",
                                std::string(ToString(expected.regime)), "\""));
  }
  if (std::abs(basis.fraction_above_one - expected.fraction_above_one) > 1e-12) {
    return Invalid(absl::StrCat(prefix, "fraction_above_one is ", basis.fraction_above_one,
                                ", but the variances say ", expected.fraction_above_one));
  }
  if (!(basis.off_diagonal_energy >= 0 && basis.off_diagonal_energy <= 1)) {
    return Invalid(absl::StrCat(prefix, "off_diagonal_energy is ", basis.off_diagonal_energy,
                                "; expected a share between 0 and 1"));
  }
  if (basis.interval != "fourth-moment" && basis.interval != "gaussian" &&
      basis.interval != "bootstrap") {
    return Invalid(absl::StrCat(prefix, "interval is \"", basis.interval,
                                "\"; expected \"fourth-moment\", \"gaussian\" or \"bootstrap\""));
  }
  return absl::OkStatus();
}

absl::Status CheckScaling(const Scaling& scaling) {
  MP_ASSIGN_OR_RETURN(const Scaling expected, ParseScaling(scaling.text));
  if (scaling != expected) {
    return Invalid(absl::StrCat("scaling.multiply and add are ", scaling.multiply, " and ",
                                scaling.add, ", but \"", scaling.text, "\" means ",
                                expected.multiply, " and ", expected.add));
  }
  return absl::OkStatus();
}

absl::Status CheckParts(const Spectrum& spectrum) {
  std::vector<SpectrumPart> seen;
  for (const SpectrumPart& part : spectrum.parts) {
    for (const std::string* text : {&part.source, &part.sha256, &part.array}) {
      if (!IsUtf8(*text)) return Invalid("data.part is not UTF-8, expected it for TOML");
    }
    if (part.of < 1 || part.of > kMostParts) {
      return Invalid(absl::StrCat("data.part.of is ", part.of, "; expected 1..", kMostParts));
    }
    const auto numbers = ParsePartNumbers(PartNumbersText(part), part.of);
    if (!numbers.ok()) {
      return Invalid(absl::StrCat("data.part.numbers: ", numbers.status().message()));
    }
    if (const absl::Status apart = AddParts({part}, seen); !apart.ok()) {
      return Invalid(absl::StrCat("data.part: ", apart.message()));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckSpectrum(const Spectrum& spectrum) {
  const std::size_t d = spectrum.mean.size();
  for (const auto& [key, text] : {std::pair{"data.source", &spectrum.source},
                                  {"data.sha256", &spectrum.source_sha256},
                                  {"basis.reason", &spectrum.recommended_basis_reason}}) {
    if (!IsUtf8(*text)) return Invalid(absl::StrCat(key, " is not UTF-8, expected it for TOML"));
  }
  std::size_t product = 1;
  for (const std::int64_t extent : spectrum.shape) {
    // Stops growing beyond d, so that it cannot overflow.
    product = extent <= 0                                      ? 0
              : product > d / static_cast<std::size_t>(extent) ? d + 1
                                                               : product * extent;
  }
  if (d == 0 || product != d) {
    return Invalid(absl::StrCat("data.shape is [", absl::StrJoin(spectrum.shape, ", "),
                                "], but the mean has ", d, " dimensions"));
  }
  for (const auto& [key, count] :
       {std::pair{"data.samples", spectrum.samples}, {"data.skipped", spectrum.skipped}}) {
    if (count < 0 || count > kMostSamples) {
      return Invalid(absl::StrCat(key, " is ", count, "; expected 0..", kMostSamples));
    }
  }
  MP_RETURN_IF_ERROR(CheckParts(spectrum));
  if (!(spectrum.confidence > 0 && spectrum.confidence < 1)) {
    return Invalid(absl::StrCat("basis.confidence is ", spectrum.confidence,
                                "; expected a number between 0 and 1"));
  }
  MP_RETURN_IF_ERROR(CheckScaling(spectrum.scaling));
  if (const absl::Status rule = CheckShrinkageRule(spectrum.shrinkage_rule); !rule.ok()) {
    return Invalid(absl::StrCat("shrinkage.rule: ", rule.message()));
  }
  if (!(spectrum.shrinkage >= 0 && spectrum.shrinkage <= 1) ||
      (spectrum.shrinkage_rule == "none" && spectrum.shrinkage != 0)) {
    return Invalid(absl::StrCat("shrinkage.intensity is ", spectrum.shrinkage, " by the rule \"",
                                spectrum.shrinkage_rule,
                                "\"; expected a number between 0 and 1, and 0 without a rule"));
  }
  MP_RETURN_IF_ERROR(CheckArray("mean", spectrum.mean, d));
  if (spectrum.has_covariance() || spectrum.has_dct() || spectrum.has_pca()) {
    MP_RETURN_IF_ERROR(CheckArray("covariance", spectrum.covariance, d * d));
  }
  MP_RETURN_IF_ERROR(CheckBasis(spectrum.diagonal, "diagonal", d));
  if (spectrum.has_dct()) {
    if (!SpatialAxesOf(spectrum.shape)) {
      return Invalid("basis.dct is there, but the samples have no spatial axes");
    }
    MP_RETURN_IF_ERROR(CheckBasis(spectrum.dct, "dct", d));
  } else if (spectrum.dct != Basis()) {
    return Invalid("basis.dct is there, but it has no variances");
  }
  if (spectrum.has_pca()) {
    MP_RETURN_IF_ERROR(CheckArray("vectors", spectrum.vectors, d * d));
    MP_RETURN_IF_ERROR(CheckBasis(spectrum.pca, "pca", d));
  } else if (spectrum.pca != Basis()) {
    return Invalid("basis.pca is there, but there are no principal directions");
  }
  if (spectrum.has_leading()) {
    const std::size_t k = spectrum.leading.variances.size();
    MP_RETURN_IF_ERROR(CheckArray("leading_vectors", spectrum.leading_vectors, k * d));
    MP_RETURN_IF_ERROR(CheckArray("leading_errors", spectrum.leading_errors, k));
    MP_RETURN_IF_ERROR(CheckBasis(spectrum.leading, "leading", k));
  } else if (spectrum.leading != Basis() || !spectrum.leading_errors.empty()) {
    return Invalid("basis.leading is there, but there are no leading directions");
  }
  if (const auto basis = spectrum.FindBasis(spectrum.recommended_basis); !basis.ok()) {
    return Invalid(absl::StrCat("basis.recommended: ", basis.status().message()));
  }
  return absl::OkStatus();
}

}  // namespace mergeplan
