#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace mergeplan {

enum class ParameterType { kInteger, kReal, kFlag, kText };
// "integer", "real", "flag", "text".
std::string_view ToString(ParameterType type);

// A parameter that a plugin brings: what --help, the TOML and the Python package show.
struct ParameterSpec {
  std::string name;  // [a-z][a-z0-9-_]*
  ParameterType type = ParameterType::kText;
  std::optional<std::string> default_value;
  std::optional<double> minimum, maximum;  // integer and real only
  std::string help;

  friend bool operator==(const ParameterSpec&, const ParameterSpec&) = default;
};

// Which values a parameter takes: "an integer from 2 to 1000000", "a finite number, 0 or more",
// "true or false", "a text".
std::string ValuesInWords(const ParameterSpec& spec);

// What stands beside a plugin's library and is read before any of its code runs.
struct Manifest {
  std::string path;     // of the manifest
  std::string library;  // path of the shared library, beside the manifest
  std::string name;     // [a-z][a-z0-9-_]*
  std::string version;
  std::string description;
  std::uint32_t abi_major = 0;
  std::uint32_t abi_minor = 0;         // that it was written against, for people
  std::uint32_t abi_minor_needed = 0;  // the oldest minor of a host that it can work with
  std::uint64_t teacher_needs = 0;     // bits of mergeplan_teacher_trait
  std::vector<ParameterSpec> parameters;

  const ParameterSpec* FindParameter(std::string_view name) const;
};

// One line for each parameter, for --help: name, values, default and help.
std::vector<std::string> ParameterLines(const Manifest& manifest);

// Reads NAME.toml, format 1:
//
//   format = 1
//   name = "progressive"                  # as the file is called
//   version = "1.0"
//   description = "Merges pairs, level by level"
//   library = "progressive.so"            # a file beside the manifest, no path
//   abi_major = 1
//   abi_minor = 1                         # optional, for people: what it was written against
//   abi_minor_needed = 0                  # optional, 0
//   teacher_needs = ["gives-gradients"]   # optional, []
//
//   [[parameters]]                        # optional
//   name = "factor"
//   type = "integer"                      # integer | real | flag | text
//   default = 2                           # optional, of that type
//   minimum = 2                           # optional; integer and real
//   maximum = 1000                        # optional; integer and real
//   help = "how many neighbours are merged into one"
//
// The ABI's version is not judged here (see CheckAbi). Errors name the file, the key, what was
// found and what was expected; unknown keys are errors.
absl::StatusOr<Manifest> ReadManifest(const std::string& path);

// Can this host load it? FAILED_PRECONDITION says which versions do not fit.
absl::Status CheckAbi(const Manifest& manifest);

// Checks a user's values against the schema and fills in the defaults. Unknown names, values of
// another type, numbers that are not finite or out of range are INVALID_ARGUMENT and name the
// plugin, the parameter, what was found, and type and range of what was expected.
absl::StatusOr<std::map<std::string, std::string>> CheckParameters(
    const Manifest& manifest, const std::map<std::string, std::string>& values);

// The words for mergeplan_teacher_trait bits, in the order of the bits ("predicts-x0", …).
std::vector<std::string> TeacherTraitNames(std::uint64_t traits);
// "this plugin needs X, this teacher gives Y": FAILED_PRECONDITION when something is missing.
absl::Status CheckTeacher(const Manifest& manifest, std::uint64_t teacher_gives);

}  // namespace mergeplan
