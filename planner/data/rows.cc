#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "planner/base/status_macros.h"
#include "planner/base/write_all.h"
#include "planner/data/npy.h"
#include "planner/data/source.h"

namespace mergeplan {
namespace {

constexpr std::size_t kChunk = std::size_t{1} << 18;  // bytes decoded at once

bool MayBeNonfinite(const ElementType& type) { return type.kind == 'f' || type.kind == 'V'; }

// Bytes are taken for pixels where a sample is more than one number: a list of bytes is labels.
bool IsPixels(const ElementType& type, absl::Span<const std::int64_t> shape) {
  return type.kind == 'u' && type.size == 1 && shape.size() > 1;
}

// A file descriptor that is closed at the end.
class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  Descriptor& operator=(Descriptor&&) = delete;
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  int get() const { return fd_; }

 private:
  int fd_;
};

// Rows by pread, or in place through a window.
class PlainRows : public RowFile {
 public:
  PlainRows(std::string name, Descriptor file, std::int64_t offset, const ElementType& type,
            std::int64_t rows, std::int64_t dimensions)
      : name_(std::move(name)),
        file_(std::move(file)),
        offset_(offset),
        type_(type),
        rows_(rows),
        dimensions_(dimensions) {}

  std::int64_t rows() const override { return rows_; }
  bool fits_float() const override {
    return type_.kind == 'f' ? type_.size <= 4 : type_.kind == 'V' || type_.size <= 2;
  }
  absl::Status Read(std::int64_t first, std::int64_t count, float* out) const override {
    return ReadAs(first, count, out);
  }
  absl::Status Read(std::int64_t first, std::int64_t count, double* out) const override {
    return ReadAs(first, count, out);
  }
  std::unique_ptr<FileWindow> ViewOf(std::size_t size, std::int64_t first,
                                     std::int64_t count) const override {
    const bool as_stored = type_.kind == 'f' && !type_.big_endian &&
                           static_cast<std::size_t>(type_.size) == size &&
                           offset_ % type_.size == 0;
    if (!as_stored) return nullptr;
    return FileWindow::Open(file_.get(), offset_ + first * dimensions_ * type_.size,
                            static_cast<std::size_t>(count * dimensions_) * size);
  }

 private:
  template <typename T>
  absl::Status ReadAs(std::int64_t first, std::int64_t count, T* out) const {
    const std::size_t width = static_cast<std::size_t>(type_.size);
    std::size_t left = static_cast<std::size_t>(count * dimensions_);
    std::int64_t at = offset_ + first * dimensions_ * type_.size;
    if (type_.kind == 'f' && width == sizeof(T) && !type_.big_endian) {
      return ReadBytes(reinterpret_cast<char*>(out), left * width, at);
    }
    std::vector<char> raw(std::min(left * width, kChunk));
    while (left > 0) {
      const std::size_t now = std::min(left, raw.size() / width);
      MP_RETURN_IF_ERROR(ReadBytes(raw.data(), now * width, at));
      DecodeElements(type_, raw.data(), now, out);
      out += now;
      at += static_cast<std::int64_t>(now * width);
      left -= now;
    }
    return absl::OkStatus();
  }
  absl::Status ReadBytes(char* out, std::size_t size, std::int64_t at) const {
    while (size > 0) {
      const ssize_t n = ::pread(file_.get(), out, size, static_cast<off_t>(at));
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return absl::ErrnoToStatus(errno, absl::StrCat(name_, ": reading failed"));
      if (n == 0) {
        return absl::DataLossError(absl::StrCat(name_,
                                                ": became shorter while it was read, ended "
                                                "at byte ",
                                                at, ", expected ", rows_, " samples"));
      }
      out += n;
      at += n;
      size -= static_cast<std::size_t>(n);
    }
    return absl::OkStatus();
  }

  std::string name_;
  Descriptor file_;
  std::int64_t offset_;
  ElementType type_;
  std::int64_t rows_, dimensions_;
};

class RowSource : public CheckedSource {
 public:
  RowSource(std::unique_ptr<ByteStream> in, const ElementType& type, const SamplesOptions& options)
      : CheckedSource(in->name(), options), in_(std::move(in)), type_(type) {}

