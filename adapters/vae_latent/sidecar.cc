#include "adapters/vae_latent/sidecar.h"

#include <cmath>
#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "planner/base/status_macros.h"
#include "planner/runs/table_reader.h"
#include "planner/spectrum/spectrum.h"

namespace mergeplan::vae {
namespace {

// In the folder of `path`, or a whole path; it must be there.
absl::Status Find(const std::string& path, const char* key, std::string* file) {
  namespace fs = std::filesystem;
  if (fs::path(*file).is_relative()) *file = (fs::path(path).parent_path() / *file).string();
  std::error_code ec;
  if (fs::is_regular_file(*file, ec)) return absl::OkStatus();
  return absl::NotFoundError(absl::StrCat(path, ": key '", key, "': there is no file ", *file,
                                          "; expected one beside ", path, ", or a whole path"));
}

}  // namespace

absl::StatusOr<Sidecar> ReadVaeSidecar(const std::string& path) {
  MP_ASSIGN_OR_RETURN(const toml::table table, ParseTomlFile(path));
  TableReader read(path, table);
  std::int64_t format = 0;
  Sidecar out;
  MP_RETURN_IF_ERROR(read.Integer("format", 1, 1, &format));
  const auto text = [&](const char* key, std::string* value) {
    return table.contains(key) ? read.Text(key, value) : absl::OkStatus();
  };
  const auto number = [&](const char* key, double* value) {
    return table.contains(key) ? read.Number(key, value) : absl::OkStatus();
  };
  MP_RETURN_IF_ERROR(text("encoder", &out.encoder));
  MP_RETURN_IF_ERROR(text("decoder", &out.decoder));
  MP_RETURN_IF_ERROR(text("pixels", &out.pixels));
  MP_RETURN_IF_ERROR(text("output", &out.output));
  constexpr std::int64_t kMost = 65536;
  if (table.contains("image_channels")) {
    MP_RETURN_IF_ERROR(read.Integer("image_channels", 1, kMost, &out.image_channels));
  }
  MP_RETURN_IF_ERROR(read.Integer("latent_channels", 1, kMost, &out.latent_channels));
  MP_RETURN_IF_ERROR(read.Integer("reduction", 1, kMost, &out.reduction));
  MP_RETURN_IF_ERROR(number("scaling_factor", &out.scaling_factor));
  MP_RETURN_IF_ERROR(number("shift_factor", &out.shift_factor));
  MP_RETURN_IF_ERROR(read.NothingElse());
  if (out.encoder.empty() && out.decoder.empty()) {
    return read.Error("encoder", "is missing, and decoder too; expected at least one of them");
  }
  if (!out.encoder.empty()) MP_RETURN_IF_ERROR(Find(path, "encoder", &out.encoder));
  if (!out.decoder.empty()) MP_RETURN_IF_ERROR(Find(path, "decoder", &out.decoder));
  const absl::StatusOr<Scaling> pixels = ParseScaling(out.pixels);
  if (!pixels.ok() || out.pixels == "none") {
    return read.Error("pixels", absl::StrCat("is \"", out.pixels,
                                             "\", expected the range of its images, LOW:HIGH"));
  }
  if (out.output != "mean" && out.output != "mean,log_variance") {
    return read.Error("output", absl::StrCat("is \"", out.output,
                                             "\", expected \"mean\" or \"mean,log_variance\""));
  }
  if (!(out.scaling_factor > 0)) {
    return read.Error("scaling_factor",
                      absl::StrCat("is ", out.scaling_factor, ", expected a positive number"));
  }
  return out;
}

}  // namespace mergeplan::vae
