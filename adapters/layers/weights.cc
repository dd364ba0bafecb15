#include "adapters/layers/weights.h"

#include <ATen/ops/empty.h>
#include <c10/core/GradMode.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string_view>
#include <thread>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "adapters/layers/arena.h"
#include "planner/base/file.h"
#include "planner/base/status_macros.h"
#include "planner/data/npy.h"

namespace mergeplan::layers {
namespace {

constexpr std::pair<at::ScalarType, const char*> kDtypes[] = {
    {at::kDouble, "F64"}, {at::kFloat, "F32"}, {at::kHalf, "F16"}, {at::kBFloat16, "BF16"}};
constexpr std::int64_t kPiece = std::int64_t{1} << 22;  // stays in the cache until it is checked
constexpr std::int64_t kWorthThreads = std::int64_t{1} << 25;

std::optional<at::ScalarType> DtypeOf(const std::string& name) {
  for (const auto& [dtype, word] : kDtypes) {
    if (name == word) return dtype;
  }
  return std::nullopt;
}

// Infinite or not a number: all bits of the exponent are set.
template <typename Bits>
bool AnyNonfinite(const void* data, std::int64_t count, Bits exponent) {
  const Bits* bits = static_cast<const Bits*>(data);
  bool any = false;
  for (std::int64_t k = 0; k < count; ++k) any |= (bits[k] & exponent) == exponent;
  return any;
}

bool AllFinite(at::ScalarType dtype, const void* data, std::int64_t count) {
  switch (dtype) {
    case at::kDouble:
      return !AnyNonfinite<std::uint64_t>(data, count, 0x7ff0000000000000);
    case at::kFloat:
      return !AnyNonfinite<std::uint32_t>(data, count, 0x7f800000);
    case at::kHalf:
      return !AnyNonfinite<std::uint16_t>(data, count, 0x7c00);
    default:
      return !AnyNonfinite<std::uint16_t>(data, count, 0x7f80);
  }
}

struct Source {
  const SafetensorsFile* file = nullptr;
  const SafetensorsEntry* entry = nullptr;
};

// The name that the network has for what an old checkpoint calls NAME.query.weight.
std::string Renamed(const std::string& name) {
  constexpr std::pair<const char*, const char*> kOld[] = {
      {"query", "to_q"}, {"key", "to_k"}, {"value", "to_v"}, {"proj_attn", "to_out.0"}};
  for (const char* part : {".weight", ".bias"}) {
    for (const auto& [old, now] : kOld) {
      const std::string end = absl::StrCat(".", old, part);
      if (absl::EndsWith(name, end)) {
        return absl::StrCat(name.substr(0, name.size() - end.size()), ".", now, part);
      }
    }
  }
  return name;
}

absl::StatusOr<std::vector<Source>> Match(
    const Registry& registry, const std::vector<std::unique_ptr<SafetensorsFile>>& files) {
  std::map<std::string, size_t> leaves;
  for (size_t k = 0; k < registry.leaves().size(); ++k) leaves[registry.leaves()[k].name] = k;
  std::vector<Source> sources(registry.leaves().size());
  std::string extra;
  size_t extras = 0;
  for (const auto& file : files) {
    for (const SafetensorsEntry& entry : file->entries()) {
      auto at = leaves.find(entry.name);
      if (at == leaves.end()) at = leaves.find(Renamed(entry.name));
      if (at == leaves.end()) {
        if (extras++ == 0)
          extra = absl::StrCat(file->path(), ": tensor ", entry.name, " of shape ",
                               ShapeText(entry.shape));
        continue;
      }
      const Leaf& leaf = registry.leaves()[at->second];
      const std::string where = absl::StrCat(file->path(), ": tensor ", entry.name);
      Source& source = sources[at->second];
      if (source.entry != nullptr) {
        return absl::InvalidArgumentError(absl::StrCat(
            where, ": is the same as ", source.entry->name, " in ", source.file->path()));
      }
      if (entry.shape != leaf.shape) {
        return absl::InvalidArgumentError(
            absl::StrCat(where, ": has shape ", ShapeText(entry.shape), ", expected ",
                         ShapeText(leaf.shape), " by the config.json"));
      }
      if (!DtypeOf(entry.dtype)) {
        return absl::InvalidArgumentError(
            absl::StrCat(where, ": has dtype ", entry.dtype, ", expected F32, F16, BF16 or F64"));
      }
      source = {file.get(), &entry};
    }
  }
  size_t missing = 0;
  const Leaf* first = nullptr;
  for (size_t k = 0; k < sources.size(); ++k) {
    if (sources[k].entry == nullptr && missing++ == 0) first = &registry.leaves()[k];
  }
  if (missing > 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        files.front()->path(), ": tensor ", first->name, " of shape ", ShapeText(first->shape),
        " is missing", missing > 1 ? absl::StrCat(", and ", missing - 1, " more") : "",
        extras > 0 ? absl::StrCat("; found instead: ", extra) : ""));
  }
  if (extras > 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(extra, " is none of this network's",
                     extras > 1 ? absl::StrCat(", nor are ", extras - 1, " more") : "",
                     "; does the config.json belong to these weights?"));
  }
  return sources;
}

