#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "adapters/linear/recipe.h"
#include "adapters/network/inputs.h"
#include "adapters/network/loss.h"
#include "adapters/network/measure.h"
#include "adapters/network/module.h"
#include "adapters/network/operators.h"
#include "adapters/network/precision.h"
#include "adapters/network/snapshots.h"
#include "adapters/network/steps.h"
#include "adapters/network/teachers.h"
#include "adapters/network/trainer.h"
#include "planner/operators/terms.h"
#include "planner/plan/plan.h"
#include "planner/runs/merge_record.h"

namespace mergeplan::network {

// What is known about one trained jump, or about the fit to single steps. initial_loss and
// final_loss (MergeFigures) are E |student(z_j) - target(z_j)|^2 over held-out rows, in the
// schedule's coordinates and without weights; of the fit they are the mean loss of the first and
// the last sixteenth of its updates, with them.
struct StudentRecord : MergeFigures {
  bool trained = false;
  int landing = 0;               // level where its wrapper lands
  std::int64_t snapshot = -1;    // its weights; -1 once nothing needs them any more
  ErrorEstimate own;             // against the merge's own target; its mean is final_loss
  ErrorEstimate teacher;         // against the teacher's steps over the range, times data_scale^2
  std::vector<double> curve;     // losses of one update's rows each at CurveUpdates(updates)
  std::int64_t skipped = 0;      // updates that fp16 left out
  bool stopped_early = false;    // there was nothing to gain any more
  std::int64_t peak_memory = 0;  // bytes that the process had taken at most by its end

  bool operator==(const StudentRecord&) const = default;
};

// A training that was stopped in the middle: merges that share a network; none: the fit.
struct ActiveTraining {
  std::vector<int> merges;
  std::vector<double> initial_losses;
  double seconds = 0;
  TrainerState state;
};

// Everything that a run has achieved, but for the snapshots' weights, which lie in their files.
struct ExecutorState {
  StudentRecord fit;  // fit.snapshot: the weights of the teacher's single steps
  std::vector<StudentRecord> merges;
  std::vector<ActiveTraining> active;
  std::int64_t next_snapshot = 0;
};

struct ExecutorProgress {
  std::int64_t updates_done = 0, updates_total = 0;  // of one merge each, the fit's included
  int merges_done = 0, merges_total = 0;
  Range first_of_group;  // {0, 0}: the fit
  int group = 0;
  double loss = 0;  // of the last update's rows, first merge of the group
};

// The error against the teacher's composite at one level, both from the same z_T.
struct LevelError {
  int level = 0;
  ErrorEstimate error;
};

struct ExecutorOptions {
  Init init = Init::kChildJump;
  // One network for all merges of a round that start from the same weights; false: each its own.
  bool shared = true;
  Recipe recipe;
  double lr = 1e-3;
  std::int64_t iterations = 0;     // updates per merge
  std::int64_t total_updates = 0;  // of all merges together, shared out evenly; 0: iterations
  double gain_bound = 0;   // stop a merge whose remaining gain is below this share; 0: never
  std::int64_t batch = 0;  // rows per merge, update and accumulation
  Precision precision = Precision::kFull;
  LossOptions loss;
  std::uint64_t seed = 0;
  // Updates of a fit of the student to the teacher's single steps, before everything else: for
  // students that do not begin as the teacher's own network. 0: they begin as they were given.
  std::int64_t fit_updates = 0;
  LossOptions fit_loss = {LossSpace::kV, Weighting::kUniform, 5};
  std::int64_t held_out_rows = 256;
  std::uint64_t held_out_seed = 0x68656c64;
  // Where held-out rows come from; null: the inputs of the training, in streams of their own (of
  // data: the same samples with other noise).
  std::shared_ptr<Inputs> held_out_inputs;
  std::int64_t block = 256;    // rows that are measured at a time
  std::string folder;          // of snapshots; needed to write the state
  std::int64_t memory = 0;     // bytes that snapshots may take; 0: no limit
  bool deterministic = false;  // LibTorch's deterministic algorithms only
  // Takes training steps down as graphs of a device; null: none. `note` is told where that comes to
  // nothing.
  std::shared_ptr<GraphEngine> graphs = nullptr;
  std::function<void(const std::string&)> note;
  // The processes that train together, on the CPU; null: this one alone. `stop` must say the same
  // to all.
  std::shared_ptr<const Communicator> communicator = nullptr;

  // Asked between updates and between the blocks of rows that are measured; true stops with
  // CANCELLED, the state being whole.
  std::function<bool()> stop;
  // Called between updates, a few times a second at most, and after each group, with the state to
  // be kept (WriteState); what it returns stops the run if not OK. `forced` when the run stops.
  std::function<absl::Status(class Executor&, bool forced)> checkpoint;
  std::function<void(const ExecutorProgress&)> progress;
};

// Distils a teacher into time-conditioned networks behind a DDIM wrapper, by any plan (README.md
// has what a start is on a network). Every merge [i, j] learns the jump from level j to level i - 1
// against the composition of its frozen children; single steps in it are the teacher's own.
class Executor {
 public:
  // `student` is copied: its weights are those of the teacher's single steps, or what the fit
  // begins with. Its network and state types are those of `steps`. INVALID_ARGUMENT names the
  // option, merge or level that does not fit, before anything is trained.
  static absl::StatusOr<std::unique_ptr<Executor>> Create(
      std::shared_ptr<Teacher> teacher, const Module& student, const NetworkSteps& steps,
      std::shared_ptr<Inputs> inputs, const Plan& plan, ExecutorOptions options);

