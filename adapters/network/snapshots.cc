#include "adapters/network/snapshots.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "adapters/network/tensor_file.h"
#include "adapters/network/try.h"
#include "planner/base/file.h"
#include "planner/base/status_macros.h"

namespace mergeplan::network {
namespace {

std::vector<Module::Named> AllOf(const Module& module) {
  std::vector<Module::Named> out = module.Parameters();
  for (Module::Named& buffer : module.Buffers()) out.push_back(std::move(buffer));
  return out;
}

}  // namespace

std::int64_t BytesOf(const Module& module) {
  std::int64_t bytes = 0;
  for (const auto& [name, tensor] : AllOf(module)) {
    bytes += static_cast<std::int64_t>(tensor.nbytes());
  }
  return bytes;
}

absl::Status CopyValues(const Module& from, Module& to) {
  const std::vector<Module::Named> source = AllOf(from);
  std::vector<Module::Named> target = AllOf(to);
  if (source.size() != target.size()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a network of ", source.size(), " tensors cannot become one of ", target.size()));
  }
  return Try("copying a network", [&]() -> absl::Status {
    const c10::NoGradGuard no_gradients;
    for (std::size_t i = 0; i < source.size(); ++i) {
      if (!source[i].second.sizes().equals(target[i].second.sizes())) {
        return absl::InvalidArgumentError(absl::StrCat("the tensor ", target[i].first,
                                                       " has another shape than ", source[i].first,
                                                       " of the network that it is to become"));
      }
      target[i].second.copy_(source[i].second);
    }
    return absl::OkStatus();
  });
}

absl::StatusOr<std::unique_ptr<Snapshots>> Snapshots::Create(const Module& like, std::string folder,
                                                             std::int64_t memory) {
  if (memory < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("the memory for snapshots is ", memory, " bytes, expected 0 or more"));
  }
  MP_ASSIGN_OR_RETURN(std::unique_ptr<Module> copy, like.Clone());
  const std::int64_t bytes = BytesOf(*copy);
  return std::unique_ptr<Snapshots>(
      new Snapshots(std::move(copy), std::move(folder), memory, bytes));
}

Snapshots::~Snapshots() {
  std::error_code ignored;
  if (own_folder_) std::filesystem::remove_all(folder_, ignored);
}

std::string Snapshots::Path(std::int64_t id) const {
  return absl::StrCat(folder_, "/", id, ".safetensors");
}

int Snapshots::references(std::int64_t id) const {
  const auto entry = entries_.find(id);
  return entry == entries_.end() ? 0 : entry->second.references;
}

std::int64_t Snapshots::bytes_in_memory() const {
  std::int64_t bytes = 0;
  for (const auto& [id, entry] : entries_) bytes += entry.module != nullptr ? bytes_ : 0;
  return bytes;
}

int Snapshots::spilled() const {
  int count = 0;
  for (const auto& [id, entry] : entries_) count += entry.module == nullptr ? 1 : 0;
  return count;
}

absl::Status Snapshots::MakeOwnFolder() {
  std::error_code ec;
  std::string folder =
      (std::filesystem::temp_directory_path(ec) / "mergeplan-snapshots-XXXXXX").string();
  if (ec || ::mkdtemp(folder.data()) == nullptr) {
    return absl::FailedPreconditionError(absl::StrCat(
        "no folder for the snapshots beyond the limit of memory could be made in TMPDIR (",
        ec ? ec.message() : std::strerror(errno), "); set TMPDIR to one that can be written"));
  }
  folder_ = std::move(folder);
  own_folder_ = true;
  return absl::OkStatus();
}

