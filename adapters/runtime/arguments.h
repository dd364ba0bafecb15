#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "planner/plan/io/document.h"
#include "planner/schedule/schedule.h"

namespace mergeplan {

// How the students of a mixture are trained; what is absent has the paper's value.
struct ExpertArguments {
  std::optional<std::int64_t> fit_iterations;  // of the student of single steps, 10,000
  std::optional<int> experts, hidden;          // 8, 64
  std::optional<double> train_time;            // s of the linear model behind the prediction, 6.4

  bool any() const { return fit_iterations || experts || hidden || train_time; }
};

// What is said of network students, besides how they are trained.
struct NetworkArguments {
  std::optional<std::string> student;      // KIND:PATH; absent: a copy of the teacher's network
  std::optional<std::string> data;         // samples, as the planner reads them
  std::optional<std::string> array;        // which one of an .npz
  std::optional<std::int64_t> rows;        // of the data, at most
  std::optional<std::string> labels;       // classes of the samples, where the network has some
  std::optional<std::string> label_array;  // which one of an .npz
  std::optional<std::string> spectrum;     // of the data, for plans and predictions
  std::optional<double> memory;            // MB that frozen networks may take; absent: any
  std::string probed;  // what a probe of layout and precision took; not an option
  // The option that was given, if any.
  const char* given() const {
    return student       ? "--student-network"
           : data        ? "--data"
           : array       ? "--array"
           : rows        ? "--data-rows"
           : labels      ? "--labels"
           : label_array ? "--label-array"
           : spectrum    ? "--spectrum"
           : memory      ? "--memory"
                         : nullptr;
  }
};

// How pictures of --data, and of --judge, become latents and back.
struct LatentArguments {
  std::optional<std::string> vae, encoder;  // one of them, as `mergeplan encode` has them
  std::optional<std::string> size;          // that pictures of --data are brought to first
  std::optional<std::string> folder;        // keeps the latents; absent: the user's cache
};

// What `mergeplan distill` was told. What is absent comes from the plan, from the run that is
// resumed, or from a default.
struct DistillArguments {
  std::optional<std::string> plan, strategy;  // one of them, unless `resume`
  std::optional<std::string> schedule, init, reference, basis;
  std::optional<int> teacher_steps, student_steps, batch;
  std::optional<double> lr, feature_norm;
  std::optional<std::int64_t> iterations, seed;
  std::optional<std::string> teacher, device, dtype;
  std::map<std::string, std::string> training;  // options of Recipe, by name without dashes
  ExpertArguments experts;
  NetworkArguments network;
  LatentArguments latents;
  std::vector<std::string> plugin_folders;
  std::vector<std::string> parameters;  // NAME=VALUE, for the plugin
  int threads = 0;
  double checkpoint_seconds = 10;
  bool resume = false;
  std::string output;
};

// An error that the caller of the program made: exit code 2 instead of 1.
absl::Status Misuse(const std::string& message);
bool IsMisuse(const absl::Status& status);
// The same error, marked as the caller's.
absl::Status AsMisuse(const absl::Status& status);

// Which options must, may and must not stand together. Misuse names the option.
absl::Status CheckArguments(const DistillArguments& arguments);

// A plan fixes schedule, start, rate, number of updates, reference and basis. An option that is
// given nevertheless must say the same: misuse names it, what it says and what the plan says.
// `plan_path` is for the message.
absl::Status CheckAgainstPlan(const DistillArguments& arguments, const PlanDocument& document,
                              const std::string& plan_path);

// The same for schedule, start and number of blocks alone.
absl::Status CheckScheduleAndStart(const DistillArguments& arguments, const PlanDocument& document,
                                   const std::string& plan_path);

// Does a schedule have a plan's noise levels, up to rounding?
bool HasLevelsOf(const Schedule& schedule, const PlanDocument& document);

// KIND:PATH.
struct TeacherName {
  std::string kind, path;
};
// Misuse for another kind of teacher, with the kinds that there are, and for none.
absl::StatusOr<TeacherName> ParseTeacher(const std::string& teacher);
// Is it a network: script, unet?
bool IsNetwork(const TeacherName& name);
// Are the students networks? Those of a network are, and those of others where one is named.
bool HasNetworkStudents(const DistillArguments& arguments, const TeacherName& teacher);

// NAME=VALUE pairs as a map; misuse for one without '=' or a name that occurs twice.
absl::StatusOr<std::map<std::string, std::string>> ParseParameters(
    const std::vector<std::string>& pairs);

}  // namespace mergeplan
