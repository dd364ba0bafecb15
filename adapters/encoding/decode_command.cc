#include "adapters/encoding/decode_command.h"

#include <cstdio>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "adapters/encoding/place.h"
#include "adapters/runtime/arguments.h"
#include "adapters/runtime/output.h"
#include "adapters/runtime/signals.h"
#include "nlohmann/json.hpp"
#include "planner/base/exit_code.h"

namespace mergeplan {
namespace {

using encoding::DecodeArguments;
using encoding::DecodeResult;

void PrintDecoded(const DecodeArguments& arguments, const DecodeResult& result, bool json) {
  const double rate = result.seconds > 0 ? static_cast<double>(result.samples) / result.seconds : 0;
  if (json) {
    const nlohmann::ordered_json out = {
        {"input", arguments.input},
        {"vae", result.vae_kind},
        {"vae_sha256", result.sha256},
        {"samples", result.samples},
        {"first", arguments.first},
        {"latent_shape", result.latent_shape},
        {"picture_shape", result.picture_shape},
        {"pixels", arguments.dtype == "uint8" ? "0:255" : result.pixels},
        {"raw", result.raw},
        {"other_network", result.other_network},
        {"seconds", result.seconds},
        {"samples_per_second", rate},
        {"files", arguments.outputs}};
    const std::string text = out.dump(2, ' ', false, nlohmann::json::error_handler_t::replace);
    std::printf("%s\n", text.c_str());
    return;
  }
  if (result.other_network) {
    std::printf("note: %s was encoded by another network than %s, or by other weights\n",
                arguments.input.c_str(), arguments.vae.c_str());
  }
  std::printf("%s: %lld latents [%s]%s become pictures [%s] by %s in %.1f s (%.1f a second): %s\n",
              arguments.input.c_str(), static_cast<long long>(result.samples),
              absl::StrJoin(result.latent_shape, ", ").c_str(),
              result.raw ? ", as the encoder gives them," : "",
              absl::StrJoin(result.picture_shape, ", ").c_str(), result.vae_kind.c_str(),
              result.seconds, rate, absl::StrJoin(arguments.outputs, ", ").c_str());
}

}  // namespace

int RunDecodeCommand(const DecodeArguments& arguments, const DecodeOutput& output) {
  encoding::KeepFreedMemory();
  StopOnSignals();
  absl::StatusOr<DecodeResult> result = DecodeResult();
  {
    encoding::ProgressLine progress("decode", output.quiet);
    result = encoding::Decode(arguments, [&](const auto& at) { progress.Show(at); });
  }
  RestoreStdout();
  if (result.ok()) {
    PrintDecoded(arguments, *result, output.json);
    return kDone;
  }
  std::fprintf(stderr, "mergeplan decode: %s\n", std::string(result.status().message()).c_str());
  if (absl::IsCancelled(result.status())) return kStopped;
  return IsMisuse(result.status()) ? kMisuse : kFailed;
}

}  // namespace mergeplan
