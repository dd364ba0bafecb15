#include "planner/base/file.h"

#include <fcntl.h>
#include <openssl/evp.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <system_error>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "planner/base/status_macros.h"

namespace mergeplan {
namespace {

struct Closer {
  void operator()(std::FILE* f) const { std::fclose(f); }
};
using File = std::unique_ptr<std::FILE, Closer>;

// Of a pipe or a device, which may be endless. What is read so is text and small archives.
constexpr size_t kMostOfAPipe = size_t{1} << 30;

absl::StatusOr<File> OpenForReading(const std::string& path) {
  std::error_code ec;
  if (std::filesystem::is_directory(path, ec)) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": is a folder, expected a file"));
  }
  File f(std::fopen(path.c_str(), "rb"));
  if (f == nullptr) return absl::ErrnoToStatus(errno, absl::StrCat(path, ": cannot be read"));
  return f;
}

// Makes a finished rename durable. Where the folder cannot be opened or its file system refuses to
// sync, nothing is lost but durability in a power cut, so that is no error.
void SyncFolderOf(const std::string& path) {
  std::filesystem::path folder = std::filesystem::path(path).parent_path();
  if (folder.empty()) folder = ".";
  const int fd = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return;
  ::fsync(fd);
  ::close(fd);
}

// Writes everything and closes. Errors name `path`, which need not be the open file's own name.
absl::Status WriteAndClose(int fd, std::string_view bytes, bool sync, const std::string& path) {
  absl::Status status;
  while (!bytes.empty() && status.ok()) {
    const ssize_t n = ::write(fd, bytes.data(), bytes.size());
    if (n >= 0) {
      bytes.remove_prefix(static_cast<size_t>(n));
    } else if (errno != EINTR) {
      status = absl::ErrnoToStatus(errno, absl::StrCat(path, ": writing failed"));
    }
  }
  if (status.ok() && sync && ::fsync(fd) != 0) {
    status = absl::ErrnoToStatus(errno, absl::StrCat(path, ": syncing failed"));
  }
  if (::close(fd) != 0 && status.ok()) {
    status = absl::ErrnoToStatus(errno, absl::StrCat(path, ": closing failed"));
  }
  return status;
}

class Sha256Stream {
 public:
  Sha256Stream() : context_(EVP_MD_CTX_new(), &EVP_MD_CTX_free) {
    EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr);
  }
  void Add(const void* data, size_t size) { EVP_DigestUpdate(context_.get(), data, size); }
  std::string Hex() {
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned int size = 0;
    EVP_DigestFinal_ex(context_.get(), digest, &size);
    return absl::BytesToHexString({reinterpret_cast<const char*>(digest), size});
  }

 private:
  std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context_;
};

}  // namespace

absl::StatusOr<std::string> ReadFile(const std::string& path) {
  MP_ASSIGN_OR_RETURN(File f, OpenForReading(path));
  std::error_code ec;
  const bool endless = !std::filesystem::is_regular_file(path, ec);
  std::string out;
  char buffer[1 << 16];
  size_t n = 0;
  while ((n = std::fread(buffer, 1, sizeof buffer, f.get())) > 0) {
    out.append(buffer, n);
    if (endless && out.size() > kMostOfAPipe) {
      return absl::InvalidArgumentError(
          absl::StrCat(path, ": is a pipe or a device that gave more than ", kMostOfAPipe >> 20,
                       " MiB and has not come to its end, expected a file"));
    }
  }
  if (std::ferror(f.get()) != 0) {
    return absl::ErrnoToStatus(errno, absl::StrCat(path, ": reading failed"));
  }
  return out;
}

absl::Status WriteFileAtomically(const std::string& path, std::string_view bytes) {
  struct stat old = {};
  const bool exists = ::stat(path.c_str(), &old) == 0;
  if (exists && S_ISDIR(old.st_mode)) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": is a folder, expected a file"));
  }
  if (exists && !S_ISREG(old.st_mode)) {
    const int fd = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
    if (fd < 0) return absl::ErrnoToStatus(errno, absl::StrCat(path, ": cannot be written"));
    return WriteAndClose(fd, bytes, /*sync=*/false, path);
  }

  std::string target = path;
  std::error_code ec;
  if (exists && std::filesystem::is_symlink(path, ec)) {
    const std::filesystem::path real = std::filesystem::canonical(path, ec);
    if (!ec) target = real.string();
  }
  static std::atomic<unsigned> counter{0};
  const std::string beside = absl::StrCat(target, ".tmp-", ::getpid(), "-", counter.fetch_add(1));
  const int fd = ::open(beside.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (fd < 0) return absl::ErrnoToStatus(errno, absl::StrCat(path, ": cannot be written"));
  if (exists) ::fchmod(fd, old.st_mode & 07777);  // a file that is replaced keeps its permissions
  absl::Status status = WriteAndClose(fd, bytes, /*sync=*/true, path);
  if (status.ok() && std::rename(beside.c_str(), target.c_str()) != 0) {
    status = absl::ErrnoToStatus(errno, absl::StrCat(path, ": cannot be replaced"));
  }
  if (!status.ok()) {
    ::unlink(beside.c_str());
    return status;
  }
  SyncFolderOf(target);
  return absl::OkStatus();
}

absl::Status MakeDirectories(const std::string& path) {
  std::error_code ec;
  std::filesystem::create_directories(path, ec);
  if (!ec && std::filesystem::is_directory(path, ec)) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      path, ": the folder cannot be made: ", ec ? ec.message() : "a file is in the way"));
}

std::string Sha256(std::string_view bytes) {
  Sha256Stream stream;
  stream.Add(bytes.data(), bytes.size());
  return stream.Hex();
}

absl::StatusOr<std::string> Sha256OfFile(const std::string& path) {
  MP_ASSIGN_OR_RETURN(File f, OpenForReading(path));
  Sha256Stream stream;
  char buffer[1 << 16];
  size_t n = 0;
  while ((n = std::fread(buffer, 1, sizeof buffer, f.get())) > 0) stream.Add(buffer, n);
  if (std::ferror(f.get()) != 0) {
    return absl::ErrnoToStatus(errno, absl::StrCat(path, ": reading failed"));
  }
  return stream.Hex();
}

}  // namespace mergeplan
