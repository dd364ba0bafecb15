#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace mergeplan {

// What `mergeplan features` is asked for.
struct FeaturesArguments {
  std::string folder;                       // of the classifier
  std::optional<std::string> data, labels;  // to train on; without them nothing is trained
  std::optional<std::string> test_data, test_labels;
  std::string name = "small classifier";
  int epochs = 8, batch = 64, threads = 0;
  double lr = 3e-3;
  std::int64_t seed = 0;
};

// Trains a small classifier whose features samples are compared by, or says what one is and tests
// it. Returns the exit code: 0 done, 1 failed, 2 misuse, 3 stopped by a signal with nothing
// written.
int RunFeaturesCommand(const FeaturesArguments& arguments);

}  // namespace mergeplan
