#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "planner/search/search.h"
#include "tests/oracle/algorithm1.h"
#include "tests/oracle/algorithm1_float64.h"
#include "tests/planner/search/problems.h"

namespace mergeplan {
namespace {

// The plain version that benchmarks are held against is Algorithm 1, and the search over its space
// finds the same.
TEST(PlainAlgorithm1, IsAlgorithm1) {
  std::mt19937_64 random(51);
  for (int trial = 0; trial < 40; ++trial) {
    oracle::ProblemSpec spec;
    const Schedule schedule = CosineSchedule(std::uniform_int_distribution<int>(2, 8)(random));
    spec.alpha = schedule.alpha;
    spec.sigma = schedule.sigma;
    spec.train_time = std::uniform_real_distribution<double>(0.3, 7)(random);
    for (int k = 0; k < 2; ++k)
      spec.lambda.push_back(std::uniform_real_distribution<double>(0.5, 2)(random));
    const Model model = *Model::Create(ToModelSpec(spec));
    const oracle::Problem problem(spec);
    const oracle::Algorithm1Result exact = oracle::Algorithm1(problem);
    const oracle::PlainAlgorithm1Result plain = oracle::PlainAlgorithm1(model);
    const double objective = oracle::ToDouble(exact.objective);
    EXPECT_NEAR(plain.objective, objective, 2 * problem.Tolerance(exact.plan));
    SearchOptions options;
    options.gap = 0;
    options.space = Space::kBinary;
    const SearchResult result = *Solve(model, options);
    EXPECT_NEAR(result.objective, objective, 2 * problem.Tolerance(exact.plan));
  }
}

}  // namespace
}  // namespace mergeplan
