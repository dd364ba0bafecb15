#include "adapters/encoding/cache.h"

#include <toml++/toml.h>

#include <algorithm>
#include <filesystem>
#include <sstream>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "adapters/encoding/half.h"
#include "planner/base/file.h"
#include "planner/base/leftover.h"
#include "planner/base/status_macros.h"
#include "planner/data/safetensors.h"
#include "planner/runs/table_reader.h"

namespace mergeplan::encoding {
namespace {

constexpr char kIdentityKey[] = "mergeplan.encode";
constexpr char kDescriptionFile[] = "encode.toml";
constexpr char kFinishedFile[] = "latents.toml";
constexpr std::int64_t kPiece = std::int64_t{1} << 20;  // bytes that are copied at a time

toml::table Table(const CacheDescription& description, const std::string& identity) {
  toml::table made_of;
  for (const auto& [key, value] : description.made_of) made_of.insert(key, value);
  toml::array shape, arrays;
  for (const std::int64_t extent : description.shape) shape.push_back(extent);
  for (const std::string& array : description.arrays) arrays.push_back(array);
  toml::table table;
  table.insert("format", 1);
  table.insert("identity", identity);
  table.insert("shape", shape);
  table.insert("arrays", arrays);
  table.insert("dtype", description.dtype);
  table.insert("part_samples", description.part_samples);
  table.insert("made_of", made_of);
  return table;
}

std::string Text(const toml::table& table) {
  std::ostringstream out;
  out << table << "\n";
  return out.str();
}

// "vae was a (now b), scale was c (now d)".
std::string Differences(const toml::table& had, const toml::table& now) {
  std::vector<std::string> out;
  const auto value = [](const toml::table& table, std::string_view key) {
    std::ostringstream text;
    if (const auto node = table[key]) {
      node.visit([&](const auto& v) { text << v; });
    } else {
      text << "none";
    }
    return text.str();
  };
  const auto compare = [&](const toml::table& a, const toml::table& b) {
    for (const auto& [key, node] : b) {
      if (node.is_table() || key.str() == "identity") continue;
      const std::string was = value(a, key.str()), is = value(b, key.str());
      if (was != is)
        out.push_back(absl::StrCat(std::string(key.str()), " was ", was, " (now ", is, ")"));
    }
  };
  compare(had, now);
  static const toml::table kNone;
  const toml::table* then = had["made_of"].as_table();
  const toml::table& was_made_of = then == nullptr ? kNone : *then;
  const toml::table& is_made_of = *now["made_of"].as_table();
  compare(was_made_of, is_made_of);
  for (const auto& [key, node] : was_made_of) {
    if (is_made_of.contains(key)) continue;
    out.push_back(absl::StrCat(std::string(key.str()), " was ", value(was_made_of, key.str()),
                               " (now none)"));
  }
  return out.empty() ? "it was made by another version" : absl::StrJoin(out, ", ");
}

bool HoldsParts(const std::string& folder) {
  std::error_code ec;
  for (const auto& entry : std::filesystem::directory_iterator(folder, ec)) {
    const std::string name = entry.path().filename().string();
    if (name.rfind("part-", 0) == 0 || name == kFinishedFile) return true;
  }
  return false;
}

}  // namespace

std::string CacheDescription::Identity() const {
  toml::table table = Table(*this, "");
  return Sha256(Text(table));
}

std::string LatentCache::PartPath(std::int64_t index) const {
  return absl::StrFormat("%s/part-%06d.safetensors", folder_, index);
}

absl::StatusOr<LatentCache> LatentCache::Open(const std::string& folder,
                                              CacheDescription description) {
  MP_RETURN_IF_ERROR(MakeDirectories(folder));
  LatentCache cache(folder, std::move(description));
  const std::string path = folder + "/" + kDescriptionFile;
  const toml::table table = Table(cache.description_, cache.identity_);
  std::error_code ec;
  if (std::filesystem::exists(path, ec)) {
    const absl::StatusOr<toml::table> had = ParseTomlFile(path);
    if (!had.ok()) {
      return absl::Status(had.status().code(),
                          absl::StrCat(std::string(had.status().message()),
                                       "; remove the folder, or name another with -o"));
    }
    if ((*had)["identity"].value_or(std::string()) == cache.identity_) return cache;
    // A folder without a part is one of a run that failed before it had anything to keep.
    if (!HoldsParts(folder)) {
      MP_RETURN_IF_ERROR(WriteFileAtomically(path, Text(table)));
      return cache;
    }
    return absl::FailedPreconditionError(
        absl::StrCat(folder, ": holds other latents: ", Differences(*had, table),
                     "; remove the folder, or name another with -o"));
  }
  for (const auto& entry : std::filesystem::directory_iterator(folder, ec)) {
    const std::string name = entry.path().filename().string();
    if (name.rfind("part-", 0) == 0 || name == kFinishedFile) {
      return absl::FailedPreconditionError(absl::StrCat(
          folder, ": holds ", name, " but no ", kDescriptionFile,
          ", so that nobody knows what it is of; remove the folder, or name another with -o"));
    }
    if (IsLeftover(name)) continue;
    return absl::FailedPreconditionError(
        absl::StrCat("-o ", folder, ": is no folder of latents but holds '", name,
                     "'; nothing was changed; give a new or an empty folder"));
  }
  MP_RETURN_IF_ERROR(WriteFileAtomically(path, Text(table)));
  return cache;
}

std::optional<std::int64_t> LatentCache::Has(std::int64_t index) const {
  const auto file = SafetensorsFile::Open(PartPath(index));
  if (!file.ok()) return std::nullopt;
  const auto& metadata = (*file)->metadata();
  const auto identity = metadata.find(kIdentityKey);
  const auto place = metadata.find("index");
  if (identity == metadata.end() || identity->second != identity_ || place == metadata.end() ||
      place->second != absl::StrCat(index)) {
    return std::nullopt;
  }
  std::optional<std::int64_t> count;
  for (const std::string& name : description_.arrays) {
    bool found = false;
    for (const SafetensorsEntry& entry : (*file)->entries()) {
      if (entry.name != name || entry.dtype != description_.dtype || entry.shape.empty() ||
          entry.shape.size() != description_.shape.size() + 1 ||
          (count && entry.shape[0] != *count)) {
        continue;
      }
      count = entry.shape[0];
      found = true;
    }
    if (!found) return std::nullopt;
  }
  return count;
}

absl::Status PartInProgress::Add(std::size_t array, absl::Span<const float> values) {
  values_[array] += static_cast<std::int64_t>(values.size());
  if (!halves_) {
    return files_[array].Append(
        {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)});
  }
  bytes_.clear();
  AppendHalves(values, &bytes_);
  return files_[array].Append(bytes_);
}

