#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace mergeplan::fuzz {

// One parser under attack. Input is what a file holds; the target stops the process (abort, or a
// sanitizer's report) where the parser breaks a promise.
struct Target {
  std::string_view name;  // of its folder in corpus/ and of its program
  void (*attack)(std::string_view bytes);
};

extern const Target kManifest;  // plugins/host: ReadManifest
extern const Target kPlanToml;  // planner/plan/io: ReadPlanToml
extern const Target kPlanJson;  // planner/plan/io: ReadPlanJson

// Writes the bytes to a file of this process's own in memory (replaced by the next call) and gives
// its path. `ending`: ".toml" or ".json".
std::string AsFile(std::string_view bytes, std::string_view ending);

// Prints what was expected and stops the process where it is not so.
void Require(bool condition, std::string_view what);

}  // namespace mergeplan::fuzz
