#include "adapters/denoising/job.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <map>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "adapters/network/data.h"
#include "adapters/runtime/arguments.h"
#include "adapters/runtime/device.h"
#include "adapters/runtime/strategy.h"
#include "planner/base/file.h"
#include "planner/base/status_macros.h"

namespace mergeplan::denoising {
namespace {

// Beyond this a network is said to be badly conditioned.
constexpr double kLargeFactor = 50;

using Texts = std::map<std::string, std::string>;

// Everything that was said, as texts.
absl::StatusOr<Texts> TextsOf(const TrainTeacherArguments& a) {
  Texts out = a.training;
  const std::pair<const char*, const std::optional<std::string>*> texts[] = {
      {"model", &a.model},       {"data", &a.data},     {"array", &a.array},
      {"schedule", &a.schedule}, {"device", &a.device}, {"prediction", &a.prediction}};
  for (const auto& [name, text] : texts) {
    if (!*text) continue;
    if ((*text)->empty()) return Misuse(absl::StrCat("--", name, ": is empty, expected a value"));
    out[name] = **text;
  }
  if (a.rows) out["data-rows"] = absl::StrCat(*a.rows);
  return out;
}

std::string Text(const Texts& texts, const std::string& name, const std::string& other = "") {
  const auto found = texts.find(name);
  return found == texts.end() ? other : found->second;
}

// What belongs to denoising::Options.
Texts OfTraining(Texts texts) {
  for (const char* name :
       {"model", "data", "array", "schedule", "device", "prediction", "data-rows"}) {
    texts.erase(name);
  }
  return texts;
}

absl::StatusOr<Options> ParseOptions(const Texts& texts) {
  absl::StatusOr<Options> options = Options::Parse(OfTraining(texts));
  return options.ok() ? options : AsMisuse(options.status());
}

// Data, device, levels: what new and resumed trainings have in common.
absl::Status Complete(const Texts& texts, Job* job) {
  MP_ASSIGN_OR_RETURN(const Device device, OpenDevice(Text(texts, "device", "cpu")));
  if (device.cuda) {
    job->device = at::Device(at::kCUDA, static_cast<at::DeviceIndex>(device.index));
  }
  SamplesOptions samples;
  samples.array = Text(texts, "array");
  std::int64_t rows = 0;
  if (const std::string count = Text(texts, "data-rows"); !count.empty()) {
    if (!absl::SimpleAtoi(count, &rows) || rows < 1) {
      return Misuse(absl::StrCat("--data-rows ", count, ": expected a whole number, 1 or more"));
    }
  }
  const std::string path = Text(texts, "data");
  const network::Signature& signature = job->model.signature;
  // A UNet2DModel's own scaling is that of pixels only.
  std::string scaling = job->options.scaling;
  if (scaling.empty() && job->model.kind == kScriptTeacher) scaling = signature.scaling;
  if (scaling.empty()) {
    MP_ASSIGN_OR_RETURN(const auto source, OpenSamples(path, samples));
    scaling = source->is_pixels() ? network::kPixelScaling : "none";
  }
  job->scaling = scaling;
  MP_ASSIGN_OR_RETURN(job->data, network::LoadData(path, samples, scaling, signature.shape, rows));
  if (job->options.flip && job->data.dim() != 4) {
    return Misuse("--flip yes: samples are no pictures ([C, H, W]); leave the option out");
  }
  const at::Tensor bytes = job->data.contiguous();
  job->info.data_sha256 = Sha256(
      {static_cast<const char*>(bytes.const_data_ptr()), static_cast<std::size_t>(bytes.nbytes())});
  job->schedule = ScheduleOfTable(*signature.table);
  return absl::OkStatus();
}

std::string Fingerprint(const Job& job) {
  std::string text =
      absl::StrCat(job.info.model_sha256, "\n", job.info.data_sha256, "\n", job.scaling, "\n");
  for (const auto& [name, value] : job.options.DecidingTexts()) {
    absl::StrAppend(&text, name, "=", value, "\n");
  }
  return Sha256(text);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Trainer>> Job::MakeTrainer() {
  const auto type = model.signature.dtype == "float64" ? at::kDouble : at::kFloat;
  MP_RETURN_IF_ERROR(model.module->To(device, type));
  BatchOptions batch;
  batch.seed = static_cast<std::uint64_t>(options.seed);
  batch.rows = options.batch;
  batch.flip = options.flip;
  batch.network = at::TensorOptions().dtype(type).device(device);
  batch.integer_time = model.signature.integer_time;
  MP_ASSIGN_OR_RETURN(std::vector<Level> levels,
                      TrainingLevels(model.signature, schedule, options));
  MP_ASSIGN_OR_RETURN(Batches batches, Batches::Create(std::move(data), std::move(levels), batch));
  MP_ASSIGN_OR_RETURN(std::unique_ptr<network::Module> module, model.module->Clone());
  model.module.reset();
  return Trainer::Create(std::move(module), std::move(batches), options);
}

absl::StatusOr<Job> NewJob(const TrainTeacherArguments& arguments) {
  MP_ASSIGN_OR_RETURN(Texts texts, TextsOf(arguments));
  for (const char* name : {"model", "data"}) {
    if (texts.count(name) != 0) continue;
    return Misuse(absl::StrCat("--", name, ": is missing, expected ",
                               name == std::string("model")
                                   ? "a config.json, a diffusers folder or a TorchScript sidecar"
                                   : "samples to train on"));
  }
  Job job;
  MP_ASSIGN_OR_RETURN(job.options, ParseOptions(texts));
  ModelRequest request;
  request.model = texts["model"];
  request.schedule = Text(texts, "schedule");
  request.prediction = Text(texts, "prediction");
  request.seed = static_cast<std::uint64_t>(job.options.seed);
  MP_ASSIGN_OR_RETURN(job.model, FindModel(request));
  // Where it lies is for whoever reads train.toml; data is opened again.
  texts["data"] = AbsolutePath(texts["data"]);
  MP_RETURN_IF_ERROR(Complete(texts, &job));
  job.info.kind = job.model.kind;
  job.info.model_sha256 = job.model.sha256;
  job.info.options = job.options.Texts();
  for (const auto& [name, text] : texts) job.info.options.emplace(name, text);
  job.info.options["prediction"] = std::string(network::ToString(job.model.signature.prediction));
  job.info.fingerprint = Fingerprint(job);
  if (job.model.scheduler) {
    const double factor = LargestFactor(*job.model.scheduler);
    if (factor > kLargeFactor) {
      job.note = absl::StrFormat(
          "at the noisiest level an error of 1 of the network is one of %.3g of x0; v_prediction "
          "or sample are better conditioned, above all for few steps",
          factor);
    }
  }
  return job;
}

absl::StatusOr<Job> ResumedJob(TrainInfo info, const std::string& folder) {
  Job job;
  MP_ASSIGN_OR_RETURN(job.options, ParseOptions(info.options));
  MP_ASSIGN_OR_RETURN(job.model, LoadModel(info.kind, folder));
  job.info = info;
  MP_RETURN_IF_ERROR(Complete(info.options, &job));
  if (job.info.data_sha256 != info.data_sha256) {
    return absl::FailedPreconditionError(
        absl::StrCat(Text(info.options, "data"),
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
  MP_ASSIGN_OR_RETURN(Texts given, TextsOf(arguments));
  if (given.count("data") != 0) given["data"] = AbsolutePath(given["data"]);
  Texts wanted = info.options;
  for (const auto& [name, text] : given) wanted[name] = text;
  MP_ASSIGN_OR_RETURN(const Options options, ParseOptions(wanted));
  // In their one way of writing.
  for (const auto& [name, text] : options.Texts()) wanted[name] = text;
  for (const auto& [name, text] : wanted) {
    const auto had = info.options.find(name);
    if (had != info.options.end() && had->second == text) continue;
    return Misuse(absl::StrCat("--", name, " ", Text(given, name, text), ": the training in ",
                               arguments.output, " has ",
                               had == info.options.end() ? "none" : had->second,
                               "; leave the option out, or begin another training"));
  }
  return absl::OkStatus();
}

absl::StatusOr<double> ParseTimeLimit(const std::string& text) {
  if (text.empty()) return std::numeric_limits<double>::infinity();
  const std::pair<char, double> units[] = {{'s', 1}, {'m', 60}, {'h', 3600}};
  std::string number = text;
  double unit = 1;
  for (const auto& [letter, seconds] : units) {
    if (text.back() != letter) continue;
    unit = seconds;
    number.pop_back();
  }
  double value = 0;
  if (absl::SimpleAtod(number, &value) && value >= 0 && std::isfinite(value)) return value * unit;
  return Misuse(
      absl::StrCat("--time-limit ", text, ": expected seconds (90), minutes (15m) or hours (2h)"));
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
