#include "adapters/denoising/job.h"

#include <filesystem>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "adapters/cases/network_data.h"
#include "adapters/denoising/pictures.h"
#include "adapters/network/data.h"
#include "adapters/network/labels.h"
#include "adapters/network/layout.h"
#include "adapters/network/probe.h"
#include "adapters/runtime/arguments.h"
#include "adapters/runtime/network_options.h"
#include "adapters/runtime/signals.h"
#include "adapters/runtime/strategy.h"
#include "planner/base/file.h"
#include "planner/base/status_macros.h"

namespace mergeplan::denoising {
namespace {

// Beyond this a network is said to be badly conditioned.
constexpr double kLargeFactor = 50;

using Texts = std::map<std::string, std::string>;

// Everything that was said, as texts.
absl::StatusOr<Texts> TeacherTexts(const TrainTeacherArguments& a) {
  MP_ASSIGN_OR_RETURN(Texts out, TextsOf(a));
  const std::pair<const char*, const std::optional<std::string>*> texts[] = {
      {"schedule", &a.schedule},
      {"prediction", &a.prediction},
      {"labels", &a.labels},
      {"label-array", &a.label_array}};
  for (const auto& [name, text] : texts) {
    if (!*text) continue;
    if ((*text)->empty()) return Misuse(absl::StrCat("--", name, ": is empty, expected a value"));
    // Read again when the training goes on, from wherever that is.
    out[name] = text == &a.labels ? AbsolutePath(**text) : **text;
  }
  if (a.label_array && !a.labels) {
    return Misuse("--label-array: is of --labels, which is missing");
  }
  return out;
}

// What belongs to denoising::Options.
Texts OfTraining(Texts texts) {
  for (const char* name : {"model", "data", "array", "schedule", "device", "prediction",
                           "data-rows", "labels", "label-array", "probed"}) {
    texts.erase(name);
  }
  return texts;
}

absl::StatusOr<Options> ParseOptions(const Texts& texts) {
  absl::StatusOr<Options> options = Options::Parse(OfTraining(texts));
  return options.ok() ? options : AsMisuse(options.status());
}

// The classes of the data, where the network is told some: what they are is part of what the data
// is.
absl::Status CompleteLabels(const Texts& texts, const std::string& data, bool part, Job* job) {
  const std::int64_t classes = job->model.signature.classes;
  std::string path = TextOr(texts, "labels"), array = TextOr(texts, "label-array");
  if (classes == 0) {
    if (path.empty()) return absl::OkStatus();
    return Misuse(absl::StrCat("--labels ", path,
                               ": the network is told no classes; leave the option out, or give "
                               "it num_class_embeds (a sidecar: classes)"));
  }
  if (path.empty()) {
    array = network::LabelArrayOf(data);
    if (array.empty()) {
      return Misuse(absl::StrCat(
          "--labels: is missing, the network is told one of ", classes,
          " classes; expected a file with that of every sample (IDX, .npy or .npz), or an .npz of "
          "--data that holds them as labels"));
    }
    path = data;
  }
  MP_ASSIGN_OR_RETURN(job->labels,
                      network::LoadLabels(path, array, classes, job->data.size(0), part));
  job->about.data_sha256 =
      Sha256(absl::StrCat(job->about.data_sha256, "\n", HashOfNumbers(job->labels)));
  return absl::OkStatus();
}

// Data, device, levels: what new and resumed trainings have in common.
absl::Status Complete(const Texts& texts, Job* job) {
  MP_ASSIGN_OR_RETURN(job->device, DeviceOf(texts));
  MP_ASSIGN_OR_RETURN(const std::int64_t rows, DataRows(texts));
  SamplesOptions samples;
  samples.array = TextOr(texts, "array");
  const std::string path = TextOr(texts, "data");
  const network::Signature& signature = job->model.signature;
  // A UNet2DModel's own scaling is that of pixels only.
  std::string scaling = job->settings.scaling;
  if (scaling.empty() && job->model.kind == kScriptTeacher) scaling = signature.scaling;
  if (scaling.empty()) {
    MP_ASSIGN_OR_RETURN(const auto source, OpenSamples(path, samples));
    scaling = source->is_pixels() ? network::kPixelScaling : "none";
  }
  job->scaling = scaling;
  MP_ASSIGN_OR_RETURN(job->data, network::LoadData(path, samples, scaling, signature.shape, rows));
  if (job->settings.flip && job->data.dim() != 4) {
    return Misuse("--flip yes: samples are no pictures ([C, H, W]); leave the option out");
  }
  const at::Tensor bytes = job->data.contiguous();
  job->about.data_sha256 = Sha256(
      {static_cast<const char*>(bytes.const_data_ptr()), static_cast<std::size_t>(bytes.nbytes())});
  job->schedule = ScheduleOfTable(*signature.table);
  return CompleteLabels(texts, path, rows > 0, job);
}

// What auto stands for on this machine.
absl::Status Choose(Job* job) {
  Options& settings = job->settings;
  if (settings.layout != kAuto && settings.precision != kAuto) return absl::OkStatus();
  const network::Signature& signature = job->model.signature;
  MP_RETURN_IF_ERROR(
      job->model.module->To(job->device, signature.dtype == "float64" ? at::kDouble : at::kFloat));
  MP_ASSIGN_OR_RETURN(
      const std::vector<network::Arithmetic> choices,
      network::Choices(*job->model.module, signature.dtype, settings.layout, settings.precision));
  MP_ASSIGN_OR_RETURN(const network::Probed probed,
                      network::Probe(*job->model.module, signature, job->device, settings.batch,
                                     choices, StopRequested));
  settings.layout = std::string(ToString(probed.chosen.layout));
  settings.precision = std::string(ToString(probed.chosen.precision));
  job->about.options["probed"] = probed.text;
  job->remark =
      absl::StrCat("layout and precision: ", ToString(probed.chosen), "; probed: ", probed.text);
  return absl::OkStatus();
}

std::string Fingerprint(const Job& job) {
  std::string text =
      absl::StrCat(job.about.model_sha256, "\n", job.about.data_sha256, "\n", job.scaling, "\n");
  for (const auto& [name, value] : job.settings.DecidingTexts()) {
    absl::StrAppend(&text, name, "=", value, "\n");
  }
  return Sha256(text);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Trainer>> Job::MakeTrainer() {
  MP_RETURN_IF_ERROR(CheckBatchMemory(settings.batch, data.numel() / data.size(0)));
  const auto type = model.signature.dtype == "float64" ? at::kDouble : at::kFloat;
  MP_RETURN_IF_ERROR(model.module->To(device, type));
  BatchOptions batch;
  batch.seed = static_cast<std::uint64_t>(settings.seed);
  batch.rows = settings.batch;
  batch.flip = settings.flip;
  batch.network = at::TensorOptions().dtype(type).device(device);
  batch.integer_time = model.signature.integer_time;
  MP_ASSIGN_OR_RETURN(std::vector<Level> levels,
                      TrainingLevels(model.signature, schedule, settings));
  MP_ASSIGN_OR_RETURN(Batches batches, Batches::Create(std::move(data), std::move(levels), batch,
                                                       std::move(labels)));
  MP_ASSIGN_OR_RETURN(std::unique_ptr<network::Module> module, model.module->Clone());
  MP_ASSIGN_OR_RETURN(const network::Layout layout, network::ParseLayout(settings.layout));
  MP_RETURN_IF_ERROR(network::SetLayout(*module, layout));
  model.module.reset();
  return Trainer::Create(std::move(module), std::move(batches), settings);
}

absl::Status Job::Write(const network::Module& network, const std::string& folder) const {
  return WriteModel(network, model, folder);
}

absl::StatusOr<std::string> Job::Picture(network::Module& network) const {
  const network::Signature& signature = model.signature;
  const bool pixels =
      signature.shape.size() == 3 && (signature.shape[0] == 1 || signature.shape[0] == 3);
  if (!pixels || scaling == "none") return std::string();
  // With classes as many of each, in a row of their own.
  const std::int64_t classes = signature.classes;
  const std::int64_t each = classes > 0 ? settings.samples / classes : 0;
  const std::int64_t rows = each > 0 ? each * classes : settings.samples;
  at::Tensor label;
  if (classes > 0) {
    label = network::TurnLabels(0, rows, classes);
    if (each > 0) label = label.view({each, classes}).t().reshape({rows});
  }
  MP_ASSIGN_OR_RETURN(
      const at::Tensor samples,
      DrawSamples(network, signature, Thinned(schedule, static_cast<int>(settings.sample_steps)),
                  rows, static_cast<std::uint64_t>(settings.seed), device, label));
  return EncodeGrid(samples, scaling, each);
}

absl::StatusOr<Job> NewJob(const TrainTeacherArguments& arguments) {
  MP_ASSIGN_OR_RETURN(Texts texts, TeacherTexts(arguments));
  for (const char* name : {"model", "data"}) {
    if (texts.count(name) != 0) continue;
    return Misuse(absl::StrCat("--", name, ": is missing, expected ",
                               name == std::string("model")
                                   ? "a config.json, a diffusers folder or a TorchScript sidecar"
                                   : "samples to train on"));
  }
  Job job;
  MP_ASSIGN_OR_RETURN(job.settings, ParseOptions(texts));
  ModelRequest request;
  request.model = texts["model"];
  request.schedule = TextOr(texts, "schedule");
  request.prediction = TextOr(texts, "prediction");
  request.seed = static_cast<std::uint64_t>(job.settings.seed);
  MP_ASSIGN_OR_RETURN(job.model, FindModel(request));
  MP_RETURN_IF_ERROR(Complete(texts, &job));
  job.about.kind = job.model.kind;
  job.about.model_sha256 = job.model.sha256;
  MP_RETURN_IF_ERROR(Choose(&job));
  job.about.options.merge(job.settings.Texts());
  for (const auto& [name, text] : texts) job.about.options.emplace(name, text);
  job.about.options["prediction"] = std::string(network::ToString(job.model.signature.prediction));
  job.about.fingerprint = Fingerprint(job);
  if (job.model.scheduler) {
    const double factor = LargestFactor(*job.model.scheduler);
    if (factor > kLargeFactor) {
      if (!job.remark.empty()) job.remark += "; ";
      job.remark += absl::StrFormat(
          "at the noisiest level an error of 1 of the network is one of %.3g of x0; v_prediction "
          "or sample are better conditioned, above all for few steps",
          factor);
    }
  }
  return job;
}

absl::StatusOr<Job> ResumedJob(TrainInfo info, const std::string& folder) {
  Job job;
  MP_ASSIGN_OR_RETURN(job.settings, ParseOptions(info.options));
  MP_ASSIGN_OR_RETURN(job.model, LoadModel(info.kind, folder));
  job.about = info;
  MP_RETURN_IF_ERROR(Complete(info.options, &job));
  if (job.about.data_sha256 != info.data_sha256) {
    return absl::FailedPreconditionError(
        absl::StrCat(TextOr(info.options, "data"),
                     ": its samples are not those that the training began with, expected the same; "
                     "bring them back, or begin another training"));
  }
  if (Fingerprint(job) != info.fingerprint) {
    return absl::FailedPreconditionError(
        absl::StrCat(folder,
                     "/train.toml: its options are not those that the training began with; "
                     "bring them back, or begin another training"));
  }
  return job;
}

absl::Status CheckSameOptions(const TrainTeacherArguments& arguments, const TrainInfo& info) {
  MP_ASSIGN_OR_RETURN(Texts given, TeacherTexts(arguments));
  // The training has what was found when it began.
  for (const char* name : {"layout", "precision"}) {
    if (TextOr(given, name) == kAuto) given.erase(name);
  }
  Texts wanted = info.options;
  for (const auto& [name, text] : given) wanted[name] = text;
  MP_ASSIGN_OR_RETURN(const Options options, ParseOptions(wanted));
  // In their one way of writing.
  for (const auto& [name, text] : options.Texts()) wanted[name] = text;
  return CheckSameTexts(given, wanted, info, arguments.output);
}

Schedule Thinned(const Schedule& schedule, int steps) {
  const int T = schedule.steps();
  if (steps >= T) return schedule;
  Schedule out = schedule;
  out.alpha = {schedule.alpha[0]};
  out.sigma = {schedule.sigma[0]};
  out.level_scale = {schedule.level_scale[0]};
  if (!out.timesteps.empty()) out.timesteps = {schedule.timesteps[0]};
  for (int k = 1; k <= steps; ++k) {
    const auto level = static_cast<std::size_t>((static_cast<std::int64_t>(T) * k * 2 + steps) /
                                                (2 * static_cast<std::int64_t>(steps)));
    out.alpha.push_back(schedule.alpha[level]);
    out.sigma.push_back(schedule.sigma[level]);
    out.level_scale.push_back(schedule.level_scale[level]);
    if (!out.timesteps.empty()) out.timesteps.push_back(schedule.timesteps[level]);
  }
  return out;
}

}  // namespace mergeplan::denoising
