#include <CLI/CLI.hpp>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <utility>

#include "adapters/command/commands.h"
#include "adapters/command/options.h"
#include "adapters/sample/sample_command.h"

namespace mergeplan {
namespace {

constexpr char kSampleExample[] = R"(
Example:
  mergeplan sample runs/boot -o student.png -o student.npz
  mergeplan sample runs/boot --teacher -o teacher.png
  mergeplan sample unet:pipeline --teacher-steps 50 --steps 8 --count 16 -o grid.png
  mergeplan sample runs/boot --class 0,1,2 --per-class 8 -o classes.png

The same seed is the same noise for every source of the same shape. Exit codes: 0 done, 1 failed, 2
misuse, 3 stopped (Ctrl-C) with nothing written.
)";

}  // namespace

Command AddSample(CLI::App& app) {
  const auto arguments = std::make_shared<SampleArguments>();
  SampleArguments& a = *arguments;
  CLI::App* command = app.add_subcommand(
      "sample", "Draws samples from the student of a run, from a network, or from a known law");
  command
      ->add_option("source", a.source,
                   "Folder of a finished run, of a student or of a UNet2DModel, or KIND:PATH of a "
                   "teacher (analytic, mixture, script, unet)")
      ->required();
  const CLI::Range counts(1, std::numeric_limits<int>::max());
  command->add_option("-o,--output", a.outputs,
                      "grid.png or samples.npz; once more for a second file");
  Add(command, "--count", a.count, "Samples [64, or --per-class of every class]")
      ->check(CLI::Range(std::int64_t{1}, kLargest));
  command->add_option("--class", a.classes,
                      "Of what is told classes: 3, or 0,1,2 in turns, or all [all]");
  command
      ->add_option("--per-class", a.per_class,
                   "Samples of one class that follow each other; a grid has a row for each class")
      ->check(CLI::Range(std::int64_t{1}, kLargest))
      ->capture_default_str();
  command->add_option("--seed", a.seed, "Seed of their noise")
      ->check(CLI::Range(std::int64_t{0}, kLargest))
      ->capture_default_str();
  command->add_option("--first", a.first, "The first sample of the seed; the others follow")
      ->check(CLI::Range(std::int64_t{0}, std::int64_t{1} << 40))
      ->capture_default_str();
  command->add_option("--batch", a.batch, "Samples at a time; changes nothing but time and memory")
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
  out.run = [arguments] { return RunSampleCommand(*arguments); };
  return out;
}

}  // namespace mergeplan
