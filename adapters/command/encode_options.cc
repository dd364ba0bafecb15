#include <CLI/CLI.hpp>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <utility>

#include "adapters/command/commands.h"
#include "adapters/command/options.h"
#include "adapters/command/vae_options.h"
#include "adapters/encoding/encode_command.h"
#include "adapters/runtime/output.h"

namespace mergeplan {
namespace {

constexpr char kEncodeExample[] = R"(
Example:
  mergeplan encode images/ --vae pipeline/vae -o latents
  mergeplan analyze latents --per-channel
  mergeplan encode images/ --vae pipeline/vae -o - | mergeplan analyze - --per-channel

A run that was stopped goes on with the same command. Exit codes: 0 done, 1 failed, 2 misuse,
3 stopped (Ctrl-C).
)";

}  // namespace

Command AddEncode(CLI::App& app) {
  const auto arguments = std::make_shared<encoding::EncodeArguments>();
  const auto output = std::make_shared<EncodeOutput>();
  encoding::EncodeArguments& a = *arguments;
  CLI::App* command =
      app.add_subcommand("encode", "Encodes pictures into latents on disk, part by part");
  command->add_option("input", a.input, "Pictures, as analyze reads them")->required();
  command->add_option("--array", a.array, "Which array of an .npz or .safetensors");
  command->add_option("--vae", a.vae,
                      "Folder of a diffusers AutoencoderKL or AutoencoderTiny, or vae.toml, which "
                      "names a TorchScript encoder");
  command->add_option("--encoder", a.encoder,
                      "In place of --vae: a TorchScript encoder alone, of pictures in [-1, 1] "
                      "(else --scale) to the mean of their latents");
  command
      ->add_option("-o,--output", a.output,
                   "Folder of the latents; -: one .npy on standard output, nothing kept")
      ->required();
  Add(command, "--size", a.size, "Bring pictures to HEIGHTxWIDTH first (bicubic, antialiased)");
  Add(command, "--scale", a.scale, "LOW:HIGH of pixels, or none [what the network takes]");
  Add(command, "--limit", a.limit, "Samples, from the first [all]")
      ->check(CLI::Range(std::int64_t{1}, kLargest));
  command->add_option("--content", a.content, "mean, mean,log_variance or sample")
      ->capture_default_str();
  command->add_flag("--raw", a.raw,
                    "Latents as the encoder gives them, without scaling factor and shift");
  command->add_option("--dtype", a.dtype, "float32 or float16")->capture_default_str();
  command->add_option("--part-samples", a.part_samples, "Samples of one file")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 30))
      ->capture_default_str();
  command->add_option("--shard", a.shard,
                      "INDEX/COUNT: only every COUNT-th part; with -o - that many neighbours");
  command->add_option("--seed", a.seed, "Of --content sample")
      ->check(CLI::Range(std::int64_t{0}, kLargest))
      ->capture_default_str();
  AddVaeWork(command, a, "Encode");
  command->add_flag("--quiet", output->quiet, "No progress");
  command->add_flag("--json", output->json, "Print one JSON object");
  // Of `mergeplan analyze --vae`, which starts this command.
  command->add_option("--for", output->command)->group("");
  command->add_option("--most-dimensions", a.most_dimensions)->group("");
  command->footer(kEncodeExample);
  Command out;
  out.options = command;
  out.run = [arguments, output] {
    RestoreStdout();  // no plugins here
    return RunEncodeCommand(*arguments, *output);
  };
  return out;
}

}  // namespace mergeplan
