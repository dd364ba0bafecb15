#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "adapters/runtime/device.h"
#include "planner/plan/plan.h"

namespace mergeplan {

// One merge as the trainer sees it: a diagonal operator a (d values) that is fed by z ~ N(0,
// scale^2) and shall become the target p, the composition of its frozen children.
struct MergeTask {
  Range range;
  std::vector<double> start;   // d: a before the first update
  std::vector<double> target;  // d: V(c_1) ... V(c_k), folded into one operator
  std::vector<double> scale;   // d: square root of n at the level range.last
};

// How a step is computed. kFused: noise from LibTorch, forward, backward and their sums in one loop
// of our own, CPU only. kTensor: LibTorch's tensor operations over [merges, batch, d], any device.
// kAuto: kFused on the CPU, kTensor elsewhere.
enum class StepKind { kAuto, kFused, kTensor };

struct TrainerOptions {
  double lr = 0;
  double feature_norm = 1;
  std::int64_t updates = 0;
  int batch = 0;
  std::uint64_t seed = 0;
  DType dtype = DType::kFloat64;
  Device device;
  StepKind step = StepKind::kAuto;
};

// Where a training stands, enough to go on bit by bit.
struct TrainerState {
  std::int64_t updates = 0;
  std::vector<double> parameters;                     // merges x d
  std::vector<std::vector<std::uint8_t>> generators;  // merges x lanes
  std::vector<double> curve;                          // merges x CurveUpdates(updates).size()
};

// Trains merges that do not depend on each other side by side, as one batched computation over
// [merges, batch, d].
//
// Every update draws z afresh and independently for every merge, takes the gradient of the batch
// mean of the squared error summed over the dimensions and makes one step of plain SGD,
//
//   a <- a - lr feature_norm (2/B) sum_b z_b (a z_b - p z_b)
//
// so that a - p shrinks by the factors 1 - 2 lr feature_norm n chi^2_B / B. With a feature of
// squared norm F the operator is a = <w, phi>; the gradient moves w along phi only, and a by F
// times what one parameter would move.
//
// Determinism. A merge has several noise streams, one per fixed slice of the dimensions (a lane),
// named by (seed, first, last, lane); how many depends on the batch and d only. So results do not
// depend on the number of threads, nor on which merges train together. Float32 noise is widened to
// the dtype.
class Trainer {
 public:
  virtual ~Trainer() = default;

  // INVALID_ARGUMENT for sizes that do not fit or numbers that are not finite; UNIMPLEMENTED for
  // kFused off the CPU.
  static absl::StatusOr<std::unique_ptr<Trainer>> Create(std::vector<MergeTask> tasks,
                                                         const TrainerOptions& options);

  // Makes the next updates, about a few milliseconds of them, at least one. A loss that is no
  // finite number is FAILED_PRECONDITION and names the merge and the update. O(merges batch d) per
  // update.
  virtual absl::Status Advance() = 0;
  virtual bool done() const = 0;
  virtual std::int64_t updates() const = 0;

  virtual TrainerState Save() const = 0;
  // Only before the first Advance, with the state of a trainer of the same tasks and options.
  virtual absl::Status Restore(const TrainerState& state) = 0;
};

// The updates (0-based) at which the loss is kept: all when there are up to 64, else about 64,
// close together at the start where it falls fastest; always the first and the last.
std::vector<std::int64_t> CurveUpdates(std::int64_t updates);

// Bytes of noise that the fused step holds at one time when `merges` merges train together: one
// draw of one lane for every thread that has a lane to train. Uses options.batch only.
double FusedTrainerBytes(const TrainerOptions& options, std::int64_t d, std::int64_t merges);

// How many merges of this size train together, at most: limits the memory of the tensor step to
// about 1 GiB. At least 1.
std::int64_t MergesTogether(const TrainerOptions& options, std::int64_t d);

}  // namespace mergeplan
