#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "adapters/linear/recipe.h"
#include "adapters/network/inputs.h"
#include "adapters/network/loss.h"
#include "adapters/network/module.h"
#include "adapters/network/operators.h"
#include "adapters/network/optimizer.h"
#include "adapters/network/precision.h"
#include "adapters/network/step_graphs.h"
#include "adapters/network/steps.h"
#include "adapters/network/targets.h"
#include "adapters/parallel/communicator.h"
#include "planner/plan/plan.h"

namespace mergeplan::network {

// One jump that a network learns: from level range.last, the wrapper landing at `landing`, against
// the links of its target, which lead to level range.first - 1.
struct TrainTask {
  std::string name;  // for errors: "merge [1, 8]"
  Range range;
  int landing = 0;
  std::vector<Link> target;
  double factor = 1;  // of the loss (LossFactor)
};

struct TrainerOptions {
  Recipe recipe;
  double lr = 0;
  std::int64_t updates = 0;
  std::int64_t batch = 0;  // rows per task, update and accumulation
  Precision precision = Precision::kFull;
  std::uint64_t seed = 0;
  // Stop once RemainingGain of every task is below this; 0: never before `updates`.
  double gain_bound = 0;
  // Of a fit to single steps: loss and levels instead of tasks.
  LossOptions fit_loss;
  // Takes forward and backward passes down as graphs (step_graphs.h), a fit's excepted; null: none.
  // `note` is told where that comes to nothing.
  std::shared_ptr<GraphEngine> graphs = nullptr;
  std::function<void(const std::string&)> note;
  // The processes among which the rows of every batch are shared; null: this one alone. All of them
  // make the same calls, and hold the same network.
  std::shared_ptr<const Communicator> communicator = nullptr;
};

// Where a training stands, enough to go on bit by bit on the CPU.
struct TrainerState {
  std::int64_t updates = 0;
  std::int64_t skipped = 0;  // updates of fp16 whose gradient overflowed
  double scale = 1;
  std::int64_t good = 0;  // LossScale
  std::vector<at::Tensor> parameters;
  Optimizer::State optimizer;
  std::vector<std::vector<double>> losses;  // by task, one for each update
  std::vector<std::int64_t> calls;          // of the teacher, by task
};

// Trains one network on one or more tasks at a time: an update draws `batch` rows for each of them,
// and the loss is the sum over tasks of factor * mean over rows of |student - target|^2, summed
// over the dimensions. Without tasks it is the fit to the teacher's single steps: rows at all
// levels 1..T, shared out over slices, with the factors of fit_loss.
//
// Rows are named by (seed, task's range, row), so neither the company in a round nor a stop changes
// them. The network is in evaluation mode: dropout is off, batch statistics stay as they are.
class Trainer {
 public:
  // The module is moved as it is trained. INVALID_ARGUMENT for options that do not fit.
  static absl::StatusOr<std::unique_ptr<Trainer>> Create(std::unique_ptr<Module> module,
                                                         std::vector<TrainTask> tasks,
                                                         Frozen frozen,
                                                         std::shared_ptr<Inputs> inputs,
                                                         const TrainerOptions& options);

  // One update. FAILED_PRECONDITION for a loss or gradient that is not finite: it names the task
  // and the update, and parameters and moments are those from before it.
  absl::Status Update();
  // All updates made, or nothing to gain any more.
  bool done() const { return updates_ >= options_.updates || stopped_early_; }
  bool stopped_early() const { return stopped_early_; }
  std::int64_t updates() const { return updates_; }
  std::int64_t skipped() const { return skipped_; }
  // By task: the loss of every update's rows, without the factor (of a fit with it).
  const std::vector<std::vector<double>>& losses() const { return losses_; }
  const std::vector<std::int64_t>& calls() const { return calls_; }
  const std::vector<TrainTask>& tasks() const { return tasks_; }
  Module& module() { return *module_; }

  // Copies.
  TrainerState Save() const;
  // Before the first update, of a trainer of the same tasks and options. DATA_LOSS.
  absl::Status Restore(const TrainerState& state);

  // The trained network: the average where there is one. The trainer is used up.
  absl::StatusOr<std::unique_ptr<Module>> Finish();

 private:
  Trainer(std::unique_ptr<Module> module, std::vector<TrainTask> tasks, Frozen frozen,
          std::shared_ptr<Inputs> inputs, const TrainerOptions& options, Optimizer optimizer);
  // Forward and backward of one batch of a task; gives the loss.
  at::Tensor OfTheBatch(const at::Tensor& errors) const;
  // Adds losses, calls since `calls_before` and gradients over the ranks.
  absl::Status AddOverRanks(const std::vector<std::int64_t>& calls_before,
                            std::vector<double>* losses);
  absl::StatusOr<double> Batch(std::size_t task, std::uint64_t first_row);
  absl::StatusOr<double> FitBatch(std::uint64_t batch);
  double Weight(double factor) const;
  absl::StatusOr<double> Backward(const at::Tensor& loss, double factor);
  absl::Status NotFinite(const std::string& what) const;
  bool NothingToGain() const;

  std::unique_ptr<Module> module_;
  std::vector<TrainTask> tasks_;
  std::vector<Targets> targets_;  // by task
  Frozen frozen_;
  std::shared_ptr<Inputs> inputs_;
  TrainerOptions options_;
  Optimizer optimizer_;
  std::unique_ptr<StepGraphs> graphs_;  // null: none
  LossScale scale_;
  std::vector<double> fit_factors_;  // by level
  std::int64_t updates_ = 0, skipped_ = 0;
  bool stopped_early_ = false;
  std::vector<std::vector<double>> losses_;
  std::vector<std::int64_t> calls_;
};

}  // namespace mergeplan::network
