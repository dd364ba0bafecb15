#include "adapters/denoising/scheduler.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "adapters/denoising/levels.h"
#include "adapters/network/wrapper.h"
#include "planner/base/file.h"
#include "planner/base/status_macros.h"
#include "planner/schedule/diffusers_config.h"
#include "planner/schedule/json_text.h"
#include "planner/schedule/named.h"

namespace mergeplan::denoising {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr int kTableSteps = 1000;  // of schedules that have a name

absl::StatusOr<std::string> FileOf(const std::string& spec) {
  std::error_code error;
  for (const char* inside : {"", "/scheduler_config.json", "/scheduler/scheduler_config.json"}) {
    std::string path = spec + inside;
    if (fs::is_regular_file(path, error)) return path;
  }
  return absl::NotFoundError(absl::StrCat(
      "--schedule ", spec,
      ": is neither a scheduler_config.json (or the folder of one) nor a name, expected "
      "ddpm-linear, ddpm-scaled-linear, ddpm-cosine, sigmoid or flow:shift=S"));
}

// The config that a name stands for.
absl::StatusOr<Json> ConfigOfName(const std::string& spec) {
  const std::size_t colon = spec.find(':');
  const std::string name = spec.substr(0, colon);
  if (name == "cosine" || name == "edm") {
    return absl::InvalidArgumentError(absl::StrCat(
        "--schedule ", spec, ": no scheduler of diffusers has these levels",
        name == "edm" ? " with a network that is not preconditioned" : "",
        ", which the trained network has to be written with; use ddpm-cosine, ddpm-linear, "
        "ddpm-scaled-linear, sigmoid, flow, or a scheduler_config.json"));
  }
  MP_ASSIGN_OR_RETURN(const auto parameters,
                      ParseParameters(colon == spec.npos ? "" : spec.substr(colon + 1), spec));
  MP_RETURN_IF_ERROR(NamedSchedule(name, parameters, 8).status());
  Json json;
  const auto value = [&](const std::string& key, double number) {
    for (const SpecParameter& given : parameters) {
      if (given.first == key) absl::SimpleAtod(given.second, &number);
    }
    return number;
  };
  json["num_train_timesteps"] = kTableSteps;
  if (name == "flow") {
    json["_class_name"] = "FlowMatchEulerDiscreteScheduler";
    json["shift"] = value("shift", 1);
    return json;
  }
  json["_class_name"] = name == "sigmoid" ? "DDPMScheduler" : "DDIMScheduler";
  json["beta_schedule"] = name == "ddpm-cosine"          ? "squaredcos_cap_v2"
                          : name == "ddpm-scaled-linear" ? "scaled_linear"
                          : name == "sigmoid"            ? "sigmoid"
                                                         : "linear";
  json["beta_start"] = value("beta_start", name == "ddpm-scaled-linear" ? 0.00085 : 0.0001);
  json["beta_end"] = value("beta_end", name == "ddpm-scaled-linear" ? 0.012 : 0.02);
  json["clip_sample"] = false;
  json["timestep_spacing"] = "trailing";
  json["steps_offset"] = 0;
  if (name != "sigmoid") json["set_alpha_to_one"] = true;
  json["prediction_type"] = "v_prediction";
  return json;
}

absl::Status Fits(const std::string& spec, const Scheduler& scheduler, LevelKind kind) {
  const bool flow = kind == LevelKind::kFlow;
  if (kind == LevelKind::kExploding || kind == LevelKind::kEdm) {
    return absl::UnimplementedError(absl::StrCat(
        "--schedule ", spec, ": ", scheduler.class_name,
        " scales what the network sees, expected a class whose networks see the state as it is: "
        "use DDIMScheduler or DDPMScheduler with the same betas"));
  }
  if (flow == (scheduler.prediction == network::Prediction::kFlow)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "--prediction ", std::string(network::ToString(scheduler.prediction)), ": does not go with ",
      scheduler.class_name, ", expected ", flow ? "flow" : "epsilon, sample or v_prediction",
      flow ? "" : ", or --schedule flow"));
}

}  // namespace

absl::StatusOr<Scheduler> FindScheduler(const std::string& spec, const std::string& prediction) {
  Json json;
  std::string path = spec;
  if (IsScheduleName(spec.substr(0, spec.find(':')))) {
    MP_ASSIGN_OR_RETURN(json, ConfigOfName(spec));
  } else {
    MP_ASSIGN_OR_RETURN(path, FileOf(spec));
    MP_ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
    MP_ASSIGN_OR_RETURN(json, ParseJson(text, path));
    if (!json.is_object()) {
      return absl::InvalidArgumentError(absl::StrCat(path, ": is no JSON object"));
    }
  }
  if (!prediction.empty()) {
    const absl::StatusOr<network::Prediction> parsed = network::ParsePrediction(prediction);
    if (!parsed.ok()) {
      return absl::InvalidArgumentError(absl::StrCat("--", std::string(parsed.status().message())));
    }
    const network::Prediction wanted = *parsed;
    // The classes of flow matching have no such option.
    if (wanted != network::Prediction::kFlow) {
      if (json.value("_class_name", "") == "FlowMatchEulerDiscreteScheduler") {
        return absl::InvalidArgumentError(absl::StrCat("--prediction ", prediction,
                                                       ": does not go with --schedule ", spec,
                                                       ", expected flow"));
      }
      json["prediction_type"] = prediction;
    }
  }
  Scheduler out;
  out.text = json.dump(2) + "\n";
  const auto read = [&](int steps) { return ReadDiffusersTables(out.text, steps, path, {}); };
  MP_ASSIGN_OR_RETURN(DiffusersTables tables, read(1));
  out.steps = tables.num_train_timesteps;
  MP_ASSIGN_OR_RETURN(tables, read(out.steps));
  if (tables.inverted_flow) {
    return absl::InvalidArgumentError(
        absl::StrCat(path,
                     ": invert_sigmas is true: its networks say x0 - eps, a flow with its "
                     "sign turned, which is not trained here; expected a config without it"));
  }
  out.class_name = tables.class_name;
  MP_ASSIGN_OR_RETURN(out.prediction, network::ParsePrediction(tables.prediction_type));
  if (prediction == "flow" || prediction == "flow_prediction") {
    out.prediction = network::Prediction::kFlow;
  }
  MP_RETURN_IF_ERROR(Fits(spec, out, tables.level_kind));
  MP_ASSIGN_OR_RETURN(const Schedule schedule, ScheduleOfTables(tables, path));
  out.table = network::TableOf(schedule, out.steps);
  if (!tables.alphas_cumprod.empty()) {
    out.pipeline = out.class_name == "DDPMScheduler" ? "DDPMPipeline" : "DDIMPipeline";
  }
  // Says so here where epsilon has no meaning at the noisiest level.
  network::Signature signature;
  signature.prediction = out.prediction;
  const Schedule trained = ScheduleOfTable(out.table);
  MP_RETURN_IF_ERROR(network::OutputAt(signature, trained, trained.steps()).status());
  return out;
}

double LargestFactor(const Scheduler& scheduler) {
  network::Signature signature;
  signature.prediction = scheduler.prediction;
  const Schedule schedule = ScheduleOfTable(scheduler.table);
  double largest = 0;
  for (int t = 1; t <= schedule.steps(); ++t) {
    const auto estimate = network::EstimateAt(signature, schedule, t);
    if (!estimate.ok()) return INFINITY;
    largest = std::max(largest, std::abs(estimate->output));
  }
  return largest;
}

}  // namespace mergeplan::denoising
