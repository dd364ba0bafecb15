// The pieces from which the levels of configs are made.

#include "planner/schedule/beta_tables.h"
#include "planner/schedule/sigmas.h"
#include "planner/schedule/spacing.h"
#include "tests/planner/schedule/test_util.h"

namespace mergeplan {
namespace {

using ::testing::ElementsAre;
using testing::ExpectNear;

TEST(Spacing, Examples) {
  EXPECT_THAT(LinspaceTimesteps(1000, 4, true), ElementsAre(999, 666, 333, 0));
  // 999/2 = 499.5 goes to the even neighbour.
  EXPECT_THAT(LinspaceTimesteps(1000, 3, true), ElementsAre(999, 500, 0));
  EXPECT_THAT(LinspaceTimesteps(1000, 3, false), ElementsAre(999, 499.5, 0));
  EXPECT_THAT(LinspaceTimesteps(1000, 1, true), ElementsAre(0));
  EXPECT_THAT(LeadingTimesteps(1000, 4, 1), ElementsAre(751, 501, 251, 1));
  EXPECT_THAT(LeadingTimesteps(1000, 3, 0), ElementsAre(666, 333, 0));
  EXPECT_THAT(TrailingTimesteps(1000, 4), ElementsAre(999, 749, 499, 249));
  EXPECT_THAT(TrailingTimesteps(1000, 3), ElementsAre(999, 666, 332));
  EXPECT_THAT(MultistepLinspaceTimesteps(1000, 4), ElementsAre(999, 749, 500, 250));
  EXPECT_THAT(MultistepLeadingTimesteps(1000, 4, 1), ElementsAre(801, 601, 401, 201));
  EXPECT_THAT(MultistepTrailingTimesteps(1000, 1000, 4), ElementsAre(999, 749, 499, 249));
}

TEST(Spacing, TrailingHasNumpysExtraPoint) {
  EXPECT_EQ(TrailingTimesteps(1000, 60).size(), 60u);
  EXPECT_EQ(TrailingTimesteps(1000, 61).size(), 62u);
  EXPECT_EQ(TrailingTimesteps(1000, 61).back(), -1);
}

TEST(Linspace, MeetsBothEnds) {
  const std::vector<double> line = SingleLinspace(1e-4, 0.02, 1000);
  EXPECT_EQ(line.front(), Single(1e-4));
  EXPECT_EQ(line.back(), Single(0.02));
  EXPECT_THAT(SingleLinspace(3, 5, 1), ElementsAre(3));
  EXPECT_THAT(DoubleLinspace(0, 1, 5), ElementsAre(0, 0.25, 0.5, 0.75, 1));
  EXPECT_THAT(DoubleLinspace(0, 8, 4, false), ElementsAre(0, 2, 4, 6));
}

TEST(Betas, UnknownNameIsAnError) {
  EXPECT_FALSE(MakeBetas("quadratic", 0.1, 0.2, 10, TablePrecision::kSingle).ok());
}

TEST(Betas, ZeroTerminalSnrIsExact) {
  for (const char* schedule :
       {"linear", "scaled_linear", "squaredcos_cap_v2", "sigmoid", "exp", "laplace"}) {
    const auto betas = MakeBetas(schedule, 1e-4, 0.02, 1000, TablePrecision::kSingle);
    ASSERT_TRUE(betas.ok()) << schedule;
    const std::vector<double> before = CumulativeAlphas(*betas, TablePrecision::kSingle);
    const std::vector<double> rescaled = RescaleBetasToZeroTerminalSnr(*betas);
    const std::vector<double> after = CumulativeAlphas(rescaled, TablePrecision::kSingle);
    EXPECT_EQ(after.back(), 0) << schedule;
    EXPECT_NEAR(after.front(), before.front(), 3e-7) << schedule;
    for (size_t i = 1; i < after.size(); ++i) ASSERT_LT(after[i], after[i - 1]) << schedule;
    // sqrt(a) is moved and scaled.
    const double last = std::sqrt(before.back());
    const double scale = std::sqrt(before.front()) / (std::sqrt(before.front()) - last);
    EXPECT_NEAR(std::sqrt(after[500]), (std::sqrt(before[500]) - last) * scale, 1e-6) << schedule;
  }
}

TEST(Sigmas, EndsAndShapes) {
  const std::vector<double> karras = KarrasSigmas(80, 0.002, 7, 3);
  EXPECT_NEAR(karras[0], 80, 1e-12);
  EXPECT_NEAR(karras[2], 0.002, 1e-16);
  EXPECT_THAT(ExponentialSigmas(100, 0.01, 3),
              ElementsAre(::testing::DoubleNear(100, 1e-12), ::testing::DoubleNear(1, 1e-14),
                          ::testing::DoubleNear(0.01, 1e-16)));
  EXPECT_EQ(KarrasSigmas(80, 0.002, 7, 1).size(), 1u);
  ExpectNear(BetaSigmas(3, 1, 3), {3, 2, 1}, 1e-14, "beta");
}

TEST(Sigmas, BetaQuantiles) {
  // scipy.stats.beta.ppf(p, 0.6, 0.6).
  for (const auto& [p, x] :
       {std::pair{0.001, 1.855873851745199e-05}, std::pair{0.1, 0.03958440558878085},
        std::pair{0.25, 0.17568037865269498}, std::pair{0.7, 0.7659829961247643},
        std::pair{0.999, 0.9999814412614826}}) {
    EXPECT_NEAR(SymmetricBetaQuantile(p, 0.6), x, 1e-11 * x) << p;
  }
  EXPECT_EQ(SymmetricBetaQuantile(0, 0.6), 0);
  EXPECT_EQ(SymmetricBetaQuantile(1, 0.6), 1);
  // The arcsine law has a closed form: sin^2(pi p / 2).
  EXPECT_NEAR(SymmetricBetaQuantile(0.3, 0.5), std::pow(std::sin(0.15 * M_PI), 2), 1e-13);
}

TEST(Sigmas, TableRoundTrip) {
  const std::vector<double> table = {1, 2, 4, 8};
  EXPECT_EQ(Interpolate(table, -1), 1);
  EXPECT_EQ(Interpolate(table, 1.5), 3);
  EXPECT_EQ(Interpolate(table, 7), 8);
  const std::vector<double> logs = {0, std::log(2.0), std::log(4.0), std::log(8.0)};
  EXPECT_NEAR(SigmaToTimestep(2 * std::sqrt(2.0), logs), 1.5, 1e-14);
  EXPECT_EQ(SigmaToTimestep(0, logs), 0);
  EXPECT_EQ(SigmaToTimestep(100, logs), 3);
  EXPECT_FALSE(SigmasOfTable(std::vector<double>{0.9, 0}).ok());
  EXPECT_FALSE(SigmasOfTable(std::vector<double>{1, 0.5}).ok());
}

}  // namespace
}  // namespace mergeplan
