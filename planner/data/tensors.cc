#include "planner/data/tensors.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "planner/base/status_macros.h"
#include "planner/data/archive.h"
#include "planner/data/npz_member.h"
#include "planner/data/pickle.h"
#include "planner/data/safetensors.h"
#include "planner/data/source.h"

namespace mergeplan {
namespace {

// The next `bytes` of a stream, which goes on behind them.
class Window : public ByteStream {
 public:
  Window(std::unique_ptr<ByteStream> in, std::int64_t bytes)
      : ByteStream(in->name()), in_(std::move(in)), bytes_(bytes), left_(bytes) {}
  std::optional<std::int64_t> size() const override { return bytes_; }
  std::int64_t size_limit() const override { return bytes_; }

 protected:
  absl::StatusOr<std::size_t> ReadSome(char* out, std::size_t size) override {
    const std::size_t most =
        static_cast<std::size_t>(std::min<std::int64_t>(left_, static_cast<std::int64_t>(size)));
    if (most == 0) return std::size_t{0};
    MP_ASSIGN_OR_RETURN(const std::size_t n, in_->Read(out, most));
    left_ -= static_cast<std::int64_t>(n);
    return n;
  }
  absl::StatusOr<bool> Wind(std::int64_t size) override {
    MP_RETURN_IF_ERROR(in_->Skip(std::min(size, left_)));
    left_ -= std::min(size, left_);
    return true;
  }

 private:
  std::unique_ptr<ByteStream> in_;
  std::int64_t bytes_, left_;
};

// Which of `names` is meant; the same words for both formats.
absl::StatusOr<std::size_t> Choose(const std::vector<std::string>& names, const std::string& wanted,
                                   const std::string& where) {
  if (names.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(where, ": holds no tensor, expected one"));
  }
  const auto found = std::find(names.begin(), names.end(), wanted);
  if (!wanted.empty() && found != names.end()) {
    return static_cast<std::size_t>(found - names.begin());
  }
  if (!wanted.empty()) {
    return absl::NotFoundError(absl::StrCat(where, ": has no tensor '", Printable(wanted, 200),
                                            "', expected one of ", ListNames(names)));
  }
  if (names.size() > 1) {
    return absl::InvalidArgumentError(absl::StrCat(where, ": holds ", names.size(), " tensors (",
                                                   ListNames(names),
                                                   "), expected to be told which: give --array"));
  }
  return std::size_t{0};
}

// Element types by the names of both formats.
absl::StatusOr<ElementType> TypeOf(std::string_view name, const std::string& where) {
  constexpr struct {
    std::string_view safetensors, torch;
    char kind;
    int size;
  } kTypes[] = {
      {"F64", "DoubleStorage", 'f', 8}, {"F32", "FloatStorage", 'f', 4},
      {"F16", "HalfStorage", 'f', 2},   {"BF16", "BFloat16Storage", 'V', 2},
      {"I64", "LongStorage", 'i', 8},   {"I32", "IntStorage", 'i', 4},
      {"I16", "ShortStorage", 'i', 2},  {"I8", "CharStorage", 'i', 1},
      {"U8", "ByteStorage", 'u', 1},    {"BOOL", "BoolStorage", 'b', 1},
      {"U16", "UInt16Storage", 'u', 2}, {"U32", "UInt32Storage", 'u', 4},
      {"U64", "UInt64Storage", 'u', 8},
  };
  for (const auto& type : kTypes) {
    if (name == type.safetensors || name == type.torch) {
      return ElementType{type.kind, type.size, false};
    }
  }
  return absl::InvalidArgumentError(absl::StrCat(where, ": has elements of type ",
                                                 Printable(name, 40),
                                                 ", expected float, bfloat16 or whole numbers"));
}

}  // namespace

bool LooksLikeSafetensors(std::string_view start) {
  if (start.size() < 10 || start[8] != '{') return false;
  std::uint64_t length = 0;
  for (int k = 7; k >= 0; --k) length = length << 8 | static_cast<unsigned char>(start[k]);
  return length >= 2 && length <= static_cast<std::uint64_t>(kMostSafetensorsHeader);
}

absl::StatusOr<std::unique_ptr<SampleSource>> OpenSafetensors(std::unique_ptr<ByteStream> in,
                                                              const SamplesOptions& options) {
  const std::string where = in->name();
  unsigned char raw[8];
  MP_ASSIGN_OR_RETURN(std::size_t n, in->Read(reinterpret_cast<char*>(raw), 8));
  std::int64_t length = 0;
  for (int k = 7; k >= 0; --k) length = length << 8 | raw[k];
  // LooksLikeSafetensors has seen that the length is possible.
  if (n < 8 || !in->size() || length > *in->size() - 8) {
    return absl::DataLossError(
        absl::StrCat(where, ": begins with the length of its safetensors header, ", length,
                     " bytes, but has ", in->size().value_or(0),
                     " bytes in all; it is truncated, expected an intact file: fetch it again"));
  }
  std::string text(static_cast<std::size_t>(length), '\0');
  MP_ASSIGN_OR_RETURN(n, in->Read(text.data(), text.size()));
  MP_ASSIGN_OR_RETURN(const SafetensorsHeader header,
                      ParseSafetensorsHeader(text, *in->size(), where));
  std::vector<std::string> names;
  for (const SafetensorsEntry& entry : header.entries) names.push_back(entry.name);
  std::sort(names.begin(), names.end());
  MP_ASSIGN_OR_RETURN(const std::size_t chosen, Choose(names, options.array, where));
  const auto entry =
      std::find_if(header.entries.begin(), header.entries.end(),
                   [&](const SafetensorsEntry& e) { return e.name == names[chosen]; });
  MP_ASSIGN_OR_RETURN(const ElementType type, TypeOf(entry->dtype, where));
  MP_RETURN_IF_ERROR(in->Skip(entry->begin - 8 - length));
  return OpenRows(std::make_unique<Window>(std::move(in), entry->bytes()), type, entry->shape,
                  options);
}

