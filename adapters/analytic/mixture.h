#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "planner/mixture/draw.h"
#include "planner/mixture/mixture.h"
#include "planner/mixture/trajectory.h"
#include "planner/schedule/schedule.h"
#include "planner/spectrum/spectrum.h"

namespace mergeplan {

// The teacher whose truth is known for data with several modes: data ~ a Gaussian mixture, read
// from mixture.toml. It works in the data's own axes, not centred: level t of a schedule holds
// alpha_t x_0 + sigma_t eps in the schedule's coordinates (x_0 native = data_scale x_0, see
// Schedule), as MixtureTrajectory has it.
//
// What it knows: Along(schedule) gives steps, composites, their derivatives and draws at a level;
// MomentSpectrum the Gaussian that plans are made for.
class MixtureTeacher {
 public:
  // Reads a mixture.toml with its .npz. Errors of ReadMixture.
  static absl::StatusOr<MixtureTeacher> Load(const std::string& path);

  const std::string& path() const { return path_; }
  // Of the TOML, which holds the arrays' hash.
  const std::string& sha256() const { return sha256_; }
  const GaussianMixture& mixture() const { return mixture_; }
  int dimensions() const { return mixture_.dimensions(); }
  int components() const { return mixture_.components(); }

  // The teacher's steps along a schedule. Errors of MixtureTrajectory::Create, naming the file.
  absl::StatusOr<MixtureTrajectory> Along(const Schedule& schedule) const;
  // The Gaussian with the same mean and covariance. Errors of MixtureSpectrum, naming the file.
  absl::StatusOr<Spectrum> MomentSpectrum() const;

 private:
  MixtureTeacher(std::string path, std::string sha256, GaussianMixture mixture)
      : path_(std::move(path)), sha256_(std::move(sha256)), mixture_(std::move(mixture)) {}
  absl::Status Named(const absl::Status& status) const;

  std::string path_, sha256_;
  GaussianMixture mixture_;
};

// Rows first_row .. of the stream as states at level t of the trajectory, rows x d, drawn from the
// law at that level itself (see DrawRows).
void DrawLevel(const MixtureTrajectory& trajectory, int t, DrawStream stream,
               std::uint64_t first_row, std::size_t rows, double* z);

}  // namespace mergeplan
