#include "planner/cli/question.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "planner/base/file.h"
#include "planner/base/memory.h"
#include "planner/base/status_macros.h"
#include "planner/base/utf8.h"
#include "planner/choice/combinations.h"
#include "planner/cli/command.h"
#include "planner/cli/flags.h"
#include "planner/cli/spectrum_input.h"
#include "planner/cli/tables.h"
#include "planner/data/npz.h"
#include "planner/data/samples.h"
#include "planner/data/shard.h"
#include "planner/data/spool.h"
#include "planner/spectrum/estimate.h"

namespace mergeplan::cli {
namespace {

bool IsSpectrumFile(const std::string& path) { return absl::EndsWith(path, ".toml"); }

}  // namespace

void AddDataFlags(CLI::App& app, DataFlags& flags) {
  flags.app = &app;
  app.add_option("INPUT", flags.input,
                 ".npy, .npz, .safetensors, .pt, IDX (.gz), a folder of PNG/JPEG, WebDataset .tar "
                 "files (pictures, .npy, .pth), a quoted pattern such as 'latents-*.npy', or - for "
                 "standard input");
  app.add_option(
         "--array", flags.array,
         "which array of an .npz, tensor of a .safetensors or .pt; of a tar, the ending of the "
         "members that count, such as npy or latent.pth")
      ->type_name("NAME");
  app.add_option("--scale", flags.scale,
                 "range that pixels 0..255 are mapped onto, as LOW:HIGH, or none (default: -1:1 "
                 "for pixels, none for "
                 "floats)")
      ->type_name("LOW:HIGH");
  app.add_flag("--skip-nonfinite", flags.skip_nonfinite,
               "leave out samples with NaN or infinity and count them");
  AddInteger(app, "--threads", flags.threads, 0, "threads to use (default, 0: all)")
      ->type_name("N");
}

namespace {

absl::StatusOr<Scaling> GivenScaling(const DataFlags& flags) {
  absl::StatusOr<Scaling> scaling = ParseScaling(flags.scale);
  if (scaling.ok()) return scaling;
  return Misuse(absl::InvalidArgumentError(
      absl::StrCat("--scale: ", std::string(scaling.status().message()))));
}

absl::StatusOr<std::unique_ptr<SampleSource>> OpenWhole(const DataFlags& flags) {
  // What is wrong with the flags is said before what is wrong with the file.
  if (!flags.scale.empty()) MP_RETURN_IF_ERROR(GivenScaling(flags).status());
  SamplesOptions samples;
  if (flags.encoding.asked()) {
    MP_ASSIGN_OR_RETURN(const std::string latents, EncodedLatents(flags));
    return OpenSamples(latents, samples);
  }
  samples.array = flags.array;
  samples.skip_nonfinite = flags.skip_nonfinite;
  std::string path = flags.input;
  if (path == "-") {
    MP_ASSIGN_OR_RETURN(path, SpoolStandardInput());
  }
  return OpenSamples(path, samples);
}

// Of pictures only the part is encoded.
bool CutHere(const DataFlags& flags) { return flags.shards > 0 && !flags.encoding.asked(); }

}  // namespace

absl::StatusOr<std::unique_ptr<SampleSource>> OpenFromFlags(const DataFlags& flags) {
  MP_ASSIGN_OR_RETURN(std::unique_ptr<SampleSource> source, OpenWhole(flags));
  if (!CutHere(flags)) return source;
  return ShardOf(std::move(source), flags.shard, flags.shards, flags.skip_nonfinite);
}

std::string NameOfInput(const DataFlags& flags) {
  const EncodingFlags& encoding = flags.encoding;
  if (encoding.asked()) {
    return ReplaceInvalidUtf8(absl::StrCat(flags.input, " encoded by ",
                                           encoding.vae.empty() ? encoding.encoder : encoding.vae));
  }
  return flags.input == "-" ? "standard input" : ReplaceInvalidUtf8(flags.input);
}

absl::StatusOr<std::string> HashOfInput(const std::string& input) {
  std::error_code ec;
  if (std::filesystem::is_regular_file(input, ec)) return Sha256OfFile(input);
  if (input != "-") return std::string();
  MP_ASSIGN_OR_RETURN(const std::string path, SpoolStandardInput());
  return Sha256OfFile(path);
}

SpectrumPart PartOf(const DataFlags& flags, const SampleSource& whole, const std::string& sha256) {
  SpectrumPart part;
  part.source = NameOfInput(flags);
  part.sha256 = sha256;
  part.array = ReplaceInvalidUtf8(flags.array);
  if (flags.shards > 1) {
    part.of = flags.shards;
    part.every = CutsEvery(whole, flags.skip_nonfinite);
    part.numbers = {{flags.shard, flags.shard}};
  }
  return part;
}

absl::StatusOr<Scaling> ScalingOf(const DataFlags& flags, const SampleSource& source) {
  if (flags.encoding.asked()) return ParseScaling("none");
  if (flags.scale.empty()) return ParseScaling(source.is_pixels() ? "-1:1" : "none");
  return GivenScaling(flags);
}

EstimateOptions OptionsForBasis(const std::string& basis) {
  EstimateOptions options;
  options.want_pca = basis == "auto" || basis == "pca";
  options.want_dct = basis == "auto" || basis == "dct";
  if (basis == "pca") options.pca_up_to = kMaxDimensions;
  return options;
}

absl::StatusOr<Spectrum> EstimateFromFlags(const DataFlags& flags, EstimateOptions options) {
  options.threads = flags.threads;
  options.source = NameOfInput(flags);
  if (options.source_sha256.empty() && flags.hash) {
    std::string input = flags.input;
    if (flags.encoding.asked()) {
      MP_ASSIGN_OR_RETURN(input, EncodedLatents(flags));
    }
    // Parts are known by the hash of all latents, which nobody has where only a part is encoded.
    if (!flags.encoding.asked() || flags.shards == 0) {
      MP_ASSIGN_OR_RETURN(options.source_sha256, HashOfInput(input));
    }
  }
  if (flags.shards > 0) {
    absl::StrAppend(&options.source, " (part ", flags.shard, " of ", flags.shards, ")");
  }
  MP_ASSIGN_OR_RETURN(std::unique_ptr<SampleSource> source, OpenWhole(flags));
  MP_ASSIGN_OR_RETURN(options.scaling, ScalingOf(flags, *source));
  options.parts = {PartOf(flags, *source, options.source_sha256)};
  if (CutHere(flags)) {
    source = ShardOf(std::move(source), flags.shard, flags.shards, flags.skip_nonfinite);
  }
  options.reopen = [&flags] { return OpenFromFlags(flags); };
  return EstimateSpectrum(*source, options);
}

void AddTrainingFlags(CLI::App& app, TrainingFlags& flags, bool required, bool choices) {
  flags.app = &app;
  std::string schedules =
      "cosine, ddpm-linear, ddpm-scaled-linear, ddpm-cosine, sigmoid, flow, edm "
      "(name:key=value,...), a diffusers scheduler_config.json, or a file with alpha and sigma";
  if (choices) {
    AddIntegers(app, "--teacher-steps,-T", flags.teacher_steps_list, 1,
                "steps of the teacher; a list such as 16,32,64 compares the best plan of each")
        ->type_name("T[,T...]");
    absl::StrAppend(
        &schedules,
        "; a list, or the flag repeated, compares the best plan of each: a comma begins "
        "another schedule unless key=value follows, which is one more parameter of the "
        "one before, as in cosine,edm:rho=5,sigma_max=40,flow:shift=3");
  } else {
    AddInteger(app, "--teacher-steps,-T", flags.teacher_steps, 1, "steps of the teacher")
        ->type_name("T");
  }
  auto* schedule =
      choices
          ? app.add_option("--schedule", flags.schedule_list, schedules)->allow_extra_args(false)
          : app.add_option("--schedule", flags.schedule, schedules);
  schedule->type_name(choices ? "SCHEDULE[,...]" : "SCHEDULE");
  if (required) schedule->required();
  auto* time = AddReal(app, "--train-time,-s", flags.train_time, Real::kPositive,
                       "gradient-flow time s of every merge")
                   ->type_name("S");
  auto* lr = AddReal(app, "--lr", flags.lr, Real::kPositive,
                     "learning rate of SGD, in place of --train-time")
                 ->type_name("RATE");
  auto* iterations = AddInteger(app, "--iterations", flags.iterations, 1,
                                "updates of every merge, with --lr", std::int64_t{1} << 53)
                         ->type_name("K");
  lr->excludes(time);
  iterations->excludes(time);
  AddInteger(app, "--batch", flags.batch, 1,
             "batch of every update, with --lr (default 64); moves the spread, not the mean")
      ->type_name("B");
  AddReal(app, "--feature-norm", flags.feature_norm, Real::kPositive,
          "squared norm of the feature that feeds the operator, with --lr (default 1; 32 for the "
          "paper's embedding)")
      ->type_name("F");
  app.add_option("--init", flags.init,
                 "where students start: child (default), teacher, jump, child-jump")
      ->type_name("INIT");
  app.add_option("--reference", flags.reference,
                 "what is aimed at: surrogate (default), teacher, data")
      ->type_name("REF");
  AddInteger(app, "--student-steps,-N", flags.student_steps, 1, "steps of the student (default 1)")
      ->type_name("N");
}

absl::Status SplitChoices(TrainingFlags& flags) {
  std::vector<std::string> schedules;
  for (const std::string& text : flags.schedule_list) {
    if (text.empty()) continue;  // RefuseEmpty has said so
    for (std::string& one : SplitSchedules(text)) {
      if (one.empty()) {
        return Misuse(absl::StrCat("--schedule: \"", text,
                                   "\" has nothing between two commas or at an end; expected "
                                   "schedules such as cosine,flow:shift=3"));
      }
      if (std::find(schedules.begin(), schedules.end(), one) != schedules.end())
        return Misuse(absl::StrCat("--schedule: ", one, " is named twice; name it once"));
      schedules.push_back(std::move(one));
    }
  }
  flags.schedule_list = std::move(schedules);
  std::vector<int> seen = flags.teacher_steps_list;
  std::sort(seen.begin(), seen.end());
  if (const auto twice = std::adjacent_find(seen.begin(), seen.end()); twice != seen.end())
    return Misuse(absl::StrCat("--teacher-steps: ", *twice, " is named twice; name it once"));
  if (!flags.schedule_list.empty()) flags.schedule = flags.schedule_list.front();
  if (!flags.teacher_steps_list.empty()) flags.teacher_steps = flags.teacher_steps_list.front();
  return absl::OkStatus();
}

absl::StatusOr<Budget> BudgetOf(const TrainingFlags& flags) {
  if (flags.train_time != 0) {
    MP_RETURN_IF_ERROR(RefuseGiven(flags.app, {"--batch", "--feature-norm"},
                                   "with --train-time, a gradient flow, but only with --lr"));
    return Budget::Flow(flags.train_time);
  }
  if (flags.lr != 0 && flags.iterations != 0) {
    return Budget::Sgd(flags.lr, flags.iterations, flags.batch, flags.feature_norm);
  }
  if (flags.lr != 0) return Misuse("--lr needs --iterations, the number of updates of every merge");
  if (flags.iterations != 0) return Misuse("--iterations needs --lr, the learning rate");
  return Misuse("no budget: give --train-time S, or --lr RATE --iterations K");
}

absl::StatusOr<Schedule> ScheduleOf(const TrainingFlags& flags) {
  std::optional<int> steps;
  if (flags.teacher_steps != 0) steps = flags.teacher_steps;
  absl::StatusOr<Schedule> schedule = LoadSchedule(flags.schedule, steps);
  if (!schedule.ok()) return Misuse(schedule.status());
  return schedule;
}

absl::Status ParseTerms(const TrainingFlags& flags, Init* init, Reference* reference) {
  const absl::StatusOr<Init> parsed_init = ParseInit(flags.init);
  if (!parsed_init.ok()) {
    return Misuse(absl::StrCat("--", std::string(parsed_init.status().message())));
  }
  const absl::StatusOr<Reference> parsed_reference = ParseReference(flags.reference);
  if (!parsed_reference.ok()) {
    return Misuse(absl::StrCat("--", std::string(parsed_reference.status().message())));
  }
  *init = *parsed_init;
  *reference = *parsed_reference;
  return absl::OkStatus();
}

absl::Status CheckSize(const TrainingFlags& flags, const ModelSpec& spec) {
  const int steps = spec.schedule.steps();
  if (flags.student_steps > steps) {
    return Misuse(absl::StrCat("--student-steps: is ", flags.student_steps, ", expected 1..", steps,
                               ", the steps of the teacher"));
  }
  // Measured: 79 bytes at the peak for every level and coordinate.
  constexpr double kBytes = 80;
  absl::Status memory =
      CheckMemory(absl::StrCat(steps, " teacher steps in ", spec.variances.size(), " dimensions"),
                  kBytes * steps * static_cast<double>(spec.variances.size()));
  if (memory.ok()) return memory;
  return absl::ResourceExhaustedError(
      absl::StrCat("--teacher-steps: ", std::string(memory.message()),
                   "; give fewer steps, or fewer dimensions (the largest variances)"));
}

absl::Status CheckBasisFlag(const std::string& basis) {
  for (const char* known : {"auto", "diagonal", "dct", "pca"}) {
    if (basis == known) return absl::OkStatus();
  }
  return Misuse(
      absl::StrCat("--basis: unknown word \"", basis, "\", expected auto, diagonal, dct or pca"));
}

void AddQuestionFlags(CLI::App& app, QuestionFlags& flags, bool choices) {
  AddDataFlags(app, flags.data);
  app.get_option("INPUT")->description(
      "a spectrum.toml that analyze wrote, a mixture.toml (its moments are planned for), or data "
      "as "
      "analyze reads it");
  app.add_option("--variances", flags.variances,
                 "variances in place of INPUT: 0.95,1.05 or FILE.npy")
      ->type_name("LIST");
  app.add_option("--weights", flags.weights,
                 "weight of every dimension (default: all 1): list or FILE.npy")
      ->type_name("LIST");
  app.add_option("--basis", flags.basis, "auto (default), diagonal, dct or pca")
      ->type_name("BASIS");
  app.add_option(
         "--tables", flags.tables,
         "bare tables in place of data, schedule and budget, such as measured shrinkage: an "
         ".npz with A and gamma (T, d), optional p, q (T, d), tau, weights (d)")
      ->type_name("FILE");
  AddTrainingFlags(app, flags.training, true, choices);
}

absl::StatusOr<std::vector<double>> ReadNumbers(const std::string& flag, const std::string& text) {
  std::string path = text;
  std::string name;
  if (const size_t at = path.rfind(".npz:"); at != std::string::npos) {
    name = path.substr(at + 5);
    path = path.substr(0, at + 4);
  }
  if (absl::EndsWith(path, ".npy") || absl::EndsWith(path, ".npz")) {
    absl::StatusOr<NpyArray> array =
        absl::EndsWith(path, ".npy") ? ReadNpy(path) : ReadNpzArray(path, name);
    MP_RETURN_IF_ERROR(array.status());
    if (array->shape.size() != 1) {
      return absl::InvalidArgumentError(absl::StrCat(path, ": the array has ", array->shape.size(),
                                                     " axes, expected one (a list of numbers for ",
                                                     flag, ")"));
    }
    return std::move(array->values);
  }
  std::vector<double> out;
  for (absl::string_view part : absl::StrSplit(text, ',')) {
    double value = 0;
    if (!absl::SimpleAtod(part, &value)) {
      return Misuse(
          absl::StrCat(flag, ": \"", part,
                       "\" is no number; expected a list such as 0.95,1.05 or a file that ends in "
                       ".npy or .npz"));
    }
    out.push_back(value);
  }
  return out;
}

namespace {

absl::StatusOr<Question> AskOfTables(const QuestionFlags& flags) {
  MP_RETURN_IF_ERROR(
      RefuseGiven(flags.data.app,
                  {"INPUT", "--variances", "--weights", "--basis", "--array", "--scale",
                   "--skip-nonfinite", "--schedule", "--teacher-steps", "--train-time", "--lr",
                   "--iterations", "--batch", "--feature-norm", "--init", "--reference"},
                  "with --tables, whose arrays say what every merge learns (A, gamma), starts as "
                  "(p, q), aims at (tau) and counts (weights)"));
  MP_ASSIGN_OR_RETURN(ModelTables tables, ReadTablesFile(flags.tables));
  if (flags.training.student_steps > tables.steps) {
    return Misuse(absl::StrCat("--student-steps: is ", flags.training.student_steps,
                               ", expected 1..", tables.steps, ", the levels of ", flags.tables));
  }
  constexpr double kBytes = 120;  // at the peak for every level and coordinate
  MP_RETURN_IF_ERROR(CheckMemory(absl::StrCat(flags.tables, ": ", tables.steps, " levels of ",
                                              tables.dimensions, " coordinates"),
                                 kBytes * tables.steps * static_cast<double>(tables.dimensions)));
  absl::StatusOr<Model> model = Model::FromTables(std::move(tables));
  if (!model.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat(flags.tables, ": ", std::string(model.status().message())));
  }
  return Question{*std::move(model), flags.tables, "", std::nullopt};
}

// Everything but schedule and number of steps.
struct Variances {
  std::vector<double> variances, weights;
  std::string input, basis;
  std::optional<VarianceIntervals> intervals;
};

// What is wrong with the flags themselves.
absl::Status CheckDataFlags(const QuestionFlags& flags) {
  if (flags.data.input.empty() == flags.variances.empty()) {
    return Misuse(flags.variances.empty()
                      ? "nothing to plan for: give a spectrum.toml, data, --variances or --tables"
                      : "both INPUT and --variances are given; give one of them");
  }
  MP_RETURN_IF_ERROR(CheckBasisFlag(flags.basis));
  if (!flags.variances.empty()) {
    return RefuseGiven(flags.data.app, {"--basis", "--array", "--scale", "--skip-nonfinite"},
                       "with --variances, but only with data");
  }
  if (IsSpectrumFile(flags.data.input)) {
    return RefuseGiven(
        flags.data.app, {"--array", "--scale", "--skip-nonfinite"},
        "with a spectrum.toml, which says what analyze was told, but only with data");
  }
  return absl::OkStatus();
}

absl::StatusOr<Variances> ReadVariances(const QuestionFlags& flags) {
  Variances out;
  if (!flags.weights.empty()) {
    MP_ASSIGN_OR_RETURN(out.weights, ReadNumbers("--weights", flags.weights));
  }
  if (!flags.variances.empty()) {
    MP_ASSIGN_OR_RETURN(out.variances, ReadNumbers("--variances", flags.variances));
    out.input = "--variances";
    out.basis = "given";
    return out;
  }
  absl::StatusOr<Spectrum> spectrum =
      IsSpectrumFile(flags.data.input)
          ? ReadSpectrumOrMixture(flags.data.input)
          : EstimateFromFlags(flags.data, OptionsForBasis(flags.basis));
  MP_RETURN_IF_ERROR(spectrum.status());
  out.input = flags.data.input;
  out.basis = flags.basis == "auto" ? spectrum->recommended_basis : flags.basis;
  MP_ASSIGN_OR_RETURN(const Basis* chosen, spectrum->FindBasis(out.basis));
  out.variances = chosen->variances;
  out.intervals = {chosen->variances_low, chosen->variances_high, spectrum->confidence};
  return out;
}

// Complete but for variances and weights.
absl::StatusOr<ModelSpec> SpecOf(const TrainingFlags& training) {
  ModelSpec spec;
  MP_ASSIGN_OR_RETURN(spec.schedule, ScheduleOf(training));
  MP_ASSIGN_OR_RETURN(spec.budget, BudgetOf(training));
  MP_RETURN_IF_ERROR(ParseTerms(training, &spec.init, &spec.reference));
  // What is wrong with the flags should not cost a pass over the data.
  MP_RETURN_IF_ERROR(CheckSize(training, spec));
  return spec;
}

}  // namespace

