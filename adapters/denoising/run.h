#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace mergeplan {

// What every command that trains in a folder was told. What is absent comes from the training that
// is resumed, or from a default.
struct TrainingArguments {
  std::optional<std::string> model, data, array, device;
  std::optional<std::int64_t> rows;             // of the data, at most
  std::map<std::string, std::string> training;  // the command's options, by name without dashes
  int threads = 0;
  double checkpoint_seconds = 60;
  std::optional<std::string> time_limit;  // "90", "15m", "2h"
  bool resume = false;
  bool quiet = false, json = false;
  std::string output;
};

// `mergeplan train-teacher`; `training` are denoising::Options.
struct TrainTeacherArguments : TrainingArguments {
  std::optional<std::string> schedule, prediction;
  std::optional<std::string> labels, label_array;  // classes of the data
};

// Trains, in its folder, and prints how it went. 0: done, 1: failed, 2: misuse, 3: stopped, by a
// signal or by the time limit, with a network that can be used and a training that can go on.
// Errors are one line on stderr.
int RunTrainTeacher(const TrainTeacherArguments& arguments);

}  // namespace mergeplan