absl::StatusOr<bool> IsTorchFile(const std::string& path) {
  MP_ASSIGN_OR_RETURN(const std::unique_ptr<ArchiveReader> reader, ArchiveReader::OpenZip(path));
  MP_ASSIGN_OR_RETURN(const bool more, reader->Next());
  return more && (reader->member() == "data.pkl" || absl::EndsWith(reader->member(), "/data.pkl"));
}

absl::StatusOr<std::unique_ptr<SampleSource>> OpenTorchFile(const std::string& path,
                                                            const SamplesOptions& options) {
  return OpenTorch([&] { return ArchiveReader::OpenZip(path); }, path, false, options);
}

absl::StatusOr<std::unique_ptr<SampleSource>> OpenTorch(const TorchOpener& open,
                                                        const std::string& path, bool one_sample,
                                                        const SamplesOptions& options) {
  MP_ASSIGN_OR_RETURN(std::unique_ptr<ArchiveReader> reader, open());
  MP_ASSIGN_OR_RETURN(const bool any, reader->Next());
  if (!any || !absl::EndsWith(reader->member(), "data.pkl")) {
    return absl::InvalidArgumentError(absl::StrCat(
        path, ": is a zip archive, but none that torch.save writes, expected a tensor"));
  }
  const std::string prefix =
      reader->member().substr(0, reader->member().size() - std::string("data.pkl").size());
  constexpr std::size_t kMostPickle = std::size_t{64} << 20;
  std::string pickle;
  while (pickle.size() <= kMostPickle) {
    const std::size_t old = pickle.size();
    pickle.resize(old + (std::size_t{1} << 16));
    MP_ASSIGN_OR_RETURN(const std::size_t n,
                        reader->Read(pickle.data() + old, pickle.size() - old));
    pickle.resize(old + n);
    if (n == 0) break;
  }
  MP_ASSIGN_OR_RETURN(const std::vector<TorchTensor> tensors, ReadTensorPickle(pickle, path));
  std::vector<std::string> names;
  names.reserve(tensors.size());
  for (const TorchTensor& tensor : tensors) names.push_back(tensor.name);
  MP_ASSIGN_OR_RETURN(const std::size_t chosen, Choose(names, options.array, path));
  const TorchTensor& tensor = tensors[chosen];
  MP_ASSIGN_OR_RETURN(const ElementType type, TypeOf(tensor.storage_type, path));
  MP_ASSIGN_OR_RETURN(const std::int64_t count, CountElements(tensor.shape, type.size, path));
  std::int64_t stride = 1;
  bool contiguous = tensor.strides.size() == tensor.shape.size();
  for (std::size_t axis = tensor.shape.size(); contiguous && axis-- > 0;) {
    contiguous = tensor.shape[axis] == 1 || tensor.strides[axis] == stride;
    stride *= tensor.shape[axis];
  }
  if (!contiguous && count > 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        path, ": the tensor is a view with other strides than its shape ", ShapeText(tensor.shape),
        " has, expected a contiguous one: save "
        "latents.contiguous()"));
  }
  if (tensor.offset < 0 || tensor.offset > tensor.storage_size - count) {
    return absl::DataLossError(absl::StrCat(path, ": the tensor of shape ", ShapeText(tensor.shape),
                                            " goes beyond its storage of ", tensor.storage_size,
                                            " elements; the file is damaged"));
  }
  const std::string wanted = absl::StrCat(prefix, "data/", tensor.storage);
  MP_ASSIGN_OR_RETURN(reader, open());
  while (true) {
    MP_ASSIGN_OR_RETURN(const bool more, reader->Next());
    if (!more) {
      return absl::DataLossError(absl::StrCat(path, ": lacks its member ", Printable(wanted, 200),
                                              "; the file is damaged"));
    }
    if (reader->member() == absl::StrCat(prefix, "byteorder")) {
      char order[8] = {};
      MP_RETURN_IF_ERROR(reader->Read(order, 6).status());
      if (std::string(order, 6) != "little") {
        return absl::InvalidArgumentError(
            absl::StrCat(path, ": was saved by a big-endian machine, expected little-endian"));
      }
    }
    if (reader->member() == wanted) break;
  }
  std::unique_ptr<ByteStream> in = ArchiveReader::Stream(std::move(reader));
  MP_RETURN_IF_ERROR(in->Skip(tensor.offset * type.size));
  std::vector<std::int64_t> shape = tensor.shape;
  if (one_sample) shape.insert(shape.begin(), 1);
  return OpenRows(std::make_unique<Window>(std::move(in), count * type.size), type, shape, options);
}

}  // namespace mergeplan
