// The step of one row, as a device's threads take it, against the processor's tiles: digit by
// digit.
#include "planner/mixture/row_step.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "planner/mixture/step.h"
#include "tests/planner/mixture/random_mixture.h"

namespace mergeplan {
namespace {

using ::mergeplan::mixture::Lane;
using ::mergeplan::testing::kKinds;
using ::mergeplan::testing::Normal;
using ::mergeplan::testing::RandomInt;
using ::mergeplan::testing::RandomMixtureSpec;
using ::mergeplan::testing::Uniform;

// By lanes of `rows` rows side by side.
std::vector<double> ByRows(const MixtureStep& step, const std::vector<double>& z) {
  const std::size_t d = step.dimensions(), rows = z.size() / d;
  const mixture::StepTables tables = step.tables();
  std::vector<double> in(z.size()), out(z.size(), 7), back(z.size());
  std::vector<double> scratch(rows * mixture::RowStepScratch(tables.K, d, tables.r), 8);
  for (std::size_t i = 0; i < z.size(); ++i) in[i % d * rows + i / d] = z[i];
  for (std::size_t b = 0; b < rows; ++b) {
    mixture::RowStep(tables, Lane{in.data() + b, rows}, Lane{out.data() + b, rows},
                     Lane{scratch.data() + b, rows});
  }
  for (std::size_t i = 0; i < z.size(); ++i) back[i] = out[i % d * rows + i / d];
  return back;
}

TEST(MixtureRowStep, HasTheDigitsOfTheTiles) {
  std::mt19937_64 rng(11);
  for (int trial = 0; trial < 150; ++trial) {
    const CovarianceKind kind = kKinds[trial % 3];
    const int K = RandomInt(rng, 1, 9), d = RandomInt(rng, 1, 7);
    const auto mixture = GaussianMixture::Create(
        RandomMixtureSpec(rng, kind, K, d, {.singular = trial % 5 == 0, .flat = trial % 2 == 0}));
    ASSERT_TRUE(mixture.ok()) << mixture.status();
    const double sigma = std::exp(Uniform(rng, std::log(1e-3), std::log(20)));
    const auto step =
        MixtureStep::Create(*mixture, {Uniform(rng, 0, 1), sigma}, {Uniform(rng, 0, 1), sigma / 2});
    ASSERT_TRUE(step.ok()) << step.status();
    const std::size_t rows = RandomInt(rng, 1, 20);
    std::vector<double> z(rows * d), scratch(step->scratch_size()), expected(z.size());
    for (double& x : z) x = 4 * Normal(rng);
    step->Apply(z.data(), rows, expected.data(), absl::MakeSpan(scratch));
    EXPECT_EQ(ByRows(*step, z), expected) << ToString(kind) << ", K = " << K << ", d = " << d;
  }
}

TEST(MixtureRowStep, RowsFarAwayOrNotANumberBecomeNaN) {
  std::mt19937_64 rng(12);
  for (const CovarianceKind kind : kKinds) {
    const auto mixture = GaussianMixture::Create(RandomMixtureSpec(rng, kind, 3, 2));
    const auto step = MixtureStep::Create(*mixture, {0.5, 0.5}, {1, 0});
    ASSERT_TRUE(step.ok());
    for (const double bad : {1e200, std::nan(""), HUGE_VAL}) {
      for (const double x : ByRows(*step, {bad, 1.0})) EXPECT_TRUE(std::isnan(x)) << bad;
    }
  }
}

}  // namespace
}  // namespace mergeplan
