#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "gtest/gtest.h"

namespace mergeplan {

// A folder of its own for one test, with spaces in its path, removed afterwards.
class PluginFolder {
 public:
  PluginFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "merge plan XXXXXX").string();
    if (mkdtemp(pattern.data()) == nullptr) ADD_FAILURE() << "no temporary folder";
    path_ = std::filesystem::canonical(pattern);
  }
  ~PluginFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  PluginFolder(const PluginFolder&) = delete;
  PluginFolder& operator=(const PluginFolder&) = delete;

  std::string path() const { return path_.string(); }
  std::string File(const std::string& name) const { return (path_ / name).string(); }

  std::string Write(const std::string& name, const std::string& bytes) const {
    std::ofstream(path_ / name, std::ios::binary) << bytes;
    return File(name);
  }
  // Copies NAME.so of the fixtures in.
  std::string CopyLibrary(const std::string& name, const std::string& as = "") const {
    const std::filesystem::path to = path_ / ((as.empty() ? name : as) + ".so");
    std::filesystem::copy_file(FixtureFolder() / (name + ".so"), to);
    return to.string();
  }

  static std::filesystem::path FixtureFolder() { return MERGEPLAN_FIXTURES; }

 private:
  std::filesystem::path path_;
};

inline std::string Slurp(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// Sets an environment variable for a scope.
class ScopedVariable {
 public:
  ScopedVariable(const char* name, const std::string& value) : name_(name) {
    setenv(name, value.c_str(), 1);
  }
  ~ScopedVariable() { unsetenv(name_); }
  ScopedVariable(const ScopedVariable&) = delete;
  ScopedVariable& operator=(const ScopedVariable&) = delete;

 private:
  const char* name_;
};

// Manifests of the fixtures (tests/plugins/fixtures).
inline const char kOddManifest[] = R"(format = 1
name = "odd"
version = "0.1"
description = "Misbehaves on demand"
library = "odd.so"
abi_major = 1
abi_minor = 0

[[parameters]]
name = "do"
type = "text"
default = "good"
help = "what to do"

[[parameters]]
name = "rate"
type = "real"
default = 0.5
minimum = 0
help = "a number"
)";

inline const char kFrozenManifest[] = R"(format = 1
name = "frozen"
version = "1.0"
description = "Built against the header of ABI 1.0"
library = "frozen.so"
abi_major = 1
abi_minor = 0
)";

inline const char kCPluginManifest[] = R"(format = 1
name = "c_plugin"
version = "0.1"
description = "Plain C"
library = "c_plugin.so"
abi_major = 1
abi_minor = 0
teacher_needs = ["gives-gradients"]
)";

}  // namespace mergeplan
