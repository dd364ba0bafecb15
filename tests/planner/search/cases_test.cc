#include <gtest/gtest.h>

#include <cmath>

#include "planner/search/search.h"
#include "tests/oracle/cases.h"
#include "tests/oracle/problem.h"
#include "tests/planner/search/problems.h"

namespace mergeplan {
namespace {

// The three rules under "How to compare" in the README beside small_cases.json.
void CheckCase(const oracle::SmallCase& c, Space space) {
  SCOPED_TRACE(c.id + " " + std::string(ToString(space)));
  absl::StatusOr<Model> model = Model::Create(ToModelSpec(c.problem));
  ASSERT_TRUE(model.ok()) << model.status();
  SearchOptions options;
  options.student_steps = c.blocks;
  options.space = space;
  options.gap = 0;
  absl::StatusOr<SearchResult> result = Solve(*model, options);
  ASSERT_TRUE(result.ok()) << result.status();
  const oracle::SmallCase::Optimum& known = c.optimum(space);
  const oracle::Problem problem(c.problem);

  EXPECT_EQ(result->status, SearchStatus::kOptimal);
  EXPECT_EQ(result->plan.student_steps(), c.blocks);  // rule 1; the rest of it is what a Plan is
  if (space == Space::kBinary) {
    for (const Merge& merge : result->plan.merges()) {
      bool all_steps = true;
      for (int child : merge.children) all_steps = all_steps && result->plan.is_step(child);
      EXPECT_TRUE(merge.children.size() == 2 || all_steps) << result->plan.ToString();
    }
  }
  const double exact = oracle::ToDouble(problem.Objective(result->plan));
  EXPECT_LE(exact, known.objective * (1 + 1e-12) + 2 * known.tolerance);            // rule 2
  EXPECT_LE(std::abs(result->objective - exact), problem.Tolerance(result->plan));  // rule 3
  EXPECT_LE(result->lower_bound, known.objective * (1 + 1e-12));
  EXPECT_GE(result->lower_bound, 0);
  if (known.unique &&
      (!known.has_runner_up || known.runner_up - known.objective > 4 * known.tolerance)) {
    EXPECT_EQ(result->plan, known.plan)
        << result->plan.ToString() << " against " << known.plan.ToString();
  }
}

TEST(SmallCases, AllHoldInBothSpaces) {
  std::string missing;
  const std::vector<oracle::SmallCase> cases = oracle::LoadSmallCases(&missing);
  if (cases.empty()) GTEST_SKIP() << "not there: " << missing;
  EXPECT_EQ(cases.size(), 28u);
  for (const oracle::SmallCase& c : cases) {
    CheckCase(c, Space::kNary);
    CheckCase(c, Space::kBinary);
  }
}

}  // namespace
}  // namespace mergeplan
