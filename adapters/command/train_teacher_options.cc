#include <CLI/CLI.hpp>
#include <memory>

#include "adapters/command/commands.h"
#include "adapters/command/training_options.h"
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
  AddData(command, a);
  command->add_option("--labels", a.labels,
                      "Classes of the samples, a whole number for each (IDX, .npy, .npz), for a "
                      "network that is told them [labels in an .npz of --data]");
  command->add_option("--label-array", a.label_array, "Which array of an .npz of --labels");
  command->add_option("--schedule", a.schedule,
                      "ddpm-linear, ddpm-scaled-linear, ddpm-cosine, sigmoid, flow:shift=S, or a "
                      "scheduler_config.json [that of the folder]");
  command->add_option("--prediction", a.prediction,
                      "epsilon, sample, v_prediction or flow [what the schedule's file says; "
                      "v_prediction, flow for flow]");
  AddTexts(command, a, OptimizerHelp("Learning rate [0.0002]"));
  AddTexts(
      command, a,
      {{"loss", "Squared error of the network's output, or in x0, epsilon or v [output]"},
       {"weighting", "uniform, snr, truncated-snr or min-snr-gamma, over the levels [uniform]"},
       {"gamma", "Of min-snr-gamma [5]"},
       {"flip", "yes: samples are mirrored left to right at random [no]"},
       {"precision",
        "full, bf16, fp16 (with a scaled loss), or auto: full or bf16, by a probe [full]"},
       {"layout", "contiguous, channels_last, or auto: by a probe on this machine [contiguous]"},
       {"scaling", "LOW:HIGH that pixels are mapped to, or none [-1:1 for pixels]"},
       {"seed", "Of weights, samples and noise [0]"},
       {"log-every", "Updates that a row of log.csv stands for [50]"},
       {"samples", "Pictures in samples.png, drawn at the end; 0: none [64]"},
       {"sample-steps", "DDIM steps to draw them [50]"},
       {"sample-every", "Updates between pictures on the way (samples-N.png); 0: none [0]"}});
  AddSession(command, a);
  command->footer(kTrainTeacherExample);
  Command out;
  out.options = command;
  out.run = [arguments] { return RunTrainTeacher(*arguments); };
  return out;
}

}  // namespace mergeplan