  absl::Status Start(absl::Span<const std::int64_t> shape) {
    MP_ASSIGN_OR_RETURN(std::vector<std::int64_t> sample, SampleShape(type_, shape, name()));
    MP_RETURN_IF_ERROR(
        Describe(std::move(sample), IsPixels(type_, shape), shape[0], MayBeNonfinite(type_)));
    samples_ = shape[0];
    chunk_.resize(kChunk);
    if (in_->is_plain_file()) {
      Descriptor again(::open(in_->name().c_str(), O_RDONLY | O_CLOEXEC));
      if (again.get() >= 0) {
        plain_.emplace(in_->name(), std::move(again), in_->position(), type_, samples_,
                       dimensions());
      }
    }
    return absl::OkStatus();
  }
  const RowFile* row_file() const override { return plain_ ? &*plain_ : nullptr; }

  absl::Status Skip(std::int64_t count) override {
    count = std::min(count, samples_ - next_);
    MP_RETURN_IF_ERROR(in_->Skip(count * dimensions() * type_.size));
    next_ += count;
    PassOver(count);
    return absl::OkStatus();
  }

 protected:
  absl::StatusOr<int> Fill(double* rows, int most) override {
    if (next_ == samples_) {
      MP_RETURN_IF_ERROR(in_->ExpectEnd());
      return 0;
    }
    const int count = static_cast<int>(std::min<std::int64_t>(most, samples_ - next_));
    const std::size_t width = static_cast<std::size_t>(type_.size);
    const std::size_t elements = static_cast<std::size_t>(count * dimensions());
    for (std::size_t done = 0; done < elements;) {
      const std::size_t now = std::min(elements - done, kChunk / width);
      MP_ASSIGN_OR_RETURN(const std::size_t n, in_->Read(chunk_.data(), now * width));
      if (n < now * width) {
        return absl::DataLossError(
            absl::StrCat(name(), ": is truncated, ends in sample ",
                         next_ + static_cast<std::int64_t>(done + n / width) / dimensions(),
                         " (counted from 0) after ", in_->position(), " bytes, expected ", samples_,
                         " samples of the shape ", ShapeText(shape())));
      }
      DecodeElements(type_, chunk_.data(), now, rows + done);
      done += now;
    }
    next_ += count;
    return count;
  }

 private:
  std::unique_ptr<ByteStream> in_;
  ElementType type_;
  std::int64_t samples_ = 0;
  std::int64_t next_ = 0;
  std::vector<char> chunk_;
  std::optional<PlainRows> plain_;
};

// The rest of `in`, at most `bytes`, in a file without a name, which vanishes when it is closed.
absl::StatusOr<Descriptor> Spool(ByteStream& in, std::int64_t bytes) {
  std::error_code ec;
  const std::string folder = std::filesystem::temp_directory_path(ec).string();
  if (ec) {
    return absl::FailedPreconditionError(
        absl::StrCat(in.name(), ": there is no folder for temporary files (", ec.message(),
                     "), expected one to reorder its Fortran-order values in: set TMPDIR"));
  }
  const std::string fault =
      absl::StrCat(in.name(), ": its ", bytes,
                   " bytes of values in Fortran order cannot be put into a temporary file in ",
                   folder, ", expected room there: free some, or set TMPDIR");
  std::string name = folder + "/mergeplan-XXXXXX";
  Descriptor file(::mkostemp(name.data(), O_CLOEXEC));
  if (file.get() < 0) return absl::ErrnoToStatus(errno, fault);
  ::unlink(name.c_str());
  std::vector<char> chunk(kChunk);
  for (std::int64_t done = 0; done < bytes;) {
    const std::size_t wanted = static_cast<std::size_t>(
        std::min<std::int64_t>(bytes - done, static_cast<std::int64_t>(kChunk)));
    MP_ASSIGN_OR_RETURN(const std::size_t n, in.Read(chunk.data(), wanted));
    if (n < wanted) {
      return absl::DataLossError(absl::StrCat(in.name(), ": is truncated, found ",
                                              done + static_cast<std::int64_t>(n),
                                              " bytes of values, expected ", bytes));
    }
    MP_RETURN_IF_ERROR(WriteAll(file.get(), {chunk.data(), n}, fault));
    done += static_cast<std::int64_t>(n);
  }
  MP_RETURN_IF_ERROR(in.ExpectEnd());
  return file;
}

// Values in Fortran order: that of sample i and multi-index (j1, .., jk) lies at
// i + n (j1 + s1 (j2 + s2 (..))), so that for each index the values of neighbouring samples are
// neighbours in the file. Fill reads one run of them per index: d reads for each block of rows.
class FortranSource : public CheckedSource {
 public:
  FortranSource(std::string name, Descriptor file, std::int64_t offset, const ElementType& type,
                const SamplesOptions& options)
      : CheckedSource(std::move(name), options),
        file_(std::move(file)),
        offset_(offset),
        type_(type) {}

