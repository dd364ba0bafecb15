#include "adapters/autoencoding/job.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "adapters/autoencoding/data.h"
#include "adapters/autoencoding/objective.h"
#include "adapters/denoising/model.h"
#include "adapters/denoising/pictures.h"
#include "adapters/network/try.h"
#include "adapters/runtime/arguments.h"
#include "adapters/unet/config.h"
#include "planner/base/file.h"
#include "planner/base/status_macros.h"

namespace mergeplan::autoencoding {
namespace {

using denoising::TextOr;
using denoising::Trainer;
using denoising::TrainInfo;
using Texts = std::map<std::string, std::string>;

absl::StatusOr<Texts> VaeTexts(const TrainVaeArguments& a) {
  MP_ASSIGN_OR_RETURN(Texts out, denoising::TextsOf(a));
  if (!a.size) return out;
  if (a.size->empty()) return Misuse("--size: is empty, expected HEIGHTxWIDTH or one number");
  out["size"] = *a.size;
  return out;
}

absl::StatusOr<Options> ParseOptions(Texts texts) {
  for (const char* name : {"model", "data", "array", "device", "data-rows", "size"}) {
    texts.erase(name);
  }
  absl::StatusOr<Options> options = Options::Parse(std::move(texts));
  return options.ok() ? std::move(options) : AsMisuse(options.status());
}

// An AutoencoderKL of a config.json (random weights) or a folder.
absl::StatusOr<std::unique_ptr<AutoencoderModule>> FindNetwork(const std::string& path,
                                                               std::uint64_t seed) {
  std::error_code error;
  std::unique_ptr<vae::Autoencoder> net;
  if (std::filesystem::is_directory(path, error)) {
    MP_ASSIGN_OR_RETURN(net, vae::Autoencoder::Load(path));
  } else {
    MP_ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
    MP_ASSIGN_OR_RETURN(const vae::Config config, vae::ParseConfigText(text, path));
    MP_ASSIGN_OR_RETURN(net, vae::Autoencoder::Create(config, seed, path));
  }
  const vae::Config& config = net->config();
  if (config.tiny) {
    return absl::InvalidArgumentError(
        absl::StrCat(path,
                     ": is an AutoencoderTiny, whose latents have no law to train; expected "
                     "an AutoencoderKL"));
  }
  if (config.in_channels != config.out_channels) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": takes pictures of ", config.in_channels,
                                                   " channels and gives ", config.out_channels,
                                                   ", expected the same"));
  }
  return std::make_unique<AutoencoderModule>(std::move(net));
}

absl::StatusOr<std::string> HashOf(const AutoencoderModule& network) {
  return denoising::HashOfNetwork(network, unet::ConfigText(network.net().config().source));
}

}  // namespace

absl::Status Job::Complete(const Texts& texts) {
  MP_ASSIGN_OR_RETURN(device_, denoising::DeviceOf(texts));
  DataRequest request;
  request.path = TextOr(texts, "data");
  request.array = TextOr(texts, "array");
  request.size = TextOr(texts, "size");
  request.scaling = options_.training.scaling;
  MP_ASSIGN_OR_RETURN(request.rows, denoising::DataRows(texts));
  MP_ASSIGN_OR_RETURN(TrainingPictures data,
                      LoadPictures(request, network_->net().config(), TextOr(texts, "model")));
  options_.training.scaling = data.scaling;
  const at::Tensor bytes = data.pictures.contiguous();
  info_.data_sha256 = Sha256(
      {static_cast<const char*>(bytes.const_data_ptr()), static_cast<std::size_t>(bytes.nbytes())});
  shown_ = bytes.narrow(0, 0, std::min(options_.training.samples, bytes.size(0))).clone();
  absl::StatusOr<std::unique_ptr<denoising::Objective>> objective =
      AutoencodingObjective(bytes, options_, device_);
  if (!objective.ok()) {
    return absl::Status(objective.status().code(),
                        absl::StrCat(request.path, ": ", objective.status().message()));
  }
  objective_ = *std::move(objective);
  return absl::OkStatus();
}

