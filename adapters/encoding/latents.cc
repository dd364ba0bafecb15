#include "adapters/encoding/latents.h"

#include <toml++/toml.h>

#include "adapters/encoding/count.h"
#include "planner/base/status_macros.h"
#include "planner/data/parts.h"
#include "planner/data/spool.h"
#include "planner/runs/table_reader.h"

namespace mergeplan::encoding {
namespace {

absl::StatusOr<std::unique_ptr<SampleSource>> Open(const std::string& path,
                                                   const std::string& array) {
  SamplesOptions options;
  options.array = array;
  absl::StatusOr<std::unique_ptr<SampleSource>> out = OpenSamples(path, options);
  if (out.ok() || !array.empty()) return out;
  for (const char* name : {"latents", "samples"}) {
    options.array = name;
    absl::StatusOr<std::unique_ptr<SampleSource>> named = OpenSamples(path, options);
    if (named.ok()) return named;
  }
  return out;
}

}  // namespace

absl::StatusOr<LatentInput> OpenLatents(const std::string& asked, const std::string& array) {
  std::string path = asked;
  if (path == "-") {
    MP_ASSIGN_OR_RETURN(path, SpoolStandardInput());
  }
  LatentInput out;
  MP_ASSIGN_OR_RETURN(out.source, Open(path, array));
  if (IsPartsFolder(path)) {
    MP_ASSIGN_OR_RETURN(const toml::table table, ParseTomlFile(path + "/latents.toml"));
    const auto made_of = table["made_of"];
    out.vae_sha256 = made_of["vae_sha256"].value_or(std::string());
    out.raw = made_of["units"].value_or(std::string()) == "of the encoder";
  }
  if (out.source->size()) {
    out.size = *out.source->size();
    return out;
  }
  MP_ASSIGN_OR_RETURN(out.size, CountSamples(*out.source));
  MP_ASSIGN_OR_RETURN(out.source, Open(path, array));
  return out;
}

}  // namespace mergeplan::encoding
