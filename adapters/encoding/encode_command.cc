#include "adapters/encoding/encode_command.h"

#include <unistd.h>

#include <cstdio>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "adapters/encoding/place.h"
#include "adapters/encoding/progress_line.h"
#include "adapters/parallel/open.h"
#include "adapters/runtime/signals.h"
#include "nlohmann/json.hpp"
#include "planner/base/status_macros.h"

namespace mergeplan {
namespace {

using encoding::EncodeArguments;
using encoding::EncodeResult;

std::string Shape(const std::vector<std::int64_t>& shape) {
  return absl::StrCat("[", absl::StrJoin(shape, ", "), "]");
}

void Print(const EncodeArguments& arguments, const EncodeResult& result, bool json) {
  const double rate = result.seconds > 0 ? static_cast<double>(result.encoded) / result.seconds : 0;
  if (json) {
    const nlohmann::ordered_json out = {
        {"folder", arguments.output},          {"vae", result.vae_kind},
        {"vae_sha256", result.sha256},         {"samples", result.samples},
        {"encoded", result.encoded},           {"image_shape", result.image_shape},
        {"latent_shape", result.latent_shape}, {"finished", result.finished},
        {"stopped", result.stopped},           {"seconds", result.seconds},
        {"samples_per_second", rate}};
    const std::string text = out.dump(2, ' ', false, nlohmann::json::error_handler_t::replace);
    std::printf("%s\n", text.c_str());
    return;
  }
  std::printf("%s: %s becomes %s by %s\n", arguments.input.c_str(),
              Shape(result.image_shape).c_str(), Shape(result.latent_shape).c_str(),
              result.vae_kind.c_str());
  if (result.grey_repeated) {
    std::printf("the grey pictures were repeated to %lld channels\n",
                static_cast<long long>(result.image_shape[0]));
  }
  std::printf("%lld samples, %lld of them encoded now", static_cast<long long>(result.samples),
              static_cast<long long>(result.encoded));
  if (result.encoded > 0) std::printf(" in %.1f s (%.1f a second)", result.seconds, rate);
  std::printf("\n");
  if (result.finished) {
    std::printf("%s is complete: mergeplan analyze %s\n", arguments.output.c_str(),
                arguments.output.c_str());
  } else if (result.stopped) {
    std::printf("stopped: the same command goes on from the last finished part\n");
  } else {
    std::printf("%s lacks parts that other processes make, or that are still to do\n",
                arguments.output.c_str());
  }
}

absl::StatusOr<int> RunToStdout(const EncodeArguments& arguments, const EncodeOutput& output,
                                const Communicator& ranks) {
  if (ranks.ranks() > 1) {
    return absl::InvalidArgumentError(
        "-o -: mpirun's processes share one standard output, expected a folder");
  }
  if (output.json) {
    return absl::InvalidArgumentError("--json: stands beside -o -, whose latents take stdout");
  }
  if (::isatty(STDOUT_FILENO) != 0) {
    return absl::InvalidArgumentError(
        "-o -: standard output is a terminal, expected a pipe or a file for the latents");
  }
  StopOnSignals();
  EncodeResult result;
  {
    encoding::ProgressLine progress("encode", output.quiet);
    MP_ASSIGN_OR_RETURN(result,
                        encoding::EncodeToDescriptor(arguments, STDOUT_FILENO,
                                                     [&](const auto& at) { progress.Show(at); }));
  }
  if (result.stopped) {
    std::fprintf(stderr, "mergeplan %s: stopped after %lld samples, of which nothing is kept\n",
                 output.command.c_str(), static_cast<long long>(result.encoded));
    return 3;
  }
  if (!output.quiet && output.command == "encode") {
    std::fprintf(stderr, "%s: %s becomes %s by %s, %lld samples in %.1f s\n",
                 arguments.input.c_str(), Shape(result.image_shape).c_str(),
                 Shape(result.latent_shape).c_str(), result.vae_kind.c_str(),
                 static_cast<long long>(result.encoded), result.seconds);
  }
  return 0;
}

absl::StatusOr<int> Run(EncodeArguments arguments, const EncodeOutput& output,
                        const Communicator& ranks) {
  if (arguments.output == "-") return RunToStdout(arguments, output, ranks);
  if (ranks.ranks() > 1) {
    if (!arguments.shard.empty()) {
      return absl::InvalidArgumentError(
          "--shard: under mpirun every rank has its part already, expected one of the two");
    }
    arguments.shard = absl::StrCat(ranks.rank() + 1, "/", ranks.ranks());
  }
  StopOnSignals();
  encoding::ProgressLine progress("encode", output.quiet || !ranks.first());
  MP_ASSIGN_OR_RETURN(EncodeResult result,
                      encoding::Encode(arguments, [&](const auto& at) { progress.Show(at); }));
  if (ranks.ranks() > 1) {
    MP_RETURN_IF_ERROR(ranks.Barrier());
    // Whoever was last has seen all parts; the first one tells.
    if (ranks.first() && !result.finished && !result.stopped) {
      EncodeArguments again = arguments;
      MP_ASSIGN_OR_RETURN(const EncodeResult whole, encoding::Encode(again, nullptr));
      result.finished = whole.finished;
    }
  }
  if (ranks.first()) Print(arguments, result, output.json);
  return result.stopped ? 3 : 0;
}

}  // namespace

int RunEncodeCommand(const EncodeArguments& arguments, const EncodeOutput& output) {
  encoding::KeepFreedMemory();
  const auto opened = OpenCommunicator();
  const auto fail = [&](const absl::Status& status) {
    std::fprintf(stderr, "mergeplan %s: %s\n", output.command.c_str(),
                 std::string(status.message()).c_str());
    const bool flag =
        status.message().substr(0, 2) == "--" || status.message().substr(0, 3) == "-o ";
    return flag ? 2 : 1;
  };
  if (!opened.ok()) return fail(opened.status());
  const absl::StatusOr<int> code = Run(arguments, output, **opened);
  const int end = code.ok() ? *code : fail(code.status());
  (*opened)->Finish();
  return end;
}

}  // namespace mergeplan
