#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "adapters/runtime/trainer.h"
#include "planner/operators/model.h"
#include "planner/plan/plan.h"
#include "planner/spectrum/spectrum.h"

namespace mergeplan::testing {

// A fresh folder that is gone when the test ends.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::string& path() const { return path_; }
  std::string File(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

// A spectrum with these variances along the axes of "pca", which are the data's own turned by a
// rotation in every pair of neighbouring coordinates; the mean is 0.25, 0.5, …
Spectrum MakeSpectrum(const std::vector<double>& variances);

// Log-spaced from `low` to `high`.
std::vector<double> LogSpaced(double low, double high, int count);

// A cosine problem.
Model MakeModel(int teacher_steps, std::vector<double> variances, Budget budget,
                Init init = Init::kChild, Reference reference = Reference::kSurrogate);

// A merge of d dimensions that starts at 1, shall become 0, and is fed with variance n: what is
// learnt is the shrinkage itself.
MergeTask ShrinkageTask(Range range, int d, double n);

// Runs a trainer to its end and gives the state. Fails the test on an error.
TrainerState TrainToEnd(std::vector<MergeTask> tasks, const TrainerOptions& options);

}  // namespace mergeplan::testing
