#include <CLI/CLI.hpp>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <utility>

#include "adapters/command/commands.h"
#include "adapters/command/options.h"
#include "adapters/model/model_command.h"
#include "adapters/runtime/output.h"

namespace mergeplan {
namespace {

constexpr char kModelExample[] = R"(
Example:
  mergeplan model models/ddpm/unet
  mergeplan model models/ddpm/unet --compare io.npz --json

Exit codes: 0 done, 1 it cannot be read or a difference is beyond the tolerance, 2 misuse.
)";

}  // namespace

Command AddModel(CLI::App& app) {
  const auto arguments = std::make_shared<ModelArguments>();
  ModelArguments& a = *arguments;
  CLI::App* command = app.add_subcommand(
      "model", "Says what a diffusers UNet2DModel folder is, and how far it is from a reference");
  command->add_option("folder", a.folder, "Folder with config.json and weights, or a pipeline's")
      ->required();
  Add(command, "--compare", a.compare,
      ".npz with sample, timesteps, output and gradients as diffusers computes them");
  command->add_option("--tolerance", a.tolerance, "Largest difference over largest value")
      ->needs("--compare")
      ->check(Real([](double x) { return x >= 0; }, "0 or more"))
      ->capture_default_str();
  command->add_flag("--json", a.json, "Print one JSON object");
  command->footer(kModelExample);
  Command out;
  out.options = command;
  out.run = [arguments] {
    RestoreStdout();  // no plugins here
    return RunModelCommand(*arguments);
  };
  return out;
}

}  // namespace mergeplan
