// What is known exactly is within the stated tolerance: sums over many dimensions, shrinkages that
// lose digits. The exact values were computed with 34 digits from the same float64 inputs.
#include <gtest/gtest.h>

#include <cmath>

#include "planner/operators/canonical.h"
#include "planner/search/search.h"

namespace mergeplan {
namespace {

Schedule Levels(std::vector<double> alpha, std::vector<double> sigma) {
  Schedule out;
  out.spec = out.name = "arrays";
  out.level_scale.assign(alpha.size(), 1.0);
  out.alpha = std::move(alpha);
  out.sigma = std::move(sigma);
  return out;
}

void ExpectCertified(const ModelSpec& spec, double exact) {
  const Model model = *Model::Create(spec);
  SearchOptions options;
  options.gap = 0;
  const SearchResult result = *Solve(model, options);
  EXPECT_LE(std::abs(result.objective - exact), result.tolerance) << exact;
  EXPECT_LE(result.lower_bound, exact);
  EXPECT_LT(result.tolerance, 1e-3 * exact);
}

TEST(Rounding, OfSumsOverManyDimensions) {
  for (int d : {1000, 20000, 200000}) {
    ModelSpec spec;
    spec.schedule = Levels({1, 0}, {0, 1});
    spec.variances.assign(d, 3.3);
    spec.budget = Budget::Flow(0.05);
    spec.reference = Reference::kData;
    ExpectCertified(spec, 3.3 * d);
  }
}

TEST(Rounding, OfStepSizesNearTheLimit) {
  const std::vector<double> sigma = {0, 0.062706636024020282, 0.27547774303641642};
  const std::pair<double, double> cases[] = {{1e-3, 5.1814600412679921e-08},
                                             {1e-6, 5.1814600398109442e-14},
                                             {1e-9, 5.1814576174610686e-20}};
  for (const auto& [below, exact] : cases) {
    ModelSpec spec;
    spec.schedule = Levels({1, 1, 1}, sigma);
    spec.variances = {1e-8};
    const double n = 1e-8 + sigma[2] * sigma[2];
    spec.budget = Budget::Sgd(0.5 * (1 - below) / n, 1);
    spec.reference = Reference::kTeacher;
    ExpectCertified(spec, exact);
  }
}

TEST(Rounding, OfLargeExponents) {
  ModelSpec spec;
  spec.schedule = CosineSchedule(2);
  spec.variances = {1e-300};
  spec.budget = Budget::Sgd(0.034178390381540164, 608);
  spec.reference = Reference::kTeacher;
  ExpectCertified(spec, 2.0254284973369032e-38);
}

// A budget that could not be shared out in float64 is as good as any other.
TEST(Rounding, HugeTimes) {
  ModelSpec spec;
  spec.schedule = CosineSchedule(4);
  spec.variances = {0.9, 1.5};
  spec.budget = Budget::Flow(1e308);
  const Model model = *Model::Create(spec);
  EXPECT_TRUE(model.WithBudget(model.budget().SharedOver(1, 3)).ok());
  for (const double time : {1e6, 1e290, 1e300, 1e308}) {
    spec.budget = Budget::Flow(time);
    const Model longer = *Model::Create(spec);
    const Plan plan = *CanonicalPlan(Strategy::kBoot, 4);
    EXPECT_TRUE(std::isfinite(longer.Tolerance(longer.Value(plan)))) << time;
    const auto found = Solve(longer, {});
    ASSERT_TRUE(found.ok()) << found.status();
    EXPECT_LE(found->lower_bound, found->objective) << time;
  }
}

}  // namespace
}  // namespace mergeplan
