#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "planner/operators/terms.h"
#include "planner/plan/plan.h"
#include "planner/schedule/schedule.h"

// For training loops of your own: which merges to train together, what to train them on and against
// what. Nothing else in this folder includes this file.

namespace mergeplan {

// The jump from level range.last to level range.first - 1, trained against the composition of its
// children, which are ordered from clean to noisy; single steps of the teacher have first == last.
struct TrainingMerge {
  Range range;
  std::vector<Range> children;

  int from() const { return range.last; }
  int to() const { return range.first - 1; }
};

// Merges that do not depend on each other. Between two rounds take the snapshot of the student that
// the next round's targets call.
struct Round {
  int number = 0;  // from 1
  std::vector<TrainingMerge> merges;
};

// B rows, each for one merge of the round. In the schedule's coordinates, as everything here.
struct TrainingBatch {
  at::Tensor z;      // [B, ...] the state at level from
  at::Tensor merge;  // [B] int64, index into Round::merges
  at::Tensor from;   // [B] int64, level; what a time-conditioned network is told, or times is
  at::Tensor to;     // [B] int64, level
  at::Tensor times;  // [B] float64, the schedule's timesteps at `from`; undefined where it has none
};

// x0 as a network behind a DDIM wrapper says it: of states z at one level.
using Denoiser = std::function<at::Tensor(const at::Tensor& z, int level)>;

// A plan and its noise levels. Data x0 is in its own units; states z, estimates of x0 and targets
// are in the schedule's coordinates (planner/schedule/schedule.h). Any number of threads.
//
//   for (const Round& round : schedule) {
//     freeze(student);
//     for (int update = 0; update < updates; ++update) {
//       TrainingBatch batch = *schedule.Sample(round, next_x0(), generator);
//       at::Tensor target = *schedule.Target(round, batch, teacher, frozen);
//       at::Tensor loss = (schedule.Jump(batch, student(batch.z,
//       batch.from))->sub(target)).square().mean(); …
//     }
//   }
//
// Exceptions of LibTorch and of denoisers become INVALID_ARGUMENT with their first line.
class TrainingSchedule {
 public:
  // INVALID_ARGUMENT where plan and schedule differ in T.
  static absl::StatusOr<TrainingSchedule> Create(Plan plan, Schedule schedule);
  // A plan file (TOML or JSON); of its schedule the timesteps too, where it can be read again.
  static absl::StatusOr<TrainingSchedule> FromFile(const std::string& path);

  auto begin() const { return rounds_.begin(); }
  auto end() const { return rounds_.end(); }
  const std::vector<Round>& rounds() const { return rounds_; }
  const Plan& plan() const { return plan_; }
  const Schedule& schedule() const { return schedule_; }
  // Where the plan file says that students start; nothing where there was no file.
  std::optional<Init> init() const { return init_; }
  // The N + 1 levels that the student visits, from T down to 0.
  std::vector<int> levels() const;

  // Gives every row of data x0 [B, ...] one merge of the round, by chance and all alike, and noises
  // it to where that merge starts: z = alpha x0 / data_scale + sigma eps.
  absl::StatusOr<TrainingBatch> Sample(const Round& round, const at::Tensor& x0,
                                       at::Generator generator) const;
  // What the jump of every row is trained to give, [B, ...], without gradient: its children one
  // after the other, from noisy to clean, single steps by the teacher, merges by the student as it
  // was frozen before the round. One call of a denoiser for every merge and child with rows.
  absl::StatusOr<at::Tensor> Target(const Round& round, const TrainingBatch& batch,
                                    const Denoiser& teacher, const Denoiser& frozen) const;
  // Where an estimate of x0 [B, ...] takes the batch's states: the DDIM step from `from` to `to`.
  absl::StatusOr<at::Tensor> Jump(const TrainingBatch& batch, const at::Tensor& x0) const;
  // The DDIM step between two levels, from > to.
  absl::StatusOr<at::Tensor> Jump(const at::Tensor& z, const at::Tensor& x0, int from,
                                  int to) const;
  // The student's N steps from states at level T down to level 0.
  absl::StatusOr<at::Tensor> Run(at::Tensor z, const Denoiser& student) const;

 private:
  TrainingSchedule(Plan plan, Schedule schedule);

  Plan plan_;
  Schedule schedule_;
  std::optional<Init> init_;
  std::vector<Round> rounds_;
};

}  // namespace mergeplan
