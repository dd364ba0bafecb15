#include "planner/data/npz.h"

#include <archive.h>
#include <archive_entry.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "planner/base/file.h"
#include "planner/base/status_macros.h"
#include "planner/data/archive.h"
#include "planner/data/npy.h"
#include "planner/data/npz_member.h"
#include "planner/data/stream.h"

namespace mergeplan {
namespace {

constexpr std::string_view kSuffix = ".npy";
constexpr std::size_t kChunk = std::size_t{1} << 20;  // bytes

bool EndsWith(std::string_view text, std::string_view end) {
  return text.size() >= end.size() && text.substr(text.size() - end.size()) == end;
}

// Column-major to row-major: the first axis runs fastest in `values`, the last one afterwards.
std::vector<double> ToRowMajor(const std::vector<double>& values,
                               const std::vector<std::int64_t>& shape) {
  std::vector<double> out(values.size());
  std::vector<std::int64_t> index(shape.size(), 0);
  std::vector<std::int64_t> stride(shape.size(), 1);
  for (std::size_t axis = 1; axis < shape.size(); ++axis) {
    stride[axis] = stride[axis - 1] * shape[axis - 1];
  }
  std::int64_t from = 0;
  for (double& value : out) {
    value = values[static_cast<std::size_t>(from)];
    for (std::size_t axis = shape.size(); axis-- > 0;) {
      from += stride[axis];
      if (++index[axis] < shape[axis]) break;
      from -= stride[axis] * shape[axis];
      index[axis] = 0;
    }
  }
  return out;
}

absl::StatusOr<NpyArray> ReadArray(ByteStream& in) {
  MP_ASSIGN_OR_RETURN(const NpyHeader header, ReadNpyHeader(in));
  NpyArray array;
  array.shape = header.shape;
  array.dtype = header.descr;
  const bool text = header.type.kind == 'S';
  const std::int64_t bytes = header.count * header.type.size;
  // Memory follows what really arrives, not what the header promises.
  std::string chunk(static_cast<std::size_t>(std::min<std::int64_t>(bytes, kChunk)), '\0');
  for (std::int64_t done = 0; done < bytes;) {
    const std::size_t wanted =
        static_cast<std::size_t>(std::min<std::int64_t>(bytes - done, kChunk));
    MP_ASSIGN_OR_RETURN(const std::size_t n, in.Read(chunk.data(), wanted));
    if (n < wanted) {
      return absl::DataLossError(absl::StrCat(
          in.name(), ": is truncated, found ", done + static_cast<std::int64_t>(n),
          " bytes of values, expected ", bytes, " for the shape ", ShapeText(header.shape)));
    }
    if (text) {
      array.text.append(chunk, 0, n);
    } else {
      const std::size_t count = n / static_cast<std::size_t>(header.type.size);
      const std::size_t old = array.values.size();
      array.values.resize(old + count);
      DecodeElements(header.type, chunk.data(), count, array.values.data() + old);
    }
    done += static_cast<std::int64_t>(n);
  }
  MP_RETURN_IF_ERROR(in.ExpectEnd());
  if (text && array.shape.empty()) {
    array.text.erase(array.text.find_last_not_of('\0') + 1);
  }
  if (header.fortran_order && array.shape.size() > 1 && !text) {
    array.values = ToRowMajor(array.values, array.shape);
  }
  if (header.fortran_order && array.shape.size() > 1 && text) {
    return absl::InvalidArgumentError(
        absl::StrCat(in.name(), ": holds byte strings in Fortran order, expected C order"));
  }
  return array;
}

// What a file is, by its first bytes.
enum class Kind { kNpy, kZip };
absl::StatusOr<Kind> KindOf(const std::string& path) {
  MP_ASSIGN_OR_RETURN(const std::unique_ptr<ByteStream> in, OpenFile(path));
  MP_ASSIGN_OR_RETURN(const std::string_view start, in->Peek(8));
  if (start.substr(0, kNpyMagic.size()) == kNpyMagic) return Kind::kNpy;
  if (start.substr(0, 4) == "PK\x03\x04" || start.substr(0, 4) == "PK\x05\x06") return Kind::kZip;
  return absl::InvalidArgumentError(absl::StrCat(
      path, start.empty() ? ": is empty" : ": starts with '", start.empty() ? "" : Printable(start),
      start.empty() ? "" : "'", ", expected an .npz (a zip archive) or an .npy"));
}

template <typename T>
absl::Status Encode(const std::string& name, absl::Span<const double> values, std::string_view type,
                    double least, double most, std::string& out) {
  const std::size_t begin = out.size();
  out.resize(begin + values.size() * sizeof(T));
  for (std::size_t i = 0; i < values.size(); ++i) {
    if constexpr (std::is_integral_v<T>) {
      if (!(values[i] >= least && values[i] <= most) || values[i] != std::floor(values[i])) {
        return absl::InvalidArgumentError(
            absl::StrCat("array ", name, ": value ", i, " is ", values[i],
                         ", expected a whole number that fits ", std::string(type)));
      }
    } else if (std::isfinite(values[i]) && std::abs(values[i]) > most) {
      return absl::InvalidArgumentError(absl::StrCat("array ", name, ": value ", i, " is ",
                                                     values[i], ", expected one that fits ",
                                                     std::string(type)));
    }
    const T value = static_cast<T>(values[i]);
    std::memcpy(out.data() + begin + i * sizeof(T), &value, sizeof(T));
  }
  return absl::OkStatus();
}

// Where the bytes of an archive go; pieces come in the order of the file.
struct Sink {
  std::string bytes;
  AtomicFile* file = nullptr;  // where `bytes` are put as soon as there are many; null: all stay
  absl::Status status;         // of the file

