#include "adapters/command/training_options.h"

#include <cstdint>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace mergeplan {

OptionHelp OptimizerHelp(const char* rate) {
  return {
      {"iterations", "Updates [10000]"},
      {"batch", "Samples of a pass [64]"},
      {"accumulate", "Passes per update [1]"},
      {"lr", rate},
      {"lr-schedule", "constant, linear or cosine: what the rate does after the warm-up [cosine]"},
      {"warmup", "Updates over which the rate grows to the whole [500, or a tenth of them all]"},
      {"optimizer", "sgd, adam or adamw [adamw]"},
      {"momentum", "Of sgd [0]"},
      {"beta1", "Of adam and adamw [0.9]"},
      {"beta2", "Of adam and adamw [0.999]"},
      {"eps", "Of adam and adamw [1e-8]"},
      {"weight-decay", "Of the parameters [0.01 for adamw]"},
      {"clip-norm", "Largest norm of the gradient [1]"},
      {"ema", "What the average of the weights, which is what is written, keeps; 0: none [0.999]"}};
}

void AddTexts(CLI::App* command, TrainingArguments& a, const OptionHelp& options) {
  for (const auto& [name, help] : options) {
    command->add_option_function<std::string>(
        absl::StrCat("--", name),
        [&a, name = std::string(name)](const std::string& text) { a.training[name] = text; }, help);
  }
}

void AddData(CLI::App* command, TrainingArguments& a) {
  command->add_option("--data", a.data, "Samples to train on, as analyze reads them");
  command->add_option("--array", a.array, "Which array of an .npz of --data");
  command->add_option("--data-rows", a.rows, "Samples of --data to use, from the first [all]")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 53));
}

void AddSession(CLI::App* command, TrainingArguments& a) {
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
}

}  // namespace mergeplan
