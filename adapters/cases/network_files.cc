#include "adapters/cases/network_files.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "adapters/layers/model_folder.h"
#include "adapters/model/describe.h"
#include "adapters/network/script.h"
#include "adapters/unet/unet.h"
#include "planner/base/file.h"
#include "planner/base/status_macros.h"
#include "planner/runs/run_info.h"

namespace mergeplan {
namespace {

absl::StatusOr<std::string> HashOf(std::vector<std::string> files) {
  std::sort(files.begin(), files.end());
  std::string text;
  for (const std::string& file : files) {
    MP_ASSIGN_OR_RETURN(const std::string hash, Sha256OfFile(file));
    absl::StrAppend(&text, hash, "\n");
  }
  return Sha256(text);
}

absl::StatusOr<NetworkFile> LoadScriptFile(const TeacherName& name) {
  MP_ASSIGN_OR_RETURN(network::ScriptNetwork loaded, network::LoadScript(name.path));
  NetworkFile out{
      std::move(loaded.module), std::move(loaded.signature), name.kind, name.path, "", ""};
  // What the sidecar says stands in the signature, which a run keeps by itself.
  MP_ASSIGN_OR_RETURN(out.sha256, HashOf({loaded.path}));
  return out;
}

absl::Status NoNetwork(const TeacherName& name) {
  return Misuse(absl::StrCat(name.kind, ":", name.path,
                             ": is no network, expected script:MODEL.toml or unet:FOLDER"));
}

absl::Status CheckTrainable(const unet::Config& config, const std::string& where) {
  if (config.class_embedding == unet::ClassEmbedding::kIdentity) {
    return absl::UnimplementedError(absl::StrCat(
        where,
        ": is told vectors in place of classes (class_embed_type identity), expected a network "
        "without labels or of num_class_embeds classes: those vectors are read, but neither "
        "trained nor distilled by this version"));
  }
  if (config.class_embedding == unet::ClassEmbedding::kTimestep && config.num_class_embeds == 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        where,
        "/config.json: class_embed_type is timestep and num_class_embeds is not given, expected "
        "how many classes there are; add it, which changes nothing else"));
  }
  if (config.sample_size.empty() || config.in_channels != config.out_channels) {
    return absl::InvalidArgumentError(absl::StrCat(
        where, "/config.json: expected a sample_size, and as many in_channels as out_channels"));
  }
  return absl::OkStatus();
}

// What a diffusers folder says of its network stands in the scheduler's config.
absl::StatusOr<network::Signature> SignatureOf(const unet::UNet2d& net, const std::string& folder) {
  const std::optional<model::SchedulerFacts> scheduler = model::FindScheduler(folder);
  if (!scheduler) {
    return absl::NotFoundError(absl::StrCat(
        folder,
        ": found no scheduler_config.json in it, in scheduler/ or in ../scheduler/, which says "
        "what "
        "the network predicts and at which noise levels it was trained; put it there"));
  }
  if (!scheduler->fault.empty()) return absl::InvalidArgumentError(scheduler->fault);
  MP_ASSIGN_OR_RETURN(const network::Prediction prediction,
                      network::ParsePrediction(scheduler->prediction_type));
  MP_ASSIGN_OR_RETURN(network::TrainingTable table,
                      network::TableOfSchedule(scheduler->file, scheduler->num_train_timesteps));
  return UnetSignature(net.config(), prediction, std::move(table), folder);
}

absl::StatusOr<NetworkFile> LoadUnetFolder(const TeacherName& name) {
  MP_ASSIGN_OR_RETURN(const std::string folder, layers::FindModelFolder(name.path, "unet"));
  MP_ASSIGN_OR_RETURN(std::unique_ptr<unet::UNet2d> net, unet::UNet2d::Load(folder));
  NetworkFile out{nullptr, {}, name.kind, name.path, "", ""};
  MP_ASSIGN_OR_RETURN(out.signature, SignatureOf(*net, folder));
  out.scheduler = model::FindScheduler(folder)->file;
  out.module = std::move(net);
  std::vector<std::string> files = {folder + "/config.json"};
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() == ".safetensors") files.push_back(entry.path().string());
  }
  MP_ASSIGN_OR_RETURN(out.sha256, HashOf(std::move(files)));
  return out;
}

}  // namespace

absl::StatusOr<network::Signature> UnetSignature(const unet::Config& config,
                                                 network::Prediction prediction,
                                                 network::TrainingTable table,
                                                 const std::string& where) {
  MP_RETURN_IF_ERROR(CheckTrainable(config, where));
  network::Signature signature;
  signature.prediction = prediction;
  signature.shape = {config.in_channels, config.sample_size[0], config.sample_size[1]};
  signature.time = network::TimeKind::kTimestep;
  signature.table = std::move(table);
  if (config.class_embedding != unet::ClassEmbedding::kNone) {
    signature.classes = config.num_class_embeds;
    signature.arguments.emplace_back("label");
  }
  MP_RETURN_IF_ERROR(network::Validate(signature, where));
  return signature;
}

absl::StatusOr<NetworkFile> LoadNetwork(const TeacherName& name) {
  if (name.kind == kScriptTeacher) return LoadScriptFile(name);
  if (name.kind == kUnetTeacher) return LoadUnetFolder(name);
  return NoNetwork(name);
}

absl::StatusOr<std::vector<std::int64_t>> ShapeOfNetwork(const TeacherName& name) {
  if (name.kind == kScriptTeacher) {
    MP_ASSIGN_OR_RETURN(const network::Sidecar sidecar, network::SidecarOf(name.path));
    return sidecar.signature.shape;
  }
  if (name.kind != kUnetTeacher) return NoNetwork(name);
  MP_ASSIGN_OR_RETURN(const std::string folder, layers::FindModelFolder(name.path, "unet"));
  const std::string path = folder + "/config.json";
  MP_ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  MP_ASSIGN_OR_RETURN(const unet::Config config, unet::ParseConfigText(text, path));
  MP_RETURN_IF_ERROR(CheckTrainable(config, folder));
  return std::vector<std::int64_t>{config.in_channels, config.sample_size[0],
                                   config.sample_size[1]};
}

absl::Status SaveNetwork(const network::Module& module, const NetworkFile& like,
                         const std::string& folder) {
  if (like.kind == kScriptTeacher) return network::SaveScript(module, like.signature, folder);
  MP_RETURN_IF_ERROR(module.Save(folder));
  if (like.scheduler.empty()) return absl::OkStatus();
  MP_ASSIGN_OR_RETURN(const std::string scheduler, ReadFile(like.scheduler));
  const std::string beside = (std::filesystem::path(folder).parent_path() / "scheduler").string();
  MP_RETURN_IF_ERROR(MakeDirectories(beside));
  return WriteFileAtomically(beside + "/scheduler_config.json", scheduler);
}

}  // namespace mergeplan
