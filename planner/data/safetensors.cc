#include "planner/data/safetensors.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <set>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"
#include "planner/base/file.h"
#include "planner/base/status_macros.h"
#include "planner/data/npy.h"

namespace mergeplan {
namespace {

using Json = nlohmann::json;

constexpr char kMetadata[] = "__metadata__";
constexpr int kDeepest = 8;

struct DtypeSize {
  const char* name;
  int bytes;
};
constexpr DtypeSize kDtypes[] = {{"F64", 8}, {"I64", 8},  {"U64", 8}, {"F32", 4}, {"I32", 4},
                                 {"U32", 4}, {"BF16", 2}, {"F16", 2}, {"I16", 2}, {"U16", 2},
                                 {"U8", 1},  {"I8", 1},   {"BOOL", 1}};

std::string DtypeList() {
  std::string list;
  for (const DtypeSize& d : kDtypes) absl::StrAppend(&list, list.empty() ? "" : ", ", d.name);
  return list;
}

// Parses an object and refuses a key that stands in it twice, of which JSON readers keep one or the
// other.
absl::StatusOr<Json> ParseObject(std::string_view text, const std::string& where) {
  std::set<std::string> keys;
  std::string twice;
  bool deep = false;
  const Json::parser_callback_t watch = [&](int depth, Json::parse_event_t event, Json& parsed) {
    // What is nested is not kept: printing or copying it would use up the stack.
    if (depth > kDeepest) deep = true;
    if (deep) return false;
    if (event == Json::parse_event_t::key && depth == 1) {
      std::string key = parsed.get<std::string>();
      if (!keys.insert(key).second) twice = std::move(key);
    }
    return true;
  };
  Json json;
  try {
    json = Json::parse(text, watch);
  } catch (const Json::exception&) {
    return absl::DataLossError(absl::StrCat(where, ": is no valid JSON"));
  }
  if (deep) {
    return absl::DataLossError(
        absl::StrCat(where, ": is nested more than ", kDeepest, " levels deep, expected tensors"));
  }
  if (!json.is_object()) {
    return absl::DataLossError(
        absl::StrCat(where, ": is ", json.type_name(), ", expected an object"));
  }
  if (!twice.empty()) {
    return absl::DataLossError(absl::StrCat(where, ": \"", twice, "\" stands in it twice"));
  }
  return json;
}

bool IsCount(const Json& value) {
  return value.is_number_unsigned() && value.get<std::uint64_t>() <= (std::uint64_t{1} << 62);
}

absl::StatusOr<SafetensorsEntry> ReadEntry(const std::string& name, const Json& value,
                                           std::int64_t data_begin, std::int64_t file_size,
                                           const std::string& path) {
  const std::string where = absl::StrCat(path, ": tensor ", name);
  if (!value.is_object() || !value.contains("dtype") || !value["dtype"].is_string() ||
      !value.contains("shape") || !value["shape"].is_array() || !value.contains("data_offsets") ||
      !value["data_offsets"].is_array() || value["data_offsets"].size() != 2) {
    return absl::DataLossError(absl::StrCat(
        where, ": its entry lacks dtype (a name), shape (a list) or data_offsets (two numbers)"));
  }
  SafetensorsEntry entry;
  entry.name = name;
  entry.dtype = value["dtype"].get<std::string>();
  // What an element of another type takes is not known, and is for whoever reads it to say.
  const int element = SafetensorsElementSize(entry.dtype);
  for (const Json& extent : value["shape"]) {
    if (!IsCount(extent)) {
      return absl::DataLossError(absl::StrCat(where, ": shape ", value["shape"].dump(),
                                              ", expected whole numbers from 0 on"));
    }
    entry.shape.push_back(extent.get<std::int64_t>());
  }
  MP_ASSIGN_OR_RETURN(const std::int64_t count,
                      CountElements(entry.shape, std::max(1, element), where));
  const Json& offsets = value["data_offsets"];
  const std::int64_t room = file_size - data_begin;
  if (!IsCount(offsets[0]) || !IsCount(offsets[1]) ||
      offsets[0].get<std::int64_t>() > offsets[1].get<std::int64_t>() ||
      offsets[1].get<std::int64_t>() > room) {
    return absl::DataLossError(absl::StrCat(where, ": data_offsets ", offsets.dump(),
                                            " in a file with ", room,
                                            " bytes of data; it is truncated or damaged"));
  }
  entry.begin = data_begin + offsets[0].get<std::int64_t>();
  entry.end = data_begin + offsets[1].get<std::int64_t>();
  if (element > 0 && entry.bytes() != count * element) {
    return absl::DataLossError(absl::StrCat(where, ": shape ", ShapeText(entry.shape), " of ",
                                            entry.dtype, " needs ", count * element,
                                            " bytes, its data_offsets hold ", entry.bytes()));
  }
  return entry;
}

absl::Status ReadAt(int fd, std::int64_t at, absl::Span<char> out, const std::string& path) {
  while (!out.empty()) {
    const ssize_t n = ::pread(fd, out.data(), out.size(), at);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return absl::ErrnoToStatus(errno, absl::StrCat(path, ": reading failed"));
    if (n == 0) {
      return absl::DataLossError(absl::StrCat(path, ": ends at byte ", at, ", ", out.size(),
                                              " bytes too early; it became shorter while read"));
    }
    at += n;
    out.remove_prefix(static_cast<size_t>(n));
  }
  return absl::OkStatus();
}

}  // namespace

int SafetensorsElementSize(std::string_view dtype) {
  for (const DtypeSize& d : kDtypes) {
    if (d.name == dtype) return d.bytes;
  }
  return 0;
}

absl::StatusOr<SafetensorsHeader> ParseSafetensorsHeader(std::string_view text,
                                                         std::int64_t file_size,
                                                         const std::string& path) {
  SafetensorsHeader out;
  MP_ASSIGN_OR_RETURN(const Json json, ParseObject(text, absl::StrCat(path, ": the header")));
  const std::int64_t data_begin = 8 + static_cast<std::int64_t>(text.size());
  for (const auto& [name, value] : json.items()) {
    if (name != kMetadata) {
      MP_ASSIGN_OR_RETURN(SafetensorsEntry entry,
                          ReadEntry(name, value, data_begin, file_size, path));
      out.entries.push_back(std::move(entry));
      continue;
    }
    if (!value.is_object()) {
      return absl::DataLossError(absl::StrCat(path, ": ", kMetadata, " is no object"));
    }
    for (const auto& [key, word] : value.items()) {
      if (!word.is_string()) {
        return absl::DataLossError(absl::StrCat(path, ": ", kMetadata, ".", key, " is no text"));
      }
      out.metadata[key] = word.get<std::string>();
    }
  }
  std::sort(out.entries.begin(), out.entries.end(),
            [](const SafetensorsEntry& a, const SafetensorsEntry& b) {
              return std::tie(a.begin, a.end, a.name) < std::tie(b.begin, b.end, b.name);
            });
  std::int64_t at = data_begin;
  for (const SafetensorsEntry& entry : out.entries) {
    if (entry.begin != at) {
      return absl::DataLossError(absl::StrCat(path, ": tensor ", entry.name, " begins at byte ",
                                              entry.begin, ", expected ", at,
                                              ", where the one before it ends"));
    }
    at = entry.end;
  }
  if (at != file_size) {
    return absl::DataLossError(
        absl::StrCat(path, ": has ", file_size - at, " bytes behind its tensors"));
  }
  return out;
}

SafetensorsFile::~SafetensorsFile() { ::close(fd_); }

absl::StatusOr<std::unique_ptr<SafetensorsFile>> SafetensorsFile::Open(const std::string& path) {
  // Not blocking, so that a pipe without a writer is found to be none of ours.
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return absl::ErrnoToStatus(errno, absl::StrCat(path, ": cannot be read"));
  std::unique_ptr<SafetensorsFile> file(new SafetensorsFile(path, fd));
  struct stat status = {};
  if (::fstat(fd, &status) != 0 || !S_ISREG(status.st_mode)) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": is no regular file"));
  }
  const std::int64_t size = status.st_size;
  unsigned char length[8] = {};
  if (size < 8) {
    return absl::DataLossError(absl::StrCat(
        path, ": has ", size, " bytes, a .safetensors file begins with 8 for the header's length"));
  }
  MP_RETURN_IF_ERROR(ReadAt(fd, 0, {reinterpret_cast<char*>(length), 8}, path));
  std::uint64_t header = 0;
  for (int k = 7; k >= 0; --k) header = header << 8 | length[k];
  if (header > static_cast<std::uint64_t>(std::min(size - 8, kMostSafetensorsHeader))) {
    return absl::DataLossError(absl::StrCat(
        path, ": its first 8 bytes declare a header of ", header, " bytes in a file of ", size,
        " (at most ", kMostSafetensorsHeader, "): it is cut short or no .safetensors file"));
  }
  std::string text(header, '\0');
  MP_RETURN_IF_ERROR(ReadAt(fd, 8, {text.data(), text.size()}, path));
  MP_ASSIGN_OR_RETURN(SafetensorsHeader read, ParseSafetensorsHeader(text, size, path));
  for (const SafetensorsEntry& entry : read.entries) {
    if (SafetensorsElementSize(entry.dtype) > 0) continue;
    return absl::InvalidArgumentError(absl::StrCat(path, ": tensor ", entry.name, ": dtype \"",
                                                   entry.dtype, "\" cannot be read, expected ",
                                                   DtypeList()));
  }
  file->entries_ = std::move(read.entries);
  file->metadata_ = std::move(read.metadata);
  return file;
}

