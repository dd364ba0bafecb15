// Pictures a second of `mergeplan encode`, for a table beside eager PyTorch (table.sh).
//
// The loop is timed, again and again into a new folder: pictures are read and brought to their
// size, encoded, and their latents written and synced. `network` is the time inside the network's
// forward passes and what makes its input, `start` the seconds of loading the network and of
// looking at the pictures. The fastest turn counts.
#include <ATen/Parallel.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <system_error>

#include "adapters/encoding/encode.h"
#include "adapters/encoding/place.h"

namespace mergeplan {
namespace {

double Now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

int Run(encoding::EncodeArguments arguments, int turns) {
  encoding::KeepFreedMemory();  // as the command does
  std::string folder = (std::filesystem::temp_directory_path() / "vae_bench-XXXXXX").string();
  if (::mkdtemp(folder.data()) == nullptr) {
    std::fprintf(stderr, "vae_bench: no folder could be made in TMPDIR\n");
    return 1;
  }
  double whole = 0, network = 0, start = 0;
  std::int64_t samples = 0;
  int code = 0;
  for (int turn = 0; turn <= turns && code == 0; ++turn) {
    arguments.output = folder + "/" + std::to_string(turn);
    const double begin = Now();
    const auto result = encoding::Encode(arguments, nullptr);
    const double seconds = Now() - begin;
    if (!result.ok() || !result->finished || result->encoded == 0) {
      std::fprintf(stderr, "vae_bench: %s\n", std::string(result.status().message()).c_str());
      code = 1;
    } else if (turn > 0 && (whole == 0 || result->loop_seconds < whole)) {  // the first warms up
      whole = result->loop_seconds;
      network = result->seconds;
      start = seconds - whole;
      samples = result->encoded;
    }
  }
  std::error_code ec;
  std::filesystem::remove_all(folder, ec);
  if (code != 0) return code;
  const double n = static_cast<double>(samples);
  std::printf(
      "{\"samples\": %lld, \"whole\": %.4f, \"network\": %.4f, \"start\": %.4f, \"threads\": %d}\n",
      static_cast<long long>(samples), n / whole, n / network, start, at::get_num_threads());
  return 0;
}

}  // namespace
}  // namespace mergeplan

int main(int argc, char** argv) {
  CLI::App app("Times mergeplan encode", "vae_bench");
  mergeplan::encoding::EncodeArguments arguments;
  int turns = 2;
  std::string size;
  std::int64_t limit = 0;
  app.add_option("input", arguments.input, "Pictures")->required();
  app.add_option("vae", arguments.vae, "As --vae of mergeplan encode")->required();
  app.add_option("--size", size, "As of mergeplan encode");
  app.add_option("--limit", limit, "Pictures, from the first");
  app.add_option("--batch", arguments.batch, "Pictures at a time");
  app.add_option("--threads", arguments.threads, "0: all");
  app.add_option("--turns", turns, "Of which the fastest counts; one more warms up");
  CLI11_PARSE(app, argc, argv);
  if (!size.empty()) arguments.size = size;
  if (limit > 0) arguments.limit = limit;
  return mergeplan::Run(arguments, turns);
}
