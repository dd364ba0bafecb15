#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "adapters/autoencoding/module.h"
#include "adapters/autoencoding/options.h"
#include "adapters/autoencoding/run.h"
#include "adapters/denoising/session.h"

namespace mergeplan::autoencoding {

// The training of an autoencoder: everything found and checked.
class Job : public denoising::Task {
 public:
  // Of the options given. Misuse for options that cannot be; errors of what is read. Writes
  // nothing.
  static absl::StatusOr<std::unique_ptr<Job>> New(const TrainVaeArguments& arguments);
  // Of a training that goes on. FAILED_PRECONDITION where the data is not what it was.
  static absl::StatusOr<std::unique_ptr<Job>> Resumed(denoising::TrainInfo info,
                                                      const std::string& folder);
  // Do options that are given with --resume say what the training says? Misuse.
  static absl::Status CheckSame(const TrainVaeArguments& arguments,
                                const denoising::TrainInfo& info);

  const denoising::Options& options() const override { return options_.training; }
  denoising::TrainInfo& info() override { return info_; }
  absl::StatusOr<std::unique_ptr<denoising::Trainer>> MakeTrainer() override;
  // vae/, which diffusers loads, and --vae of the folder too.
  absl::Status Write(const network::Module& network, const std::string& folder) const override;
  // The first pictures of the data, each above what the network gives back.
  absl::StatusOr<std::string> Picture(network::Module& network) const override;

 private:
  // Device, data, objective: what new and resumed trainings have in common.
  absl::Status Complete(const std::map<std::string, std::string>& texts);
  std::string Fingerprint() const;

  Options options_;
  std::unique_ptr<AutoencoderModule> network_;
  std::unique_ptr<denoising::Objective> objective_;
  at::Tensor shown_;  // [samples, C, H, W]
  at::Device device_ = at::kCPU;
  denoising::TrainInfo info_;
};

}  // namespace mergeplan::autoencoding
