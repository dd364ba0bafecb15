#include "planner/choice/combinations.h"

#include <gmock/gmock.h>

#include <cmath>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "planner/base/file.h"
#include "planner/operators/canonical.h"
#include "tests/planner/choice/models.h"

namespace mergeplan {
namespace {

using testing::ElementsAre;

TEST(SplitSchedules, ACommaBeginsAnotherScheduleUnlessAParameterFollows) {
  EXPECT_THAT(SplitSchedules("cosine"), ElementsAre("cosine"));
  EXPECT_THAT(SplitSchedules("cosine,flow:shift=3"), ElementsAre("cosine", "flow:shift=3"));
  EXPECT_THAT(SplitSchedules("edm:rho=5,sigma_max=40,flow:shift=3,cosine"),
              ElementsAre("edm:rho=5,sigma_max=40", "flow:shift=3", "cosine"));
  EXPECT_THAT(SplitSchedules("a.json:timestep_spacing=trailing,mu=1,b.npz"),
              ElementsAre("a.json:timestep_spacing=trailing,mu=1", "b.npz"));
  // What is no schedule stays a piece of its own, for an error that names it.
  EXPECT_THAT(SplitSchedules("cosine,flwo"), ElementsAre("cosine", "flwo"));
  EXPECT_THAT(SplitSchedules("cosine,,flow"), ElementsAre("cosine", "", "flow"));
  EXPECT_THAT(SplitSchedules("rho=5,cosine"), ElementsAre("rho=5", "cosine"));
}

TEST(SplitSchedules, FilesMayHaveCommasAndEqualSignsInTheirNames) {
  std::string folder = testing::TempDir() + "schedules XXXXXX";
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  const std::string comma = folder + "/a,b.json", equals = folder + "/eta=0.json";
  for (const std::string& path : {comma, equals}) ASSERT_TRUE(WriteFileAtomically(path, "{}").ok());
  EXPECT_THAT(SplitSchedules(comma), ElementsAre(comma));
  EXPECT_THAT(SplitSchedules("edm:rho=5," + equals), ElementsAre("edm:rho=5", equals));
  std::filesystem::remove_all(folder);
}

SearchOptions Options() {
  SearchOptions options;
  options.threads = 1;
  return options;
}

TEST(Combinations, EachIsTheBestPlanOfItsOwnModel) {
  const std::vector<std::pair<std::string, int>> asked = {
      {"cosine", 8}, {"cosine", 16}, {"flow:shift=3", 8}};
  const auto make = [&](int k) -> absl::StatusOr<Model> {
    const auto& [schedule, steps] = asked[static_cast<std::size_t>(k)];
    return ModelFor(schedule, steps, {0.2, 3});
  };
  std::vector<int> begun;
  const absl::StatusOr<ComparedCombinations> all =
      SolveCombinations(3, make, Options(), [&](int k) { begun.push_back(k); });
  ASSERT_TRUE(all.ok()) << all.status();
  EXPECT_THAT(begun, ElementsAre(0, 1, 2));
  ASSERT_EQ(all->rows.size(), 3U);
  int best = 0;
  for (int k = 0; k < 3; ++k) {
    const Combination& row = all->rows[static_cast<std::size_t>(k)];
    const Model model = *make(k);
    EXPECT_EQ(row.schedule, asked[static_cast<std::size_t>(k)].first);
    EXPECT_EQ(row.teacher_steps, asked[static_cast<std::size_t>(k)].second);
    EXPECT_EQ(row.result.objective, Solve(model, Options())->objective);
    EXPECT_EQ(row.costs, CostsOf(row.result.plan));
    // The data's deviations are sqrt(0.2) and sqrt(3), whatever the schedule.
    const std::vector<double> value = model.Value(row.result.plan);
    const double expected =
        std::pow(std::sqrt(0.2) - value[0], 2) + std::pow(std::sqrt(3.0) - value[1], 2);
    ASSERT_TRUE(row.objective_data.has_value());
    EXPECT_NEAR(*row.objective_data, expected, 1e-12);
    if (*row.objective_data < *all->rows[static_cast<std::size_t>(best)].objective_data) best = k;
  }
  EXPECT_EQ(all->best, best);
  EXPECT_FALSE(all->certain);  // not planned for the data
  EXPECT_FALSE(all->stopped());
}

TEST(Combinations, TheBestIsCertainWhereBoundsSaySo) {
  const auto make = [](int k) -> absl::StatusOr<Model> {
    return ModelFor("cosine", 8 << k, {0.2, 3}, Budget::Flow(1.6), Reference::kData);
  };
  const absl::StatusOr<ComparedCombinations> all = SolveCombinations(2, make, Options());
  ASSERT_TRUE(all.ok()) << all.status();
  EXPECT_EQ(all->best, 1);
  EXPECT_TRUE(all->certain);
  EXPECT_LT(all->rows[1].result.objective, all->rows[0].result.lower_bound);
}

// EDM's coordinates are turned by sigma_data; its figures must be in the data's own units.
TEST(Combinations, ErrorsAgainstTheDataAreInItsUnits) {
  const Model edm = ModelFor("edm", 64, {0.3});
  const Model cosine = ModelFor("cosine", 64, {0.3});
  const double ends = *ErrorAgainstData(edm, edm.tau(Reference::kTeacher));
  // A teacher of many steps ends near sqrt(0.3) under both.
  EXPECT_LT(ends, 1e-3);
  EXPECT_LT(*ErrorAgainstData(cosine, cosine.tau(Reference::kTeacher)), 1e-3);
  const std::vector<double> nothing = {0};
  EXPECT_NEAR(*ErrorAgainstData(edm, nothing), 0.3, 1e-12);
  EXPECT_NEAR(*ErrorAgainstData(cosine, nothing), 0.3, 1e-12);
}

TEST(Combinations, AScheduleThatDoesNotEndAtUnitNoiseIsLeftOutOfTheComparison) {
  const auto make = [](int k) -> absl::StatusOr<Model> {
    ModelSpec spec;
    spec.schedule = CosineSchedule(6);
    if (k == 1) {  // as raw arrays may be
      spec.schedule.sigma.back() = 2;
      spec.schedule.name = spec.schedule.spec = "arrays";
    }
    spec.variances = {0.2, 3};
    spec.budget = Budget::Flow(1);
    return Model::Create(std::move(spec));
  };
  const absl::StatusOr<ComparedCombinations> all = SolveCombinations(2, make, Options());
  ASSERT_TRUE(all.ok()) << all.status();
  EXPECT_EQ(all->best, 0);
  EXPECT_FALSE(all->rows[1].objective_data.has_value());
}

TEST(Combinations, InterruptedOnesHavePlansAllTheSame) {
  const auto make = [](int) -> absl::StatusOr<Model> {
    return ModelFor("cosine", 24, {0.2, 0.7, 1.4, 1.6, 3});
  };
  SearchOptions options = Options();
  options.gap = 0;
  options.interrupted = [] { return true; };
  const absl::StatusOr<ComparedCombinations> all = SolveCombinations(2, make, options);
  ASSERT_TRUE(all.ok()) << all.status();
  EXPECT_TRUE(all->stopped());
  for (const Combination& row : all->rows) {
    EXPECT_EQ(row.result.plan.teacher_steps(), 24);
    EXPECT_LE(row.result.lower_bound, row.result.objective);
  }
}

TEST(Combinations, ErrorsAreHandedOn) {
  const auto make = [](int k) -> absl::StatusOr<Model> {
    if (k == 1) return absl::InvalidArgumentError("the second one");
    return ModelFor("cosine", 4, {0.2});
  };
  EXPECT_EQ(SolveCombinations(2, make, Options()).status().message(), "the second one");
}

}  // namespace
}  // namespace mergeplan