  bool Flush() {
    status = file->Append(bytes);
    bytes.clear();
    return status.ok();
  }
};

la_ssize_t AppendToSink(archive* zip, void* target, const void* data, std::size_t size) {
  Sink& sink = *static_cast<Sink*>(target);
  sink.bytes.append(static_cast<const char*>(data), size);
  if (sink.file != nullptr && sink.bytes.size() >= kChunk && !sink.Flush()) {
    archive_set_error(zip, EIO, "%s", std::string(sink.status.message()).c_str());
    return -1;
  }
  return static_cast<la_ssize_t>(size);
}

}  // namespace

std::int64_t NpyArray::size() const {
  std::int64_t count = 1;
  for (const std::int64_t extent : shape) count *= extent;
  return count;
}

absl::StatusOr<std::unique_ptr<ByteStream>> OpenNpzMember(const std::string& path,
                                                          std::string_view name) {
  MP_ASSIGN_OR_RETURN(std::unique_ptr<ArchiveReader> reader, ArchiveReader::OpenZip(path));
  std::vector<std::string> names;
  for (;;) {
    MP_ASSIGN_OR_RETURN(const bool more, reader->Next());
    if (!more) break;
    if (!EndsWith(reader->member(), kSuffix)) continue;
    const std::string found = reader->member().substr(0, reader->member().size() - kSuffix.size());
    if (found == name || reader->member() == name) return ArchiveReader::Stream(std::move(reader));
    names.push_back(found);
  }
  if (names.empty()) {
    return absl::NotFoundError(
        absl::StrCat(path, ": holds no .npy member, expected the array ", Printable(name, 200)));
  }
  return absl::NotFoundError(absl::StrCat(path, ": has no array '", Printable(name, 200),
                                          "', expected one of ", ListNames(names)));
}

std::string ListNames(const std::vector<std::string>& names) {
  constexpr std::size_t kMost = 20;
  std::vector<std::string> shown;
  for (std::size_t i = 0; i < std::min(names.size(), kMost); ++i) {
    shown.push_back(Printable(names[i], 80));
  }
  return absl::StrCat(
      absl::StrJoin(shown, ", "),
      names.size() > kMost ? absl::StrCat(" and ", names.size() - kMost, " more") : "");
}

absl::StatusOr<NpyArray> ReadNpzArray(const std::string& path, std::string_view name) {
  MP_ASSIGN_OR_RETURN(const Kind kind, KindOf(path));
  if (kind == Kind::kNpy) return ReadNpy(path);
  MP_ASSIGN_OR_RETURN(const std::unique_ptr<ByteStream> in, OpenNpzMember(path, name));
  return ReadArray(*in);
}

absl::StatusOr<NpyArray> ReadNpy(const std::string& path) {
  MP_ASSIGN_OR_RETURN(const std::unique_ptr<ByteStream> in, OpenFile(path));
  return ReadArray(*in);
}

absl::StatusOr<std::vector<std::string>> NpzNames(const std::string& path) {
  MP_ASSIGN_OR_RETURN(const Kind kind, KindOf(path));
  if (kind == Kind::kNpy) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": is one .npy array without names, expected an .npz"));
  }
  MP_ASSIGN_OR_RETURN(const std::unique_ptr<ArchiveReader> reader, ArchiveReader::OpenZip(path));
  std::vector<std::string> names;
  for (;;) {
    MP_ASSIGN_OR_RETURN(const bool more, reader->Next());
    if (!more) return names;
    const std::string& member = reader->member();
    if (EndsWith(member, kSuffix))
      names.push_back(member.substr(0, member.size() - kSuffix.size()));
  }
}