// `values` is the memory that the file's bytes go to.
absl::Status LoadLeaf(const Source& source, at::ScalarType dtype, at::Device device,
                      at::Tensor values, Leaf& leaf) {
  const at::ScalarType stored = values.scalar_type();
  char* bytes = static_cast<char*>(values.data_ptr());
  const std::int64_t element = SafetensorsElementSize(source.entry->dtype);
  const auto not_finite = [&](const std::string& more) {
    return absl::InvalidArgumentError(absl::StrCat(source.file->path(), ": tensor ",
                                                   source.entry->name,
                                                   " holds a number that is not finite", more));
  };
  for (std::int64_t at = 0; at < source.entry->bytes(); at += kPiece) {
    const std::int64_t size = std::min(kPiece, source.entry->bytes() - at);
    MP_RETURN_IF_ERROR(
        source.file->Read(*source.entry, at, {bytes + at, static_cast<size_t>(size)}));
    if (!AllFinite(stored, bytes + at, size / element)) return not_finite("");
  }
  if (stored != dtype) {
    values = values.to(dtype);
    if (!AllFinite(dtype, values.data_ptr(), values.numel())) {
      return not_finite(absl::StrCat(" as ", at::toString(dtype)));
    }
  }
  leaf.tensor.set_data(values.to(device));
  return absl::OkStatus();
}

// Holds the one tensor that is being written.
class Writer {
 public:
  explicit Writer(std::string where) : where_(std::move(where)) {}
  absl::StatusOr<std::string_view> Bytes(const Leaf& leaf, at::ScalarType dtype) {
    held_ = leaf.tensor.detach().to(at::kCPU, dtype).contiguous();
    if (!AllFinite(dtype, held_.data_ptr(), held_.numel())) {
      return absl::InvalidArgumentError(absl::StrCat(where_, ": tensor ", leaf.name,
                                                     " holds a number that is not finite as ",
                                                     at::toString(dtype)));
    }
    return std::string_view(static_cast<const char*>(held_.data_ptr()), held_.nbytes());
  }

 private:
  std::string where_;
  at::Tensor held_;
};

}  // namespace

std::string SafetensorsDtype(at::ScalarType dtype) {
  for (const auto& [known, word] : kDtypes) {
    if (known == dtype) return word;
  }
  return "";
}

