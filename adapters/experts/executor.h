#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "adapters/experts/inputs.h"
#include "adapters/experts/network.h"
#include "adapters/experts/operators.h"
#include "adapters/experts/optimizer.h"
#include "adapters/experts/trainer.h"
#include "planner/mixture/mixture.h"
#include "planner/mixture/trajectory.h"
#include "planner/operators/terms.h"
#include "planner/plan/plan.h"
#include "planner/runs/merge_record.h"
#include "planner/schedule/schedule.h"

namespace mergeplan::experts {

using SharedNumbers = std::shared_ptr<const std::vector<double>>;

// What is known about one trained student. initial_loss and final_loss (MergeFigures) are
// E |student(z_j) - target(z_j)|^2 on held-out rows, where the target is the composition of the
// merge's frozen children; they and `own` are in the schedule's coordinates.
struct StudentRecord : MergeFigures {
  bool trained = false;
  // Against the merge's own target; its mean is final_loss.
  ErrorEstimate own;
  // Against the teacher's steps over the whole range, both from z_j ~ p_j; in native units.
  ErrorEstimate teacher;
  std::vector<double> curve;  // losses of one batch each at CurveUpdates(updates)
  SharedNumbers parameters;   // null once no later merge needs them
};

// One seed.
struct TrialRecord {
  // The student of single steps, fitted first. Its losses and `own` are means over all levels,
  // `teacher` is its error at level T.
  StudentRecord fit;
  std::vector<StudentRecord> merges;  // in the plan's order
};

// A training that was stopped in the middle.
struct ActiveTask {
  int trial = 0;
  int merge = -1;  // -1: the fit
  double seconds = 0;
  TaskState state;
};

// Everything that a run has achieved.
struct ExecutorState {
  std::vector<TrialRecord> trials;
  std::vector<ActiveTask> active;
};

struct ExecutorProgress {
  std::int64_t updates_done = 0, updates_total = 0;  // of all trials, fits included
  int merges_done = 0, merges_total = 0;             // of all trials
  Range first_of_group;                              // {0, 0}: the fit
  int group = 0;                                     // how many students train together
};

struct ExecutorOptions {
  NetworkShape shape;                      // its dimensions are the mixture's
  std::vector<std::uint64_t> seeds = {0};  // one trial each: initial parameters and inputs
  Init init = Init::kChild;
  Precision precision = Precision::kFloat32;
  OptimizerOptions optimizer;
  std::int64_t fit_updates = 10000;  // of the student of single steps; 0: as it is initialised
  std::int64_t iterations = 10000;   // updates per merge
  int batch = 2560;
  InputKind inputs = InputKind::kFresh;
  std::int64_t pool_rows = 65536;  // of kPool, per merge
  std::vector<double> data;        // of kData: rows x d, native units
  std::int64_t held_out_rows = 8192;
  std::uint64_t held_out_seed = 0;  // the same held-out rows for all trials
  int threads = 1;                  // results do not depend on it
  // The processes that train together; null: this one alone. `stop` must say the same to all.
  std::shared_ptr<const Communicator> communicator = nullptr;
  // Where students train, see TrainerOptions; their figures are measured on this processor.
  MakeTrainer elsewhere = nullptr;

  // Asked a few times a second; true stops with CANCELLED, the state being whole.
  std::function<bool()> stop;
  // Called a few times a second and after each group with the state to be kept; what it returns
  // stops the run if not OK. `forced` when the run stops: what is not kept now is lost.
  std::function<absl::Status(const class Executor&, bool forced)> checkpoint;
  std::function<void(const ExecutorProgress&)> progress;
};

// Distils the optimal teacher of a Gaussian mixture into affine mixture-of-experts students, by any
// plan, for several seeds side by side. First a student of single steps is fitted to the teacher at
// all levels; then every merge [i, j] is trained at level j against the composition of its frozen
// children (single steps are the teacher's own), from the start that `init` says (README.md).
class Executor {
 public:
  // The mixture is in native units, see MixtureTrajectory. INVALID_ARGUMENT names the option;
  // errors of MixtureTrajectory::Create.
  static absl::StatusOr<Executor> Create(const GaussianMixture& mixture, const Schedule& schedule,
                                         const Plan& plan, ExecutorOptions options);

