#include "planner/data/stream.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "planner/base/status_macros.h"

namespace mergeplan {
namespace {

constexpr std::size_t kBuffer = std::size_t{1} << 18;
constexpr std::size_t kMostPeek = std::size_t{1} << 16;

// Deflate cannot shrink anything by more than a factor of 1032.
constexpr std::int64_t kDeflateRatio = 1032;

struct OpenedFile {
  int fd = -1;
  std::int64_t bytes = 0;
};

absl::StatusOr<OpenedFile> OpenRegular(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return absl::ErrnoToStatus(errno, absl::StrCat(path, ": cannot be read"));
  struct stat info {};
  if (::fstat(fd, &info) != 0) {
    const int error = errno;
    ::close(fd);
    return absl::ErrnoToStatus(error, absl::StrCat(path, ": cannot be read"));
  }
  if (!S_ISREG(info.st_mode)) {
    ::close(fd);
    return absl::InvalidArgumentError(
        absl::StrCat(path, S_ISDIR(info.st_mode) ? ": is a folder" : ": is a device or a pipe",
                     ", expected a file"));
  }
  return OpenedFile{fd, static_cast<std::int64_t>(info.st_size)};
}

class FileStream : public ByteStream {
 public:
  FileStream(std::string path, OpenedFile file) : ByteStream(std::move(path)), file_(file) {}
  ~FileStream() override { ::close(file_.fd); }

  std::optional<std::int64_t> size() const override { return file_.bytes; }
  std::int64_t size_limit() const override { return file_.bytes; }
  bool is_plain_file() const override { return true; }

 protected:
  absl::StatusOr<std::size_t> ReadSome(char* out, std::size_t size) override {
    for (;;) {
      const ssize_t n = ::read(file_.fd, out, size);
      if (n >= 0) return static_cast<std::size_t>(n);
      if (errno != EINTR) {
        return absl::ErrnoToStatus(errno, absl::StrCat(name(), ": reading failed"));
      }
    }
  }
  absl::StatusOr<bool> Wind(std::int64_t size) override {
    if (::lseek(file_.fd, static_cast<off_t>(size), SEEK_CUR) >= 0) return true;
    return absl::ErrnoToStatus(errno, absl::StrCat(name(), ": winding forward failed"));
  }

 private:
  OpenedFile file_;
};

class GzipStream : public ByteStream {
 public:
  // `file` is read through zlib, which owns the descriptor.
  GzipStream(std::string path, gzFile file, std::int64_t compressed)
      : ByteStream(std::move(path)), file_(file), compressed_(compressed) {}
  ~GzipStream() override { gzclose_r(file_); }

  std::optional<std::int64_t> size() const override { return std::nullopt; }
  std::int64_t size_limit() const override { return compressed_ * kDeflateRatio; }

 protected:
  absl::StatusOr<std::size_t> ReadSome(char* out, std::size_t size) override {
    const int n = gzread(file_, out, static_cast<unsigned>(std::min(size, std::size_t{1} << 30)));
    if (n > 0) return static_cast<std::size_t>(n);
    int code = Z_OK;
    const char* text = gzerror(file_, &code);
    if (n == 0 && (code == Z_OK || code == Z_STREAM_END)) return std::size_t{0};
    if (code == Z_BUF_ERROR) {
      return absl::DataLossError(absl::StrCat(
          name(), ": the gzip data end early, after ", gztell(file_),
          " decompressed bytes; the file is truncated, expected all of it: fetch it again"));
    }
    const std::string reason =
        code == Z_ERRNO ? std::strerror(errno) : (text != nullptr ? text : "unknown error");
    return absl::DataLossError(absl::StrCat(name(), ": the gzip data are damaged (",
                                            Printable(reason, 120),
                                            "), expected an intact file: fetch it again"));
  }

