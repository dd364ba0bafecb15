#include "adapters/python/src/spectrum_value.h"

#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "planner/base/status_macros.h"

namespace mergeplan::python {

const Basis& SpectrumValue::chosen() const {
  // InBasis has looked: it is there.
  return of_data ? **of_data->FindBasis(basis) : given;
}

std::optional<LeadingDirections> LeadingOf(const Spectrum& spectrum) {
  if (!spectrum.has_leading()) return std::nullopt;
  return LeadingDirections{spectrum.leading, spectrum.leading_errors, spectrum.leading_vectors,
                           spectrum.LeadingShare()};
}

absl::StatusOr<SpectrumValue> InBasis(Spectrum spectrum, const std::string& basis) {
  SpectrumValue out;
  out.basis = basis == "auto" ? spectrum.recommended_basis : basis;
  MP_RETURN_IF_ERROR(spectrum.FindBasis(out.basis).status());
  out.of_data = std::move(spectrum);
  return out;
}

absl::StatusOr<SpectrumValue> Given(std::vector<double> variances) {
  if (variances.empty()) {
    return absl::InvalidArgumentError("variances: there are none, expected one or more");
  }
  for (size_t k = 0; k < variances.size(); ++k) {
    if (!std::isfinite(variances[k]) || variances[k] < 0) {
      return absl::InvalidArgumentError(absl::StrCat("variances: value ", k,
                                                     " (counted from 0) is ", variances[k],
                                                     ", expected a finite number >= 0"));
    }
  }
  SpectrumValue out;
  out.basis = out.given.name = "given";
  out.given.variances = std::move(variances);
  SummarizeVariances(out.given);
  return out;
}

}  // namespace mergeplan::python
