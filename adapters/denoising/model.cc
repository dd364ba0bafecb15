#include "adapters/denoising/model.h"

#include <ATen/core/Tensor.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "adapters/cases/network_files.h"
#include "adapters/denoising/levels.h"
#include "adapters/layers/model_folder.h"
#include "adapters/model/describe.h"
#include "adapters/network/script.h"
#include "adapters/network/try.h"
#include "adapters/unet/unet.h"
#include "planner/base/file.h"
#include "planner/base/status_macros.h"
#include "planner/runs/run_info.h"
#include "planner/schedule/schedule.h"

namespace mergeplan::denoising {
namespace {

namespace fs = std::filesystem;

constexpr int kScriptLevels = 1000;  // of a schedule's name for a TorchScript network

absl::StatusOr<Model> FindUnet(const ModelRequest& request, const std::string& path) {
  Model out;
  out.kind = kUnetTeacher;
  std::string schedule = request.schedule;
  std::unique_ptr<unet::UNet2d> net;
  std::error_code error;
  if (fs::is_directory(path, error)) {
    MP_ASSIGN_OR_RETURN(const std::string folder, layers::FindModelFolder(path, "unet"));
    MP_ASSIGN_OR_RETURN(net, unet::UNet2d::Load(folder));
    const auto found = model::FindScheduler(folder);
    if (schedule.empty() && found) schedule = found->file;
  } else {
    MP_ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
    MP_ASSIGN_OR_RETURN(const unet::Config config, unet::ParseConfigText(text, path));
    MP_ASSIGN_OR_RETURN(net, unet::UNet2d::Create(config, request.seed, path));
  }
  if (schedule.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--schedule: is missing, and ", path,
        " has no scheduler_config.json beside it; expected a name (ddpm-cosine) or a file"));
  }
  MP_ASSIGN_OR_RETURN(out.scheduler, FindScheduler(schedule, request.prediction));
  MP_ASSIGN_OR_RETURN(out.signature, UnetSignature(net->config(), out.scheduler->prediction,
                                                   out.scheduler->table, path));
  MP_ASSIGN_OR_RETURN(out.sha256,
                      HashOfNetwork(*net, absl::StrCat(unet::ConfigText(net->config().source),
                                                       out.scheduler->text)));
  out.module = std::move(net);
  return out;
}

absl::StatusOr<Model> FindScript(const ModelRequest& request, const std::string& path) {
  MP_ASSIGN_OR_RETURN(network::ScriptNetwork loaded, network::LoadScript(path));
  Model out;
  out.kind = kScriptTeacher;
  out.signature = loaded.signature;
  if (!request.prediction.empty()) {
    const absl::StatusOr<network::Prediction> parsed = network::ParsePrediction(request.prediction);
    if (!parsed.ok()) {
      return absl::InvalidArgumentError(absl::StrCat("--", std::string(parsed.status().message())));
    }
    const network::Prediction wanted = *parsed;
    if (wanted != out.signature.prediction) {
      return absl::InvalidArgumentError(
          absl::StrCat("--prediction ", request.prediction, ": ", path, " says ",
                       std::string(network::ToString(out.signature.prediction)),
                       "; leave the option out, or change that file"));
    }
  }
  if (out.signature.dtype != "float32" && out.signature.dtype != "float64") {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": dtype is ", out.signature.dtype, ", expected float32 or float64"));
  }
  if (!request.schedule.empty()) {
    if (out.signature.table) {
      return absl::InvalidArgumentError(absl::StrCat(
          "--schedule ", request.schedule, ": ", path,
          " has a [schedule] of its own; leave the option out, or take that out of the file"));
    }
    MP_ASSIGN_OR_RETURN(out.signature.table,
                        network::TableOfSchedule(request.schedule, kScriptLevels));
  } else if (!out.signature.table) {
    return absl::InvalidArgumentError(absl::StrCat("--schedule: is missing, and ", path,
                                                   " has no [schedule]; expected one of them"));
  }
  MP_ASSIGN_OR_RETURN(const std::string hash, Sha256OfFile(loaded.path));
  MP_ASSIGN_OR_RETURN(out.sha256, HashOfNetwork(*loaded.module, hash));
  out.module = std::move(loaded.module);
  return out;
}

// Leaves a file alone that says so already.
absl::Status WriteText(const std::string& path, const std::string& text) {
  const absl::StatusOr<std::string> there = ReadFile(path);
  if (there.ok() && *there == text) return absl::OkStatus();
  return WriteFileAtomically(path, text);
}

std::string IndexText(const Scheduler& scheduler) {
  const nlohmann::json index = {{"_class_name", scheduler.pipeline},
                                {"scheduler", {"diffusers", scheduler.class_name}},
                                {"unet", {"diffusers", "UNet2DModel"}}};
  return index.dump(2) + "\n";
}

}  // namespace

absl::StatusOr<std::string> HashOfNetwork(const network::Module& module, const std::string& what) {
  return network::Try("hashing the network", [&]() -> absl::StatusOr<std::string> {
    std::string text = what;
    for (const auto& list : {module.Parameters(), module.Buffers()}) {
      for (const auto& [name, tensor] : list) {
        const at::Tensor bytes = tensor.detach().to(at::kCPU).contiguous();
        absl::StrAppend(&text, "\n", name, " ",
                        Sha256({static_cast<const char*>(bytes.const_data_ptr()),
                                static_cast<std::size_t>(bytes.nbytes())}));
      }
    }
    return Sha256(text);
  });
}

absl::StatusOr<Model> FindModel(const ModelRequest& request) {
  absl::string_view path = request.model;
  const bool script = absl::ConsumePrefix(&path, absl::StrCat(kScriptTeacher, ":"));
  if (!script) absl::ConsumePrefix(&path, absl::StrCat(kUnetTeacher, ":"));
  const std::string file(path);
  if (script || absl::EndsWith(file, ".toml") || absl::EndsWith(file, ".ts")) {
    return FindScript(request, file);
  }
  return FindUnet(request, file);
}

absl::Status WriteModel(const network::Module& module, const Model& like,
                        const std::string& folder) {
  if (like.kind == kScriptTeacher) {
    return network::SaveScript(module, like.signature, folder + "/network");
  }
  MP_RETURN_IF_ERROR(MakeDirectories(folder + "/scheduler"));
  MP_RETURN_IF_ERROR(WriteText(folder + "/scheduler/scheduler_config.json", like.scheduler->text));
  MP_RETURN_IF_ERROR(module.Save(folder + "/unet"));
  // No pipeline of diffusers tells a UNet2DModel its class.
  if (like.scheduler->pipeline.empty() || like.signature.classes > 0) return absl::OkStatus();
  return WriteText(folder + "/model_index.json", IndexText(*like.scheduler));
}

absl::StatusOr<Model> LoadModel(const std::string& kind, const std::string& folder) {
  ModelRequest request;
  request.model = kind == kScriptTeacher ? absl::StrCat("script:", folder, "/network/model.toml")
                                         : absl::StrCat("unet:", folder);
  return FindModel(request);
}

}  // namespace mergeplan::denoising