 private:
  gzFile file_;
  std::int64_t compressed_;
};

}  // namespace

absl::Status ByteStream::Skip(std::int64_t size) {
  const std::int64_t held = std::min<std::int64_t>(size, static_cast<std::int64_t>(end_ - begin_));
  begin_ += static_cast<std::size_t>(held);
  position_ += held;
  size -= held;
  if (size == 0) return absl::OkStatus();
  MP_ASSIGN_OR_RETURN(const bool wound, Wind(size));
  if (wound) {
    position_ += size;
    return absl::OkStatus();
  }
  std::vector<char> buffer(static_cast<std::size_t>(std::min<std::int64_t>(size, 1 << 18)));
  while (size > 0) {
    const std::size_t wanted = static_cast<std::size_t>(
        std::min<std::int64_t>(size, static_cast<std::int64_t>(buffer.size())));
    MP_ASSIGN_OR_RETURN(const std::size_t n, Read(buffer.data(), wanted));
    if (n == 0) break;  // the next Read says what is missing
    size -= static_cast<std::int64_t>(n);
  }
  return absl::OkStatus();
}

absl::Status ByteStream::Refill(std::size_t wanted) {
  if (buffer_.empty()) buffer_.resize(kBuffer);
  if (begin_ > 0) {
    std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
  }
  while (end_ < wanted && !at_end_) {
    MP_ASSIGN_OR_RETURN(const std::size_t n,
                        ReadSome(buffer_.data() + end_, buffer_.size() - end_));
    if (n == 0) at_end_ = true;
    end_ += n;
  }
  return absl::OkStatus();
}

absl::StatusOr<std::size_t> ByteStream::Read(char* out, std::size_t size) {
  std::size_t done = 0;
  while (done < size) {
    if (begin_ == end_) {
      if (at_end_) break;
      if (size - done >= kBuffer) {
        MP_ASSIGN_OR_RETURN(const std::size_t n, ReadSome(out + done, size - done));
        if (n == 0) at_end_ = true;
        done += n;
        continue;
      }
      MP_RETURN_IF_ERROR(Refill(1));
      continue;
    }
    const std::size_t n = std::min(size - done, end_ - begin_);
    std::memcpy(out + done, buffer_.data() + begin_, n);
    begin_ += n;
    done += n;
  }
  position_ += static_cast<std::int64_t>(done);
  return done;
}

absl::StatusOr<std::string_view> ByteStream::Peek(std::size_t size) {
  size = std::min(size, kMostPeek);
  if (end_ - begin_ < size) MP_RETURN_IF_ERROR(Refill(size));
  return std::string_view(buffer_.data() + begin_, std::min(size, end_ - begin_));
}

absl::Status ByteStream::ExpectEnd() {
  MP_ASSIGN_OR_RETURN(const std::string_view rest, Peek(1));
  if (rest.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(name(), ": goes on after the ", position_,
                   " bytes that its header declares, expected its end there"));
}

absl::StatusOr<std::unique_ptr<ByteStream>> OpenFile(const std::string& path) {
  MP_ASSIGN_OR_RETURN(const OpenedFile file, OpenRegular(path));
  return std::make_unique<FileStream>(path, file);
}

absl::StatusOr<std::unique_ptr<ByteStream>> OpenGzip(const std::string& path) {
  MP_ASSIGN_OR_RETURN(const OpenedFile file, OpenRegular(path));
  gzFile gz = gzdopen(file.fd, "rb");
  if (gz == nullptr) {
    ::close(file.fd);
    return absl::ResourceExhaustedError(absl::StrCat(path, ": no memory to decompress it"));
  }
  gzbuffer(gz, 1 << 17);
  return std::make_unique<GzipStream>(path, gz, file.bytes);
}

std::string Printable(std::string_view bytes, std::size_t most) {
  const bool cut = bytes.size() > most;
  bytes = bytes.substr(0, most);
  return absl::StrCat(absl::CHexEscape({bytes.data(), bytes.size()}), cut ? "..." : "");
}

}  // namespace mergeplan
