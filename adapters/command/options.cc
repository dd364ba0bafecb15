#include "adapters/command/options.h"

#include <cmath>
#include <limits>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace mergeplan {

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

namespace {

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
  Add(group, "--labels", a.network.labels,
      "Classes of the samples of --data, a whole number for each (IDX, .npy, .npz), for a network "
      "that is told them [labels in an .npz of --data]");
  Add(group, "--label-array", a.network.label_array, "Which array of an .npz of --labels");
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
      {"precision",
       "full, bf16, fp16 (with a scaled loss), or auto: full or bf16, by a probe [full]"},
      {"layout", "contiguous, channels_last, or auto: by a probe on this machine [contiguous]"},
      {"weights", "shared: one network for the merges of a round; separate [shared]"},
      {"total-updates", "Updates of all merges together, in place of --iterations"},
      {"gain-bound", "Stop a merge when less than this share of its gain is left [0: never]"},
      {"held-out-rows", "Rows that errors are measured on [256]"},
      {"gradient-checkpointing",
       "yes: compute a student's blocks twice instead of keeping them, of unet: networks [no]"},
      {"cuda-graph",
       "no: training steps are not taken down as CUDA graphs; of --device cuda [yes]"},
      {"deterministic", "yes: LibTorch's deterministic algorithms only [no]"}};
  for (const auto& [name, help] : options) {
    group->add_option_function<std::string>(
        absl::StrCat("--", name),
        [&a, name = std::string(name)](const std::string& text) { a.training[name] = text; }, help);
  }
}

// Where samples are latents of pictures.
void AddLatentOptions(CLI::App* command, LatentArguments& a) {
  CLI::Option_group* group = command->add_option_group(
      "latents", "Where --data are pictures and the teacher is of their latents");
  Add(group, "--vae", a.vae,
      "Folder of an AutoencoderKL or AutoencoderTiny, or vae.toml: encodes --data, and in bench "
      "decodes samples before they are judged");
  Add(group, "--encoder", a.encoder, "In place of --vae: a TorchScript encoder alone");
  Add(group, "--size", a.size, "Bring pictures of --data to HEIGHTxWIDTH first");
  Add(group, "--latents", a.folder,
      "Folder that keeps the latents, as mergeplan encode writes it [one in "
      "~/.cache/mergeplan/latents]");
}

}  // namespace

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
  AddLatentOptions(command, a.latents);
  Add(command, "--dtype", a.dtype, "float64 or float32 [float64]");
  Add(command, "--device", a.device, "cpu, cuda or cuda:N [cpu]");
  command->add_option("--threads", a.threads, "Threads of a training step; 0: all")
      ->check(CLI::Range(0, 256))
      ->capture_default_str();
  command->add_option("--plugin-dir", a.plugin_folders, "More folders with plugins");
}

}  // namespace mergeplan