absl::StatusOr<PartInProgress> LatentCache::Begin(std::int64_t index) const {
  PartInProgress part(index, description_.dtype == "F16");
  for (std::size_t k = 0; k < description_.arrays.size(); ++k) {
    MP_ASSIGN_OR_RETURN(UnnamedFile file, UnnamedFile::Create(folder_));
    part.files_.push_back(std::move(file));
    part.values_.push_back(0);
  }
  return part;
}

absl::Status LatentCache::Write(const PartInProgress& part) const {
  std::int64_t each = 1;
  for (const std::int64_t side : description_.shape) each *= side;
  const std::int64_t values = part.values_.front();
  for (const std::int64_t other : part.values_) {
    if (other == values && values > 0 && values % each == 0) continue;
    return absl::InvalidArgumentError(absl::StrCat(PartPath(part.index_), ": was given ", other,
                                                   " values of an array, expected ", values,
                                                   " as of the first, in multiples of ", each));
  }
  std::vector<SafetensorsTensor> tensors;
  std::string piece;
  for (std::size_t k = 0; k < description_.arrays.size(); ++k) {
    SafetensorsTensor tensor;
    tensor.name = description_.arrays[k];
    tensor.dtype = description_.dtype;
    tensor.shape = description_.shape;
    tensor.shape.insert(tensor.shape.begin(), values / each);
    tensor.in_pieces = true;
    const std::int64_t bytes = values * SafetensorsElementSize(tensor.dtype);
    tensor.bytes = [&piece, &file = part.files_[k], bytes,
                    at = std::int64_t{0}]() mutable -> absl::StatusOr<std::string_view> {
      piece.resize(static_cast<std::size_t>(std::min(kPiece, bytes - at)));
      MP_RETURN_IF_ERROR(file.Read(at, absl::MakeSpan(piece)));
      at += static_cast<std::int64_t>(piece.size());
      return std::string_view(piece);
    };
    tensors.push_back(std::move(tensor));
  }
  return WriteSafetensors(PartPath(part.index_), std::move(tensors),
                          {{kIdentityKey, identity_}, {"index", absl::StrCat(part.index_)}});
}

absl::StatusOr<bool> LatentCache::Finish(std::int64_t samples) const {
  const std::int64_t each = description_.part_samples;
  for (std::int64_t index = 0; index * each < samples; ++index) {
    const std::optional<std::int64_t> count = Has(index);
    if (!count || *count != std::min(each, samples - index * each)) return false;
  }
  toml::table table = Table(description_, identity_);
  table.insert("samples", samples);
  MP_RETURN_IF_ERROR(WriteFileAtomically(folder_ + "/" + kFinishedFile, Text(table)));
  return true;
}

}  // namespace mergeplan::encoding
