#include "adapters/analytic/mixture.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "planner/base/file.h"
#include "planner/base/status_macros.h"
#include "planner/mixture/mixture_io.h"
#include "planner/mixture/moments.h"

namespace mergeplan {

absl::StatusOr<MixtureTeacher> MixtureTeacher::Load(const std::string& path) {
  MP_ASSIGN_OR_RETURN(GaussianMixture mixture, ReadMixture(path));
  MP_ASSIGN_OR_RETURN(std::string sha256, Sha256OfFile(path));
  return MixtureTeacher(path, std::move(sha256), std::move(mixture));
}

absl::Status MixtureTeacher::Named(const absl::Status& status) const {
  return absl::Status(status.code(), absl::StrCat(path_, ": ", status.message()));
}

absl::StatusOr<MixtureTrajectory> MixtureTeacher::Along(const Schedule& schedule) const {
  absl::StatusOr<MixtureTrajectory> trajectory = MixtureTrajectory::Create(mixture_, schedule);
  if (!trajectory.ok()) return Named(trajectory.status());
  return trajectory;
}

absl::StatusOr<Spectrum> MixtureTeacher::MomentSpectrum() const {
  absl::StatusOr<Spectrum> spectrum = MixtureSpectrum(mixture_, path_);
  if (!spectrum.ok()) return Named(spectrum.status());
  return spectrum;
}

void DrawLevel(const MixtureTrajectory& trajectory, int t, DrawStream stream,
               std::uint64_t first_row, std::size_t rows, double* z) {
  DrawRows(trajectory.mixture(), trajectory.level(t), stream, first_row, rows, z, nullptr);
}

}  // namespace mergeplan
