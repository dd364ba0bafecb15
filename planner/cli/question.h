#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "planner/choice/sensitivity.h"
#include "planner/cli/encoded.h"
#include "planner/data/samples.h"
#include "planner/operators/model.h"
#include "planner/spectrum/estimate.h"
#include "planner/spectrum/spectrum.h"

namespace mergeplan::cli {

// Flags that say which data: shared by analyze, plan and compare.
struct DataFlags {
  const CLI::App* app = nullptr;  // whose flags they are
  std::string input;
  std::string array;
  std::string scale;
  bool skip_nonfinite = false;
  int threads = 0;
  int shard = 0, shards = 0;  // part `shard` of `shards`; 0: all of it
  bool hash = true;           // into the result; takes as long as reading the data once more
  // Where pictures are to be encoded first; then array and scale are those of the pictures.
  EncodingFlags encoding;
  std::int64_t most_dimensions = 0;  // of latents that are encoded; 0: any
};
// How files and messages call the data: as it was named, in UTF-8.
std::string NameOfInput(const DataFlags& flags);
// Opens the data, or its part.
absl::StatusOr<std::unique_ptr<SampleSource>> OpenFromFlags(const DataFlags& flags);
// The SHA-256 of a file or of what came in on standard input; empty for anything else.
absl::StatusOr<std::string> HashOfInput(const std::string& input);
// Which part of which data the flags mean. `whole` is all of it, opened; `sha256` is its hash.
SpectrumPart PartOf(const DataFlags& flags, const SampleSource& whole, const std::string& sha256);
void AddDataFlags(CLI::App& app, DataFlags& flags);

// Reads and estimates. The flags say source, scaling and threads; everything else is as `options`
// has it; the hash of the data is computed unless it is there.
absl::StatusOr<Spectrum> EstimateFromFlags(const DataFlags& flags, EstimateOptions options);
// What --scale says, or what is the default for this data. Misuse names the flag.
absl::StatusOr<Scaling> ScalingOf(const DataFlags& flags, const SampleSource& source);
// Which bases `--basis` asks for.
EstimateOptions OptionsForBasis(const std::string& basis);

// Flags that say how the student is trained. 0: not given.
struct TrainingFlags {
  const CLI::App* app = nullptr;  // whose flags they are
  int teacher_steps = 0;
  std::string schedule;
  // Only where `choices` was asked for: all of the lists, of which the two above are the first.
  std::vector<int> teacher_steps_list;
  std::vector<std::string> schedule_list;
  double train_time = 0;
  double lr = 0;
  std::int64_t iterations = 0;
  int batch = 64;
  double feature_norm = 1;
  std::string init = "child";
  std::string reference = "surrogate";
  int student_steps = 1;
};
// `choices`: --teacher-steps and --schedule take lists (see SplitSchedules).
void AddTrainingFlags(CLI::App& app, TrainingFlags& flags, bool required, bool choices = false);
// Splits the lists of a parsed command line. Misuse for what is named twice.
absl::Status SplitChoices(TrainingFlags& flags);

// Misuse names the flag: a budget that is missing, half or double, or flags of SGD beside a
// gradient-flow time.
absl::StatusOr<Budget> BudgetOf(const TrainingFlags& flags);
absl::StatusOr<Schedule> ScheduleOf(const TrainingFlags& flags);
// The words of --init and --reference.
absl::Status ParseTerms(const TrainingFlags& flags, Init* init, Reference* reference);
// Misuse for more student steps than teacher steps; once the variances are known,
// RESOURCE_EXHAUSTED where the model's tables would not fit into memory. Names the flags.
absl::Status CheckSize(const TrainingFlags& flags, const ModelSpec& spec);
// "auto", "diagonal", "dct" or "pca".
absl::Status CheckBasisFlag(const std::string& basis);

// A planning question: data or variances, and the training.
struct QuestionFlags {
  DataFlags data;
  TrainingFlags training;
  std::string variances;  // list or file
  std::string weights;    // list or file
  std::string tables;     // file of bare tables in place of data, schedule and budget
  std::string basis = "auto";
};
void AddQuestionFlags(CLI::App& app, QuestionFlags& flags, bool choices = false);

struct Question {
  Model model;
  std::string input;  // as given
  std::string basis;  // "diagonal", "dct", "pca" or "given"; "" where the model is of tables
  // Where the variances were estimated from data.
  std::optional<VarianceIntervals> intervals;
};
absl::StatusOr<Question> AskFromFlags(const QuestionFlags& flags);

// The same for several schedules and numbers of teacher steps, whose models are made one at a time.
struct Questions {
  std::vector<ModelSpec> specs;  // complete but for variances and weights
  std::vector<int> asked_steps;  // --teacher-steps of each; 0: not given
  std::vector<double> variances, weights;
  std::string input, basis;

  absl::StatusOr<Model> ModelOf(int k) const;
};
absl::StatusOr<Questions> AskSeveral(const QuestionFlags& flags);

// "0.95,1.05", or the path of an .npy or .npz (FILE.npz:NAME).
absl::StatusOr<std::vector<double>> ReadNumbers(const std::string& flag, const std::string& text);

}  // namespace mergeplan::cli