  // The fit, where there is one and it has not been done. Train does it by itself.
  absl::Status Fit();
  // Trains these merges (indices into plan.merges()), which must not contain each other; their
  // children must be trained. Trained ones are left as they are; unfinished trainings are taken up.
  // CANCELLED when `stop` said so; FAILED_PRECONDITION when a child is missing, or for a loss that
  // is not finite: it names merge and update, and the state keeps what was before that update.
  absl::Status Train(absl::Span<const int> merges);
  absl::Status TrainAll();

  const Plan& plan() const { return plan_; }
  const Schedule& schedule() const { return steps_.schedule(); }
  const ExecutorOptions& options() const { return options_; }
  const std::vector<StudentRecord>& records() const { return state_.merges; }
  const StudentRecord& fit() const { return state_.fit; }
  std::int64_t updates_per_merge() const { return updates_; }
  int merges_trained() const;
  Snapshots& snapshots() { return *frozen_.snapshots; }

  // A hold keeps the weights of a merge beyond the last merge that needs them.
  void Hold(int merge);
  void Release(int merge);
  // The weights of a trained merge. FAILED_PRECONDITION where they have been dropped.
  absl::StatusOr<std::shared_ptr<Module>> Weights(int merge);

  // The student as it stands, from level T to level 0; untrained merges are made of what is inside
  // them. FAILED_PRECONDITION where weights have been dropped.
  absl::StatusOr<std::vector<Link>> Student() const;
  // The same of one node of the plan.
  absl::StatusOr<std::vector<Link>> Node(int node) const;
  // What links make of states in the schedule's coordinates, of these classes where there are some.
  absl::StatusOr<at::Tensor> Run(const std::vector<Link>& links, const at::Tensor& z,
                                 const at::Tensor& label = {}) const;

  // E |student - teacher|^2 from the same held-out z_T, after each block, from the noisiest; the
  // last one is the error of the whole, at level 0. Times data_scale^2.
  absl::StatusOr<std::vector<LevelError>> Evaluate();

  // A hash of what determines the run's numbers: plan, schedule, signature, options and the weights
  // that the student began with. Teacher and inputs are the caller's to add.
  const std::string& fingerprint() const { return fingerprint_; }

  // The state, the training in progress included: `path` and one file per snapshot in the options'
  // folder, each written beside and renamed, snapshots first. `fingerprint` names everything that
  // determines the run's numbers.
  absl::Status WriteState(const std::string& path, const std::string& fingerprint);
  // Only before the first Train. NOT_FOUND where there is none yet; FAILED_PRECONDITION for one of
  // another run or format; DATA_LOSS names what is damaged or does not fit.
  absl::Status ReadState(const std::string& path, const std::string& fingerprint);

 private:
  Executor(Frozen frozen, NetworkSteps steps, std::shared_ptr<Inputs> inputs, const Plan& plan,
           ExecutorOptions options);

  HeldOut MakeHeldOut() const;
  int LandingOf(const Merge& merge) const;
  std::int64_t StartOf(int merge) const;
  bool StartsFromFit(int merge) const;
  bool IsBlock(int merge) const;
  std::string Name(int merge) const;
  absl::StatusOr<TrainTask> MakeTask(int merge) const;
  absl::Status TrainGroup(const std::vector<int>& merges);
  absl::Status Loop(Trainer& trainer, const std::vector<int>& merges,
                    const std::vector<double>& initial_losses, double seconds_before,
                    double* seconds);
  // Of a network at a task: against its target, and where `teacher` is not null against the
  // teacher.
  absl::Status HeldOutErrors(const TrainTask& task, Module& module, ErrorEstimate* own,
                             ErrorEstimate* teacher);
  ErrorEstimate Native(ErrorEstimate error) const;
  absl::Status Measure(Trainer& trainer, const std::vector<int>& merges,
                       const std::vector<double>& initial_losses, double seconds);
  void Drop(int merge);
  void DropFit();
  absl::Status Keep(bool forced);
  void Report(const Trainer& trainer, const std::vector<int>& merges) const;
  ExecutorState Save() const;

  NetworkSteps steps_;
  Frozen frozen_;
  std::shared_ptr<Inputs> inputs_;
  Plan plan_;
  ExecutorOptions options_;
  std::int64_t updates_ = 0;  // per merge
  HeldOut held_out_;
  ExecutorState state_;
  std::vector<int> holds_;
  std::string fingerprint_;
  bool in_group_ = false;  // trains or measures merges
  // While a group trains.
  const Trainer* training_ = nullptr;
  const std::vector<int>* training_merges_ = nullptr;
  const std::vector<double>* training_initial_ = nullptr;
  double training_seconds_ = 0;
};

}  // namespace mergeplan::network