void NpzWriter::Add(std::string name, const std::vector<std::int64_t>& shape,
                    absl::Span<const double> values, Type type) {
  if (!status_.ok()) return;
  const bool printable = std::all_of(name.begin(), name.end(),
                                     [](char c) { return c >= ' ' && c <= '~' && c != '\\'; });
  if (name.empty() || name.size() > 4096 || !printable) {
    status_ = absl::InvalidArgumentError(absl::StrCat(
        "array '", Printable(name, 80), "': expected a name of 1 to 4096 printable characters"));
    return;
  }
  for (const Entry& entry : entries_) {
    if (entry.name == name) {
      status_ = absl::InvalidArgumentError(
          absl::StrCat("array ", name, ": added twice, expected every name once"));
      return;
    }
  }
  const absl::StatusOr<std::int64_t> count =
      CountElements(shape, sizeof(double), absl::StrCat("array ", name));
  if (!count.ok()) {
    status_ = count.status();
    return;
  }
  if (*count != static_cast<std::int64_t>(values.size())) {
    status_ = absl::InvalidArgumentError(absl::StrCat("array ", name, ": has ", values.size(),
                                                      " values, expected ", *count,
                                                      " for the shape ", ShapeText(shape)));
    return;
  }
  Entry entry{name, ""};
  switch (type) {
    case Type::kFloat64:
      entry.npy = NpyHeaderBytes("<f8", shape);
      status_ =
          Encode<double>(name, values, "float64", 0, std::numeric_limits<double>::max(), entry.npy);
      break;
    case Type::kFloat32:
      entry.npy = NpyHeaderBytes("<f4", shape);
      status_ =
          Encode<float>(name, values, "float32", 0, std::numeric_limits<float>::max(), entry.npy);
      break;
    case Type::kInt64:
      entry.npy = NpyHeaderBytes("<i8", shape);
      // The largest double below 2^63.
      status_ = Encode<std::int64_t>(name, values, "int64", -0x1p63, 0x1p63 - 1024, entry.npy);
      break;
    case Type::kUint8:
      entry.npy = NpyHeaderBytes("|u1", shape);
      status_ = Encode<std::uint8_t>(name, values, "uint8", 0, 255, entry.npy);
      break;
  }
  if (status_.ok()) entries_.push_back(std::move(entry));
}

// Entry by entry into the Sink behind `target`.
absl::Status NpzWriter::Emit(void* target) const {
  MP_RETURN_IF_ERROR(status_);
  const std::unique_ptr<archive, int (*)(archive*)> zip(archive_write_new(), &archive_write_free);
  const std::unique_ptr<archive_entry, void (*)(archive_entry*)> entry(archive_entry_new(),
                                                                       &archive_entry_free);
  const auto fault = [&] {
    const char* text = zip != nullptr ? archive_error_string(zip.get()) : nullptr;
    return absl::InternalError(
        absl::StrCat("an .npz cannot be written: ", text != nullptr ? text : "no memory"));
  };
  if (zip == nullptr || entry == nullptr || archive_write_set_format_zip(zip.get()) != ARCHIVE_OK ||
      archive_write_zip_set_compression_store(zip.get()) != ARCHIVE_OK ||
      archive_write_set_bytes_in_last_block(zip.get(), 1) != ARCHIVE_OK ||
      archive_write_open(zip.get(), target, nullptr, &AppendToSink, nullptr) != ARCHIVE_OK) {
    return fault();
  }
  for (const Entry& e : entries_) {
    archive_entry_clear(entry.get());
    archive_entry_set_pathname(entry.get(), absl::StrCat(e.name, std::string(kSuffix)).c_str());
    archive_entry_set_filetype(entry.get(), AE_IFREG);
    archive_entry_set_perm(entry.get(), 0644);
    archive_entry_set_size(entry.get(), static_cast<la_int64_t>(e.npy.size()));
    // The Unix epoch lies before the first date a zip can hold, so that every time zone gives the
    // same bytes.
    archive_entry_set_mtime(entry.get(), 0, 0);
    if (archive_write_header(zip.get(), entry.get()) != ARCHIVE_OK) return fault();
    for (std::size_t done = 0; done < e.npy.size();) {
      const la_ssize_t n = archive_write_data(zip.get(), e.npy.data() + done, e.npy.size() - done);
      if (n <= 0) return fault();
      done += static_cast<std::size_t>(n);
    }
  }
  if (archive_write_close(zip.get()) != ARCHIVE_OK) return fault();
  return absl::OkStatus();
}

absl::StatusOr<std::string> NpzWriter::Bytes() const {
  Sink sink;
  MP_RETURN_IF_ERROR(Emit(&sink));
  return std::move(sink.bytes);
}

absl::Status NpzWriter::Write(const std::string& path) const {
  // A fault of the arrays comes before one of the file.
  if (!status_.ok()) {
    return absl::Status(status_.code(), absl::StrCat(path, ": ", status_.message()));
  }
  MP_ASSIGN_OR_RETURN(AtomicFile file, AtomicFile::Create(path));
  Sink sink;
  sink.file = &file;
  const absl::Status emitted = Emit(&sink);
  MP_RETURN_IF_ERROR(sink.status);
  if (!emitted.ok()) {
    return absl::Status(emitted.code(), absl::StrCat(path, ": ", emitted.message()));
  }
  if (!sink.Flush()) return sink.status;
  return file.Commit();
}

}  // namespace mergeplan
