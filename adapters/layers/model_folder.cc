#include "adapters/layers/model_folder.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <map>
#include <system_error>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "planner/base/file.h"
#include "planner/base/status_macros.h"

namespace mergeplan::layers {
namespace {

namespace fs = std::filesystem;

bool IsFile(const std::string& path) {
  std::error_code ec;
  return fs::is_regular_file(path, ec);
}

absl::StatusOr<std::vector<std::unique_ptr<SafetensorsFile>>> OpenShards(const std::string& folder,
                                                                         const std::string& index) {
  MP_ASSIGN_OR_RETURN(const auto where, ReadSafetensorsIndex(index));
  std::map<std::string, size_t> opened;
  std::vector<std::unique_ptr<SafetensorsFile>> files;
  for (const auto& [tensor, name] : where) {
    if (opened.emplace(name, files.size()).second) {
      MP_ASSIGN_OR_RETURN(auto file, SafetensorsFile::Open(absl::StrCat(folder, "/", name)));
      files.push_back(std::move(file));
    }
  }
  size_t found = 0;
  for (const auto& file : files) {
    for (const SafetensorsEntry& entry : file->entries()) {
      const auto at = where.find(entry.name);
      const bool here = at != where.end() && files[opened[at->second]] == file;
      if (!here) {
        return absl::InvalidArgumentError(
            absl::StrCat(index, ": says that tensor ", entry.name, " is ",
                         at == where.end() ? "nowhere" : absl::StrCat("in ", at->second),
                         ", found in ", file->path()));
      }
      ++found;
    }
  }
  if (found == where.size()) return files;
  for (const auto& [tensor, name] : where) {
    bool there = false;
    for (const SafetensorsEntry& e : files[opened[name]]->entries()) there |= e.name == tensor;
    if (!there) {
      return absl::InvalidArgumentError(
          absl::StrCat(index, ": says that tensor ", tensor, " is in ", name, ", which lacks it"));
    }
  }
  return files;
}

absl::Status NoWeights(const std::string& folder) {
  std::error_code ec;
  std::string pickle;
  for (const auto& entry : fs::directory_iterator(folder, ec)) {
    const std::string name = entry.path().filename().string();
    if (entry.path().extension() == ".bin" && (pickle.empty() || name < pickle)) pickle = name;
  }
  if (!pickle.empty()) {
    return absl::FailedPreconditionError(absl::StrCat(
        folder, ": its weights are in ", pickle,
        ", a pickle, which runs code when it is read; convert it where you trust it: python -c "
        "\"from diffusers import UNet2DModel as M; M.from_pretrained('",
        folder, "', use_safetensors=False).save_pretrained('NEW_FOLDER')\""));
  }
  return absl::NotFoundError(
      absl::StrCat(folder,
                   ": has no weights, expected diffusion_pytorch_model.safetensors or "
                   "diffusion_pytorch_model.safetensors.index.json"));
}

// What such a folder holds; anything else is not ours to remove.
bool IsOurs(const fs::directory_entry& entry) {
  const std::string name = entry.path().filename().string();
  std::error_code ec;
  if (!entry.is_regular_file(ec)) return false;
  if (name == "config.json") return true;
  return (absl::StartsWith(name, "diffusion_pytorch_model") || absl::StartsWith(name, "model")) &&
         (absl::EndsWith(name, ".safetensors") || absl::EndsWith(name, ".index.json"));
}

void SyncFolder(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return;
  ::fsync(fd);
  ::close(fd);
}

}  // namespace

absl::StatusOr<std::string> FindModelFolder(const std::string& path, const std::string& name) {
  std::error_code ec;
  if (!fs::is_directory(path, ec)) {
    return absl::NotFoundError(
        absl::StrCat(path, fs::exists(path, ec) ? ": is no folder" : ": does not exist",
                     ", expected a folder with config.json and weights"));
  }
  for (const std::string& folder : {path, absl::StrCat(path, "/", name)}) {
    if (IsFile(folder + "/config.json")) return folder;
  }
  return absl::NotFoundError(
      absl::StrCat(path, ": has no config.json, and neither has ", path, "/", name));
}

absl::StatusOr<std::vector<std::unique_ptr<SafetensorsFile>>> OpenWeights(
    const std::string& folder) {
  for (const char* variant : {"", ".fp16", ".bf16"}) {
    for (const char* stem : {"diffusion_pytorch_model", "model"}) {
      const std::string single = absl::StrCat(folder, "/", stem, variant, ".safetensors");
      if (IsFile(single)) {
        MP_ASSIGN_OR_RETURN(auto file, SafetensorsFile::Open(single));
        std::vector<std::unique_ptr<SafetensorsFile>> files;
        files.push_back(std::move(file));
        return files;
      }
      const std::string index =
          absl::StrCat(folder, "/", stem, ".safetensors.index", variant, ".json");
      if (IsFile(index)) return OpenShards(folder, index);
    }
  }
  return NoWeights(folder);
}

absl::Status WriteModelFolder(const std::string& path,
                              const std::function<absl::Status(const std::string& folder)>& write) {
  std::error_code ec;
  fs::path target = path;
  if (target.filename().empty()) target = target.parent_path();  // a slash at the end
  if (target.empty()) return absl::InvalidArgumentError("the folder to write has no name");
  if (fs::is_symlink(target, ec)) target = fs::weakly_canonical(target, ec);
  const bool exists = fs::exists(target, ec);
  if (exists && !fs::is_directory(target, ec)) {
    return absl::FailedPreconditionError(absl::StrCat(path, ": is a file, expected a folder"));
  }
  if (exists) {
    for (const auto& entry : fs::directory_iterator(target, ec)) {
      if (!IsOurs(entry)) {
        return absl::FailedPreconditionError(
            absl::StrCat(path, ": holds ", entry.path().filename().string(),
                         ", which is no part of a model; write to a new folder"));
      }
    }
    if (ec) return absl::ErrnoToStatus(ec.value(), absl::StrCat(path, ": cannot be read"));
  }
  const std::string above = target.has_parent_path() ? target.parent_path().string() : ".";
  MP_RETURN_IF_ERROR(MakeDirectories(above));
  static std::atomic<unsigned> counter{0};
  const std::string beside =
      absl::StrCat(target.string(), ".tmp-", ::getpid(), "-", counter.fetch_add(1));
  if (::mkdir(beside.c_str(), 0777) != 0) {
    return absl::ErrnoToStatus(errno, absl::StrCat(path, ": cannot be written"));
  }
  // Also what is replaced, once the two have changed places.
  const auto remove = absl::MakeCleanup([&beside] {
    std::error_code ignored;
    fs::remove_all(beside, ignored);
  });
  MP_RETURN_IF_ERROR(write(beside));
  SyncFolder(beside);
  if (!exists) {
    if (std::rename(beside.c_str(), target.c_str()) != 0) {
      return absl::ErrnoToStatus(errno, absl::StrCat(path, ": cannot be put in its place"));
    }
  } else if (::renameat2(AT_FDCWD, beside.c_str(), AT_FDCWD, target.c_str(), RENAME_EXCHANGE) !=
             0) {
    return absl::ErrnoToStatus(errno,
                               absl::StrCat(path, ": cannot be replaced; write to a new folder"));
  }
  SyncFolder(above);
  return absl::OkStatus();
}

}  // namespace mergeplan::layers
