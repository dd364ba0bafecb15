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

absl::StatusOr<File> OpenForReading(const std::string& path) {
  std::error_code ec;
  if (std::filesystem::is_directory(path, ec)) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": is a folder, expected a file"));
  }
  File f(std::fopen(path.c_str(), "rb"));
  if (f == nullptr) return absl::ErrnoToStatus(errno, absl::StrCat(path, ": cannot be read"));
  return f;
}

absl::Status SyncFolderOf(const std::string& path) {
  std::filesystem::path folder = std::filesystem::path(path).parent_path();
  if (folder.empty()) folder = ".";
  const int fd = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0)
    return absl::ErrnoToStatus(errno, absl::StrCat(folder.string(), ": cannot be opened"));
  ::fsync(fd);  // some file systems refuse to sync a folder; the rename is done either way
  ::close(fd);
  return absl::OkStatus();
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
  std::string out;
  char buffer[1 << 16];
  size_t n = 0;
  while ((n = std::fread(buffer, 1, sizeof buffer, f.get())) > 0) out.append(buffer, n);
  if (std::ferror(f.get()) != 0) {
    return absl::ErrnoToStatus(errno, absl::StrCat(path, ": reading failed"));
  }
  return out;
}

absl::Status WriteFileAtomically(const std::string& path, std::string_view bytes) {
  static std::atomic<unsigned> counter{0};
  const std::string beside = absl::StrCat(path, ".tmp-", ::getpid(), "-", counter.fetch_add(1));
  const int fd = ::open(beside.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (fd < 0) return absl::ErrnoToStatus(errno, absl::StrCat(path, ": cannot be written"));
  absl::Status status;
  while (!bytes.empty() && status.ok()) {
    const ssize_t n = ::write(fd, bytes.data(), bytes.size());
    if (n >= 0) {
      bytes.remove_prefix(static_cast<size_t>(n));
    } else if (errno != EINTR) {
      status = absl::ErrnoToStatus(errno, absl::StrCat(path, ": writing failed"));
    }
  }
  if (status.ok() && ::fsync(fd) != 0) {
    status = absl::ErrnoToStatus(errno, absl::StrCat(path, ": syncing failed"));
  }
  ::close(fd);
  if (status.ok() && std::rename(beside.c_str(), path.c_str()) != 0) {
    status = absl::ErrnoToStatus(errno, absl::StrCat(path, ": cannot be replaced"));
  }
  if (!status.ok()) {
    ::unlink(beside.c_str());
    return status;
  }
  return SyncFolderOf(path);
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
