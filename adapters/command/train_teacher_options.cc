#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "adapters/command/commands.h"
#include "adapters/denoising/run.h"

namespace mergeplan {
namespace {

constexpr char kTrainTeacherExample[] = R"(
Example:
  mergeplan train-teacher --model config.json --schedule ddpm-cosine --prediction v_prediction \
    --data images/ --iterations 20000 --batch 64 --lr 1e-3 -o teacher
  mergeplan train-teacher --resume -o teacher
  mergeplan distill --teacher unet:teacher --schedule teacher --teacher-steps 8 --strategy boot -o run

The folder is a pipeline that diffusers loads. Exit codes: 0 done, 1 failed, 2 misuse, 3 stopped (Ctrl-C, --time-limit)
with a network that can be used; go on with --resume.
)";

}  // namespace

Command AddTrainTeacher(CLI::App& app) {
  const auto arguments = std::make_shared<TrainTeacherArguments>();
  TrainTeacherArguments& a = *arguments;
  CLI::App* command = app.add_subcommand(
      "train-teacher", "Trains a network to denoise: a teacher, from random weights or further");
  command->add_option("--model", a.model,
                      "config.json of a UNet2DModel (random weights), a diffusers folder, or a "
                      "TorchScript network's model.toml");
  command->add_option("--data", a.data, "Samples to train on, as analyze reads them");
  command->add_option("--array", a.array, "Which array of an .npz of --data");
  command->add_option("--data-rows", a.rows, "Samples of --data to use, from the first [all]")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 53));
  command->add_option("--schedule", a.schedule,
                      "ddpm-linear, ddpm-scaled-linear, ddpm-cosine, sigmoid, flow:shift=S, or a "
                      "scheduler_config.json [that of the folder]");
  command->add_option("--prediction", a.prediction,
                      "epsilon, sample, v_prediction or flow [what the schedule's file says; "
                      "v_prediction, flow for flow]");
  const std::pair<const char*, const char*> options[] = {
      {"iterations", "Updates [10000]"},
      {"batch", "Samples of a pass [64]"},
      {"accumulate", "Passes per update [1]"},
      {"lr", "Learning rate [0.0002]"},
      {"lr-schedule", "constant, linear or cosine: what the rate does after the warm-up [cosine]"},
      {"warmup", "Updates over which the rate grows to the whole [500, or a tenth of them all]"},
      {"optimizer", "sgd, adam or adamw [adamw]"},
      {"momentum", "Of sgd [0]"},
      {"beta1", "Of adam and adamw [0.9]"},
      {"beta2", "Of adam and adamw [0.999]"},
      {"eps", "Of adam and adamw [1e-8]"},
      {"weight-decay", "Of the parameters [0.01 for adamw]"},
      {"clip-norm", "Largest norm of the gradient [1]"},
      {"ema", "What the average of the weights, which is what is written, keeps; 0: none [0.999]"},
      {"loss", "Squared error of the network's output, or in x0, epsilon or v [output]"},
      {"weighting", "uniform, snr, truncated-snr or min-snr-gamma, over the levels [uniform]"},
      {"gamma", "Of min-snr-gamma [5]"},
      {"flip", "yes: samples are mirrored left to right at random [no]"},
      {"precision", "full, bf16 or fp16 (with a scaled loss) [full]"},
      {"scaling", "LOW:HIGH that pixels are mapped to, or none [-1:1 for pixels]"},
      {"seed", "Of weights, samples and noise [0]"},
      {"log-every", "Updates that a row of log.csv stands for [50]"},
      {"samples", "Pictures in samples.png, drawn at the end; 0: none [64]"},
      {"sample-steps", "DDIM steps to draw them [50]"},
      {"sample-every", "Updates between pictures on the way (samples-N.png); 0: none [0]"}};
  for (const auto& [name, help] : options) {
    command->add_option_function<std::string>(
        absl::StrCat("--", name),
        [&a, name = std::string(name)](const std::string& text) { a.training[name] = text; }, help);
  }
  command->add_option("--device", a.device, "cpu, cuda or cuda:N [cpu]");
  command->add_option("--threads", a.threads, "Threads of a training step; 0: all")
      ->check(CLI::Range(0, 256))
      ->capture_default_str();
  command
      ->add_option("--checkpoint-seconds", a.checkpoint_seconds,
                   "Seconds of training between checkpoints")
      ->check(CLI::Validator(
          [](const std::string& text) {
            double number = 0;
            const bool fits = absl::SimpleAtod(text, &number) && number >= 0;
            return fits ? std::string() : absl::StrCat("\"", text, "\", expected 0 or more");
          },
          "NUMBER"))
      ->capture_default_str();
  command->add_option("--time-limit", a.time_limit,
                      "Stop after so much training (90, 15m, 2h), as Ctrl-C does");
  command->add_flag("--resume", a.resume, "Go on with the training in the folder -o");
  command->add_option("-o,--output", a.output, "Folder of the training and of the network")
      ->required();
  command->add_flag("--quiet", a.quiet, "No progress");
  command->add_flag("--json", a.json, "Print one JSON object");
  command->footer(kTrainTeacherExample);
  Command out;
  out.options = command;
  out.run = [arguments] { return RunTrainTeacher(*arguments); };
  return out;
}

}  // namespace mergeplan