  // Fits the students of single steps of all trials, where that has not been done. Train does it
  // by itself; a plan without merges needs it for its figures.
  absl::Status Fit();
  // Trains these merges (indices into plan.merges()) for all trials. Their children must be trained
  // and they must not contain each other. Trained ones are left as they are; unfinished trainings
  // are taken up. CANCELLED when `stop` said so; FAILED_PRECONDITION when a child is missing, or
  // for a loss that is not finite: it names merge, seed and update, and the state keeps the
  // parameters from before that update.
  absl::Status Train(absl::Span<const int> merges);
  // All rounds.
  absl::Status TrainAll();

  const Plan& plan() const { return plan_; }
  const ExecutorOptions& options() const { return options_; }
  const MixtureTrajectory& teacher() const { return *teacher_; }
  int trials() const { return static_cast<int>(state_.trials.size()); }
  const TrialRecord& records(int trial) const { return state_.trials[trial]; }
  // Of all trials together.
  int merges_trained() const;
  // Parameters that are held, of merges and fits, of all trials together.
  int students_held() const;

  // A hold keeps the parameters of a merge beyond the last merge that needs them.
  void Hold(int merge);
  void Release(int merge);

  // The student of a trial as it stands, from level T to level 0 in the schedule's coordinates:
  // untrained merges are made of what is inside them, single steps are the teacher's. With T = 1 it
  // is the fitted student.
  absl::StatusOr<OperatorPointer> Student(int trial) const;
  // The same of one node of the plan. FAILED_PRECONDITION where its parameters have been dropped.
  absl::StatusOr<OperatorPointer> Node(int trial, int node) const;

  // E |student(z_T) - teacher(z_T)|^2 of Student(trial) over held-out rows, in native units.
  // O(held_out_rows T); the teacher's part once.
  absl::StatusOr<ErrorEstimate> Evaluate(int trial);

  // A copy of the state, the training in progress included.
  ExecutorState Save() const;
  // Only before the first Train. DATA_LOSS where it does not fit the plan, the seeds or the
  // student.
  absl::Status Restore(ExecutorState state);

 private:
  struct Job {
    int trial = 0;
    int merge = -1;
  };

  Executor(std::shared_ptr<const MixtureTrajectory> teacher, Inputs inputs, const Plan& plan,
           const Schedule& schedule, ExecutorOptions options);

  absl::StatusOr<TrainTask> MakeTask(Job job) const;
  absl::StatusOr<std::vector<double>> Start(Job job) const;
  absl::Status TrainJobs(const std::vector<Job>& jobs, std::int64_t updates);
  absl::Status TrainGroup(absl::Span<const Job> group, std::int64_t updates);
  absl::Status Keep(bool forced);
  void Report(absl::Span<const Job> group);
  StudentRecord& Record(Job job);
  void Measure(Job job, const TrainTask& task, const TaskState& end, double seconds);
  void Drop(Job job);
  bool NeedsFit(int merge) const;
  std::vector<double> HeldOut(int level, std::size_t rows) const;
  std::string Name(Job job) const;

  std::shared_ptr<const MixtureTrajectory> teacher_;
  Inputs inputs_;
  Plan plan_;
  Schedule schedule_;
  ExecutorOptions options_;
  TrainerOptions trainer_options_;
  ExecutorState state_;
  std::vector<int> holds_;
  std::vector<double> held_out_, held_out_composite_;  // z_T and the teacher's composite of it
  // While TrainGroup runs.
  const Trainer* training_ = nullptr;
  std::vector<Job> training_jobs_;
  double training_seconds_ = 0;  // per job
  std::vector<double> seconds_before_;
};

}  // namespace mergeplan::experts
