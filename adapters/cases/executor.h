#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "adapters/linear/trainer.h"
#include "adapters/runtime/device.h"
#include "adapters/runtime/training.h"
#include "planner/operators/model.h"
#include "planner/plan/plan.h"
#include "planner/runs/merge_record.h"

namespace mergeplan {

// What is known about one trained merge.
struct TrainedMerge : MergeFigures {
  bool trained = false;
  std::vector<double> value;  // d: V of the trained operator
  std::vector<double> curve;  // sampled losses at CurveUpdates(iterations), one batch each
};

// A training that was stopped in the middle.
struct ActiveTraining {
  std::vector<int> merges;  // empty: none
  TrainerState state;
  double seconds = 0;
};

// Everything that a run has achieved: what a checkpoint holds.
struct ExecutorState {
  std::vector<TrainedMerge> merges;  // one per merge of the plan, in its order
  ActiveTraining active;
};

struct ExecutorOptions {
  std::uint64_t seed = 0;
  DType dtype = DType::kFloat64;
  Device device;
  int threads = 0;  // 0: all processors
  Recipe recipe;
  // The processes that train together; null: this one alone. `stop` must say the same to all.
  std::shared_ptr<const Communicator> communicator = nullptr;

  // Asked between updates; true stops with CANCELLED, the state being whole.
  std::function<bool()> stop;
  // Called between updates and after each group with the state to be kept; may do nothing. What it
  // returns stops the run if not OK. `forced` when the run stops: what is not kept now is lost.
  std::function<absl::Status(const class Executor&, bool forced)> checkpoint;
  std::function<void(const TrainingProgress&)> progress;
};

// Turns a plan into trained diagonal linear operators, one merge (or a group of independent ones)
// at a time: every merge [i,j] is trained on z_j ~ N(0, n_j) against the composition of its frozen
// children from the start that the model's `init` says (eq:recursive_merge).
class Executor {
 public:
  // The model's budget must have a rate and a number of updates; plan.teacher_steps() ==
  // model.steps(). Both are copied. INVALID_ARGUMENT too for a recipe that does not fit the budget,
  // UNIMPLEMENTED for one that the device does not have.
  static absl::StatusOr<Executor> Create(const Model& model, const Plan& plan,
                                         ExecutorOptions options);

  // Trains these merges (indices into plan.merges()), whose children are trained, and which do not
  // contain each other. Already trained ones are left as they are. An unfinished training of the
  // same group is taken up where it stopped. CANCELLED when `stop` said so; FAILED_PRECONDITION
  // when a child is missing or a loss is no finite number. On an error the merges of the group
  // count as not trained.
  absl::Status Train(absl::Span<const int> merges);

  const Model& model() const { return model_; }
  const Plan& plan() const { return plan_; }
  const ExecutorOptions& options() const { return options_; }
  const std::vector<TrainedMerge>& records() const { return state_.merges; }
  int merges_trained() const;

  // Predicted V of a node (see Plan): the mean over the noise; NaN where the recipe has none.
  absl::Span<const double> predicted(int node) const;
  // The same of the whole student (d values).
  std::vector<double> PredictedValue() const;
  // V of the student as it stands: untrained merges are the product of what is inside them (d
  // values).
  std::vector<double> Value() const;
  // The same of one node.
  std::vector<double> NodeValue(int node) const;
  // The product of the teacher's steps over a range (d values).
  std::vector<double> TeacherComposite(Range range) const;
  // sum_k w_k (teacher composite - V)^2 of a merge, in native units.
  double MergeError(int merge, absl::Span<const double> value) const;

  // The gradient-flow time s that would leave what a trained merge has left: the solution of
  //   final loss = sum_k c_k gamma_k^2, gamma_k = exp(-2 s n_k), c_k = n_k (start_k - target_k)^2
  // (prop:student_gradient_flow). None where the optimizer is not SGD, nothing was to be learnt, or
  // nothing was gained or left.
  std::optional<double> EffectiveTime(int merge) const;

  // A copy of the state, the training in progress included.
  ExecutorState Save() const;
  // Only before the first Train. Checks that the sizes fit: DATA_LOSS.
  absl::Status Restore(ExecutorState state);

 private:
  Executor(const Model& model, const Plan& plan, ExecutorOptions options,
           const TrainerOptions& trainer_options);

  MergeTask Task(int merge) const;
  absl::Status TrainGroup(const std::vector<int>& group);
  absl::Status Keep(bool forced);
  void Report(const std::vector<int>& group, const Trainer& trainer);
  double ExpectedLoss(const MergeTask& task, absl::Span<const double> value) const;

  Model model_;
  Plan plan_;
  ExecutorOptions options_;
  TrainerOptions trainer_options_;
  std::vector<double> predicted_;  // nodes x d
  ExecutorState state_;
  const Trainer* training_ = nullptr;  // while TrainGroup runs
  std::vector<int> training_group_;
  double training_seconds_ = 0;
};

}  // namespace mergeplan