  absl::Status Start(absl::Span<const std::int64_t> shape) {
    MP_ASSIGN_OR_RETURN(std::vector<std::int64_t> sample, SampleShape(type_, shape, name()));
    MP_RETURN_IF_ERROR(Describe(sample, IsPixels(type_, shape), shape[0], MayBeNonfinite(type_)));
    samples_ = shape[0];
    stride_.assign(sample.size(), samples_);
    for (std::size_t axis = 1; axis < sample.size(); ++axis) {
      stride_[axis] = stride_[axis - 1] * sample[axis - 1];
    }
    return absl::OkStatus();
  }

  absl::Status Skip(std::int64_t count) override {
    count = std::min(count, samples_ - next_);
    next_ += count;
    PassOver(count);
    return absl::OkStatus();
  }

 protected:
  absl::StatusOr<int> Fill(double* rows, int most) override {
    const int count = static_cast<int>(std::min<std::int64_t>(most, samples_ - next_));
    if (count == 0) return 0;
    const std::int64_t d = dimensions();
    run_.resize(static_cast<std::size_t>(count) * static_cast<std::size_t>(type_.size));
    column_.resize(static_cast<std::size_t>(count));
    std::vector<std::int64_t> index(shape().size(), 0);
    std::int64_t element = next_;
    for (std::int64_t j = 0; j < d; ++j) {
      MP_RETURN_IF_ERROR(ReadRun(element));
      DecodeElements(type_, run_.data(), column_.size(), column_.data());
      for (std::size_t i = 0; i < column_.size(); ++i) {
        rows[i * static_cast<std::size_t>(d) + static_cast<std::size_t>(j)] = column_[i];
      }
      for (std::size_t axis = index.size(); axis-- > 0;) {
        element += stride_[axis];
        if (++index[axis] < shape()[axis]) break;
        element -= stride_[axis] * shape()[axis];
        index[axis] = 0;
      }
    }
    next_ += count;
    return count;
  }

 private:
  absl::Status ReadRun(std::int64_t element) {
    for (std::size_t done = 0; done < run_.size();) {
      const ssize_t n = ::pread(file_.get(), run_.data() + done, run_.size() - done,
                                offset_ + element * type_.size + static_cast<off_t>(done));
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return absl::ErrnoToStatus(errno, absl::StrCat(name(), ": reading failed"));
      if (n == 0) {
        return absl::DataLossError(
            absl::StrCat(name(), ": became shorter while it was read, expected ", samples_,
                         " samples of the shape ", ShapeText(shape())));
      }
      done += static_cast<std::size_t>(n);
    }
    return absl::OkStatus();
  }

