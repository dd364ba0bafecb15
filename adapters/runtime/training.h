#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "adapters/parallel/communicator.h"
#include "planner/plan/plan.h"
#include "planner/runs/result_file.h"
#include "plugins/host/runtime.h"

namespace mergeplan {

// Where a training stands, for whoever watches.
struct TrainingProgress {
  std::int64_t updates_done = 0, updates_total = 0;  // of everything that is trained
  int merges_done = 0, merges_total = 0;
  Range first_of_group;  // one of the merges in training; {0, 0}: what comes before the merges
  int group = 0;         // how many train together
};

// What a training asks and tells while it runs. Empty functions are not called.
struct TrainingWatch {
  // Asked between updates; true stops with CANCELLED, the state being whole.
  std::function<bool()> stop;
  // Called between updates and after each group: an occasion to keep the state. What it returns
  // stops the run if not OK. `forced` when the run stops: what is not kept now is lost.
  std::function<absl::Status(bool forced)> checkpoint;
  std::function<void(const TrainingProgress&)> progress;
  // Told a sentence that people should know, where something is done in another way than usual.
  std::function<void(const std::string&)> note = {};
  // The processes that train together, all of which say the same by `stop`; null: this one alone.
  std::shared_ptr<const Communicator> communicator = nullptr;
  std::string folder = {};  // of the run, for what a training puts aside; empty: there is none
};

// A plan being trained, whatever the teacher and the students are: what the command, its
// checkpoints and the strategy's plugin know of it. Merges are indices into plan.merges().
class Training {
 public:
  virtual ~Training() = default;

  // Trains these merges, whose children are trained and which do not contain each other. Trained
  // ones are left as they are, an unfinished training of the same merges is taken up. CANCELLED
  // when the watch said stop; FAILED_PRECONDITION when a child is missing or a loss is no finite
  // number. After an error the merges count as not trained.
  virtual absl::Status Train(absl::Span<const int> merges) = 0;
  // After the merges: what a student needs that no merge asked for.
  virtual absl::Status Complete() { return absl::OkStatus(); }
  virtual bool trained(int merge) const = 0;
  // Of a trained merge; `restored` is left alone.
  virtual TrainResult Figures(int merge) const = 0;
  // The losses of a trained merge at CurveUpdates(its updates), one batch each.
  virtual std::vector<double> Curve(int merge) const = 0;
  virtual absl::StatusOr<EvaluationResult> Evaluate() = 0;

  // A hold keeps the operator of a merge beyond the last merge that needs it.
  virtual void Hold(int merge) = 0;
  virtual void Release(int merge) = 0;

  // The state, the training in progress included, into the run's folder; written beside and
  // renamed.
  virtual absl::Status WriteCheckpoint(const std::string& folder) const = 0;
  // Only before the first Train. NOT_FOUND where there is none; DATA_LOSS for a damaged one;
  // FAILED_PRECONDITION for one of another run or format.
  virtual absl::Status ReadCheckpoint(const std::string& folder) = 0;

  // Figures of the student as it stands.
  virtual absl::StatusOr<RunSummary> Summarize() = 0;
  // Writes result.npz and result.toml into the folder of a run that is finished.
  virtual absl::Status WriteResult(const std::string& folder) = 0;
};

}  // namespace mergeplan
