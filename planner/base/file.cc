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
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "planner/base/status_macros.h"
#include "planner/base/write_all.h"

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

absl::StatusOr<AtomicFile> AtomicFile::Create(const std::string& path) {
  struct stat old = {};
  const bool exists = ::stat(path.c_str(), &old) == 0;
  if (exists && S_ISDIR(old.st_mode)) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": is a folder, expected a file"));
  }
  AtomicFile file;
  file.path_ = file.target_ = path;
  if (exists && !S_ISREG(old.st_mode)) {
    file.fd_ = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
  } else {
    std::error_code ec;
    if (exists && std::filesystem::is_symlink(path, ec)) {
      const std::filesystem::path real = std::filesystem::canonical(path, ec);
      if (!ec) file.target_ = real.string();
    }
    static std::atomic<unsigned> counter{0};
    file.beside_ = absl::StrCat(file.target_, ".tmp-", ::getpid(), "-", counter.fetch_add(1));
    file.fd_ = ::open(file.beside_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  }
  if (file.fd_ < 0) {
    const int error = errno;
    file.beside_.clear();
    return absl::ErrnoToStatus(error, absl::StrCat(path, ": cannot be written"));
  }
  // A file that is replaced keeps its permissions.
  if (exists && !file.beside_.empty()) ::fchmod(file.fd_, old.st_mode & 07777);
  return file;
}

AtomicFile::AtomicFile(AtomicFile&& other) noexcept
    : path_(std::move(other.path_)),
      target_(std::move(other.target_)),
      beside_(std::exchange(other.beside_, {})),
      fd_(std::exchange(other.fd_, -1)) {}

AtomicFile::~AtomicFile() {
  if (fd_ >= 0) ::close(fd_);
  if (!beside_.empty()) ::unlink(beside_.c_str());
}

absl::Status AtomicFile::Append(std::string_view bytes) {
  return WriteAll(fd_, bytes, absl::StrCat(path_, ": writing failed"));
}

absl::Status AtomicFile::Commit() {
  const bool renames = !beside_.empty();
  absl::Status status;
  if (renames && ::fsync(fd_) != 0) {
    status = absl::ErrnoToStatus(errno, absl::StrCat(path_, ": syncing failed"));
  }
  if (::close(std::exchange(fd_, -1)) != 0 && status.ok()) {
    status = absl::ErrnoToStatus(errno, absl::StrCat(path_, ": closing failed"));
  }
  if (!status.ok() || !renames) return status;
  if (std::rename(beside_.c_str(), target_.c_str()) != 0) {
    return absl::ErrnoToStatus(errno, absl::StrCat(path_, ": cannot be replaced"));
  }
  beside_.clear();
  SyncFolderOf(target_);
  return absl::OkStatus();
}

absl::Status WriteFileAtomically(const std::string& path, std::string_view bytes) {
  MP_ASSIGN_OR_RETURN(AtomicFile file, AtomicFile::Create(path));
  MP_RETURN_IF_ERROR(file.Append(bytes));
  return file.Commit();
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
