#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "planner/spectrum/spectrum.h"

namespace mergeplan::python {

// Variances as Python has them: of data, in one of its bases, or given as they are.
struct SpectrumValue {
  std::optional<Spectrum> of_data;
  std::string basis;  // a name of of_data's bases, or "given"
  Basis given;        // variances only

  const Basis& chosen() const;
};

// The leading principal directions of data, where there are any, as Python has them.
struct LeadingDirections {
  Basis basis;                  // k axes
  std::vector<double> errors;   // k
  std::vector<double> vectors;  // k x d
  double share = 0;
};
std::optional<LeadingDirections> LeadingOf(const Spectrum& spectrum);

// `basis` "auto": the recommended one. NOT_FOUND names the ones there are.
absl::StatusOr<SpectrumValue> InBasis(Spectrum spectrum, const std::string& basis);
// INVALID_ARGUMENT unless all are finite and >= 0 and there is at least one.
absl::StatusOr<SpectrumValue> Given(std::vector<double> variances);

}  // namespace mergeplan::python