absl::StatusOr<Question> AskFromFlags(const QuestionFlags& flags) {
  if (!flags.tables.empty()) return AskOfTables(flags);
  MP_RETURN_IF_ERROR(CheckDataFlags(flags));
  MP_ASSIGN_OR_RETURN(ModelSpec spec, SpecOf(flags.training));
  MP_ASSIGN_OR_RETURN(Variances data, ReadVariances(flags));
  spec.variances = std::move(data.variances);
  spec.weights = std::move(data.weights);
  MP_RETURN_IF_ERROR(CheckSize(flags.training, spec));
  absl::StatusOr<Model> model = Model::Create(std::move(spec));
  if (!model.ok()) return Misuse(model.status());
  return Question{*std::move(model), data.input, data.basis, std::move(data.intervals)};
}

absl::StatusOr<Questions> AskSeveral(const QuestionFlags& flags) {
  MP_RETURN_IF_ERROR(CheckDataFlags(flags));
  Questions out;
  std::vector<int> steps = flags.training.teacher_steps_list;
  if (steps.empty()) steps.push_back(0);
  for (const std::string& schedule : flags.training.schedule_list) {
    for (const int one : steps) {
      TrainingFlags training = flags.training;
      training.schedule = schedule;
      training.teacher_steps = one;
      MP_ASSIGN_OR_RETURN(ModelSpec spec, SpecOf(training));
      out.specs.push_back(std::move(spec));
      out.asked_steps.push_back(one);
    }
  }
  MP_ASSIGN_OR_RETURN(Variances data, ReadVariances(flags));
  out.variances = std::move(data.variances);
  out.weights = std::move(data.weights);
  out.input = std::move(data.input);
  out.basis = std::move(data.basis);
  for (ModelSpec& spec : out.specs) {
    spec.variances = out.variances;
    const absl::Status size = CheckSize(flags.training, spec);
    spec.variances.clear();
    MP_RETURN_IF_ERROR(size);
  }
  return out;
}

absl::StatusOr<Model> Questions::ModelOf(int k) const {
  ModelSpec spec = specs[static_cast<std::size_t>(k)];
  spec.variances = variances;
  spec.weights = weights;
  const std::string name =
      absl::StrCat(spec.schedule.spec, " with ", spec.schedule.steps(), " steps");
  absl::StatusOr<Model> model = Model::Create(std::move(spec));
  if (model.ok()) return model;
  return Misuse(
      absl::InvalidArgumentError(absl::StrCat(name, ": ", std::string(model.status().message()))));
}

}  // namespace mergeplan::cli