std::string Job::Fingerprint() const {
  std::string text = absl::StrCat(info_.model_sha256, "\n", info_.data_sha256, "\n");
  for (const auto& [name, value] : options_.DecidingTexts()) {
    absl::StrAppend(&text, name, "=", value, "\n");
  }
  return Sha256(text);
}

absl::StatusOr<std::unique_ptr<Job>> Job::New(const TrainVaeArguments& arguments) {
  MP_ASSIGN_OR_RETURN(const Texts texts, VaeTexts(arguments));
  for (const char* name : {"model", "data"}) {
    if (texts.count(name) != 0) continue;
    return Misuse(absl::StrCat("--", name, ": is missing, expected ",
                               name == std::string("model")
                                   ? "the config.json or the folder of an AutoencoderKL"
                                   : "pictures to train on"));
  }
  auto job = std::make_unique<Job>();
  MP_ASSIGN_OR_RETURN(job->options_, ParseOptions(texts));
  const auto seed = static_cast<std::uint64_t>(job->options_.training.seed);
  MP_ASSIGN_OR_RETURN(job->network_, FindNetwork(texts.at("model"), seed));
  MP_RETURN_IF_ERROR(job->Complete(texts));
  TrainInfo& info = job->info_;
  info.kind = denoising::kAutoencoder;
  MP_ASSIGN_OR_RETURN(info.model_sha256, HashOf(*job->network_));
  info.options = job->options_.Texts();
  for (const auto& [name, text] : texts) info.options.emplace(name, text);
  info.fingerprint = job->Fingerprint();
  return job;
}

absl::StatusOr<std::unique_ptr<Job>> Job::Resumed(TrainInfo info, const std::string& folder) {
  auto job = std::make_unique<Job>();
  MP_ASSIGN_OR_RETURN(job->options_, ParseOptions(info.options));
  MP_ASSIGN_OR_RETURN(job->network_, FindNetwork(folder + "/vae", 0));
  job->info_ = info;
  MP_RETURN_IF_ERROR(job->Complete(info.options));
  if (job->info_.data_sha256 != info.data_sha256) {
    return absl::FailedPreconditionError(
        absl::StrCat(TextOr(info.options, "data"),
                     ": its pictures are not those that the training began with, expected the "
                     "same; bring them back, or begin another training"));
  }
  if (job->Fingerprint() != info.fingerprint) {
    return absl::FailedPreconditionError(
        absl::StrCat(folder,
                     "/train.toml: its options are not those that the training began with; "
                     "bring them back, or begin another training"));
  }
  return job;
}

absl::Status Job::CheckSame(const TrainVaeArguments& arguments, const TrainInfo& info) {
  MP_ASSIGN_OR_RETURN(const Texts given, VaeTexts(arguments));
  Texts wanted = info.options;
  for (const auto& [name, text] : given) wanted[name] = text;
  MP_ASSIGN_OR_RETURN(const Options options, ParseOptions(wanted));
  // In their one way of writing.
  for (const auto& [name, text] : options.Texts()) wanted[name] = text;
  return denoising::CheckSameTexts(given, wanted, info, arguments.output);
}

absl::StatusOr<std::unique_ptr<Trainer>> Job::MakeTrainer() {
  MP_RETURN_IF_ERROR(
      denoising::CheckBatchMemory(options_.training.batch, shown_.numel() / shown_.size(0)));
  MP_RETURN_IF_ERROR(network_->To(device_, at::kFloat));
  return Trainer::Create(std::move(network_), std::move(objective_), options_.training);
}

absl::Status Job::Write(const network::Module& network, const std::string& folder) const {
  return network.Save(folder + "/vae");
}

absl::StatusOr<std::string> Job::Picture(network::Module& network) const {
  if (shown_.size(1) != 1 && shown_.size(1) != 3) return std::string();
  at::Tensor pairs;
  MP_RETURN_IF_ERROR(network::Try("pictures", [&]() -> absl::Status {
    const c10::NoGradGuard no_gradients;
    MP_ASSIGN_OR_RETURN(const at::Tensor back, network.Forward(shown_.to(device_), {}, {}));
    pairs = at::cat({shown_, back.to(at::kCPU)}, 2);
    return absl::OkStatus();
  }));
  return denoising::EncodeGrid(pairs, "-1:1");
}

}  // namespace mergeplan::autoencoding
