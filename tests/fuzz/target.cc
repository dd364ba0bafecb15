#include "tests/fuzz/target.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace mergeplan::fuzz {
namespace {

// A folder that goes with the process.
class Folder {
 public:
  Folder() {
    const bool has_memory = ::access("/dev/shm", W_OK) == 0;
    std::string pattern =
        has_memory ? "/dev/shm/mergeplan-fuzz-XXXXXX" : "/tmp/mergeplan-fuzz-XXXXXX";
    Require(::mkdtemp(pattern.data()) != nullptr, "a temporary folder");
    path_ = pattern;
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace

std::string AsFile(std::string_view bytes, std::string_view ending) {
  static const Folder folder;
  // Manifests are called as the plugin is.
  const std::string path = folder.path() + "/vanilla" + std::string(ending);
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  Require(static_cast<bool>(file.flush()), "a file that can be written");
  return path;
}

void Require(bool condition, std::string_view what) {
  if (condition) return;
  std::fprintf(stderr, "fuzz: expected %.*s\n", static_cast<int>(what.size()), what.data());
  std::abort();
}

}  // namespace mergeplan::fuzz
