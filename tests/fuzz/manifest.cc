// What is accepted keeps the promises that the loader relies on.
#include <cmath>
#include <set>

#include "plugins/host/manifest.h"
#include "tests/fuzz/target.h"

namespace mergeplan::fuzz {
namespace {

void Attack(std::string_view bytes) {
  const std::string path = AsFile(bytes, ".toml");
  const absl::StatusOr<Manifest> manifest = ReadManifest(path);
  if (!manifest.ok()) {
    Require(!manifest.status().message().empty(), "an error with words");
    return;
  }
  Require(manifest->name == "vanilla", "the name to be the file's");
  Require(manifest->library.substr(0, path.rfind('/')) == path.substr(0, path.rfind('/')),
          "a library beside the manifest");
  std::set<std::string> names;
  for (const ParameterSpec& spec : manifest->parameters) {
    Require(names.insert(spec.name).second, "parameters of different names");
    Require(!spec.minimum || std::isfinite(*spec.minimum), "a finite minimum");
    Require(!spec.maximum || std::isfinite(*spec.maximum), "a finite maximum");
    Require(!spec.minimum || !spec.maximum || *spec.minimum <= *spec.maximum, "a range");
  }
  // Defaults pass their own checks, and each becomes a value.
  const auto defaults = CheckParameters(*manifest, {});
  Require(defaults.ok(), "defaults that are allowed");
  for (const ParameterSpec& spec : manifest->parameters) {
    Require(defaults->count(spec.name) == (spec.default_value ? 1u : 0u), "defaults as values");
  }
  (void)CheckAbi(*manifest);
  (void)CheckTeacher(*manifest, 0);
}

}  // namespace

const Target kManifest = {"manifest", Attack};

}  // namespace mergeplan::fuzz
