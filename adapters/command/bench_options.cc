#include <CLI/CLI.hpp>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <utility>

#include "adapters/command/bench_command.h"
#include "adapters/command/commands.h"
#include "adapters/command/options.h"

namespace mergeplan {
namespace {

constexpr char kBenchExample[] = R"(
Example:
  mergeplan bench --teacher analytic:spectrum.toml --teacher-steps 32 --schedule cosine \
    --lr 0.005 --iterations 320 --strategies vanilla,boot,progressive:factor=4,plan.toml

A plan file takes part when it was made for the same question. Exit codes: 0 done, 1 a strategy
failed, 2 misuse, 3 stopped (Ctrl-C) with the rows that were finished.
)";

// What samples of linear and network students are compared with.
void AddJudgeOptions(CLI::App* command, judge::JudgeOptions& a) {
  CLI::Option_group* group = command->add_option_group(
      "samples",
      "Of linear and network students: what their samples, decoded where --vae says how, are "
      "compared with");
  group->add_option(
      "--judge", a.data,
      "Reference samples, as analyze reads them, or teacher: the teacher's, from other "
      "noise [nothing is compared]");
  group->add_option("--judge-array", a.array, "Which array of an .npz of --judge");
  group->add_option("--judge-rows", a.rows, "Samples of --judge to use, from the first")
      ->check(CLI::Range(std::int64_t{1}, kLargest))
      ->capture_default_str();
  group->add_option("--judge-samples", a.samples, "Samples of every student")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 32))
      ->capture_default_str();
  group->add_option(
      "--features", a.features,
      "FILE.ts: TorchScript from pixels [B, C, H, W], 0..255, to features [B, d]; or a "
      "folder of mergeplan features [a small classifier of Fashion-MNIST, for 28 x 28 "
      "grey pictures]");
  group
      ->add_option("--judge-cache", a.cache,
                   "Folder that keeps statistics of references; none: no folder")
      ->capture_default_str();
}

}  // namespace

Command AddBench(CLI::App& app) {
  const auto arguments = std::make_shared<BenchArguments>();
  const auto output = std::make_shared<BenchOutput>();
  BenchArguments& a = *arguments;
  CLI::App* command = app.add_subcommand(
      "bench", "Trains several strategies on one question and compares predicted with achieved");
  AddQuestion(command, a.question);
  command
      ->add_option("--strategies", a.strategies,
                   "all, or a list with commas: names (progressive:factor=4 sets a parameter), "
                   "libraries, plan "
                   "files")
      ->delimiter(',')
      ->capture_default_str();
  command
      ->add_option(
          "--budget", a.budget,
          "Same updates per-merge, or in total (what BOOT spends), or both; with commas also "
          "updates=N of a merge, and limits calls=X of the teacher and minutes=X that the "
          "forecast is held against")
      ->capture_default_str();
  command->add_option("--trials", a.trials, "Runs of each, with seeds from --seed on")
      ->check(CLI::Range(1, 1000000))
      ->capture_default_str();
  command->add_option("-o,--output", output->file,
                      "Also write the table: a .csv or .json file, or a folder for all of it with "
                      "pictures of samples");
  AddJudgeOptions(command, a.judge);
  command->add_flag("--quiet", output->quiet, "No progress and no forecast");
  command->add_flag("--json", output->json, "Print one JSON object");
  command->footer(kBenchExample);
  Command out;
  out.options = command;
  out.run = [arguments, output, command] {
    if (arguments->judge.cache == "none") arguments->judge.cache.clear();
    arguments->judge.seed = static_cast<std::uint64_t>(arguments->question.seed.value_or(0));
    output->file_given = command->count("--output") > 0;
    return RunBenchCommand(*arguments, *output);
  };
  return out;
}

}  // namespace mergeplan
