// The law of runs with SGD and the test of runs against it, both against plain simulation that
// draws every update of every merge and follows the definition.

#include "planner/operators/law.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <random>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "planner/operators/canonical.h"
#include "tests/oracle/enumerate.h"
#include "tests/oracle/problem.h"
#include "tests/planner/operators/test_util.h"

namespace mergeplan {
namespace {

using ::testing::HasSubstr;

// One run: for every merge and dimension its own chi-squared factors.
class Simulator {
 public:
  Simulator(const Schedule& schedule, std::vector<double> lambda, Budget budget, Init init,
            std::uint64_t seed)
      : budget_(budget),
        problem_(OracleProblem(schedule, std::move(lambda), 1, init)),
        rng_(seed),
        chi_(budget.batch / 2.0, 2.0 / budget.batch) {}

  std::vector<double> Run(const Plan& plan) {
    const int T = problem_.steps(), d = problem_.dimensions();
    std::vector<double> value(d, 1.0), nodes(static_cast<size_t>(T + plan.size()));
    for (int k = 0; k < d; ++k) {
      for (int t = 1; t <= T; ++t) nodes[t - 1] = oracle::ToDouble(problem_.A(t, k));
      for (int m = 0; m < plan.size(); ++m) {
        const Merge& merge = plan.merges()[m];
        const double n = oracle::ToDouble(problem_.N(merge.last, k));
        double gamma = 1, product = 1;
        for (std::int64_t u = 0; u < budget_.iterations; ++u) {
          gamma *= 1 - 2 * budget_.lr * budget_.feature_norm * n * chi_(rng_);
        }
        for (int child : merge.children) product *= nodes[child];
        nodes[T + m] = product + gamma * (Start(plan, merge, nodes, k) - product);
      }
      for (int block : plan.blocks()) value[k] *= nodes[block];
    }
    return value;
  }

 private:
  double Start(const Plan& plan, const Merge& merge, const std::vector<double>& nodes,
               int k) const {
    const auto& alpha = problem_.spec().alpha;
    const auto& sigma = problem_.spec().sigma;
    const int i = merge.first, j = merge.last, m = plan.range(merge.children.back()).first - 1;
    const double last = nodes[merge.children.back()];
    switch (problem_.spec().init) {
      case Init::kChild:
        return last;
      case Init::kTeacher:
        return oracle::ToDouble(problem_.A(j, k));
      case Init::kJump:
        return oracle::ToDouble(problem_.Jump(i, j, k));
      case Init::kChildJump:
        break;
    }
    const auto determinant = [&](int a, int b) {
      return alpha[a] * sigma[b] - alpha[b] * sigma[a];
    };
    return (determinant(i - 1, j) * last - determinant(i - 1, m)) / determinant(m, j);
  }

