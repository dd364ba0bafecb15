#include "planner/cli/spectrum_input.h"

#include "planner/base/status_macros.h"
#include "planner/mixture/mixture_io.h"
#include "planner/mixture/moments.h"
#include "planner/runs/table_reader.h"

namespace mergeplan::cli {

absl::StatusOr<Spectrum> SpectrumOfMixture(const std::string& path) {
  MP_ASSIGN_OR_RETURN(const GaussianMixture mixture, ReadMixture(path));
  return MixtureSpectrum(mixture, path);
}

absl::StatusOr<Spectrum> ReadSpectrumOrMixture(const std::string& path) {
  const absl::StatusOr<toml::table> table = ParseTomlFile(path);
  if (table.ok() && (*table)["kind"].value<std::string>() == "mixture") {
    return SpectrumOfMixture(path);
  }
  return ReadSpectrum(path);
}

}  // namespace mergeplan::cli
