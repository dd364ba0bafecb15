// A pass with a device against the same pass without: the same effort, the same parts, the same
// bound and plans.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "absl/strings/str_cat.h"
#include "planner/operators/canonical.h"
#include "planner/search/cuda/offload.h"
#include "planner/search/frontier.h"
#include "planner/search/grouping.h"
#include "tests/planner/search/cuda/backends.h"
#include "tests/planner/search/problems.h"

namespace mergeplan::search {
namespace {

class PassTest : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(On, PassTest, testing::Values("emulation", "cuda"),
                         [](const auto& info) { return info.param; });

struct Outcome {
  Pass::Outcome outcome;
  std::int64_t candidates, kept;
  double bound = 0;
  std::vector<std::string> plans;
  std::vector<double> left;  // the best values of what is left, part by part
  bool operator==(const Outcome&) const = default;
};
std::ostream& operator<<(std::ostream& out, const Outcome& o) {
  out << static_cast<int>(o.outcome) << ": " << o.candidates << " candidates, " << o.kept
      << " kept, bound " << absl::StrCat(o.bound);
  for (const std::string& plan : o.plans) out << ", " << plan;
  for (const double x : o.left) out << " " << x;
  return out;
}

Outcome RunPass(const Model& model, const Bounds& bounds, PassOptions options, Offload* offload) {
  options.offload = offload;
  const bool beam = options.width.has_value();
  Pass pass(model, bounds, std::move(options));
  Outcome out{pass.Run(), 0, 0, 0, {}, {}};
  out.candidates = pass.candidates();
  if (out.outcome != Pass::Outcome::kDone) return out;  // where it stopped is not laid down
  out.kept = pass.kept();
  out.bound = pass.LowerBound();
  for (const Plan& plan : pass.BestPlans(8)) out.plans.push_back(plan.ToString());
  if (beam) return out;
  const Survivors survivors = pass.Left();
  const auto add = [&](const double* row) {
    if (row != nullptr) {
      out.left.insert(out.left.end(), row, row + bounds.columns.size());
    } else {
      out.left.push_back(-1);
    }
  };
  for (int i = 1; i <= model.steps(); ++i) {
    for (int j = i; j <= model.steps(); ++j) {
      add(survivors.node(i, j));
      if (bounds.shape == Shape::kNary) add(survivors.product(i, j));
    }
    for (int n = 1; n <= bounds.blocks; ++n) add(survivors.prefix(n, i));
  }
  return out;
}

struct Seen {
  int compared = 0, slack = 0, limited = 0, beams = 0, stopped = 0;
  std::int64_t most_kept = 0;
};

void Compare(const Model& model, Shape shape, int blocks, std::mt19937_64& random, Offload& offload,
             Seen& seen, double headroom, int kind) {
  std::optional<Bounds> bounds =
      Bounds::Make(model, DistinctTargets(model), shape, blocks, false, 1, {});
  ASSERT_TRUE(bounds);
  const double objective =
      model.Objective(*CanonicalPlan(Strategy::kVanilla, model.steps(), blocks));
  PassOptions options;
  options.threshold = headroom * objective + 1e-9;
  if (kind >= 4) options.slack = options.threshold * std::pow(10.0, -1.0 - random() % 4);
  if (kind == 3) options.width = 1 + static_cast<int>(random() % 8);
  if (kind == 2 || kind == 4) {
    options.max_merges = std::max(1, model.steps() - blocks - static_cast<int>(random() % 3));
    options.max_rounds = 1 + static_cast<int>(random() % model.steps());
  }
  options.trace = random() % 2 == 0;
  options.max_candidates = kind == 5 ? 50 : 3000000;
  options.threads = 1 + static_cast<int>(random() % 2);
  const Outcome expected = RunPass(model, *bounds, options, nullptr);
  const Outcome got = RunPass(model, *bounds, options, &offload);
  ASSERT_EQ(got, expected);
  ++seen.compared;
  seen.slack += options.slack > 0;
  seen.limited += options.max_merges > 0;
  seen.beams += options.width.has_value();
  seen.stopped += expected.outcome != Pass::Outcome::kDone;
  seen.most_kept = std::max(seen.most_kept, expected.kept);
}

TEST_P(PassTest, RandomProblems) {
  MERGEPLAN_OPEN_BACKEND(backend);
  const std::string name = (*backend)->name();
  Offload offload(*std::move(backend), 0, {5000, 32, 1 << 16});
  std::mt19937_64 random(21);
  Seen seen;
  for (int trial = 0; trial < 200; ++trial) {
    RandomProblem problem = MakeRandomProblem(random, {2, 9, 6, 3});
    SCOPED_TRACE(problem.text);
    absl::StatusOr<Model> model = Model::Create(problem.model);
    ASSERT_TRUE(model.ok()) << model.status();
    const Shape shape = static_cast<Shape>(random() % 4 == 0 ? random() % 5 : random() % 2);
    Compare(*model, shape, std::min(problem.blocks, model->steps()), random, offload, seen,
            random() % 3 == 0 ? 4.0 : 1.0, trial % 8);
    if (HasFatalFailure()) return;
  }
  EXPECT_EQ(seen.compared, 200);
  EXPECT_GT(seen.slack, 50);
  EXPECT_GT(seen.limited, 20);
  EXPECT_GT(seen.beams, 10);
  EXPECT_GT(seen.stopped, 0);
  EXPECT_EQ(offload.Used(), name);
  EXPECT_GT(seen.most_kept, 300);
}

// Wide frontiers: mixed spectra around 1, one or two columns a variance.
TEST_P(PassTest, WideFrontiers) {
  MERGEPLAN_OPEN_BACKEND(backend);
  const std::string name = (*backend)->name();
  Offload offload(*std::move(backend), 0, {100000, 256, 1 << 22});
  std::mt19937_64 random(22);
  Seen seen;
  for (int trial = 0; trial < 16; ++trial) {
    ModelSpec spec;
    spec.schedule = CosineSchedule(12);
    for (int k = 0; k < 9; ++k) spec.variances.push_back(0.6 * std::pow(2.8, k / 8.0));
    spec.budget = Budget::Flow(1.6);
    spec.reference = trial % 2 == 0 ? Reference::kTeacher : Reference::kSurrogate;
    absl::StatusOr<Model> model = Model::Create(std::move(spec));
    ASSERT_TRUE(model.ok()) << model.status();
    Compare(*model, Shape::kNary, 1 + trial / 4 % 3, random, offload, seen, 1.0, trial % 8);
    if (HasFatalFailure()) return;
  }
  EXPECT_EQ(offload.Used(), name);
  EXPECT_GT(seen.most_kept, 20000);
}

}  // namespace
}  // namespace mergeplan::search
