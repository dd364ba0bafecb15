#include "adapters/command/program.h"

#include <CLI/CLI.hpp>
#include <cmath>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "adapters/command/bench_command.h"
#include "adapters/command/distill.h"
#include "adapters/model/model_command.h"
#include "adapters/runtime/device.h"
#include "adapters/runtime/output.h"
#include "plugins/host/host.h"

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

// Larger numbers have no exact place in files, and CLI11 would clamp what does not fit.
constexpr std::int64_t kLargest = std::int64_t{1} << 53;

constexpr char kBenchExample[] = R"(
Example:
  mergeplan bench --teacher analytic:spectrum.toml --teacher-steps 32 --schedule cosine \
    --lr 0.005 --iterations 320 --strategies vanilla,boot,progressive:factor=4,plan.toml

A plan file takes part when it was made for the same question. Exit codes: 0 done, 1 a strategy
failed, 2 misuse, 3 stopped (Ctrl-C) with the rows that were finished.
)";

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

// Of a mixture teacher, whose students are affine mixtures of experts.
void AddExpertOptions(CLI::App* command, ExpertArguments& a) {
  CLI::Option_group* experts = command->add_option_group(
      "mixture",
      "Of a mixture teacher, whose students are affine mixtures of experts (--iterations [10000], "
      "--lr [0.001], --batch [2560], --optimizer adam or sgd [adam], --draws samples or pool)");
  Add(experts, "--fit-iterations", a.fit_iterations,
      "Updates of the student of single steps, from which merges start [10000]")
      ->check(CLI::Range(std::int64_t{0}, kLargest));
  Add(experts, "--experts", a.experts, "Experts of a student [8]")->check(CLI::Range(1, 4096));
  Add(experts, "--hidden", a.hidden, "Width of its hidden layers [64]")
      ->check(CLI::Range(1, 65536));
  Add(experts, "--train-time", a.train_time,
      "Time s of the linear model behind plans and predictions [6.4]");
}

// Of network students: those of a network teacher, and of any teacher with --student-network.
void AddNetworkOptions(CLI::App* command, DistillArguments& a) {
  CLI::Option_group* group = command->add_option_group(
      "network",
      "Of network students (--iterations [1000], --lr [0.0001], --optimizer [adam], --init "
      "[child-jump], --fit-iterations [0; 1000 for a --student-network])");
  Add(group, "--student-network", a.network.student,
      "script:MODEL.toml or unet:FOLDER [a copy of the teacher's network]");
  Add(group, "--data", a.network.data, "Samples to train on, as analyze reads them");
  Add(group, "--array", a.network.array, "Which array of an .npz of --data");
  Add(group, "--data-rows", a.network.rows, "Samples of --data to use, from the first [all]")
      ->check(CLI::Range(std::int64_t{1}, kLargest));
  Add(group, "--spectrum", a.network.spectrum,
      "spectrum.toml of the data, for plans and predictions of the linear model");
  Add(group, "--memory", a.network.memory,
      "MB that frozen networks may take; others lie in files [no limit]");
  const std::pair<const char*, const char*> options[] = {
      {"inputs", "data (--data and noise), analytic, or rollout of the teacher [what there is]"},
      {"pool-rows", "Rollouts that are made once and used again and again; 0: fresh ones [0]"},
      {"loss", "Squared error in z, x0, epsilon or v [z]"},
      {"weighting", "uniform, snr, truncated-snr or min-snr-gamma, over the levels [uniform]"},
      {"gamma", "Of min-snr-gamma [5]"},
      {"precision", "full, bf16 or fp16 (with a scaled loss) [full]"},
      {"weights", "shared: one network for the merges of a round; separate [shared]"},
      {"total-updates", "Updates of all merges together, in place of --iterations"},
      {"gain-bound", "Stop a merge when less than this share of its gain is left [0: never]"},
      {"held-out-rows", "Rows that errors are measured on [256]"},
      {"deterministic", "yes: LibTorch's deterministic algorithms only [no]"}};
  for (const auto& [name, help] : options) {
    group->add_option_function<std::string>(
        absl::StrCat("--", name),
        [&a, name = std::string(name)](const std::string& text) { a.training[name] = text; }, help);
  }
}

