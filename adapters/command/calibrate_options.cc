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
  constexpr char kSampleExample[] = R"(
Example:
  mergeplan sample runs/boot -o student.png -o student.npz
  mergeplan sample runs/boot --teacher -o teacher.png
  mergeplan sample unet:pipeline --teacher-steps 50 --steps 8 --count 16 -o grid.png

The same seed is the same noise for every source of the same shape. Exit codes: 0 done, 1 failed, 2
misuse, 3 stopped (Ctrl-C) with nothing written.
)";

  CLI::App* AddSample(CLI::App & app, SampleArguments & a) {
    CLI::App* command = app.add_subcommand(
        "sample", "Draws samples from the student of a run, from a network, or from a known law");
    command
        ->add_option(
            "source", a.source,
            "Folder of a finished run, of a student or of a UNet2DModel, or KIND:PATH of a "
            "teacher (analytic, mixture, script, unet)")
        ->required();
    const CLI::Range counts(1, std::numeric_limits<int>::max());
    command->add_option("-o,--output", a.outputs,
                        "grid.png or samples.npz; once more for a second file");
    command->add_option("--count", a.count, "Samples")
        ->check(CLI::Range(std::int64_t{1}, kLargest))
        ->capture_default_str();
    command->add_option("--seed", a.seed, "Seed of their noise")
        ->check(CLI::Range(std::int64_t{0}, kLargest))
        ->capture_default_str();
    command->add_option("--first", a.first, "The first sample of the seed; the others follow")
        ->check(CLI::Range(std::int64_t{0}, std::int64_t{1} << 40))
        ->capture_default_str();
    command
        ->add_option("--batch", a.batch, "Samples at a time; changes nothing but time and memory")
        ->check(counts)
        ->capture_default_str();
    command->add_option("--columns", a.columns, "Of the grid; 0: about as many as rows")
        ->check(CLI::Range(0, 65536))
        ->capture_default_str();
    command->add_flag("--teacher", a.teacher, "Of a run: its teacher, by the run's schedule");
    Add(command, "--schedule", a.schedule,
        "Of a teacher: name, scheduler_config.json or arrays [the folder's scheduler]");
    Add(command, "--teacher-steps", a.teacher_steps, "Levels of the schedule [50]")->check(counts);
    Add(command, "--steps", a.steps, "Jumps along them [every level]")->check(counts);
    Add(command, "--basis", a.basis, "Of an analytic teacher: diagonal or pca");
    command->add_option("--device", a.device, "cpu, cuda or cuda:N")->capture_default_str();
    command->add_option("--threads", a.threads, "Threads; 0: all")
        ->check(CLI::Range(0, 256))
        ->capture_default_str();
    command->add_flag("--json", a.json, "Print one JSON object");
    command->footer(kSampleExample);
    Command out;
    out.options = command;
    out.run = [arguments] { return RunCalibrateCommand(*arguments); };
    return out;
  }

}  // namespace mergeplan