  Budget budget_;
  oracle::Problem problem_;
  std::mt19937_64 rng_;
  std::gamma_distribution<double> chi_;
};

// A single merge of two steps: V = P + Gamma (A_2 - P), and the raw moments of Gamma are powers of
// those of 1 - g y.
TEST(Law, MomentsOfOneMerge) {
  for (const auto& [lr, updates, batch] : {std::tuple(0.005, 320, 64), std::tuple(0.1, 7, 3),
                                           std::tuple(0.3, 2, 1), std::tuple(1e-4, 50, 16)}) {
    const Budget budget = Budget::Sgd(lr, updates, batch);
    const Model model =
        Model::Create(SpecOf(CosineSchedule(2), {1.4}, budget, Init::kChild)).value();
    const Plan plan = CanonicalPlan(Strategy::kVanilla, 2).value();
    const ValueLaw law = LawOfValue(model, plan).value();
    const double g = 2 * lr * model.n(2)[0], b = batch;
    // Raw moments of chi^2_B / B.
    const double y[5] = {1, 1, (b + 2) / b, (b + 2) * (b + 4) / (b * b),
                         (b + 2) * (b + 4) * (b + 6) / (b * b * b)};
    long double raw[5] = {1, 0, 0, 0, 0};
    const long double binomial[5][5] = {{1}, {1, 1}, {1, 2, 1}, {1, 3, 3, 1}, {1, 4, 6, 4, 1}};
    for (int p = 1; p <= 4; ++p) {
      long double one = 0;
      for (int q = 0; q <= p; ++q) {
        one += binomial[p][q] * std::pow(static_cast<long double>(-g), q) * y[q];
      }
      raw[p] = std::pow(one, static_cast<long double>(updates));
    }
    const long double mean = raw[1];
    const long double c2 = raw[2] - mean * mean;
    const long double c3 = raw[3] - 3 * mean * raw[2] + 2 * mean * mean * mean;
    const long double c4 =
        raw[4] - 4 * mean * raw[3] + 6 * mean * mean * raw[2] - 3 * mean * mean * mean * mean;
    const double product = model.A(1)[0] * model.A(2)[0], distance = model.A(2)[0] - product;
    const auto sign = distance < 0 ? -1.0 : 1.0;
    EXPECT_NEAR(law.mean[0], static_cast<double>(product + mean * distance), 1e-15);
    EXPECT_NEAR(law.variance[0] / static_cast<double>(c2 * distance * distance), 1, 1e-9);
    EXPECT_NEAR(law.skewness[0], sign * static_cast<double>(c3 / std::pow(c2, 1.5L)), 1e-4);
    EXPECT_NEAR(law.excess_kurtosis[0], static_cast<double>(c4 / (c2 * c2) - 3), 2e-3);
    const double error = model.tau()[0] - law.mean[0];
    EXPECT_NEAR(ExpectedObjective(model, law, Reference::kSurrogate),
                error * error + law.variance[0], 1e-15);
  }
}

// One sample and large steps: the mean vanishes while the second moment explodes. The square of
// the mean is no number any more long before the spread is, which must not go with it.
TEST(Law, HugeSpreadAroundAVanishingMean) {
  double before = 0;
  for (const std::int64_t updates : {100, 200, 225, 300, 1000}) {
    const Budget budget = Budget::Sgd(0.4, updates, 1);
    const Model model =
        Model::Create(SpecOf(CosineSchedule(4), {0.9}, budget, Init::kChild)).value();
    const Plan plan = CanonicalPlan(Strategy::kVanilla, 4).value();
    const ValueLaw law = LawOfValue(model, plan).value();
    // Var V = E Gamma^2 (start - target)^2, n = 1 at the noisiest level.
    const double product = model.A(1)[0] * model.A(2)[0] * model.A(3)[0] * model.A(4)[0];
    const double distance = model.A(4)[0] - product;
    const double second = std::pow(0.2 * 0.2 + 2 * 0.8 * 0.8, static_cast<double>(updates));
    EXPECT_NEAR(law.variance[0] / (second * distance * distance), 1, 1e-9) << updates;
    EXPECT_GT(law.variance[0], before);
    before = law.variance[0];
    EXPECT_FALSE(std::isnan(law.skewness[0])) << updates;
    EXPECT_FALSE(std::isnan(law.excess_kurtosis[0])) << updates;
  }
}

// The trees of five steps with every start, one and two blocks: mean, variance, skewness and
// kurtosis of 40,000 plain runs, within five standard errors.
TEST(Law, MomentsOfTreesBySimulation) {
  std::mt19937_64 rng(51);
  const Schedule schedule = CosineSchedule(5);
  const Budget budget = Budget::Sgd(0.08, 6, 12);
  const int runs = 40000;
  for (Init init : kInits) {
    for (int blocks : {1, 2}) {
      const std::vector<Plan>& plans = oracle::AllPlans(5, blocks, Space::kNary);
      const Plan& plan = plans[RandomInt(rng, 0, static_cast<int>(plans.size()) - 1)];
      const double lambda = LogUniform(rng, 0.1, 4);
      SCOPED_TRACE(std::string(ToString(init)) + " " + plan.ToString());
      const Model model = Model::Create(SpecOf(schedule, {lambda}, budget, init)).value();
      const ValueLaw law = LawOfValue(model, plan).value();
      EXPECT_EQ(law.mean, model.Value(plan));
      Simulator simulator(schedule, {lambda}, budget, init, 52);
      double power[9] = {};  // sums of standardised powers
      for (int r = 0; r < runs; ++r) {
        const double z = (simulator.Run(plan)[0] - law.mean[0]) / std::sqrt(law.variance[0]);
        double x = 1;
        for (double& p : power) {
          p += x / runs;
          x *= z;
        }
      }
      const auto expect = [&](int p, double want) {
        const double standard_error = std::sqrt((power[2 * p] - power[p] * power[p]) / runs);
        EXPECT_NEAR(power[p], want, 5 * standard_error) << "moment " << p;
      };
      expect(1, 0);
      expect(2, 1);
      expect(3, law.skewness[0]);
      expect(4, law.excess_kurtosis[0] + 3);
    }
  }
}

// Largest distance between two empirical distributions, times the root that makes it comparable.
double KolmogorovSmirnov(std::vector<double> a, std::vector<double> b) {
  std::sort(a.begin(), a.end());
  std::sort(b.begin(), b.end());
  double largest = 0;
  for (size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    const double x = std::min(a[i], b[j]);
    while (i < a.size() && a[i] <= x) ++i;
    while (j < b.size() && b[j] <= x) ++j;
    largest = std::max(
        largest, std::abs(static_cast<double>(i) / a.size() - static_cast<double>(j) / b.size()));
  }
  return largest * std::sqrt(1.0 * a.size() * b.size() / (a.size() + b.size()));
}

// The draws have the law of plain runs, where log Gamma is interpolated (small steps) and where
// updates are multiplied out (large steps, small batches, 1 - g y of either sign).
TEST(LawTest, DrawsAreLikePlainRuns) {
  const Schedule schedule = CosineSchedule(5);
  const std::vector<double> lambda = {6, 0.3};
  for (const Budget& budget :
       {Budget::Sgd(0.005, 40, 64), Budget::Sgd(0.07, 5, 4), Budget::Sgd(0.06, 3, 1)}) {
    for (Init init : kInits) {
      const Model model = Model::Create(SpecOf(schedule, lambda, budget, init)).value();
      const Plan plan = CanonicalPlan(Strategy::kProgressive, 5).value();
      LawTestOptions options;
      options.seed = 7;
      const LawTest test = LawTest::Create(model, plan.size(), options).value();
      Simulator simulator(schedule, lambda, budget, init, 53);
      std::vector<std::vector<double>> plain(2);
      for (int r = 0; r < 10000; ++r) {
        const std::vector<double> value = simulator.Run(plan);
        for (int k = 0; k < 2; ++k) plain[k].push_back(value[k]);
      }
      for (int k = 0; k < 2; ++k) {
        // Exceeded with a probability of 2 exp(-2 * 2.2^2) = 1e-4.
        EXPECT_LT(KolmogorovSmirnov(test.Draws(plan, k).value(), plain[k]), 2.2)
            << budget.ToString() << ", start " << ToString(init);
      }
    }
  }
}

// The mean and variance of the draws are the exact ones, up to their own noise. Finer than the
// comparison above: an interpolation that is off by a hundredth of the spread shows.
TEST(LawTest, DrawsHaveTheExactMoments) {
  std::vector<double> lambda(12);
  for (int k = 0; k < 12; ++k) lambda[k] = 30 * std::pow(1e-3 / 30, k / 11.0);
  const Model model =
      Model::Create(SpecOf(CosineSchedule(8), lambda, Budget::Sgd(0.005, 320, 64), Init::kChild))
          .value();
  const Plan plan = CanonicalPlan(Strategy::kBoot, 8).value();
  LawTestOptions options;
  options.draws = 20000;
  const LawTest test = LawTest::Create(model, plan.size(), options).value();
  const ValueLaw law = LawOfValue(model, plan).value();
  for (int k = 0; k < model.dimensions(); ++k) {
    const std::vector<double> draws = test.Draws(plan, k).value();
    ASSERT_EQ(draws.size(), 20000u);
    const double sd = std::sqrt(law.variance[k]);
    if (sd < 1e-12 * law.mean[k]) continue;
    double mean = 0, square = 0;
    for (double v : draws) {
      mean += (v - law.mean[k]) / sd / 20000;
      square += std::pow((v - law.mean[k]) / sd, 2) / 20000;
    }
    EXPECT_NEAR(mean, 0, 5 / std::sqrt(20000)) << lambda[k];
    EXPECT_NEAR(square, 1, 5 * std::sqrt(2.0 / 20000)) << lambda[k];
  }
}

// The distribution of log Gamma = sum of log(1 - g y_u) by the saddle point approximation of
// Lugannani and Rice, whose relative error is about 1e-4 here; nothing is drawn.
class Saddle {
 public:
  Saddle(double g, int updates, int batch) : updates_(updates) {
    // Weights of y ~ chi^2_B / B on a fine grid, and x = log(1 - g y) there.
    const int cells = 20000;
    double total = 0;
    for (int i = 1; i < cells; ++i) {
      const double y = 4.0 * i / cells;
      const double half = batch / 2.0;
      weight_.push_back(std::exp((half - 1) * std::log(y) - half * (y - 1)));
      x_.push_back(std::log(1 - g * y));
      total += weight_.back();
    }
    for (double& w : weight_) w /= total;
  }

