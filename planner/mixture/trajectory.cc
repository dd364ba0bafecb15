#include "planner/mixture/trajectory.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "absl/strings/str_cat.h"
#include "planner/base/memory.h"
#include "planner/base/status_macros.h"
#include "planner/mixture/kernels.h"
#include "planner/mixture/tiles.h"

namespace mergeplan {
namespace {

using mixture::kTileRows;

constexpr int kTiles = 4;

void Check(int first, int last, int steps, std::size_t have, std::size_t need) {
  if (1 <= first && first <= last && last <= steps && have >= need) [[likely]]
    return;
  std::fprintf(stderr,
               "MixtureTrajectory: steps %d..%d of %d with a scratch of %zu numbers; expected 1 <= "
               "first <= last <= T and %zu\n",
               first, last, steps, have, need);
  std::abort();
}

}  // namespace

absl::StatusOr<MixtureTrajectory> MixtureTrajectory::Create(const GaussianMixture& mixture,
                                                            const Schedule& schedule) {
  MP_RETURN_IF_ERROR(ValidateSchedule(schedule));
  const double T = schedule.steps(), K = mixture.components(), d = mixture.dimensions();
  double numbers = 4 * K * d;
  if (mixture.kind() == CovarianceKind::kLowRank) {
    numbers += 2 * K * d + (mixture.derived().axes.empty() ? 2 * K * d * mixture.rank() : 0);
  }
  MP_RETURN_IF_ERROR(CheckMemory("the steps of the mixture's teacher", 8 * numbers * T));
  GaussianMixture scaled = mixture;
  if (schedule.data_scale != 1) {
    MP_ASSIGN_OR_RETURN(scaled, mixture.Scaled(1 / schedule.data_scale));
  }
  MixtureTrajectory trajectory(std::move(scaled));
  for (int t = 0; t <= schedule.steps(); ++t) {
    trajectory.levels_.push_back({schedule.alpha[t], schedule.sigma[t]});
  }
  trajectory.steps_.reserve(schedule.steps());
  for (int t = 1; t <= schedule.steps(); ++t) {
    absl::StatusOr<MixtureStep> step = trajectory.Jump(t, trajectory.levels_[t - 1]);
    if (!step.ok()) {
      return absl::Status(step.status().code(),
                          absl::StrCat("level ", t, ": ", step.status().message()));
    }
    trajectory.steps_.push_back(*std::move(step));
  }
  return trajectory;
}

absl::StatusOr<MixtureStep> MixtureTrajectory::Jump(int t, NoiseLevel to) const {
  return MixtureStep::Create(mixture_, levels_[t], to);
}

std::size_t MixtureTrajectory::scratch_size() const { return steps_[0].scratch_size(); }

std::size_t MixtureTrajectory::vjp_scratch_size(int count) const {
  return scratch_size() + static_cast<std::size_t>(count) * kTileRows * dimensions();
}

namespace {

template <typename T>
void CompositeRows(const MixtureTrajectory& trajectory, int first, int last, const T* z,
                   std::size_t rows, T* out, absl::Span<double> scratch) {
  Check(first, last, trajectory.steps(), scratch.size(), trajectory.scratch_size());
  const std::size_t d = trajectory.dimensions(), tile = d * kTileRows;
  double* rest = scratch.data() + kTiles * tile;
  for (std::size_t row = 0; row < rows; row += kTileRows) {
    const std::size_t count = std::min(kTileRows, rows - row);
    double* state = scratch.data();
    double* next = state + tile;
    mixture::LoadTile(z + row * d, count, d, state);
    for (int t = last; t >= first; --t) {
      mixture::StepTile(trajectory.Step(t).tables(), state, next, rest);
      std::swap(state, next);
    }
    mixture::StoreTile(state, count, d, out + row * d);
  }
}

}  // namespace

void MixtureTrajectory::Composite(int first, int last, const double* z, std::size_t rows,
                                  double* out, absl::Span<double> scratch) const {
  CompositeRows(*this, first, last, z, rows, out, scratch);
}

void MixtureTrajectory::Composite(int first, int last, const float* z, std::size_t rows, float* out,
                                  absl::Span<double> scratch) const {
  CompositeRows(*this, first, last, z, rows, out, scratch);
}

void MixtureTrajectory::CompositeJvp(int first, int last, const double* z, const double* direction,
                                     std::size_t rows, double* out, double* derivative,
                                     absl::Span<double> scratch) const {
  Check(first, last, steps(), scratch.size(), scratch_size());
  const std::size_t d = dimensions(), tile = d * kTileRows;
  double* rest = scratch.data() + kTiles * tile;
  for (std::size_t row = 0; row < rows; row += kTileRows) {
    const std::size_t count = std::min(kTileRows, rows - row);
    double *state = scratch.data(), *next = state + tile, *v = next + tile, *next_v = v + tile;
    mixture::LoadTile(z + row * d, count, d, state);
    mixture::LoadTile(direction + row * d, count, d, v);
    for (int t = last; t >= first; --t) {
      mixture::DerivativeTile(Step(t).tables(), state, v, next, next_v, rest);
      std::swap(state, next);
      std::swap(v, next_v);
    }
    if (out != nullptr) mixture::StoreTile(state, count, d, out + row * d);
    mixture::StoreTile(v, count, d, derivative + row * d);
  }
}

void MixtureTrajectory::CompositeVjp(int first, int last, const double* z, const double* cotangent,
                                     std::size_t rows, double* out, double* derivative,
                                     absl::Span<double> scratch) const {
  const int steps_taken = last - first + 1;
  Check(first, last, steps(), scratch.size(), vjp_scratch_size(std::max(steps_taken, 0)));
  const std::size_t d = dimensions(), tile = d * kTileRows;
  // Tiles 0..count - 1: the states before each step; then v, the next v and what is dropped.
  double* states = scratch.data();
  double* rest = states + (steps_taken + kTiles) * tile;
  for (std::size_t row = 0; row < rows; row += kTileRows) {
    const std::size_t count = std::min(kTileRows, rows - row);
    mixture::LoadTile(z + row * d, count, d, states);
    double* state = states;
    for (int t = last; t >= first; --t) {
      mixture::StepTile(Step(t).tables(), state, state + tile, rest);
      state += tile;
    }
    double *v = state + tile, *next_v = v + tile;
    mixture::LoadTile(cotangent + row * d, count, d, v);
    // The clean end first: each step's own derivative is symmetric.
    if (out != nullptr) mixture::StoreTile(state, count, d, out + row * d);
    double* dropped = state;
    for (int t = first; t <= last; ++t) {
      const double* before = states + (last - t) * tile;
      mixture::DerivativeTile(Step(t).tables(), before, v, dropped, next_v, rest);
      std::swap(v, next_v);
    }
    mixture::StoreTile(v, count, d, derivative + row * d);
  }
}

}  // namespace mergeplan