  Descriptor file_;
  std::int64_t offset_;
  ElementType type_;
  std::int64_t samples_ = 0;
  std::int64_t next_ = 0;
  std::vector<std::int64_t> stride_;
  std::vector<char> run_;
  std::vector<double> column_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<SampleSource>> OpenRows(std::unique_ptr<ByteStream> in,
                                                       const ElementType& type,
                                                       absl::Span<const std::int64_t> shape,
                                                       const SamplesOptions& options) {
  auto source = std::make_unique<RowSource>(std::move(in), type, options);
  MP_RETURN_IF_ERROR(source->Start(shape));
  return source;
}

absl::StatusOr<std::unique_ptr<SampleSource>> OpenNpySamples(std::unique_ptr<ByteStream> in,
                                                             const SamplesOptions& options,
                                                             bool one_sample) {
  MP_ASSIGN_OR_RETURN(NpyHeader header, ReadNpyHeader(*in));
  // One more axis at the front changes no place, in either order.
  if (one_sample) header.shape.insert(header.shape.begin(), 1);
  // Says what is wrong with the shape before any value is read.
  MP_RETURN_IF_ERROR(SampleShape(header.type, header.shape, in->name()).status());
  const std::int64_t bytes = header.count * header.type.size;
  const std::int64_t end = header.data_offset + bytes;
  if (in->size() && *in->size() != end) {
    return absl::InvalidArgumentError(absl::StrCat(
        in->name(), ": has ", *in->size(), " bytes, expected ", end, ", its header and the shape ",
        ShapeText(header.shape), " of '", Printable(header.descr, 40), "'"));
  }
  if (!header.fortran_order || header.shape.size() == 1) {
    return OpenRows(std::move(in), header.type, header.shape, options);
  }
  const std::string name = in->name();
  std::unique_ptr<FortranSource> source;
  if (in->is_plain_file()) {
    Descriptor again(::open(name.c_str(), O_RDONLY | O_CLOEXEC));
    if (again.get() < 0) return absl::ErrnoToStatus(errno, absl::StrCat(name, ": cannot be read"));
    source = std::make_unique<FortranSource>(name, std::move(again), header.data_offset,
                                             header.type, options);
  } else {
    MP_ASSIGN_OR_RETURN(Descriptor spooled, Spool(*in, bytes));
    source = std::make_unique<FortranSource>(name, std::move(spooled), 0, header.type, options);
  }
  MP_RETURN_IF_ERROR(source->Start(header.shape));
  return source;
}

bool LooksLikeIdx(std::string_view start) {
  if (start.size() < 4 || start[0] != 0 || start[1] != 0) return false;
  const int type = static_cast<unsigned char>(start[2]);
  return type >= 0x08 && type <= 0x0E;
}

absl::StatusOr<std::unique_ptr<SampleSource>> OpenIdxSamples(std::unique_ptr<ByteStream> in,
                                                             const SamplesOptions& options) {
  const auto big_endian = [&in](std::uint64_t& value) -> absl::Status {
    unsigned char bytes[4];
    MP_ASSIGN_OR_RETURN(const std::size_t n, in->Read(reinterpret_cast<char*>(bytes), 4));
    if (n < 4) {
      return absl::DataLossError(absl::StrCat(in->name(), ": ends inside the IDX header after ",
                                              in->position(), " bytes"));
    }
    value = std::uint64_t{bytes[0]} << 24 | std::uint64_t{bytes[1]} << 16 |
            std::uint64_t{bytes[2]} << 8 | bytes[3];
    return absl::OkStatus();
  };
  std::uint64_t mark = 0;
  MP_RETURN_IF_ERROR(big_endian(mark));
  ElementType type;
  switch (mark >> 8) {
    case 0x08:
      type = {'u', 1, true};
      break;
    case 0x09:
      type = {'i', 1, true};
      break;
    case 0x0B:
      type = {'i', 2, true};
      break;
    case 0x0C:
      type = {'i', 4, true};
      break;
    case 0x0D:
      type = {'f', 4, true};
      break;
    case 0x0E:
      type = {'f', 8, true};
      break;
    default:
      return absl::InvalidArgumentError(
          absl::StrCat(in->name(), ": has the IDX type 0x", absl::Hex(mark >> 8, absl::kZeroPad2),
                       ", expected 0x08, 0x09, 0x0b, 0x0c, 0x0d or 0x0e"));
  }
  const std::uint64_t axes = mark & 255;
  if (axes < 1 || axes > 8) {
    return absl::InvalidArgumentError(
        absl::StrCat(in->name(), ": declares ", axes, " axes, expected 1 to 8"));
  }
  std::vector<std::int64_t> shape;
  for (std::uint64_t axis = 0; axis < axes; ++axis) {
    std::uint64_t extent = 0;
    MP_RETURN_IF_ERROR(big_endian(extent));
    shape.push_back(static_cast<std::int64_t>(extent));
  }
  MP_ASSIGN_OR_RETURN(const std::int64_t count, CountElements(shape, type.size, in->name()));
  const std::int64_t wanted = in->position() + count * type.size;
  if (in->size() ? wanted != *in->size() : wanted > in->size_limit()) {
    const std::string found =
        in->size() ? absl::StrCat(*in->size()) : absl::StrCat("at most ", in->size_limit());
    const std::string text = absl::StrCat(in->name(), ": has ", found, " bytes, expected ", wanted,
                                          " for the IDX header and the shape ", ShapeText(shape),
                                          " of ", type.size, "-byte values");
    if (in->size() && wanted < *in->size()) return absl::InvalidArgumentError(text);
    return absl::DataLossError(absl::StrCat(text, ": the file is truncated"));
  }
  return OpenRows(std::move(in), type, shape, options);
}

}  // namespace mergeplan