  // The value whose tilt is `theta`, and the probability of going beyond it (below for theta < 0).
  std::pair<double, double> At(double theta) const {
    double m0 = 0, m1 = 0, m2 = 0;
    for (size_t i = 0; i < x_.size(); ++i) {
      const double w = weight_[i] * std::exp(theta * x_[i]);
      m0 += w;
      m1 += w * x_[i];
      m2 += w * x_[i] * x_[i];
    }
    const double mean = m1 / m0, variance = m2 / m0 - mean * mean;
    const double value = updates_ * mean;
    const double w = std::sqrt(2 * (theta * value - updates_ * std::log(m0)));
    const double u = std::abs(theta) * std::sqrt(updates_ * variance);
    const double density = std::exp(-w * w / 2) / std::sqrt(2 * std::numbers::pi);
    return {value, 0.5 * std::erfc(w / std::numbers::sqrt2) + density * (1 / u - 1 / w)};
  }

 private:
  int updates_;
  std::vector<double> weight_, x_;
};

// Far tails of one merge against the saddle point: for updates like those of the quickstart within
// ten per cent down to 3e-8; where log Gamma spreads by 0.24 and one tail is much lighter than the
// other, within a third or so down to 1e-6.
TEST(LawTest, FarTailsOfOneMerge) {
  struct Setting {
    Budget budget;
    std::vector<double> tilts;  // in units of the spread of log Gamma
    double tolerance;           // of log p
  };
  for (const Setting& setting :
       {Setting{Budget::Sgd(0.005, 160, 64), {-5.2, -4.7, -3.7, 3.7, 4.7, 5.2}, 0.1},
        Setting{Budget::Sgd(0.03, 60, 32), {-4.0, -3.7, -3.0, 3.7, 4.7, 5.2}, 0.35}}) {
    const Budget& budget = setting.budget;
    const Model model =
        Model::Create(SpecOf(CosineSchedule(2), {1.0}, budget, Init::kChild)).value();
    const Plan plan = CanonicalPlan(Strategy::kVanilla, 2).value();
    LawTestOptions options;
    options.draws = 200000;
    options.rounding = 0;
    const LawTest test = LawTest::Create(model, 1, options).value();
    const double g = budget.StepSize(model.n(2)[0]);
    const Saddle saddle(g, static_cast<int>(budget.iterations), budget.batch);
    const double product = model.A(1)[0] * model.A(2)[0];
    const double spread =
        g * std::sqrt(2.0 * static_cast<double>(budget.iterations) / budget.batch);
    std::vector<double> achieved, want;
    for (double tilt : setting.tilts) {
      const auto [log_gamma, tail] = saddle.At(tilt / spread);
      achieved.push_back(product + std::exp(log_gamma) * (model.A(2)[0] - product));
      want.push_back(2 * tail);
    }
    const std::vector<double> p = test.PValues(plan, achieved).value();
    for (size_t i = 0; i < p.size(); ++i) {
      EXPECT_NEAR(std::log(p[i] / want[i]), 0, setting.tolerance) << p[i] << " for " << want[i];
    }
    EXPECT_LT(*std::min_element(want.begin(), want.end()), 2e-6);
  }
}

// p-values of fresh plain runs are uniform, also at 1e-3 and 1e-4.
TEST(LawTest, PValuesOfFreshRunsAreUniform) {
  const Schedule schedule = CosineSchedule(4);
  const Budget budget = Budget::Sgd(0.06, 8, 16);
  for (Init init : {Init::kChild, Init::kChildJump}) {
    const Model model = Model::Create(SpecOf(schedule, {0.4}, budget, init)).value();
    const Plan plan = CanonicalPlan(Strategy::kBoot, 4).value();
    LawTestOptions options;
    options.draws = 100000;
    const LawTest test = LawTest::Create(model, plan.size(), options).value();
    Simulator simulator(schedule, {0.4}, budget, init, 54);
    const int runs = 60000;
    std::vector<double> achieved(runs);
    for (double& value : achieved) value = simulator.Run(plan)[0];
    const std::vector<double> p =
        test.PValues(plan, absl::MakeConstSpan(achieved).first(6000)).value();
    for (double level : {0.5, 0.1, 0.02}) {
      const auto count = std::count_if(p.begin(), p.end(), [&](double x) { return x <= level; });
      const double sd = std::sqrt(6000 * level * (1 - level));
      // The draws have noise of their own, a quarter of this.
      EXPECT_NEAR(count, 6000 * level, 5 * sd) << level;
    }
    // The extreme runs: every p-value below 1e-2 comes from the outer ones.
    std::sort(achieved.begin(), achieved.end());
    std::vector<double> outer(achieved.begin(), achieved.begin() + 600);
    outer.insert(outer.end(), achieved.end() - 600, achieved.end());
    const std::vector<double> q = test.PValues(plan, outer).value();
    for (double level : {1e-2, 1e-3, 1e-4}) {
      const auto count = std::count_if(q.begin(), q.end(), [&](double x) { return x <= level; });
      EXPECT_NEAR(count, runs * level, 4.5 * std::sqrt(runs * level) + 0.05 * runs * level)
          << level;
    }
  }
}

// The quickstart's setting, a quarter of its dimensions: right runs pass, and a rate that is wrong
// by five per cent is rejected for every strategy.
TEST(LawTest, WrongRateIsRejected) {
  const int T = 32, d = 196;
  std::vector<double> lambda(d);
  for (int k = 0; k < d; ++k) lambda[k] = 79 * std::pow(1e-3 / 79, k / (d - 1.0));
  const Schedule schedule = CosineSchedule(T);
  const Budget budget = Budget::Sgd(0.005, 320, 64);
  const Model model = Model::Create(SpecOf(schedule, lambda, budget, Init::kChild)).value();
  const LawTest test = LawTest::Create(model, T - 1).value();
  Simulator right(schedule, lambda, budget, Init::kChild, 55);
  Simulator wrong(schedule, lambda, Budget::Sgd(0.005 * 1.05, 320, 64), Init::kChild, 56);
  constexpr int kRuns = 3;
  std::vector<std::vector<double>> runs(kRuns);  // all strategies together, as the quickstart does
  for (Strategy strategy : kStrategies) {
    const Plan plan = CanonicalPlan(strategy, T).value();
    std::vector<double> achieved;
    for (int r = 0; r <= kRuns; ++r) {
      const std::vector<double> value = r < kRuns ? right.Run(plan) : wrong.Run(plan);
      achieved.insert(achieved.end(), value.begin(), value.end());
    }
    const std::vector<double> p = test.PValues(plan, achieved).value();
    for (int r = 0; r < kRuns; ++r) {
      runs[r].insert(runs[r].end(), p.begin() + r * d, p.begin() + (r + 1) * d);
    }
    const std::vector<bool> rejected = HolmReject(absl::MakeConstSpan(p).subspan(kRuns * d), 0.01);
    EXPECT_GE(std::count(rejected.begin(), rejected.end(), true), 5) << ToString(strategy);
  }
  for (const std::vector<double>& p : runs) {
    const std::vector<bool> rejected = HolmReject(p, 0.01);
    EXPECT_EQ(std::count(rejected.begin(), rejected.end(), true), 0)
        << "smallest p " << *std::min_element(p.begin(), p.end());
  }
}

TEST(LawTest, RoundingWidensAndBadValuesFail) {
  // So many updates that nothing is left to chance: the value is P up to rounding.
  const Model model = Model::Create(SpecOf(CosineSchedule(4), {2.0, 0.5},
                                           Budget::Sgd(0.05, 20000, 64), Init::kChild))
                          .value();
  const Plan plan = CanonicalPlan(Strategy::kVanilla, 4).value();
  const LawTest test = LawTest::Create(model, 1).value();
  const std::vector<double> exact = model.Value(plan);
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const std::vector<double> achieved = {exact[0],
                                        exact[1],
                                        exact[0] * (1 + 5e-13),
                                        exact[1] * (1 - 5e-13),
                                        exact[0] * (1 + 5e-12),
                                        exact[1] * (1 - 5e-12),
                                        nan,
                                        -std::numeric_limits<double>::infinity()};
  EXPECT_THAT(test.PValues(plan, achieved).value(), testing::ElementsAre(1, 1, 1, 1, 0, 0, 0, 0));
  LawTestOptions coarse;
  coarse.rounding = kRoundingFloat32;
  const LawTest single = LawTest::Create(model, 1, coarse).value();
  EXPECT_THAT(single.PValues(plan, {exact[0] * (1 + 1e-4), exact[1] * (1 - 1e-2)}).value(),
              testing::ElementsAre(1, 0));
}

TEST(LawTest, TheThreadsDoNotMatterTheSeedDoes) {
  const Model model = Model::Create(SpecOf(CosineSchedule(4), {2.0, 0.5}, Budget::Sgd(0.01, 20, 8),
                                           Init::kChildJump))
                          .value();
  const Plan plan = CanonicalPlan(Strategy::kConsistency, 4).value();
  LawTestOptions options;
  options.threads = 1;
  const std::vector<double> one = LawTest::Create(model, 3, options).value().Draws(plan, 1).value();
  options.threads = 3;
  EXPECT_EQ(LawTest::Create(model, 3, options).value().Draws(plan, 1).value(), one);
  // More merges than needed change nothing either.
  EXPECT_EQ(LawTest::Create(model, 9, options).value().Draws(plan, 1).value(), one);
  options.seed = 2;
  EXPECT_NE(LawTest::Create(model, 3, options).value().Draws(plan, 1).value(), one);
}

TEST(LawTest, MisuseIsNamed) {
  const Model flow =
      Model::Create(SpecOf(CosineSchedule(4), {2.0}, Budget::Flow(1), Init::kChild)).value();
  const Plan plan = CanonicalPlan(Strategy::kBoot, 4).value();
  EXPECT_THAT(std::string(LawOfValue(flow, plan).status().message()), HasSubstr("SGD budget"));
  EXPECT_THAT(std::string(LawTest::Create(flow, 3).status().message()), HasSubstr("SGD budget"));
  const Model model = flow.WithBudget(Budget::Sgd(0.01, 20, 8)).value();
  const LawTest test = LawTest::Create(model, 2).value();
  EXPECT_THAT(std::string(test.PValues(plan, {1.0}).status().message()),
              HasSubstr("4 teacher steps and 3 merges"));
  const Plan vanilla = CanonicalPlan(Strategy::kVanilla, 4).value();
  EXPECT_TRUE(test.PValues(vanilla, {1.0}).ok());
  EXPECT_FALSE(test.PValues(vanilla, {}).ok());
  EXPECT_FALSE(test.PValues(CanonicalPlan(Strategy::kVanilla, 5).value(), {1.0}).ok());
  EXPECT_FALSE(LawOfValue(model, CanonicalPlan(Strategy::kVanilla, 5).value()).ok());
  EXPECT_FALSE(test.Draws(vanilla, 1).ok());
  LawTestOptions few;
  few.draws = 10;
  EXPECT_FALSE(LawTest::Create(model, 2, few).ok());
}

TEST(Holm, StepsDown) {
  EXPECT_THAT(HolmReject({0.04, 0.001, 0.012, 0.9}, 0.05),
              testing::ElementsAre(false, true, true, false));  // 0.0125, 0.0167, 0.025
  EXPECT_THAT(HolmReject({0.013, 0.013, 0.013, 0.013}, 0.05), testing::Each(false));
  EXPECT_THAT(HolmReject({0.0}, 0.01), testing::ElementsAre(true));
  EXPECT_TRUE(HolmReject({}, 0.01).empty());
}

}  // namespace
}  // namespace mergeplan
