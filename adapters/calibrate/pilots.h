#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "adapters/calibrate/measurements.h"
#include "adapters/network/executor.h"
#include "adapters/network/measure.h"
#include "adapters/network/trainer.h"

namespace mergeplan::calibrate {

// What is distilled, and how: as a run would be told.
struct Setting {
  std::shared_ptr<network::Teacher> teacher;
  const network::Module* student = nullptr;  // weights of single steps; must outlive this
  const network::NetworkSteps* steps = nullptr;
  std::shared_ptr<network::Inputs> inputs;
  // iterations are those of the run that is planned; rates that change with the updates change as
  // there.
  network::ExecutorOptions options;
};

// Trains pilots by the trainer that runs train with, on the same rows: a pilot over [i,j] is, bit
// by bit, what a run of the same seed does for a merge [i,j] of single steps that trains alone, and
// one over merges what it does for such a merge over those.
class Pilots {
 public:
  // Errors as of Executor::Create. Makes the fit to single steps where the options ask for one.
  static absl::StatusOr<std::unique_ptr<Pilots>> Create(Setting setting);

  // Trains a pilot for `checkpoints.back()` updates. The merges that it is made of are trained
  // before where they are not at hand (after a calibration was taken up). CANCELLED when the
  // options' stop said so; FAILED_PRECONDITION names merge and update of a loss that is not finite.
  absl::StatusOr<PilotResult> Train(const Pilot& pilot,
                                    const std::vector<std::int64_t>& checkpoints);
  // Keeps or drops the weights of pilots of single steps, by range.
  void Keep(Range range) { kept_[{range.first, range.last}] = true; }
  void Drop(Range range);
  // The network of the last pilot that was trained.
  network::Module& last() { return *last_; }

  // Seconds of one update of a merge of so many steps, by a few of them on a network that is thrown
  // away.
  absl::StatusOr<double> SecondsPerUpdate(Range range);

  network::HeldOut& held_out() { return held_out_; }
  const network::NetworkSteps& steps() const { return *setting_.steps; }
  const network::ExecutorOptions& options() const { return setting_.options; }
  network::Module& student() { return *base_; }
  int LandingOf(Range range) const;
  std::int64_t fit_calls() const { return fit_calls_; }

 private:
  explicit Pilots(Setting setting, network::Frozen frozen);
  absl::Status Fit();
  network::TrainerOptions OptionsOf(int replicate) const;
  absl::StatusOr<network::TrainTask> TaskOf(const Pilot& pilot) const;
  absl::StatusOr<std::unique_ptr<network::Trainer>> TrainerOf(const Pilot& pilot) const;
  absl::StatusOr<network::ErrorEstimate> ErrorNow(const Pilot& pilot, network::Trainer& trainer,
                                                  const at::Tensor& z,
                                                  const at::Tensor& target) const;

  Setting setting_;
  network::Frozen frozen_;
  network::HeldOut held_out_;
  std::shared_ptr<network::Module> base_;
  std::unique_ptr<network::Module> last_;
  std::map<std::pair<int, int>, bool> kept_;
  std::map<std::pair<int, int>, std::int64_t> snapshots_;  // of trained pilots of single steps
  std::int64_t fit_calls_ = 0;
};

}  // namespace mergeplan::calibrate
