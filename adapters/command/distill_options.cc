#include <CLI/CLI.hpp>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <utility>

#include "adapters/command/commands.h"
#include "adapters/command/distill.h"
#include "adapters/command/options.h"
#include "plugins/host/host.h"

namespace mergeplan {
namespace {

constexpr char kDistillExample[] = R"(
Example:
  mergeplan distill --strategy boot --teacher-steps 32 --schedule cosine --lr 0.005 \
    --iterations 320 --teacher analytic:spectrum.toml -o runs/boot
  mergeplan distill --plan plan.toml --teacher analytic:spectrum.toml -o runs/plan
  mergeplan distill --resume -o runs/plan

Exit codes: 0 done, 1 failed, 2 misuse, 3 stopped (Ctrl-C); go on with --resume.
)";

// `--strategy NAME --help` goes on with that plugin's own parameters, from its manifest: none of
// its code runs.
int HelpWithParameters(const DistillArguments& arguments) {
  if (!arguments.strategy) {
    std::printf("Parameters of a strategy: --strategy NAME --help\n");
    return 0;
  }
  const auto manifest = FindManifest(*arguments.strategy, arguments.plugin_folders);
  if (!manifest.ok()) {
    std::fprintf(stderr, "mergeplan distill: --strategy: %s\n",
                 std::string(manifest.status().message()).c_str());
    return 2;
  }
  std::printf("\n%s %s: %s\n", manifest->name.c_str(), manifest->version.c_str(),
              manifest->description.c_str());
  const std::vector<std::string> lines = ParameterLines(*manifest);
  for (const std::string& line : lines) std::printf("  --set %s\n", line.c_str());
  if (lines.empty()) std::printf("  has no parameters of its own\n");
  return 0;
}

}  // namespace

Command AddDistill(CLI::App& app) {
  const auto arguments = std::make_shared<DistillArguments>();
  const auto output = std::make_shared<DistillOutput>();
  DistillArguments& a = *arguments;
  CLI::App* command = app.add_subcommand(
      "distill", "Executes a merge schedule: trains every merge against a teacher");
  Add(command, "--plan", a.plan, "Plan file to execute; schedule, start and budget come from it");
  Add(command, "--strategy", a.strategy, "Plugin that makes the plan: a name, or a path of a .so");
  AddQuestion(command, a);
  command->add_option("--set", a.parameters,
                      "Parameter of the plugin, NAME=VALUE; --strategy NAME --help lists them");
  command
      ->add_option("--checkpoint-seconds", a.checkpoint_seconds,
                   "Seconds of training between checkpoints; 0: as often as possible")
      ->check(Real([](double x) { return x >= 0; }, "0 or more"))
      ->capture_default_str();
  command->add_flag("--resume", a.resume, "Go on with the run in the folder -o");
  command->add_option("-o,--output", a.output, "Folder of the run")->required();
  command->add_flag("--quiet", output->quiet, "No progress");
  command->add_flag("--json", output->json, "Print one JSON object");
  command->footer(kDistillExample);
  Command out;
  out.options = command;
  out.run = [arguments, output] { return RunDistill(*arguments, *output); };
  out.more_help = [arguments] { return HelpWithParameters(*arguments); };
  return out;
}

}  // namespace mergeplan