absl::Status SafetensorsFile::Read(const SafetensorsEntry& entry, std::int64_t offset,
                                   absl::Span<char> out) const {
  if (offset < 0 || static_cast<std::int64_t>(out.size()) > entry.bytes() - offset) {
    return absl::InvalidArgumentError(absl::StrCat(path_, ": tensor ", entry.name, " has ",
                                                   entry.bytes(), " bytes, asked for ", out.size(),
                                                   " from ", offset, " on"));
  }
  return ReadAt(fd_, entry.begin + offset, out, path_);
}

absl::Status WriteSafetensors(const std::string& path, std::vector<SafetensorsTensor> tensors,
                              const std::map<std::string, std::string>& metadata) {
  std::sort(
      tensors.begin(), tensors.end(), [](const SafetensorsTensor& a, const SafetensorsTensor& b) {
        const int left = SafetensorsElementSize(a.dtype), right = SafetensorsElementSize(b.dtype);
        return left != right ? left > right : a.name < b.name;
      });
  // Written by hand where order matters: JSON objects are sorted by key.
  std::string header = "{";
  if (!metadata.empty()) absl::StrAppend(&header, "\"", kMetadata, "\":", Json(metadata).dump());
  std::int64_t at = 0;
  std::set<std::string> names;
  std::vector<std::int64_t> sizes;
  try {
    for (const SafetensorsTensor& tensor : tensors) {
      const std::string where = absl::StrCat(path, ": tensor ", tensor.name);
      const int element = SafetensorsElementSize(tensor.dtype);
      if (element == 0) {
        return absl::InvalidArgumentError(absl::StrCat(
            where, ": dtype \"", tensor.dtype, "\" cannot be written, expected ", DtypeList()));
      }
      if (tensor.name == kMetadata || !names.insert(tensor.name).second) {
        return absl::InvalidArgumentError(absl::StrCat(where, ": this name is taken"));
      }
      MP_ASSIGN_OR_RETURN(const std::int64_t count, CountElements(tensor.shape, element, where));
      sizes.push_back(count * element);
      absl::StrAppend(&header, header.size() > 1 ? "," : "", Json(tensor.name).dump(),
                      ":{\"dtype\":\"", tensor.dtype, "\",\"shape\":", Json(tensor.shape).dump(),
                      ",\"data_offsets\":[", at, ",", at + sizes.back(), "]}");
      at += sizes.back();
    }
  } catch (const Json::exception&) {  // names that are no UTF-8
    return absl::InvalidArgumentError(absl::StrCat(path, ": a name or metadata is no valid UTF-8"));
  }
  header += '}';
  header.append((8 - header.size() % 8) % 8, ' ');
  std::string start(8, '\0');
  for (int k = 0; k < 8; ++k) start[k] = static_cast<char>(header.size() >> (8 * k) & 0xff);

  MP_ASSIGN_OR_RETURN(AtomicFile file, AtomicFile::Create(path));
  MP_RETURN_IF_ERROR(file.Append(start));
  MP_RETURN_IF_ERROR(file.Append(header));
  for (size_t k = 0; k < tensors.size(); ++k) {
    std::int64_t given = 0;
    do {
      MP_ASSIGN_OR_RETURN(const std::string_view bytes, tensors[k].bytes());
      given += static_cast<std::int64_t>(bytes.size());
      const bool short_of_it = given < sizes[k] && (!tensors[k].in_pieces || bytes.empty());
      if (given > sizes[k] || short_of_it) {
        return absl::InvalidArgumentError(absl::StrCat(
            path, ": tensor ", tensors[k].name, " of shape ", ShapeText(tensors[k].shape),
            " was given ", given, " bytes, expected ", sizes[k]));
      }
      MP_RETURN_IF_ERROR(file.Append(bytes));
    } while (given < sizes[k]);
  }
  return file.Commit();
}

absl::StatusOr<std::map<std::string, std::string>> ReadSafetensorsIndex(const std::string& path) {
  MP_ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  MP_ASSIGN_OR_RETURN(const Json json, ParseObject(text, path));
  if (!json.contains("weight_map") || !json["weight_map"].is_object()) {
    return absl::InvalidArgumentError(absl::StrCat(
        path, ": has no \"weight_map\" (an object that says which file holds which tensor)"));
  }
  std::map<std::string, std::string> files;
  for (const auto& [name, file] : json["weight_map"].items()) {
    const std::string found = file.is_string() ? file.get<std::string>() : std::string();
    if (found.empty() || found == "." || found == ".." || found.find('/') != found.npos) {
      return absl::InvalidArgumentError(absl::StrCat(path, ": weight_map.", name, " is ",
                                                     file.dump(),
                                                     ", expected the name of a file beside it"));
    }
    files[name] = found;
  }
  return files;
}

}  // namespace mergeplan
