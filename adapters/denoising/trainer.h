#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "adapters/denoising/objective.h"
#include "adapters/denoising/options.h"
#include "adapters/network/module.h"
#include "adapters/network/optimizer.h"
#include "adapters/network/precision.h"

namespace mergeplan::denoising {

// Where a training stands, enough to go on bit by bit on the CPU.
struct TrainerState {
  std::int64_t updates = 0;
  std::int64_t skipped = 0;  // updates of fp16 whose gradient overflowed
  double scale = 1;
  std::int64_t good = 0;  // LossScale
  std::vector<at::Tensor> parameters, buffers, average;
  network::Optimizer::State optimizer;
};

// Trains a network, one update after the other. The network is in training mode; what it draws by
// itself (dropout) follows from the seed and the number of the update.
class Trainer {
 public:
  // INVALID_ARGUMENT for options that do not fit, and for a network without parameters to train or
  // with two names for one.
  static absl::StatusOr<std::unique_ptr<Trainer>> Create(std::unique_ptr<network::Module> module,
                                                         std::unique_ptr<Objective> objective,
                                                         const Options& options);
  // To denoise.
  static absl::StatusOr<std::unique_ptr<Trainer>> Create(std::unique_ptr<network::Module> module,
                                                         Batches batches, const Options& options);

  struct Update {
    double loss = 0;
    double norm = 0;  // of the gradient, before it is clipped; not finite where it was skipped
    double lr = 0;
    bool skipped = false;
    std::vector<double> parts;  // of the loss, as the objective names them
  };
  // FAILED_PRECONDITION for a loss or gradient that is not finite: it names the update, and
  // parameters and moments are those from before it.
  absl::StatusOr<Update> Step();

  const Objective& objective() const { return *objective_; }
  bool done() const { return updates_ >= options_.iterations; }
  std::int64_t updates() const { return updates_; }
  std::int64_t skipped() const { return skipped_; }
  std::int64_t parameters() const;  // numbers that are trained

  TrainerState Save() const;  // copies
  // Before the first update, of a trainer of the same network and options. DATA_LOSS.
  absl::Status Restore(const TrainerState& state);

  // A network of its own, in evaluation mode: the average where there is one.
  absl::StatusOr<std::unique_ptr<network::Module>> Trained() const;

 private:
  Trainer(std::unique_ptr<network::Module> module, std::unique_ptr<Objective> objective,
          const Options& options, network::Precision precision, network::Optimizer optimizer);
  // Forward and backward of one pass; adds its share to the update's loss.
  absl::Status Pass(std::uint64_t number, Update* update);
  absl::Status NotFinite(const std::string& what) const;
  absl::Status Average();

  std::unique_ptr<network::Module> module_;
  std::unique_ptr<Objective> objective_;
  Options options_;
  network::Precision precision_;
  network::Optimizer optimizer_;
  network::LossScale scale_;
  std::vector<at::Tensor> average_;  // of the parameters; empty: none
  std::int64_t updates_ = 0, skipped_ = 0;
};

}  // namespace mergeplan::denoising
