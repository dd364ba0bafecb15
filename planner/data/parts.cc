#include "planner/data/parts.h"

#include <toml++/toml.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "planner/base/file.h"
#include "planner/base/status_macros.h"
#include "planner/data/many.h"
#include "planner/data/safetensors.h"

namespace mergeplan {
namespace {

constexpr char kFinished[] = "latents.toml";
constexpr char kBegun[] = "encode.toml";

bool IsFileIn(const std::string& folder, const char* name) {
  std::error_code ec;
  return std::filesystem::is_regular_file(std::filesystem::path(folder) / name, ec);
}

// What latents.toml says.
absl::StatusOr<std::int64_t> SamplesOf(const std::string& path) {
  MP_ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  try {
    const toml::table table = toml::parse(text);
    const std::int64_t samples = table["samples"].value_or(std::int64_t{0});
    if (samples > 0) return samples;
  } catch (const toml::parse_error&) {
  }
  return absl::DataLossError(absl::StrCat(
      path, ": does not say how many samples there are, expected samples = N; encode again"));
}

}  // namespace

bool IsPartsFolder(const std::string& path) {
  return IsFileIn(path, kFinished) || IsFileIn(path, kBegun);
}

absl::StatusOr<std::unique_ptr<SampleSource>> OpenPartsFolder(const std::string& path,
                                                              const SamplesOptions& asked) {
  if (!IsFileIn(path, kFinished)) {
    return absl::FailedPreconditionError(absl::StrCat(
        path, ": holds latents that are not all encoded yet (", kBegun, " without ", kFinished,
        "); run the same mergeplan encode once more, which goes on where it was"));
  }
  SamplesOptions options = asked;
  if (options.array.empty()) options.array = "latents";
  const std::string about = absl::StrCat(path, "/", kFinished);
  MP_ASSIGN_OR_RETURN(const std::int64_t samples, SamplesOf(about));
  std::vector<FileOfSamples> parts;
  std::int64_t found = 0;
  while (found < samples) {
    FileOfSamples part;
    part.path = absl::StrFormat("%s/part-%06d.safetensors", path, parts.size());
    MP_ASSIGN_OR_RETURN(const auto file, SafetensorsFile::Open(part.path));
    const auto& entries = file->entries();
    const auto entry = std::find_if(entries.begin(), entries.end(), [&](const SafetensorsEntry& e) {
      return e.name == options.array;
    });
    // One that is not there is what OpenSamples says below, with the names of the others.
    if (entry != entries.end() && !entry->shape.empty()) part.samples = entry->shape.front();
    if (part.samples.value_or(0) == 0) {
      MP_RETURN_IF_ERROR(OpenSamples(part.path, options).status());
      return absl::DataLossError(
          absl::StrCat(part.path, ": holds no samples, expected some; encode again"));
    }
    found += *part.samples;
    parts.push_back(std::move(part));
  }
  if (found != samples) {
    return absl::DataLossError(absl::StrCat(path, ": its parts hold ", found, " samples, ", about,
                                            " says ", samples, "; encode again"));
  }
  return OpenFiles(std::move(parts), options, "; encode again");
}

}  // namespace mergeplan
