#pragma once

#include <cstddef>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "planner/mixture/mixture.h"
#include "planner/mixture/step.h"
#include "planner/schedule/schedule.h"

namespace mergeplan {

// The DDIM steps of the optimal teacher for a mixture along a schedule, and their composites
// (def:composite_teacher_operator). All states are in the schedule's coordinates (see Schedule):
// level T is the noisiest, Composite(first, last) takes level `last` to level `first` - 1.
//
// What MixtureStep says about rows, threads, scratch and NaN holds here too. A tile of rows runs
// through all steps before the next one starts, so its states stay in the cache.
class MixtureTrajectory {
 public:
  // The mixture is the data's, in native units; it is divided by schedule.data_scale. Errors of
  // MixtureStep::Create with the level, RESOURCE_EXHAUSTED where the tables of T steps do not fit.
  // O(T) times what a step takes.
  static absl::StatusOr<MixtureTrajectory> Create(const GaussianMixture& mixture,
                                                  const Schedule& schedule);

  int steps() const { return static_cast<int>(steps_.size()); }
  int dimensions() const { return mixture_.dimensions(); }
  // In the schedule's coordinates.
  const GaussianMixture& mixture() const { return mixture_; }
  NoiseLevel level(int t) const { return levels_[t]; }            // t = 0..T
  const MixtureStep& Step(int t) const { return steps_[t - 1]; }  // t = 1..T, t to t - 1
  // The denoiser at level t, or any other pair in place of the level that the step leads to.
  absl::StatusOr<MixtureStep> Jump(int t, NoiseLevel to) const;

  // Numbers of scratch for Composite, CompositeJvp and every step alone, and for CompositeVjp of
  // `count` steps.
  std::size_t scratch_size() const;
  std::size_t vjp_scratch_size(int count) const;

  // rows x d states of level `last` to level `first` - 1; 1 <= first <= last <= T. `out` may be z.
  void Composite(int first, int last, const double* z, std::size_t rows, double* out,
                 absl::Span<double> scratch) const;
  void Composite(int first, int last, const float* z, std::size_t rows, float* out,
                 absl::Span<double> scratch) const;

  // J v and J^T v of the composite at z; `out` gets the composite and may be null. A composite's J
  // is a product of symmetric matrices and is not symmetric. `derivative` may be `direction`.
  void CompositeJvp(int first, int last, const double* z, const double* direction, std::size_t rows,
                    double* out, double* derivative, absl::Span<double> scratch) const;
  void CompositeVjp(int first, int last, const double* z, const double* cotangent, std::size_t rows,
                    double* out, double* derivative, absl::Span<double> scratch) const;

 private:
  explicit MixtureTrajectory(GaussianMixture mixture) : mixture_(std::move(mixture)) {}

  GaussianMixture mixture_;
  std::vector<NoiseLevel> levels_;  // T + 1
  std::vector<MixtureStep> steps_;  // T
};

}  // namespace mergeplan
