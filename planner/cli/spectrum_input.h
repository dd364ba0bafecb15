#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "planner/spectrum/spectrum.h"

namespace mergeplan::cli {

// The Gaussian with the moments of a mixture.toml.
absl::StatusOr<Spectrum> SpectrumOfMixture(const std::string& path);
// A .toml of either kind: a spectrum, or a mixture in place of the Gaussian with its moments.
// Errors of ReadSpectrum and ReadMixture.
absl::StatusOr<Spectrum> ReadSpectrumOrMixture(const std::string& path);

}  // namespace mergeplan::cli
