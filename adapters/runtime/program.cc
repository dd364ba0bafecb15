#include "adapters/runtime/program.h"

#include <CLI/CLI.hpp>
#include <cmath>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <optional>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "adapters/runtime/device.h"
#include "adapters/runtime/distill.h"

namespace mergeplan {
namespace {

// CLI11 throws on an option that makes no sense; everything it takes is an optional of this kind.
template <typename T>
CLI::Option* Add(CLI::App* command, const std::string& name, std::optional<T>& value,
                 const std::string& help) {
  return command->add_option(name, value, help);
}

// What CLI11 itself says of a number that it cannot read is only that it cannot.
CLI::Validator Real(bool (*holds)(double), const std::string& expected) {
  return CLI::Validator(
      [holds, expected](const std::string& text) {
        double number = 0;
        const bool is_number = absl::SimpleAtod(text, &number);
        if (is_number && holds(number)) return std::string();
        return absl::StrCat("\"", text, "\" is ", is_number ? "out of range" : "no number",
                            ", expected ", expected);
      },
      "NUMBER");
}

constexpr char kExample[] = R"(
Example:
  mergeplan distill --strategy boot --teacher-steps 32 --schedule cosine --lr 0.005 \
    --iterations 320 --teacher analytic:spectrum.toml -o runs/boot
  mergeplan distill --plan plan.toml --teacher analytic:spectrum.toml -o runs/plan
  mergeplan distill --resume -o runs/plan

Exit codes: 0 done, 1 failed, 2 misuse, 3 stopped (Ctrl-C); go on with --resume.
)";

// How merges are trained; Recipe judges the texts.
void AddTrainingOptions(CLI::App* command, DistillArguments& a) {
  const std::pair<const char*, const char*> options[] = {
      {"draws",
       "samples: z afresh for every sample; chi2: only the batch sums of z^2, from their law; "
       "fixed: "
       "one batch a merge for all updates [samples]"},
      {"student",
       "step: one parameter a step; embedding: 64 weights on a sinusoidal embedding [step]"},
      {"optimizer", "sgd, adam or adamw [sgd]"},
      {"momentum", "Of sgd [0]"},
      {"beta1", "Of adam and adamw [0.9]"},
      {"beta2", "Of adam and adamw [0.999]"},
      {"eps", "Of adam and adamw [1e-8]"},
      {"weight-decay", "Of the parameters [0; 0.01 for adamw]"},
      {"lr-schedule",
       "constant, linear or cosine: what the rate does after the warm-up [constant]"},
      {"warmup", "Updates over which the rate grows to the whole [0]"},
      {"clip-norm", "Largest norm of a merge's gradient [no limit]"},
      {"ema",
       "What a running average of the parameters keeps at every update; it is then what counts "
       "[no average]"},
      {"accumulate", "Batches per update [1]"}};
  for (const auto& [name, help] : options) {
    command->add_option_function<std::string>(
        absl::StrCat("--", name),
        [&a, name = std::string(name)](const std::string& text) { a.training[name] = text; }, help);
  }
}

void AddOptions(CLI::App* command, DistillArguments& a, DistillOutput& output) {
  Add(command, "--plan", a.plan, "Plan file to execute; schedule, start and budget come from it");
  Add(command, "--strategy", a.strategy, "Plugin that makes the plan: a name, or a path of a .so");
  Add(command, "--teacher", a.teacher, "analytic:SPECTRUM.toml");
  // Checked as text, since CLI11 only says of what the type does not hold that it cannot convert
  // it.
  const CLI::Range counts(1, std::numeric_limits<int>::max());
  Add(command, "--teacher-steps", a.teacher_steps, "T; may be left out for a schedule of arrays")
      ->check(counts);
  Add(command, "--schedule", a.schedule,
      "Name (cosine, flow:shift=3, ...), scheduler_config.json, or a file with alpha and sigma");
  const CLI::Validator positive =
      Real([](double x) { return x > 0 && std::isfinite(x); }, "a positive, finite number");
  Add(command, "--lr", a.lr, "Learning rate")->check(positive);
  // Larger numbers have no exact place in files, and CLI11 would clamp what does not fit.
  constexpr std::int64_t kLargest = std::int64_t{1} << 53;
  Add(command, "--iterations", a.iterations, "Updates per merge")
      ->check(CLI::Range(std::int64_t{0}, kLargest));
  Add(command, "--feature-norm", a.feature_norm,
      "Squared norm of the feature that feeds the operator [1]")
      ->check(positive);
  Add(command, "--init", a.init, "Start of a merge: child, teacher, jump, child-jump [child]");
  Add(command, "--student-steps", a.student_steps, "N, steps of the student [1]")->check(counts);
  Add(command, "--reference", a.reference,
      "What the student is compared with: surrogate, teacher, data [surrogate]");
  Add(command, "--basis", a.basis, "diagonal or pca [what the spectrum recommends]");
  Add(command, "--batch", a.batch, "Samples per update [the plan's, or 64]")->check(counts);
  Add(command, "--seed", a.seed, "Seed of all noise [0]")->check(CLI::Range(-kLargest, kLargest));
  AddTrainingOptions(command, a);
  Add(command, "--dtype", a.dtype, "float64 or float32 [float64]");
  Add(command, "--device", a.device, "cpu, cuda or cuda:N [cpu]");
  command->add_option("--threads", a.threads, "Threads of a training step; 0: all")
      ->check(CLI::Range(0, 256))
      ->capture_default_str();
  command->add_option("--plugin-dir", a.plugin_folders, "More folders with plugins");
  command->add_option("--set", a.parameters, "Parameter of the plugin, NAME=VALUE");
  command
      ->add_option("--checkpoint-seconds", a.checkpoint_seconds,
                   "Seconds of training between checkpoints; 0: as often as possible")
      ->check(Real([](double x) { return x >= 0; }, "0 or more"))
      ->capture_default_str();
  command->add_flag("--resume", a.resume, "Go on with the run in the folder -o");
  command->add_option("-o,--output", a.output, "Folder of the run")->required();
  command->add_flag("--quiet", output.quiet, "No progress");
  command->add_flag("--json", output.json, "Print one JSON object");
  command->footer(kExample);
}

}  // namespace

int RunProgram(int argc, const char* const* argv) {
  CLI::App app("The part of mergeplan that trains, with LibTorch.", "mergeplan");
  app.set_version_flag("--version", std::string("mergeplan-torch ") + MERGEPLAN_VERSION +
                                        " (LibTorch " + TorchVersion() + ")");
  app.require_subcommand(1);
  DistillArguments arguments;
  DistillOutput output;
  CLI::App* distill = app.add_subcommand(
      "distill", "Executes a merge schedule: trains every merge against a teacher");
  AddOptions(distill, arguments, output);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& done) {  // --help, --version
    return app.exit(done);
  } catch (const CLI::ParseError& error) {
    std::fprintf(stderr, "mergeplan distill: %s; see mergeplan distill --help\n", error.what());
    return 2;
  }
  // A reader that goes away must not end a training.
  std::signal(SIGPIPE, SIG_IGN);
  const int code = RunDistill(arguments, output);
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
    std::fprintf(stderr, "mergeplan distill: the output could not be written to stdout\n");
    return code == 0 ? 1 : code;
  }
  return code;
}

}  // namespace mergeplan
