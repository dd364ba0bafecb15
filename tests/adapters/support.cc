#include "tests/adapters/support.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <utility>

#include "planner/schedule/schedule.h"

namespace mergeplan::testing {

TemporaryFolder::TemporaryFolder() {
  std::string name = (std::filesystem::temp_directory_path() / "mergeplan test XXXXXX").string();
  path_ = mkdtemp(name.data());
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

Spectrum MakeSpectrum(const std::vector<double>& variances) {
  const auto d = static_cast<std::int64_t>(variances.size());
  Spectrum s;
  s.source = "made by a test";
  s.shape = {d};
  s.samples = 1000;
  s.mean.resize(d);
  s.vectors.assign(d * d, 0.0);
  s.covariance.assign(d * d, 0.0);
  const double c = 0.8, n = 0.6;
  for (std::int64_t k = 0; k < d; ++k) {
    s.mean[k] = 0.25 * static_cast<double>(k + 1);
    if (k + 1 < d && k % 2 == 0) {
      s.vectors[k * d + k] = c;
      s.vectors[k * d + k + 1] = n;
      s.vectors[(k + 1) * d + k] = -n;
      s.vectors[(k + 1) * d + k + 1] = c;
    } else if (k % 2 == 0) {
      s.vectors[k * d + k] = 1;
    }
  }
  for (std::int64_t i = 0; i < d; ++i) {
    for (std::int64_t j = 0; j < d; ++j) {
      for (std::int64_t k = i / 2 * 2; k < std::min(d, i / 2 * 2 + 2); ++k) {
        s.covariance[i * d + j] += s.vectors[k * d + i] * variances[k] * s.vectors[k * d + j];
      }
    }
  }
  s.pca.name = "pca";
  s.pca.variances = variances;
  s.diagonal.name = "diagonal";
  for (std::int64_t k = 0; k < d; ++k) s.diagonal.variances.push_back(s.covariance[k * d + k]);
  for (Basis* basis : {&s.pca, &s.diagonal}) {
    basis->variances_low = basis->variances_high = basis->variances;
    basis->interval = "gaussian";
    SummarizeVariances(*basis);
  }
  s.recommended_basis = "pca";
  s.recommended_basis_reason = "the test wants it";
  return s;
}

std::vector<double> LogSpaced(double low, double high, int count) {
  std::vector<double> out(count);
  for (int k = 0; k < count; ++k) {
    out[k] = low * std::pow(high / low, count > 1 ? static_cast<double>(k) / (count - 1) : 0);
  }
  return out;
}

Model MakeModel(int teacher_steps, std::vector<double> variances, Budget budget, Init init,
                Reference reference) {
  ModelSpec spec;
  spec.schedule = CosineSchedule(teacher_steps);
  spec.variances = std::move(variances);
  spec.budget = budget;
  spec.init = init;
  spec.reference = reference;
  absl::StatusOr<Model> model = Model::Create(std::move(spec));
  EXPECT_TRUE(model.ok()) << model.status();
  return *std::move(model);
}

MergeTask ShrinkageTask(Range range, int d, double n) {
  MergeTask task;
  task.range = range;
  task.start.assign(d, 1.0);
  task.target.assign(d, 0.0);
  task.scale.assign(d, std::sqrt(n));
  return task;
}

TrainerState TrainToEnd(std::vector<MergeTask> tasks, const TrainerOptions& options) {
  absl::StatusOr<std::unique_ptr<Trainer>> trainer = Trainer::Create(std::move(tasks), options);
  EXPECT_TRUE(trainer.ok()) << trainer.status();
  if (!trainer.ok()) return {};
  while (!(*trainer)->done()) {
    const absl::Status status = (*trainer)->Advance();
    EXPECT_TRUE(status.ok()) << status;
    if (!status.ok()) break;
  }
  return (*trainer)->Save();
}

}  // namespace mergeplan::testing
