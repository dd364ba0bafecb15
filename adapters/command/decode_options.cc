#include <CLI/CLI.hpp>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "adapters/command/commands.h"
#include "adapters/command/options.h"
#include "adapters/command/vae_options.h"
#include "adapters/encoding/decode_command.h"

namespace mergeplan {
namespace {

constexpr char kDecodeExample[] = R"(
Example:
  mergeplan sample runs/boot -o samples.npz
  mergeplan decode samples.npz --vae pipeline/vae -o pictures.npz -o grid.png

Exit codes: 0 done, 1 failed, 2 misuse, 3 stopped (Ctrl-C) with nothing written.
)";

}  // namespace

Command AddDecode(CLI::App& app) {
  const auto arguments = std::make_shared<encoding::DecodeArguments>();
  const auto output = std::make_shared<DecodeOutput>();
  encoding::DecodeArguments& a = *arguments;
  CLI::App* command = app.add_subcommand("decode", "Turns latents into pictures, batch by batch");
  command
      ->add_option("input", a.input,
                   "Latents: a folder of mergeplan encode, what mergeplan sample wrote, or a file "
                   "as analyze reads it")
      ->required();
  command->add_option(
      "--array", a.array,
      "Which array of an .npz or .safetensors [the only one, or latents, or samples]");
  command
      ->add_option("--vae", a.vae,
                   "Folder of a diffusers AutoencoderKL or AutoencoderTiny, or vae.toml, which "
                   "names a TorchScript decoder")
      ->required();
  command->add_option("-o,--output", a.outputs,
                      "pictures.npz (or .npy), and grid.png of the first; once more for each");
  Add(command, "--shape", a.shape, "Of flat latents: CHANNELSxHEIGHTxWIDTH [square]");
  command->add_flag("--raw", a.raw,
                    "Latents are as the encoder gives them, without scaling factor and shift [as "
                    "the folder of encode says]");
  command
      ->add_option("--dtype", a.dtype,
                   "Of the .npz: uint8, pixels 0..255 as files of pictures hold them, or float32, "
                   "as the network gives them")
      ->capture_default_str();
  command->add_option("--first", a.first, "The first sample; the others follow")
      ->check(CLI::Range(std::int64_t{0}, kLargest))
      ->capture_default_str();
  Add(command, "--count", a.count, "Samples [all]")->check(CLI::Range(std::int64_t{1}, kLargest));
  command->add_option("--grid", a.grid, "Pictures of a .png, from the first")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{65536}))
      ->capture_default_str();
  command->add_option("--columns", a.columns, "Of the grid; 0: about as many as rows")
      ->check(CLI::Range(0, 65536))
      ->capture_default_str();
  AddVaeWork(command, a, "Decode");
  command->add_flag("--quiet", output->quiet, "No progress");
  command->add_flag("--json", output->json, "Print one JSON object");
  command->footer(kDecodeExample);
  Command out;
  out.options = command;
  out.run = [arguments, output] { return RunDecodeCommand(*arguments, *output); };
  return out;
}

}  // namespace mergeplan