absl::Status Snapshots::WriteOne(std::int64_t id, Entry& entry) {
  if (entry.has_file) return absl::OkStatus();
  if (folder_.empty()) MP_RETURN_IF_ERROR(MakeOwnFolder());
  MP_RETURN_IF_ERROR(MakeDirectories(folder_));
  TensorFile file;
  file.tensors = AllOf(*entry.module);
  MP_RETURN_IF_ERROR(WriteTensorFile(file, Path(id)));
  entry.has_file = true;
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<Module>> Snapshots::ReadOne(std::int64_t id) const {
  const std::string path = Path(id);
  MP_ASSIGN_OR_RETURN(const TensorFile file, ReadTensorFile(path));
  MP_ASSIGN_OR_RETURN(std::unique_ptr<Module> module, like_->Clone());
  std::vector<Module::Named> tensors = AllOf(*module);
  if (file.tensors.size() != tensors.size()) {
    return absl::DataLossError(absl::StrCat(path, ": has ", file.tensors.size(),
                                            " tensors, the student ", tensors.size()));
  }
  for (Module::Named& entry : tensors) {
    const std::string& name = entry.first;
    at::Tensor& tensor = entry.second;
    const at::Tensor* found = file.Find(name);
    if (found == nullptr || !found->sizes().equals(tensor.sizes()) ||
        found->scalar_type() != tensor.scalar_type()) {
      return absl::DataLossError(
          absl::StrCat(path, ": has no tensor ", name, " of the student's shape and type"));
    }
    MP_RETURN_IF_ERROR(Try(path, [&] {
      const c10::NoGradGuard no_gradients;
      tensor.copy_(*found);
      return absl::OkStatus();
    }));
  }
  return std::shared_ptr<Module>(std::move(module));
}

absl::Status Snapshots::MakeRoom(std::int64_t keep) {
  while (memory_ > 0 && bytes_in_memory() + bytes_ > memory_) {
    auto oldest = entries_.end();
    for (auto entry = entries_.begin(); entry != entries_.end(); ++entry) {
      // What somebody holds would stay in memory all the same.
      if (entry->second.module == nullptr || entry->first == keep ||
          entry->second.module.use_count() > 1) {
        continue;
      }
      if (oldest == entries_.end() || entry->second.used < oldest->second.used) oldest = entry;
    }
    if (oldest == entries_.end()) return absl::OkStatus();
    MP_RETURN_IF_ERROR(WriteOne(oldest->first, oldest->second));
    oldest->second.module = nullptr;
  }
  return absl::OkStatus();
}

absl::StatusOr<std::int64_t> Snapshots::Put(std::unique_ptr<Module> module) {
  MP_RETURN_IF_ERROR(MakeRoom(-1));
  const std::int64_t id = next_++;
  Entry entry;
  entry.module = std::move(module);
  entry.used = ++clock_;
  entries_.emplace(id, std::move(entry));
  return id;
}

void Snapshots::Retain(std::int64_t id) {
  const auto entry = entries_.find(id);
  if (entry != entries_.end()) ++entry->second.references;
}

void Snapshots::Release(std::int64_t id) {
  const auto entry = entries_.find(id);
  if (entry == entries_.end() || --entry->second.references > 0) return;
  if (entry->second.has_file) dropped_.push_back(id);
  entries_.erase(entry);
}

absl::StatusOr<std::shared_ptr<Module>> Snapshots::Get(std::int64_t id) {
  const auto entry = entries_.find(id);
  if (entry == entries_.end()) {
    return absl::NotFoundError(absl::StrCat("snapshot ", id, " has been dropped"));
  }
  entry->second.used = ++clock_;
  if (entry->second.module == nullptr) {
    MP_RETURN_IF_ERROR(MakeRoom(id));
    MP_ASSIGN_OR_RETURN(entry->second.module, ReadOne(id));
  }
  return entry->second.module;
}

absl::Status Snapshots::Persist() {
  if ((folder_.empty() || own_folder_) && !entries_.empty()) {
    return absl::FailedPreconditionError("snapshots have no folder to be kept in");
  }
  for (auto& [id, entry] : entries_) MP_RETURN_IF_ERROR(WriteOne(id, entry));
  return absl::OkStatus();
}

void Snapshots::Sweep() {
  for (const std::int64_t id : dropped_) {
    std::error_code ignored;  // what cannot be removed does no harm
    std::filesystem::remove(Path(id), ignored);
  }
  dropped_.clear();
}

absl::Status Snapshots::Adopt(std::int64_t id, int references) {
  Entry entry;
  entry.references = references;
  entry.has_file = true;
  // Read at once, so that damage shows before the run goes on.
  MP_ASSIGN_OR_RETURN(entry.module, ReadOne(id));
  MP_RETURN_IF_ERROR(MakeRoom(-1));
  entry.used = ++clock_;
  if (memory_ > 0 && bytes_in_memory() + bytes_ > memory_) entry.module = nullptr;
  entries_[id] = std::move(entry);
  next_ = std::max(next_, id + 1);
  return absl::OkStatus();
}

}  // namespace mergeplan::network
