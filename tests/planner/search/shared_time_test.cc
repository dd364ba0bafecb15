#include "planner/search/shared_time.h"

#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "planner/operators/canonical.h"
#include "planner/operators/regimes.h"
#include "planner/search/shared/tree.h"
#include "tests/oracle/enumerate.h"
#include "tests/planner/search/sharing.h"

namespace mergeplan {
namespace {

using search::SharedProblem;
using search::SharedTree;
using ::testing::HasSubstr;

TEST(SharedTime, VanillaIsProvenBestWithOneBlock) {
  for (Init init : {Init::kJump, Init::kChildJump}) {
    for (Reference reference : {Reference::kSurrogate, Reference::kTeacher}) {
      const Model model = CosineModel(16, LogSpaced(0.05, 20, 12), init, reference);
      const SharedTimeResult result = *SolveSharedTime(model, 2.0, SharingOptions());
      EXPECT_EQ(result.status, SharedTimeStatus::kOptimal);
      EXPECT_EQ(result.plan, *CanonicalPlan(Strategy::kVanilla, 16));
      EXPECT_THAT(result.guarantee, HasSubstr("vanilla with the whole total; proven"));
    }
  }
  // Under child and teacher where no variance lies between 1 and max lambda_0, mixed.
  const double largest = RangeOfLambda0(CosineSchedule(16)).largest;
  for (Init init : {Init::kChild, Init::kTeacher}) {
    const Model model = CosineModel(16, {0.1, 0.6, 1.0, largest + 1e-6, 3, 20}, init);
    const SharedTimeResult result = *SolveSharedTime(model, 2.0, SharingOptions());
    EXPECT_EQ(result.status, SharedTimeStatus::kOptimal) << result.guarantee;
    EXPECT_EQ(result.plan, *CanonicalPlan(Strategy::kVanilla, 16));
    EXPECT_EQ(result.plans, 1);
  }
}

TEST(SharedTime, VanillaBeatsBootWithEqualSharesAtEqualTotals) {
  const Plan vanilla = *CanonicalPlan(Strategy::kVanilla, 32);
  const Plan boot = *CanonicalPlan(Strategy::kBoot, 32);
  for (Init init : {Init::kChild, Init::kTeacher, Init::kJump, Init::kChildJump}) {
    for (double total : {1.0, 3.0, 6.0}) {
      const Model model = CosineModel(32, {0.2}, init);
      const auto objective = [&](const Plan& plan) {
        return model.Objective(
            *SharedTimeValue(model, plan, std::vector<double>(plan.size(), total / plan.size())));
      };
      EXPECT_LT(objective(vanilla), 0.9 * objective(boot)) << std::string(ToString(init)) << total;
    }
  }
}

// One variance between 1 and max lambda_0: merges without training drop the steps that shrink.
TEST(SharedTime, OneVarianceIsSolvedByDroppingSteps) {
  for (double lambda : {1.02, 1.2, 1.3, 1.7}) {
    for (Init init : {Init::kChild, Init::kTeacher}) {
      const Model model = CosineModel(32, {lambda}, init);
      const SharedTimeResult result = *SolveSharedTime(model, 49.6, SharingOptions());
      EXPECT_LE(result.gap(), 1e-6) << lambda << " " << result.guarantee;
      EXPECT_LT(result.objective, result.vanilla_objective);
    }
  }
}

TEST(SharedTime, MixedSpectraAreCertifiedWithinPerCents) {
  const struct {
    double low, high, total;
    int d, blocks;
    double most_objective, most_gap;
  } cases[] = {{0.2, 5, 49.6, 128, 1, 1.8549e-3, 0.04},
               {0.5, 2, 49.6, 128, 1, 3.740e-3, 0.02},
               {0.95, 1.05, 198.4, 2, 1, 1.2746e-4, 0.001},
               {0.2, 5, 8, 128, 4, 1.8539e-3, 0.04}};
  for (const auto& c : cases) {
    const Model model = CosineModel(32, LogSpaced(c.low, c.high, c.d));
    const SharedTimeResult result = *SolveSharedTime(model, c.total, SharingOptions(c.blocks));
    EXPECT_LE(result.objective, c.most_objective);
    EXPECT_LE(result.gap(), c.most_gap) << result.guarantee;
    EXPECT_LT(result.objective, result.vanilla_objective);
  }
}

TEST(SharedTime, BordersOfVanillaBlocksAreExact) {
  std::mt19937_64 random(7);
  for (int n = 0; n < 40; ++n) {
    const double low = std::uniform_real_distribution<double>(0.02, 0.5)(random);
    const int T = std::uniform_int_distribution<int>(5, 8)(random);
    const Init init = n % 2 == 0 ? Init::kChildJump : Init::kChild;
    const Model model = CosineModel(T, LogSpaced(low, n % 4 == 0 ? 5.0 : 0.9, 3), init);
    SearchOptions options = SharingOptions(3);
    options.gap = 1e-6;
    const double total = std::uniform_real_distribution<double>(0.3, 3)(random);
    const SharedTimeResult result = *SolveSharedTime(model, total, options);
    EXPECT_LE(result.gap(), 1e-6) << result.guarantee;
    // Against all plans of three blocks.
    const SharedProblem shared(model, total);
    for (const Plan& plan : oracle::AllPlans(T, 3, Space::kNary)) {
      SharedTree tree(shared, plan);
      for (int r = 0; r < 2; ++r) {
        ASSERT_GE(tree.Objective(RandomShares(random, plan.size()), nullptr), result.lower_bound);
      }
    }
  }
}

TEST(SharedTimeSgd, UpdatesAreWholeAndNoExchangeHelps) {
  std::mt19937_64 random(8);
  for (int n = 0; n < 60; ++n) {
    const int T = std::uniform_int_distribution<int>(3, 5)(random);
    const int blocks = std::uniform_int_distribution<int>(1, 2)(random);
    const auto init = static_cast<Init>(n % 4);
    const Model model =
        CosineModel(T, {0.3, 1.2, 1.6}, init, Reference::kSurrogate, Budget::Sgd(0.05, 1, 64, 1));
    const std::int64_t K = std::uniform_int_distribution<int>(1, 40)(random);
    SearchOptions options = SharingOptions(blocks);
    options.gap = 0;
    const SharedTimeResult result = *SolveSharedTime(model, static_cast<double>(K), options);
    ASSERT_EQ(result.allocation.updates.size(), static_cast<std::size_t>(result.plan.size()));
    std::int64_t sum = 0;
    for (std::int64_t u : result.allocation.updates) {
      EXPECT_GE(u, 0);
      sum += u;
    }
    EXPECT_EQ(sum, K);
    const auto objective = [&](const Plan& plan, const std::vector<std::int64_t>& updates) {
      return model.Objective(
          *SharedTimeValue(model, plan, std::vector<double>(updates.begin(), updates.end())));
    };
    EXPECT_NEAR(objective(result.plan, result.allocation.updates), result.objective,
                result.tolerance);
    ASSERT_TRUE(result.allocation.exchanged);
    for (std::size_t from = 0; from < result.allocation.updates.size(); ++from) {
      for (std::size_t to = 0; to < result.allocation.updates.size(); ++to) {
        std::vector<std::int64_t> updates = result.allocation.updates;
        if (from == to || updates[from] == 0) continue;
        --updates[from], ++updates[to];
        EXPECT_GE(objective(result.plan, updates), result.objective - result.tolerance);
      }
    }
    // All whole allocations of small plans.
    if (K > 12 || T > 4) continue;
    for (const Plan& plan : oracle::AllPlans(T, blocks, Space::kNary)) {
      if (plan.size() == 0) continue;
      std::vector<int> at;
      ForGrid(plan.size(), static_cast<int>(K), at, [&](const std::vector<int>& grid) {
        EXPECT_GE(objective(plan, {grid.begin(), grid.end()}), result.lower_bound);
      });
    }
  }
}

TEST(SharedTimeSgd, AgreesWithTheModelsBudget) {
  const Budget budget = Budget::Sgd(0.01, 37, 64, 2);
  const Model model = CosineModel(6, {0.4, 2}, Init::kTeacher, Reference::kSurrogate, budget);
  const Plan plan = *CanonicalPlan(Strategy::kProgressive, 6);
  const std::vector<double> value =
      *SharedTimeValue(model, plan, std::vector<double>(plan.size(), 37.0));
  for (int k = 0; k < 2; ++k) EXPECT_NEAR(value[k], model.Value(plan)[k], 1e-14);
}

TEST(SharedTime, NothingToMerge) {
  for (int T : {1, 5}) {
    const Model model = CosineModel(T, {0.3, 1.5});
    const SharedTimeResult result = *SolveSharedTime(model, 2.0, SharingOptions(T));
    EXPECT_EQ(result.plan.size(), 0);
    EXPECT_TRUE(result.allocation.shares.empty());
    EXPECT_EQ(result.objective, model.Objective(result.plan));
    EXPECT_EQ(result.status, SharedTimeStatus::kOptimal);
    EXPECT_THAT(result.guarantee, HasSubstr("nothing is merged"));
  }
}

TEST(SharedTime, LimitsAreKept) {
  const Model model = CosineModel(12, LogSpaced(0.5, 2, 6));
  SearchOptions options = SharingOptions();
  options.max_merges = 1;
  EXPECT_EQ(SolveSharedTime(model, 10, options)->plan.size(), 1);
  options.max_merges = 0, options.max_rounds = 2;
  EXPECT_LE(SolveSharedTime(model, 10, options)->plan.rounds(), 2);
  options.max_rounds = 0, options.space = Space::kBinary;
  const Plan binary = SolveSharedTime(model, 10, options)->plan;
  for (const Merge& merge : binary.merges()) {
    EXPECT_TRUE(merge.children.size() == 2 || merge.round == 1);
  }
  options = SharingOptions(4);
  options.max_merges = 1;
  EXPECT_EQ(SolveSharedTime(model, 10, options)->plan.size(), 1);
  EXPECT_EQ(SolveSharedTime(model, 10, options)->plan.student_steps(), 4);
}

TEST(SharedTime, IsDeterministicOnAnyNumberOfThreads) {
  const Model model = CosineModel(20, LogSpaced(0.4, 2.5, 40));
  SearchOptions options = SharingOptions();
  const SharedTimeResult one = *SolveSharedTime(model, 12, options);
  options.threads = 3;
  const SharedTimeResult three = *SolveSharedTime(model, 12, options);
  EXPECT_EQ(one.plan, three.plan);
  EXPECT_EQ(one.allocation.shares, three.allocation.shares);
  EXPECT_EQ(one.objective, three.objective);
  EXPECT_EQ(one.lower_bound, three.lower_bound);
}

TEST(SharedTime, StopsWithWhatThereIs) {
  const Model model = CosineModel(64, LogSpaced(0.3, 3, 64));
  SearchOptions options = SharingOptions();
  options.interrupted = [] { return true; };
  const SharedTimeResult interrupted = *SolveSharedTime(model, 30, options);
  EXPECT_EQ(interrupted.status, SharedTimeStatus::kInterrupted);
  EXPECT_LE(interrupted.lower_bound, interrupted.objective);
  EXPECT_TRUE(std::isfinite(interrupted.objective));
  options.interrupted = nullptr;
  options.time_limit_seconds = 1e-9;
  for (int blocks : {1, 3}) {
    options.student_steps = blocks;
    const SharedTimeResult late = *SolveSharedTime(model, 30, options);
    EXPECT_EQ(late.status, SharedTimeStatus::kTimeLimit);
    EXPECT_TRUE(std::isfinite(late.objective));
  }
}

TEST(SharedTime, ProgressShowsTheGapShrinking) {
  const Model model = CosineModel(24, LogSpaced(0.5, 2, 16));
  SearchOptions options = SharingOptions();
  std::vector<SearchProgress> told;
  options.progress = [&](const SearchProgress& progress) { told.push_back(progress); };
  const SharedTimeResult result = *SolveSharedTime(model, 20, options);
  ASSERT_GE(told.size(), 2u);
  for (std::size_t n = 1; n < told.size(); ++n) {
    EXPECT_LE(told[n].objective, told[n - 1].objective);
    EXPECT_GE(told[n].lower_bound, told[n - 1].lower_bound - result.tolerance);
  }
  EXPECT_EQ(told.back().objective, result.objective);
}

TEST(SharedTime, ErrorsNameWhatIsWrong) {
  const Model model = CosineModel(4, {0.5});
  const auto message = [](const auto& result) { return std::string(result.status().message()); };
  for (double total : {0.0, -1.0, std::nan(""), kInfinity}) {
    EXPECT_THAT(message(SolveSharedTime(model, total, SharingOptions())),
                HasSubstr("positive, finite"));
  }
  const Model sgd =
      CosineModel(4, {0.5}, Init::kChild, Reference::kSurrogate, Budget::Sgd(0.01, 1));
  EXPECT_THAT(message(SolveSharedTime(sgd, 10.5, SharingOptions())), HasSubstr("whole number"));
  EXPECT_THAT(message(SolveSharedTime(model, 1, SharingOptions(5))),
              HasSubstr("student steps is 5"));
  SearchOptions options = SharingOptions();
  options.gap = 1;
  EXPECT_THAT(message(SolveSharedTime(model, 1, options)), HasSubstr("gap is 1"));
  options = SharingOptions();
  options.max_rounds = -1;
  EXPECT_THAT(message(SolveSharedTime(model, 1, options)), HasSubstr("-1 rounds"));
  options = SharingOptions();
  options.time_limit_seconds = 0;
  EXPECT_THAT(message(SolveSharedTime(model, 1, options)), HasSubstr("time limit"));
  const Plan other = *CanonicalPlan(Strategy::kBoot, 5);
  EXPECT_THAT(message(AllocateSharedTime(model, other, 1, SharingOptions())), HasSubstr("5 steps"));
  const Plan plan = *CanonicalPlan(Strategy::kBoot, 4);
  EXPECT_THAT(message(SharedTimeValue(model, plan, {1, 2})), HasSubstr("2 amounts"));
  EXPECT_THAT(message(SharedTimeValue(model, plan, {1, -2, 0})), HasSubstr("merge 2 is -2"));
  ModelTables tables;
  tables.steps = 2;
  tables.dimensions = 1;
  tables.a = {0.5, 0.5};
  tables.gamma = {0.1, 0.1};
  const Model bare = *Model::FromTables(tables);
  EXPECT_EQ(SolveSharedTime(bare, 1, SharingOptions()).status().code(),
            absl::StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace mergeplan
