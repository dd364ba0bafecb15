#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include <nlohmann/json.hpp>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "adapters/judge/classifier.h"
#include "adapters/network/tensor_file.h"
#include "adapters/network/try.h"
#include "planner/base/file.h"
#include "planner/base/status_macros.h"

namespace mergeplan::judge {
namespace {

constexpr char kWeights[] = "/classifier.safetensors";

absl::StatusOr<ClassifierConfig> ReadConfig(const std::string& path) {
  MP_ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  const nlohmann::json json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": is no JSON object"));
  }
  static const std::set<std::string> keys = {"format",   "kind",     "name",    "shape",
                                             "classes",  "channels", "mean",    "deviation",
                                             "accuracy", "tested",   "training"};
  for (const auto& [key, value] : json.items()) {
    if (keys.contains(key)) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": unknown key '", key, "', expected ", absl::StrJoin(keys, ", ")));
  }
  const std::string where = absl::StrCat(path, ": ");
  try {
    if (json.at("format") != 1 || json.at("kind") != "mergeplan-classifier") {
      return absl::InvalidArgumentError(
          where + "expected \"format\": 1 and \"kind\": \"mergeplan-classifier\"");
    }
    ClassifierConfig out;
    out.name = json.at("name").get<std::string>();
    out.shape = json.at("shape").get<std::vector<std::int64_t>>();
    out.classes = json.at("classes").get<int>();
    out.channels = json.at("channels").get<std::array<int, 4>>();
    out.mean = json.at("mean").get<double>();
    out.deviation = json.at("deviation").get<double>();
    out.accuracy = json.at("accuracy").get<double>();
    out.tested = json.at("tested").get<std::int64_t>();
    out.training = json.at("training").get<std::string>();
    return out;
  } catch (const nlohmann::json::exception& error) {
    return absl::InvalidArgumentError(where + error.what());
  }
}

}  // namespace

absl::StatusOr<Classifier> Classifier::Load(const std::string& folder) {
  MP_ASSIGN_OR_RETURN(ClassifierConfig config, ReadConfig(folder + "/config.json"));
  absl::StatusOr<Classifier> out = Create(std::move(config), 0);
  if (!out.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat(folder, "/config.json: ", std::string(out.status().message())));
  }
  MP_ASSIGN_OR_RETURN(const network::TensorFile file, network::ReadTensorFile(folder + kWeights));
  const c10::NoGradGuard no_gradients;
  for (auto& [name, tensor] : out->parameters_) {
    const at::Tensor* found = file.Find(name);
    if (found == nullptr || !found->sizes().equals(tensor.sizes()) ||
        found->scalar_type() != at::kFloat) {
      return absl::DataLossError(absl::StrCat(folder, kWeights, ": the tensor ", name,
                                              " is missing, or is not float32 of [",
                                              absl::StrJoin(tensor.sizes(), ", "), "]"));
    }
    if (!at::isfinite(*found).all().item<bool>()) {
      return absl::DataLossError(
          absl::StrCat(folder, kWeights, ": ", name, " holds numbers that are not finite"));
    }
    tensor.copy_(*found);
  }
  return out;
}

absl::Status Classifier::Save(const std::string& folder) const {
  MP_RETURN_IF_ERROR(MakeDirectories(folder));
  network::TensorFile file;
  for (const auto& [name, tensor] : parameters_) file.tensors.emplace_back(name, tensor.detach());
  MP_RETURN_IF_ERROR(network::WriteTensorFile(file, folder + kWeights));
  const nlohmann::ordered_json json = {{"format", 1},
                                       {"kind", "mergeplan-classifier"},
                                       {"name", config_.name},
                                       {"shape", config_.shape},
                                       {"classes", config_.classes},
                                       {"channels", config_.channels},
                                       {"mean", config_.mean},
                                       {"deviation", config_.deviation},
                                       {"accuracy", config_.accuracy},
                                       {"tested", config_.tested},
                                       {"training", config_.training}};
  return WriteFileAtomically(
      folder + "/config.json",
      json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n");
}

}  // namespace mergeplan::judge
