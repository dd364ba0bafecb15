#include "adapters/runtime/network_files.h"

#include <algorithm>
#include <filesystem>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "adapters/network/script.h"
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
  NetworkFile out{std::move(loaded.module), std::move(loaded.signature), name.kind, name.path, ""};
  // What the sidecar says stands in the signature, which a run keeps by itself.
  MP_ASSIGN_OR_RETURN(out.sha256, HashOf({loaded.path}));
  return out;
}

}  // namespace

absl::StatusOr<NetworkFile> LoadNetwork(const TeacherName& name) {
  if (name.kind == kScriptTeacher) return LoadScriptFile(name);
  return Misuse(absl::StrCat(name.kind, ":", name.path,
                             ": is no network, expected script:MODEL.toml or unet:FOLDER"));
}

absl::Status SaveNetwork(const network::Module& module, const NetworkFile& like,
                         const std::string& folder) {
  if (like.kind == kScriptTeacher) return network::SaveScript(module, like.signature, folder);
  return module.Save(folder);
}

}  // namespace mergeplan
