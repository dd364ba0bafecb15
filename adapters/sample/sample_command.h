#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace mergeplan {

// What `mergeplan sample` is asked for.
struct SampleArguments {
  std::string source;
  std::optional<std::string> schedule, basis;
  std::optional<int> teacher_steps, steps;
  bool teacher = false;
  std::int64_t seed = 0, first = 0;
  std::optional<std::int64_t> count;  // 64; with per_class once through the classes
  std::string classes;                // "3", "0,1,2", "all"; empty: all that there are
  std::int64_t per_class = 1;         // samples of one class that stand together
  int batch = 64, columns = 0, threads = 0;
  std::string device = "cpu";
  std::vector<std::string> outputs;  // .png: a grid; .npz: the samples
  bool json = false;
};

// Draws the samples, writes the files and says what was drawn. 0: done, 1: failed, 2: misuse, 3:
// stopped by a signal with nothing written. Errors are one line on stderr.
int RunSampleCommand(const SampleArguments& arguments);

}  // namespace mergeplan