absl::Status LoadWeights(Registry& registry,
                         const std::vector<std::unique_ptr<SafetensorsFile>>& files,
                         at::ScalarType dtype, at::Device device) {
  if (SafetensorsDtype(dtype).empty()) {
    return absl::InvalidArgumentError(absl::StrCat("weights cannot be held as ",
                                                   at::toString(dtype),
                                                   ", expected Float, Half, BFloat16 or Double"));
  }
  MP_ASSIGN_OR_RETURN(const std::vector<Source> sources, Match(registry, files));
  std::int64_t total = 0;
  std::vector<std::int64_t> offsets;
  for (const Source& source : sources) {
    offsets.push_back(total);
    total += Arena::Room(source.entry->bytes());
  }
  // What is converted or goes to a device needs its bytes for a moment only.
  bool stays = device.is_cpu() && total > kWorthThreads;
  for (const Source& source : sources) stays = stays && *DtypeOf(source.entry->dtype) == dtype;
  const std::shared_ptr<Arena> arena = stays ? Arena::Create(total) : nullptr;
  std::atomic<size_t> next{0};
  std::mutex mutex;
  absl::Status status;
  const auto work = [&] {
    const c10::AutoGradMode no_gradients(false);
    for (size_t k = next++; k < sources.size(); k = next++) {
      absl::Status one;
      try {
        Leaf& leaf = registry.leaves()[k];
        const at::ScalarType stored = *DtypeOf(sources[k].entry->dtype);
        one = LoadLeaf(sources[k], dtype, device,
                       arena ? Arena::Tensor(arena, offsets[k], leaf.shape, stored)
                             : at::empty(leaf.shape, at::TensorOptions(stored)),
                       leaf);
      } catch (const c10::Error& error) {
        one = absl::ResourceExhaustedError(absl::StrCat(sources[k].file->path(), ": tensor ",
                                                        sources[k].entry->name, ": ",
                                                        error.what_without_backtrace()));
      }
      if (one.ok()) continue;
      const std::lock_guard<std::mutex> lock(mutex);
      if (status.ok()) status = one;
      next = sources.size();
    }
  };
  std::vector<std::thread> threads;
  if (total > kWorthThreads && device.is_cpu()) {
    const unsigned more = std::min(3U, std::max(1U, std::thread::hardware_concurrency()) - 1);
    for (unsigned k = 0; k < more; ++k) threads.emplace_back(work);
  }
  work();
  for (std::thread& thread : threads) thread.join();
  return status;
}

absl::Status WriteWeights(const Registry& registry, const std::string& folder,
                          const SaveOptions& options) {
  std::vector<std::vector<SafetensorsTensor>> shards(1);
  Writer writer(folder);
  std::int64_t total = 0, in_shard = 0;
  for (const Leaf& leaf : registry.leaves()) {
    const at::ScalarType dtype = options.dtype.value_or(leaf.tensor.scalar_type());
    const std::string word = SafetensorsDtype(dtype);
    const std::int64_t bytes = leaf.count() * SafetensorsElementSize(word);
    if (!shards.back().empty() && in_shard + bytes > options.shard_bytes) {
      shards.emplace_back();
      in_shard = 0;
    }
    in_shard += bytes;
    total += bytes;
    shards.back().push_back({leaf.name, word, leaf.shape,
                             [&writer, &leaf, dtype] { return writer.Bytes(leaf, dtype); }});
  }
  const std::string stem = "diffusion_pytorch_model";
  const std::map<std::string, std::string> metadata = {{"format", "pt"}};
  if (shards.size() == 1) {
    return WriteSafetensors(folder + "/" + stem + ".safetensors", std::move(shards[0]), metadata);
  }
  nlohmann::json index = {{"metadata", {{"total_size", total}}},
                          {"weight_map", nlohmann::json::object()}};
  for (size_t k = 0; k < shards.size(); ++k) {
    const std::string name =
        absl::StrFormat("%s-%05d-of-%05d.safetensors", stem, k + 1, shards.size());
    for (const SafetensorsTensor& tensor : shards[k]) index["weight_map"][tensor.name] = name;
    MP_RETURN_IF_ERROR(WriteSafetensors(folder + "/" + name, std::move(shards[k]), metadata));
  }
  return WriteFileAtomically(folder + "/" + stem + ".safetensors.index.json", index.dump(2) + "\n");
}

}  // namespace mergeplan::layers
