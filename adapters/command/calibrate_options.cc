#include <CLI/CLI.hpp>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <utility>

#include "adapters/command/calibrate_command.h"
#include "adapters/command/commands.h"
#include "adapters/command/options.h"

namespace mergeplan {
namespace {

constexpr char kCalibrateExample[] = R"(
Example:
  mergeplan calibrate --teacher unet:models/ddpm/unet --schedule models/ddpm/scheduler \
    --teacher-steps 8 --iterations 150 --batch 32 --lr 1e-4 --budget minutes=20 -o measured.toml
  mergeplan plan --measured measured.toml --updates 150

Writes measured.toml, measured.npz (all measurements) and measured.pilots.json (to go on from).
Exit codes: 0 done, 1 failed, 2 misuse, 3 stopped (Ctrl-C, a limit); go on with --resume.
)";

}  // namespace

Command AddCalibrate(CLI::App& app) {
  const auto arguments = std::make_shared<CalibrateArguments>();
  CalibrateArguments& a = *arguments;
  CLI::App* command = app.add_subcommand(
      "calibrate", "Trains a few merges and fills the measured model, which plan --measured takes");
  AddQuestion(command, a.question);
  command->add_option(
      "--budget", a.budget,
      "updates=K,calls=C,minutes=M, any of them: what all pilots may take [no limit]");
  Add(command, "--pilot-updates", a.pilot_updates,
      "Updates of a pilot, fewer than --iterations: the rest is extrapolated [--iterations]")
      ->check(CLI::Range(std::int64_t{1}, kLargest));
  command
      ->add_option("--replicates", a.replicates, "Trainings of each fitted merge, with other seeds")
      ->check(CLI::Range(1, 100))
      ->capture_default_str();
  Add(command, "--time-limit", a.time_limit, "Seconds, after which it stops with what there is")
      ->check(Real([](double x) { return x > 0; }, "a positive number"));
  command->add_flag("--resume", a.resume, "Go on with the pilots that are kept beside -o");
  command->add_option("-o,--output", a.output, "The tables, a .toml file")->required();
  command->add_option("--plan-output", a.plan_output,
                      "Also write the measured plan there, for distill --plan");
  command->add_flag("--quiet", a.quiet, "No progress and no forecast");
  command->add_flag("--json", a.json, "Print one JSON object");
  command->footer(kCalibrateExample);
  Command out;
  out.options = command;
  out.run = [arguments] { return RunCalibrateCommand(*arguments); };
  return out;
}

}  // namespace mergeplan
