#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "adapters/linear/dtype.h"
#include "adapters/linear/recipe.h"
#include "adapters/linear/unit_sums.h"
#include "adapters/parallel/communicator.h"
#include "planner/plan/plan.h"

namespace mergeplan {

// One merge as the trainer sees it: a diagonal operator a (d values) that is fed by z ~ N(0,
// scale^2) and shall become the target p, the composition of its frozen children.
struct MergeTask {
  Range range;
  std::uint64_t seed = 0;      // with the range: the name of its noise
  double time = 0;             // range.last / T, of the embedding
  std::vector<double> start;   // d: a before the first update
  std::vector<double> target;  // d: V(c_1) ... V(c_k), folded into one operator
  std::vector<double> scale;   // d: square root of n at the level range.last
};

struct TrainerOptions {
  double lr = 0;
  double feature_norm = 1;
  std::int64_t updates = 0;
  int batch = 0;
  DType dtype = DType::kFloat64;
  int threads = 0;  // 0: all processors; results do not depend on it
  Recipe recipe;
  // The processes among which every batch is shared; null: this one alone. All of them make the
  // same calls.
  std::shared_ptr<const Communicator> communicator = nullptr;
  // Where sums of squares of drawn noise are computed (a device); null: here.
  OpenUnitSums unit_sums = nullptr;

  // Samples per update.
  std::int64_t rows() const { return static_cast<std::int64_t>(batch) * recipe.accumulate; }
};

// Where a training stands, enough to go on bit by bit. The streams of noise need nothing but the
// number of updates.
struct TrainerState {
  std::int64_t updates = 0;
  std::vector<double> parameters;  // merges x d
  // merges x d, or empty where the recipe has none: momentum, or the first and second moments of
  // the gradient by a; and the average.
  std::vector<double> first, second, average;
  std::vector<double> curve;  // merges x CurveUpdates(updates).size()

  // What is frozen when the training ends: the average where there is one.
  const std::vector<double>& Frozen() const { return average.empty() ? parameters : average; }
};

// Trains merges that do not depend on each other side by side; they may be merges of one plan or of
// many trials with seeds of their own.
//
// Every update draws z (as the recipe says) independently for every merge, takes the gradient of
// the batch mean of the squared error summed over the dimensions,
//
//   G = (2/B) sum_b z_b (a z_b - p z_b)
//
// and lets the recipe's optimizer move the parameters that a is made of. Plain SGD is
//
//   a <- a - lr F G
//
// so that a - p shrinks by the factors 1 - 2 lr F n chi^2_B / B. With a feature of squared norm F
// the operator is a = <w, phi>; the gradient moves w along phi only, and a by F times what one
// parameter would move.
//
// Determinism. The noise of a merge is a stream named by (seed, first, last), in which number (u B
// + b) d + k belongs to dimension k of sample b of update u. Results depend neither on the number
// of threads, nor on which merges train together, nor on where a training was stopped. Among
// several processes sums are added in another order, so that results agree to rounding.
class Trainer {
 public:
  virtual ~Trainer() = default;

  // Goes on for about a few milliseconds: several updates, one, or a part of a large one. A loss
  // that is no finite number is FAILED_PRECONDITION and names the merge and the update; the state
  // is then the last one that was good. O(merges batch d) per update.
  virtual absl::Status Advance() = 0;
  virtual bool done() const = 0;
  virtual std::int64_t updates() const = 0;

  virtual TrainerState Save() const = 0;
  // Only before the first Advance, with the state of a trainer of the same tasks and options:
  // DATA_LOSS where the sizes do not fit.
  virtual absl::Status Restore(const TrainerState& state) = 0;
};

// The trainer. INVALID_ARGUMENT for sizes that do not fit or numbers that are not
// finite; RESOURCE_EXHAUSTED where the memory does not hold the states.
// Errors of `unit_sums` come from Advance.
absl::StatusOr<std::unique_ptr<Trainer>> MakeLinearTrainer(std::vector<MergeTask> tasks,
                                                           const TrainerOptions& options);

// ---- What trainers of this interface share.

absl::Status CheckTasks(const std::vector<MergeTask>& tasks, const TrainerOptions& options);
// Does the state belong to a trainer of `merges` merges of d dimensions with these options?
absl::Status CheckState(const TrainerState& state, std::int64_t merges, std::int64_t d,
                        const TrainerOptions& options);
// The error for a loss that is no finite number after `updates` updates of `task`.
absl::Status NotFinite(const MergeTask& task, std::int64_t updates, const TrainerOptions& options);

}  // namespace mergeplan
