#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "adapters/judge/classifier.h"

namespace mergeplan::judge {

// Pictures with their classes.
struct Labelled {
  at::Tensor pixels;  // [N, C, H, W], 0..255, float32
  at::Tensor labels;  // [N], int64, from 0
};
// Reads both files as planner/data does: pictures (pixels, or numbers 0..255), and an array of one
// class for each. INVALID_ARGUMENT where they do not belong together.
absl::StatusOr<Labelled> ReadLabelled(const std::string& data, const std::string& labels);

struct ClassifierTraining {
  int epochs = 8;
  int batch = 64;
  double lr = 3e-3;  // of AdamW, with warm-up and down to 0 by a cosine
  std::uint64_t seed = 0;
  std::function<bool()> stop = [] { return false; };
  // After every epoch: its number from 1, the mean loss.
  std::function<void(int, double)> epoch = [](int, double) {};
};

// Trains a classifier from nothing on cross entropy. On the CPU with the same number of threads
// bit-equal. CANCELLED; FAILED_PRECONDITION for a loss that is not finite.
absl::StatusOr<Classifier> TrainClassifier(const Labelled& data, const std::string& name,
                                           const ClassifierTraining& options);
// Share of the pictures whose class it says.
absl::StatusOr<double> Accuracy(const Classifier& classifier, const Labelled& data);

}  // namespace mergeplan::judge
