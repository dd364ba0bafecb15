#include "planner/data/fingerprint.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <system_error>
#include <vector>

#include "absl/strings/str_cat.h"
#include "planner/base/file.h"
#include "planner/base/status_macros.h"
#include "planner/data/many.h"
#include "planner/data/spool.h"

namespace mergeplan {

namespace fs = std::filesystem;
namespace {

constexpr char kQuick[] = "quick:";
constexpr std::int64_t kPieces = 64, kPieceBytes = std::int64_t{1} << 14;

// Size, time and a sample of the content.
absl::StatusOr<std::string> QuickFingerprintOfFile(const std::string& path) {
  const auto fault = [&](const char* what) {
    return absl::ErrnoToStatus(errno, absl::StrCat(path, ": ", what));
  };
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return fault("cannot be read");
  struct Closer {
    int fd;
    ~Closer() { ::close(fd); }
  } closer{fd};
  struct stat about = {};
  if (::fstat(fd, &about) != 0) return fault("cannot be looked at");
  const std::int64_t size = about.st_size;
  std::string sampled = absl::StrCat(size, " ", about.st_mtim.tv_sec, " ", about.st_mtim.tv_nsec);
  std::string piece(static_cast<std::size_t>(kPieceBytes), '\0');
  const std::int64_t room = std::max<std::int64_t>(0, size - kPieceBytes);
  // Without forming room * k, which could overflow; the last piece is the end of the file.
  const auto begin = [&](std::int64_t k) {
    return room / (kPieces - 1) * k + room % (kPieces - 1) * k / (kPieces - 1);
  };
  std::int64_t end = -1;
  for (std::int64_t k = 0; k < kPieces; ++k) {
    // Of a small file, only what the piece before has not covered.
    const std::int64_t from = std::max(begin(k), end), to = std::min(size, begin(k) + kPieceBytes);
    end = std::max(end, to);
    for (std::int64_t at = from; at < to;) {
      const ssize_t got =
          ::pread(fd, piece.data(), static_cast<std::size_t>(to - at), static_cast<off_t>(at));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return fault("reading failed");
      if (got == 0) break;
      sampled.append(piece, 0, static_cast<std::size_t>(got));
      at += got;
    }
  }
  return absl::StrCat(kQuick, Sha256(sampled));
}

// Names, sizes and times of the files of a folder or a pattern.
absl::StatusOr<std::string> FingerprintOfFiles(const std::string& input) {
  std::error_code ec;
  std::vector<std::string> lines;
  const auto add = [&lines](const fs::path& path) {
    std::error_code none;
    const auto time = fs::last_write_time(path, none).time_since_epoch().count();
    lines.push_back(absl::StrCat(path.string(), " ", fs::file_size(path, none), " ", time));
  };
  if (std::error_code none; !fs::is_directory(input, none)) {
    MP_ASSIGN_OR_RETURN(const std::vector<std::string> files, FilesLike(input));
    for (const std::string& file : files) add(file);
  }
  const auto options = fs::directory_options::follow_directory_symlink;
  fs::recursive_directory_iterator it;
  if (lines.empty()) it = fs::recursive_directory_iterator(input, options, ec);
  for (const fs::recursive_directory_iterator end; !ec && it != end; it.increment(ec)) {
    std::error_code none;
    if (it->is_regular_file(none)) add(it->path());
  }
  if (ec) {
    return absl::FailedPreconditionError(
        absl::StrCat(input, ": cannot be listed (", ec.message(), ")"));
  }
  std::sort(lines.begin(), lines.end());
  std::string all;
  for (const std::string& line : lines) absl::StrAppend(&all, line, "\n");
  return Sha256(all);
}

}  // namespace

absl::StatusOr<std::string> FingerprintOfInput(const std::string& input) {
  std::error_code ec;
  if (fs::is_regular_file(input, ec)) return Sha256OfFile(input);
  if (input != "-") return FingerprintOfFiles(input);
  MP_ASSIGN_OR_RETURN(const std::string path, SpoolStandardInput());
  return Sha256OfFile(path);
}

absl::StatusOr<std::string> QuickFingerprintOfInput(const std::string& input) {
  std::error_code ec;
  if (fs::is_regular_file(input, ec)) return QuickFingerprintOfFile(input);
  if (input == "-") return FingerprintOfInput(input);
  MP_ASSIGN_OR_RETURN(const std::string files, FingerprintOfFiles(input));
  return absl::StrCat(kQuick, files);
}

bool IsQuickFingerprint(std::string_view fingerprint) { return fingerprint.starts_with(kQuick); }

}  // namespace mergeplan
