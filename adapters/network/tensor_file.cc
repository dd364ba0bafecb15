#include "adapters/network/tensor_file.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <set>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "adapters/network/try.h"
#include "nlohmann/json.hpp"
#include "planner/base/file.h"
#include "planner/base/status_macros.h"

namespace mergeplan::network {
namespace {

constexpr std::array<std::pair<at::ScalarType, std::string_view>, 8> kTypes = {
    {{at::kDouble, "F64"},
     {at::kFloat, "F32"},
     {at::kHalf, "F16"},
     {at::kBFloat16, "BF16"},
     {at::kLong, "I64"},
     {at::kInt, "I32"},
     {at::kByte, "U8"},
     {at::kBool, "BOOL"}}};

std::string_view NameOf(at::ScalarType type) {
  for (const auto& [known, name] : kTypes) {
    if (known == type) return name;
  }
  return "";
}

absl::Status Damaged(const std::string& path, const std::string& what) {
  return absl::DataLossError(absl::StrCat(path, ": ", what, "; the file is damaged"));
}

// Of everything in the file but itself.
std::string HashOf(const nlohmann::json& header, std::string_view data) {
  return Sha256(absl::StrCat(header.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace),
                             Sha256(data)));
}

// One entry of the header into a tensor; `data` are the numbers of all.
absl::StatusOr<at::Tensor> ReadOne(const std::string& path, const std::string& name,
                                   const nlohmann::json& entry, std::string_view data) {
  const auto wrong = [&] {
    return Damaged(path, absl::StrCat("the entry of ", name, " is wrong"));
  };
  if (!entry.is_object() || !entry.contains("dtype") || !entry["dtype"].is_string() ||
      !entry.contains("shape") || !entry["shape"].is_array() || !entry.contains("data_offsets") ||
      !entry["data_offsets"].is_array() || entry["data_offsets"].size() != 2) {
    return wrong();
  }
  std::vector<std::int64_t> shape;
  double count = 1;
  for (const nlohmann::json& extent : entry["shape"]) {
    if (!extent.is_number_unsigned()) return wrong();
    shape.push_back(extent.get<std::int64_t>());
    count *= static_cast<double>(shape.back());
  }
  if (!entry["data_offsets"][0].is_number_unsigned() ||
      !entry["data_offsets"][1].is_number_unsigned()) {
    return wrong();
  }
  const auto begin = entry["data_offsets"][0].get<std::uint64_t>();
  const auto end = entry["data_offsets"][1].get<std::uint64_t>();
  const auto* type = std::find_if(kTypes.begin(), kTypes.end(), [&](const auto& known) {
    return known.second == entry["dtype"].get<std::string>();
  });
  if (type == kTypes.end()) {
    return Damaged(path, absl::StrCat(name, " has the type ", entry["dtype"].get<std::string>(),
                                      ", which is not known here"));
  }
  if (begin > end || end > data.size() ||
      static_cast<double>(end - begin) !=
          count * static_cast<double>(c10::elementSize(type->first))) {
    return Damaged(path, absl::StrCat(name, " takes bytes ", begin, " to ", end, " of ",
                                      data.size(), ", which does not fit its shape"));
  }
  at::Tensor out = at::empty(shape, at::TensorOptions().dtype(type->first));
  if (end > begin) std::memcpy(out.mutable_data_ptr(), data.data() + begin, end - begin);
  return out;
}

}  // namespace

const at::Tensor* TensorFile::Find(const std::string& name) const {
  for (const auto& [known, tensor] : tensors) {
    if (known == name) return &tensor;
  }
  return nullptr;
}

absl::Status WriteTensorFile(const TensorFile& content, const std::string& path) {
  return Try(path, [&]() -> absl::Status {
    nlohmann::json header = nlohmann::json::object();
    std::string data;
    std::set<std::string> names;
    for (const auto& [name, tensor] : content.tensors) {
      const std::string_view type = NameOf(tensor.scalar_type());
      if (type.empty() || name == "__metadata__" || !names.insert(name).second) {
        return absl::InvalidArgumentError(
            absl::StrCat(path, ": the tensor ", name, " cannot be written: its type is ",
                         c10::toString(tensor.scalar_type()), ", or its name is taken"));
      }
      const at::Tensor flat = tensor.detach().to(at::kCPU).contiguous();
      const std::size_t begin = data.size();
      data.append(static_cast<const char*>(flat.const_data_ptr()), flat.nbytes());
      header[name] = {
          {"dtype", type},
          {"shape", std::vector<std::int64_t>(tensor.sizes().begin(), tensor.sizes().end())},
          {"data_offsets", {begin, data.size()}}};
    }
    header["__metadata__"] = content.metadata;
    header["__metadata__"]["sha256"] = HashOf(header, data);
    std::string text = header.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    text.resize((text.size() + 7) / 8 * 8, ' ');
    std::string bytes(8, '\0');
    for (std::size_t i = 0; i < 8; ++i) {
      bytes[i] = static_cast<char>(std::uint64_t{text.size()} >> (8 * i));
    }
    bytes.reserve(8 + text.size() + data.size());
    bytes += text;
    bytes += data;
    return WriteFileAtomically(path, bytes);
  });
}

absl::StatusOr<TensorFile> ReadTensorFile(const std::string& path) {
  MP_ASSIGN_OR_RETURN(const std::string bytes, ReadFile(path));
  return Try(path, [&]() -> absl::StatusOr<TensorFile> {
    if (bytes.size() < 8) return Damaged(path, "is shorter than its header's length");
    std::uint64_t length = 0;
    for (int i = 7; i >= 0; --i) length = length << 8 | static_cast<unsigned char>(bytes[i]);
    if (length > bytes.size() - 8) {
      return Damaged(path,
                     absl::StrCat("its header has ", length, " bytes, the file ", bytes.size()));
    }
    const std::string_view data = std::string_view(bytes).substr(8 + length);
    const nlohmann::json header =
        nlohmann::json::parse(std::string_view(bytes).substr(8, length), nullptr, false);
    if (!header.is_object()) return Damaged(path, "its header is no JSON object");
    TensorFile out;
    for (const auto& [name, entry] : header.items()) {
      if (name != "__metadata__") {
        MP_ASSIGN_OR_RETURN(at::Tensor tensor, ReadOne(path, name, entry, data));
        out.tensors.emplace_back(name, std::move(tensor));
        continue;
      }
      if (!entry.is_object()) return Damaged(path, "its metadata are no JSON object");
      for (const auto& [key, value] : entry.items()) {
        if (!value.is_string()) return Damaged(path, "its metadata hold more than texts");
        out.metadata[key] = value.get<std::string>();
      }
    }
    const auto hash = out.metadata.find("sha256");
    if (hash != out.metadata.end()) {
      nlohmann::json unsigned_header = header;
      unsigned_header["__metadata__"].erase("sha256");
      if (hash->second != HashOf(unsigned_header, data)) {
        return Damaged(path, "its content has another SHA-256");
      }
      out.metadata.erase(hash);
    }
    return out;
  });
}

absl::Status CheckOrigin(const TensorFile& file, const std::string& path, const std::string& format,
                         const std::string& fingerprint, const std::string& belongs) {
  const auto text = [&](const char* key) {
    const auto found = file.metadata.find(key);
    return found == file.metadata.end() ? std::string() : found->second;
  };
  if (text("format") != format) {
    return absl::FailedPreconditionError(absl::StrCat(path, ": has the format '", text("format"),
                                                      "', this version reads '", format, "'"));
  }
  if (text("fingerprint") == fingerprint) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(path, ": ", belongs));
}

}  // namespace mergeplan::network
