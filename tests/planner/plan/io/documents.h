#pragma once

#include <stdlib.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "planner/base/file.h"
#include "planner/operators/canonical.h"
#include "planner/plan/io/document.h"
#include "planner/plan/io/evaluate.h"
#include "planner/schedule/schedule.h"
#include "tests/planner/plan/random_plan.h"

namespace mergeplan {

// A folder that lasts as long as the test.
class TempFolder {
 public:
  TempFolder() {
    std::string pattern =
        (std::filesystem::temp_directory_path() / "mergeplan plan-XXXXXX").string();
    path_ = ::mkdtemp(pattern.data());
  }
  ~TempFolder() {
    std::error_code ec;
    std::filesystem::remove_all(path_, ec);
  }
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;
  std::string At(const std::string& name) const { return (path_ / name).string(); }
  std::string Write(const std::string& name, const std::string& text) const {
    EXPECT_TRUE(WriteFileAtomically(At(name), text).ok());
    return At(name);
  }
  std::vector<std::string> Names() const {
    std::vector<std::string> out;
    for (const auto& entry : std::filesystem::directory_iterator(path_)) {
      out.push_back(entry.path().filename().string());
    }
    std::sort(out.begin(), out.end());
    return out;
  }

 private:
  std::filesystem::path path_;
};

// Replaces the one occurrence of `from`.
inline std::string Replaced(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  if (at == std::string::npos || text.find(from, at + 1) != std::string::npos) {
    ADD_FAILURE() << "\"" << from << "\" does not occur exactly once in\n" << text;
    return text;
  }
  return text.replace(at, from.size(), to);
}

// A question with its plan, figures as the model gives them and a certificate.
inline PlanDocument Document(Plan plan, std::vector<double> variances, Budget budget) {
  PlanDocument d;
  const Schedule schedule = CosineSchedule(plan.teacher_steps());
  d.schedule_spec = "cosine";
  d.alpha = schedule.alpha;
  d.sigma = schedule.sigma;
  d.input = "--variances";
  d.input_sha256 = VariancesHash(variances);
  d.basis = "given";
  d.variances = std::move(variances);
  d.budget = budget;
  d.plan = std::move(plan);
  const auto model = ModelOf(d);
  EXPECT_TRUE(model.ok()) << model.status();
  EXPECT_TRUE(ComputeFigures(*model, &d).ok());
  d.lower_bound = d.objective * 0.9995;
  d.status = "within_gap";
  d.guarantee = "no plan of the space nary is better by more than 0.05 %";
  d.seconds = 0.125;
  return d;
}

// (1 (2 (3 4))) over one dimension.
// A plan as somebody writes it by hand.
inline constexpr char kPlan[] = R"(format = 1
schedule = "cosine"
teacher_steps = 4
variances = [0.25, 1.5]
train_time = 1.6
init = "child"
blocks = [[1, 4]]
merges = [
  { first = 3, last = 4, children = [[3, 3], [4, 4]] },
  { first = 1, last = 4, children = [[1, 1], [2, 2], [3, 4]] },
]
)";

inline PlanDocument SmallDocument() {
  return Document(*CanonicalPlan(Strategy::kBoot, 4), {0.25, 1.5}, Budget::Flow(1.6));
}

inline PlanDocument LargeDocument(int teacher_steps, int dimensions) {
  std::vector<double> variances;
  for (int k = 0; k < dimensions; ++k) variances.push_back(0.2 + 3.0 * k / dimensions);
  return Document(*CanonicalPlan(Strategy::kBoot, teacher_steps), variances,
                  Budget::Sgd(0.01, 100));
}

// Differences between two documents as text, empty where they are equal to the last bit.
inline std::string Difference(const PlanDocument& a, const PlanDocument& b) {
  std::string out;
  const auto same = [&](const char* name, const auto& x, const auto& y) {
    if (x == y) return;
    out += name;
    out += ' ';
  };
  same("schedule_spec", a.schedule_spec, b.schedule_spec);
  same("alpha", a.alpha, b.alpha);
  same("sigma", a.sigma, b.sigma);
  same("data_scale", a.data_scale, b.data_scale);
  same("input", a.input, b.input);
  same("input_sha256", a.input_sha256, b.input_sha256);
  same("basis", a.basis, b.basis);
  same("variances", a.variances, b.variances);
  same("weights", a.weights, b.weights);
  same("budget", a.budget, b.budget);
  same("init", a.init, b.init);
  same("reference", a.reference, b.reference);
  same("space", a.space, b.space);
  same("max_merges", a.max_merges, b.max_merges);
  same("max_rounds", a.max_rounds, b.max_rounds);
  same("plan", a.plan, b.plan);
  same("objective", a.objective, b.objective);
  same("objective_surrogate", a.objective_surrogate, b.objective_surrogate);
  same("objective_teacher", a.objective_teacher, b.objective_teacher);
  same("objective_equal_total_time", a.objective_equal_total_time, b.objective_equal_total_time);
  same("lower_bound", a.lower_bound, b.lower_bound);
  same("tolerance", a.tolerance, b.tolerance);
  same("status", a.status, b.status);
  same("guarantee", a.guarantee, b.guarantee);
  same("seconds", a.seconds, b.seconds);
  same("value", a.value, b.value);
  same("tau", a.tau, b.tau);
  same("strategies.size", a.strategies.size(), b.strategies.size());
  for (size_t k = 0; k < std::min(a.strategies.size(), b.strategies.size()); ++k) {
    same("strategy.name", a.strategies[k].name, b.strategies[k].name);
    same("strategy.objective", a.strategies[k].objective, b.strategies[k].objective);
    same("strategy.objective_equal_total_time", a.strategies[k].objective_equal_total_time,
         b.strategies[k].objective_equal_total_time);
    same("strategy.merges_trained", a.strategies[k].merges_trained, b.strategies[k].merges_trained);
    same("strategy.costs", a.strategies[k].costs, b.strategies[k].costs);
  }
  return out;
}

}  // namespace mergeplan