// What is asked: of every strategy alike.
void AddQuestion(CLI::App* command, DistillArguments& a) {
  Add(command, "--teacher", a.teacher,
      "analytic:SPECTRUM.toml, mixture:MIXTURE.toml, script:MODEL.toml (a TorchScript network) or "
      "unet:FOLDER");
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
  Add(command, "--iterations", a.iterations, "Updates per merge")
      ->check(CLI::Range(std::int64_t{1}, kLargest));
  Add(command, "--feature-norm", a.feature_norm,
      "Squared norm of the feature that feeds the operator [1]")
      ->check(positive);
  Add(command, "--init", a.init, "Start of a merge: child, teacher, jump, child-jump [child]");
  Add(command, "--student-steps", a.student_steps, "N, steps of the student [1]")->check(counts);
  Add(command, "--reference", a.reference,
      "What the student is compared with: surrogate, teacher, data [surrogate]");
  Add(command, "--basis", a.basis, "diagonal or pca [what the spectrum recommends]");
  Add(command, "--batch", a.batch, "Samples per update [the plan's, or 64]")->check(counts);
  Add(command, "--seed", a.seed, "Seed of all noise [0]")
      ->check(CLI::Range(std::int64_t{0}, kLargest));
  AddTrainingOptions(command, a);
  AddExpertOptions(command, a.experts);
  AddNetworkOptions(command, a);
  Add(command, "--dtype", a.dtype, "float64 or float32 [float64]");
  Add(command, "--device", a.device, "cpu, cuda or cuda:N [cpu]");
  command->add_option("--threads", a.threads, "Threads of a training step; 0: all")
      ->check(CLI::Range(0, 256))
      ->capture_default_str();
  command->add_option("--plugin-dir", a.plugin_folders, "More folders with plugins");
}

CLI::App* AddDistill(CLI::App& app, DistillArguments& a, DistillOutput& output) {
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
  command->add_flag("--quiet", output.quiet, "No progress");
  command->add_flag("--json", output.json, "Print one JSON object");
  command->footer(kExample);
  return command;
}

CLI::App* AddBench(CLI::App& app, BenchArguments& a, BenchOutput& output) {
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
      ->add_option("--budget", a.budget,
                   "Same updates per-merge, or in total (what BOOT spends), or both")
      ->capture_default_str();
  command->add_option("--trials", a.trials, "Runs of each, with seeds from --seed on")
      ->check(CLI::Range(1, 1000000))
      ->capture_default_str();
  command->add_option("-o,--output", output.file, "Also write the table: a .csv or .json file");
  command->add_flag("--quiet", output.quiet, "No progress and no forecast");
  command->add_flag("--json", output.json, "Print one JSON object");
  command->footer(kBenchExample);
  return command;
}

constexpr char kModelExample[] = R"(
Example:
  mergeplan model models/ddpm/unet
  mergeplan model models/ddpm/unet --compare io.npz --json

Exit codes: 0 done, 1 it cannot be read or a difference is beyond the tolerance, 2 misuse.
)";

CLI::App* AddModel(CLI::App& app, ModelArguments& a) {
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
  return command;
}

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

int RunProgram(int argc, const char* const* argv) {
  CLI::App app("The part of mergeplan that trains, with LibTorch.", "mergeplan");
  app.set_version_flag("--version", std::string("mergeplan-torch ") + MERGEPLAN_VERSION +
                                        " (LibTorch " + TorchVersion() + ")");
  app.require_subcommand(1);
  DistillArguments arguments;
  DistillOutput output;
  BenchArguments bench_arguments;
  BenchOutput bench_output;
  CLI::App* distill = AddDistill(app, arguments, output);
  CLI::App* bench = AddBench(app, bench_arguments, bench_output);
  ModelArguments model_arguments;
  CLI::App* model = AddModel(app, model_arguments);
  std::string command = argc > 1 ? argv[1] : "";
  if (command != "bench" && command != "model") command = "distill";
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& done) {  // --help, --version
    const int code = app.exit(done);
    return distill->count("--help") > 0 ? HelpWithParameters(arguments) : code;
  } catch (const CLI::ParseError& error) {
    std::fprintf(stderr, "mergeplan %s: %s; see mergeplan %s --help\n", command.c_str(),
                 error.what(), command.c_str());
    return 2;
  }
  // A reader that goes away must not end a training.
  std::signal(SIGPIPE, SIG_IGN);
  // Nor may a limit on the size of files: the write fails then, and is told.
  std::signal(SIGXFSZ, SIG_IGN);
  DivertStdout();
  bench_output.file_given = bench->count("--output") > 0;
  const auto run = [&] {
    if (bench->parsed()) return RunBenchCommand(bench_arguments, bench_output);
    if (model->parsed()) {
      RestoreStdout();  // no plugins here
      return RunModelCommand(model_arguments);
    }
    return RunDistill(arguments, output);
  };
  const int code = run();
  RestoreStdout();
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
    std::fprintf(stderr, "mergeplan %s: the output could not be written to stdout\n",
                 command.c_str());
    return code == 0 ? 1 : code;
  }
  return code;
}

}  // namespace mergeplan
