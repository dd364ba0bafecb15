#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "adapters/experts/inputs.h"
#include "adapters/experts/network.h"
#include "adapters/experts/operators.h"
#include "adapters/experts/optimizer.h"
#include "adapters/parallel/communicator.h"

namespace mergeplan::experts {

// One student to train: against `targets[0]` at the level `first_level`, or, where there are more
// levels, against targets[t - first_level] at level t, every slice of a batch at one level.
struct TrainTask {
  std::string name;           // for errors: "merge [1, 8] of seed 3"
  std::vector<double> start;  // parameters
  int first_level = 1;
  std::vector<OperatorPointer> targets;
  std::uint64_t seed = 0;  // of its inputs
};

class Trainer;
struct TrainerOptions;
// Makes a trainer of what has been checked, that trains elsewhere than on this processor.
using MakeTrainer = std::function<absl::StatusOr<std::unique_ptr<Trainer>>(
    std::vector<TrainTask> tasks, const Inputs& inputs, const TrainerOptions& options)>;

struct TrainerOptions {
  NetworkShape shape;
  Precision precision = Precision::kFloat32;
  OptimizerOptions optimizer;
  std::int64_t updates = 0;
  int batch = 0;
  InputKind inputs = InputKind::kFresh;
  std::int64_t pool_rows = 0;  // of kPool; a task with several levels draws afresh instead
  int threads = 1;
  // The processes among which the slices of every batch are shared; null: this one alone. All of
  // them make the same calls.
  std::shared_ptr<const Communicator> communicator = nullptr;
  MakeTrainer elsewhere = nullptr;  // null: the loops of this processor
};

// Where the training of one task stands, enough to go on bit by bit.
struct TaskState {
  std::int64_t updates = 0;
  std::vector<double> parameters;
  std::vector<double> first_moment, second_moment;  // of Adam
  std::vector<double> curve;  // losses of one batch each at the CurveUpdates passed so far
};

// Rows that are drawn, mapped and summed up together; batches are cut into slices of this size.
inline constexpr int kSliceRows = 256;

// Trains students side by side on the mean over the batch of |student(z) - target(z)|^2
// (eq:distillation_loss_gmm).
//
// Determinism. A batch is cut into slices of kSliceRows rows whose sums are added in their order,
// and a task's rows are named by (task.seed, row), so the results depend neither on the number of
// threads nor on the tasks that train beside it. Where there are at least as many tasks as threads
// each task has a thread, else the threads share the slices. Results may differ between processors
// with different vector units, and agree to rounding where several processes share a batch.
class Trainer {
 public:
  virtual ~Trainer() = default;

  // INVALID_ARGUMENT for sizes or options out of range; errors of options.elsewhere. With a pool it
  // is filled here.
  static absl::StatusOr<std::unique_ptr<Trainer>> Create(std::vector<TrainTask> tasks,
                                                         const Inputs& inputs,
                                                         const TrainerOptions& options);

  // Makes the next updates of every task, about `seconds` of them, at least one. A loss or gradient
  // that is not finite is FAILED_PRECONDITION and names the task and the update; the task then
  // stays as it was before that update.
  virtual absl::Status Advance(double seconds) = 0;
  virtual bool done() const = 0;
  // Of all tasks together.
  virtual std::int64_t updates_made() const = 0;

  virtual TaskState Save(int task) const = 0;
  // Only before the first Advance. DATA_LOSS where the sizes do not fit.
  virtual absl::Status Restore(int task, const TaskState& state) = 0;
};

// Bytes that a task in training takes, its pool included.
double TaskBytes(const TrainerOptions& options);

}  // namespace mergeplan::experts
