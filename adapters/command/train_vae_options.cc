#include <CLI/CLI.hpp>
#include <memory>

#include "adapters/autoencoding/run.h"
#include "adapters/command/commands.h"
#include "adapters/command/training_options.h"

namespace mergeplan {
namespace {

constexpr char kTrainVaeExample[] = R"(
Example:
  mergeplan train-vae --model config.json --data images/ --size 64 --iterations 20000 --batch 64 --lr 1e-3 -o vae
  mergeplan train-vae --resume -o vae
  mergeplan encode images/ --size 64 --vae vae -o latents

The folder vae/vae is an AutoencoderKL that diffusers loads. Exit codes: 0 done, 1 failed, 2 misuse, 3 stopped (Ctrl-C,
--time-limit) with a network that can be used; go on with --resume.
)";

}  // namespace

Command AddTrainVae(CLI::App& app) {
  const auto arguments = std::make_shared<TrainVaeArguments>();
  TrainVaeArguments& a = *arguments;
  CLI::App* command = app.add_subcommand(
      "train-vae", "Trains a variational autoencoder on pictures, from random weights or further");
  command->add_option("--model", a.model,
                      "config.json of an AutoencoderKL (random weights), or its folder");
  AddData(command, a);
  command->add_option("--size", a.size,
                      "Pictures are resized to HEIGHTxWIDTH, or to a square of one number [as they "
                      "are]");
  AddTexts(command, a, OptimizerHelp("Learning rate [0.001]"));
  AddTexts(command, a,
           {{"loss", "ms-ssim: 1 - multiscale structural similarity; squared: error [ms-ssim]"},
            {"kl-weight",
             "What a nat of the latents' divergence from N(0, I), summed over a picture, weighs "
             "[0.00025]"},
            {"window", "Of ms-ssim, pixels, odd, or auto [11, or 7 where five scales do not fit]"},
            {"scales", "Of ms-ssim, 1 to 5, or auto [as many as fit]"},
            {"flip", "yes: pictures are mirrored left to right at random [no]"},
            {"precision", "full, bf16 or fp16 (with a scaled loss) [full]"},
            {"scaling", "LOW:HIGH that pixels are mapped to, or none [-1:1 for pixels]"},
            {"seed", "Of weights, pictures and noise [0]"},
            {"log-every", "Updates that a row of log.csv stands for [50]"},
            {"samples", "Pictures in samples.png, each above what comes back; 0: none [32]"},
            {"sample-every", "Updates between pictures on the way (samples-N.png); 0: none [0]"}});
  AddSession(command, a);
  command->footer(kTrainVaeExample);
  Command out;
  out.options = command;
  out.run = [arguments] { return RunTrainVae(*arguments); };
  return out;
}

}  // namespace mergeplan
