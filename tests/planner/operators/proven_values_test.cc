// Attacks theorems 1 to 3 of planner/operators/THEOREMS.md, which are about the values of plans: on
// tables of any kind, on every named schedule, and by local search for a counterexample.

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "planner/operators/canonical.h"
#include "planner/operators/model.h"
#include "planner/operators/regimes.h"
#include "tests/oracle/enumerate.h"
#include "tests/oracle/problem.h"
#include "tests/planner/operators/test_util.h"

namespace mergeplan {
namespace {

using oracle::Problem;
using oracle::ToDouble;
using oracle::Wide;

// ---------------------------------------------------------------- the start `child`, any tables

// Steps and shrinkage of one dimension, entry 0 unused.
struct Tables {
  std::vector<double> a, gamma;
  int steps() const { return static_cast<int>(a.size()) - 1; }
};

double Phi(double gamma, double x) { return (1 - gamma) * x + gamma; }

struct Extremes {
  double least, largest;
};

// The least and the largest value of all n-ary plans with one block. A part of [i,j] is
// phi_{gamma_j}(forest on [i,m]) times a part of [m+1,j], and everything increases. O(T^3).
Extremes AllPlansOf(const Tables& x) {
  const int T = x.steps();
  const std::vector<std::vector<Extremes>> none(T + 2, std::vector<Extremes>(T + 2));
  auto part = none, forest = none;
  for (int length = 1; length <= T; ++length) {
    for (int i = 1, j = length; j <= T; ++i, ++j) {
      Extremes best = length == 1 ? Extremes{x.a[i], x.a[i]} : Extremes{INFINITY, -INFINITY};
      for (int m = i; m < j; ++m) {
        best.least =
            std::min(best.least, Phi(x.gamma[j], forest[i][m].least) * part[m + 1][j].least);
        best.largest =
            std::max(best.largest, Phi(x.gamma[j], forest[i][m].largest) * part[m + 1][j].largest);
      }
      part[i][j] = best;
      for (int m = i; m < j; ++m) {
        best.least = std::min(best.least, forest[i][m].least * part[m + 1][j].least);
        best.largest = std::max(best.largest, forest[i][m].largest * part[m + 1][j].largest);
      }
      forest[i][j] = best;
    }
  }
  return part[1][T];
}

double Boot(const Tables& x) {
  double value = x.a.back();
  for (int t = 1; t < x.steps(); ++t) value *= Phi(x.gamma.back(), x.a[t]);
  return value;
}

double Consistency(const Tables& x) {
  double value = x.a[1];
  for (int t = 2; t <= x.steps(); ++t) value = x.a[t] * Phi(x.gamma[t], value);
  return value;
}

double Vanilla(const Tables& x) {
  double product = 1;
  for (int t = 1; t < x.steps(); ++t) product *= x.a[t];
  return x.a.back() * Phi(x.gamma.back(), product);
}

double Rounding(const Tables& x, double value) { return 16.0 * x.steps() * 0x1p-53 * value; }

// Numbers in [0,1] that come close to both ends, and reach them.
double Fraction(std::mt19937_64& rng) {
  switch (RandomInt(rng, 0, 5)) {
    case 0:
      return 0;
    case 1:
      return 1;
    case 2:
      return LogUniform(rng, 1e-9, 1);
    case 3:
      return 1 - LogUniform(rng, 1e-9, 1);
    default:
      return Uniform(rng, 0, 1);
  }
}

TEST(ProvenChild, TheProgramOfTheseTestsEqualsTheEnumeration) {
  std::mt19937_64 rng(1);
  for (int trial = 0; trial < 40; ++trial) {
    const int T = RandomInt(rng, 1, 6);
    const Problem problem = OracleProblem(RandomFlow(rng, T), {LogUniform(rng, 0.05, 20)},
                                          LogUniform(rng, 0.05, 5), Init::kChild);
    Tables x{{0}, {0}};
    for (int t = 1; t <= T; ++t) {
      x.a.push_back(ToDouble(problem.A(t, 0)));
      x.gamma.push_back(ToDouble(problem.Gamma(t, 0)));
    }
    const Extremes range = AllPlansOf(x);
    const oracle::ValueRange expected = RangeOfValues(problem, 1, Space::kNary);
    EXPECT_NEAR(range.least, ToDouble(expected.least[0]), Rounding(x, range.least));
    EXPECT_NEAR(range.largest, ToDouble(expected.largest[0]), Rounding(x, range.largest));
    const auto value = [&](Strategy s) {
      return ToDouble(problem.Value(CanonicalPlan(s, T).value())[0]);
    };
    EXPECT_NEAR(Boot(x), value(Strategy::kBoot), Rounding(x, Boot(x)));
    EXPECT_NEAR(Consistency(x), value(Strategy::kConsistency), Rounding(x, Consistency(x)));
    EXPECT_NEAR(Vanilla(x), value(Strategy::kVanilla), Rounding(x, Vanilla(x)));
  }
}

// Theorems 2 and 3 on tables that no schedule makes: shrinkage in any order, steps at both ends.
TEST(ProvenChild, AnyTables) {
  std::mt19937_64 rng(2);
  for (int trial = 0; trial < 20000; ++trial) {
    const int T = trial % 100 == 0 ? 24 : RandomInt(rng, 2, 9);
    Tables low{{0}, {0}}, high{{0}, {0}};
    for (int t = 1; t <= T; ++t) {
      low.a.push_back(t == T ? LogUniform(rng, 1e-3, 1e3) : Fraction(rng));
      high.a.push_back(t == T ? LogUniform(rng, 1e-3, 1e3) : 1 / std::max(1e-3, Fraction(rng)));
      low.gamma.push_back(Fraction(rng));
    }
    high.gamma = low.gamma;
    const Extremes range = AllPlansOf(low);
    EXPECT_LE(Boot(low), range.least + Rounding(low, range.least)) << trial;
    EXPECT_GE(Consistency(low), range.largest - Rounding(low, range.largest)) << trial;
    EXPECT_LE(range.largest, low.a.back() + Rounding(low, low.a.back()));
    const double largest = AllPlansOf(high).largest;
    EXPECT_GE(Vanilla(high), largest - Rounding(high, largest)) << trial;
  }
}

// The three scalar regimes on every named schedule, with their ends.
TEST(ProvenChild, ScalarRegimesOnAGrid) {
  std::mt19937_64 rng(3);
  std::map<Strategy, int> seen;
  for (const char* name : {"cosine", "ddpm-linear", "ddpm-scaled-linear", "ddpm-cosine", "sigmoid",
                           "flow", "flow:shift=3", "edm", "random"}) {
    for (int T : {2, 3, 5, 8, 16, 64}) {
      const Schedule schedule =
          std::string(name) == "random" ? RandomPreserving(rng, T) : LoadSchedule(name, T).value();
      ASSERT_TRUE(schedule.variance_preserving()) << name;
      const double scale = schedule.data_scale * schedule.data_scale;
      const Lambda0Range range = RangeOfLambda0(schedule);
      ASSERT_GT(range.least, 1) << name << " " << T;
      std::vector<double> lambda = {1e-4, 0.03, 0.4, 0.95, 1 - 1e-9, 1};
      for (double part : {1e-6, 0.01, 0.3, 0.9, 1 - 1e-6})
        lambda.push_back(1 + (range.least - 1) * part);
      for (double factor : {1 + 1e-9, 1.001, 1.3, 4.0, 100.0})
        lambda.push_back(range.largest * factor);
      for (double s : {0.01, 0.1, 0.4, 1.6, 6.4, 20.0}) {
        ModelSpec spec;
        spec.schedule = schedule;
        spec.budget = Budget::Flow(s);
        for (double l : lambda) spec.variances.push_back(l * scale);
        const Model model = Model::Create(spec).value();
        for (int k = 0; k < model.dimensions(); ++k) {
          SCOPED_TRACE(std::string(name) + " T " + std::to_string(T) + " s " + std::to_string(s) +
                       " lambda " + std::to_string(lambda[k]));
          Tables x{{0}, {0}};
          for (int t = 1; t <= T; ++t) {
            x.a.push_back(model.A(t)[k]);
            x.gamma.push_back(model.gamma(t)[k]);
          }
          const Extremes all = AllPlansOf(x);
          const double tau = model.tau()[k];
          const std::optional<Strategy> best = BestScalarStrategy(RegimeOf(lambda[k], range));
          ASSERT_TRUE(best.has_value());
          ++seen[*best];
          if (*best == Strategy::kBoot) {
            EXPECT_NEAR(Boot(x), all.least, Rounding(x, all.least));
            EXPECT_GE(all.least, tau - Rounding(x, tau));
          } else {
            const double value = *best == Strategy::kVanilla ? Vanilla(x) : Consistency(x);
            EXPECT_NEAR(value, all.largest, Rounding(x, value));
            EXPECT_LE(all.largest, tau + Rounding(x, tau));
          }
        }
      }
    }
  }
  EXPECT_EQ(seen[Strategy::kBoot], 9 * 6 * 6 * 6);
  EXPECT_EQ(seen[Strategy::kConsistency], 9 * 6 * 6 * 5);
  EXPECT_EQ(seen[Strategy::kVanilla], 9 * 6 * 6 * 5);
}

// ---------------------------------------------------------------- the start `child-jump`

// One dimension as the proof of theorem 1 sees it: level t has alpha/sigma = ratio[t], step t the
// coefficient h[t] and the shrinkage gamma[t] (entry 0 of both unused). No term is negative, so
// every w has nearly all digits of Wide.
struct Descent {
  std::vector<Wide> ratio, h, gamma;

  int steps() const { return static_cast<int>(ratio.size()) - 1; }
  // The w of two neighbours' product.
  Wide Join(int i, int m, int j, Wide u, Wide v) const {
    const Wide left = ratio[i - 1] - ratio[m], right = ratio[m] - ratio[j];
    return (u * left + v * right + u * v * left * right) / (left + right);
  }
  // Of the product of all steps of [i,j].
  Wide Teacher(int i, int j) const {
    Wide w = h[j];
    for (int t = j - 1; t >= i; --t) w = Join(t, t, j, h[t], w);
    return w;
  }
  // Of every part of [i,j], BOOT first.
  std::vector<Wide> Parts(int i, int j) const {
    if (i == j) return {h[i]};
    std::vector<Wide> out;
    for (int m = i; m < j; ++m) {
      for (const Wide forest : Forests(i, m)) {
        for (const Wide last : Parts(m + 1, j))
          out.push_back((1 - gamma[j]) * Join(i, m, j, forest, last) + gamma[j] * last);
      }
    }
    return out;
  }
  std::vector<Wide> Forests(int i, int j) const {
    std::vector<Wide> out = Parts(i, j);
    for (int m = i; m < j; ++m) {
      for (const Wide first : Parts(i, m)) {
        for (const Wide rest : Forests(m + 1, j)) out.push_back(Join(i, m, j, first, rest));
      }
    }
    return out;
  }
  // The best of the other plans over BOOT, less one: > 0 is a counterexample.
  double BestOtherOverBoot() const {
    const std::vector<Wide> all = Parts(1, steps());
    const Wide best = *std::max_element(all.begin() + 1, all.end());
    return all[0] > 0 ? ToDouble((best - all[0]) / all[0]) : ToDouble(best);
  }
};

// A problem of theorem 1 from 2T+2 free numbers: [0] log lambda, [1..T] logs of the steps of
// alpha/sigma, [T+1] log of alpha_T/sigma_T (below -12: zero), [T+1+t] logit of gamma_t (beyond
// +-12: 0 or 1). The sizes of sigma_t play no part.
Descent FreeDescent(const std::vector<double>& x) {
  const int T = static_cast<int>(x.size() - 2) / 2;
  Descent out;
  out.ratio.resize(T + 1);
  out.h.resize(T + 1);
  out.gamma.resize(T + 1);
  const Wide lambda = std::exp(x[0]);
  out.ratio[T] = x[T + 1] < -12 ? 0 : std::exp(x[T + 1]);
  for (int t = T; t >= 1; --t) {
    out.ratio[t - 1] = out.ratio[t] + Wide(std::exp(x[t]));
    out.h[t] = lambda * out.ratio[t] / (1 + lambda * out.ratio[t] * out.ratio[t]);
    const double logit = x[T + 1 + t];
    out.gamma[t] = logit < -12 ? 0 : logit > 12 ? 1 : 1 / (1 + std::exp(-logit));
  }
  return out;
}

TEST(ProvenChildJump, TheDescentIsTheModel) {
  std::mt19937_64 rng(4);
  for (int trial = 0; trial < 100; ++trial) {
    const int T = RandomInt(rng, 2, 6);
    std::vector<double> x(2 * T + 2);
    for (double& v : x) v = Uniform(rng, -2, 2);
    Descent descent = FreeDescent(x);
    oracle::ProblemSpec spec;
    spec.init = Init::kChildJump;
    spec.lambda = {std::exp(x[0])};
    for (int t = 0; t <= T; ++t) {
      spec.sigma.push_back(LogUniform(rng, 0.3, 3));
      spec.alpha.push_back(ToDouble(descent.ratio[t]) * spec.sigma[t]);
      descent.ratio[t] = Wide(spec.alpha[t]) / spec.sigma[t];
      if (t > 0) spec.gamma.push_back({ToDouble(descent.gamma[t])});
    }
    for (int t = 1; t <= T; ++t) {
      const Wide r = descent.ratio[t], l = spec.lambda[0];
      descent.h[t] = l * r / (1 + l * r * r);
    }
    const Problem problem(spec);
    const std::vector<Wide> w = descent.Parts(1, T);
    const auto value = [&](Wide of) {
      return Wide(spec.sigma[0]) / spec.sigma[T] * (1 + of * (descent.ratio[0] - descent.ratio[T]));
    };
    const oracle::ValueRange range = RangeOfValues(problem, 1, Space::kNary);
    const auto [least, largest] = std::minmax_element(w.begin(), w.end());
    EXPECT_NEAR(ToDouble(value(*least) / range.least[0] - 1), 0, 1e-28);
    EXPECT_NEAR(ToDouble(value(*largest) / range.largest[0] - 1), 0, 1e-28);
    const Wide boot = problem.Value(CanonicalPlan(Strategy::kBoot, T).value())[0];
    EXPECT_NEAR(ToDouble(value(w[0]) / boot - 1), 0, 1e-28);
  }
}

TEST(ProvenChildJump, LocalSearchFindsNoCounterexample) {
  std::mt19937_64 rng(5);
  std::normal_distribution<double> normal;
  for (int start = 0; start < 300; ++start) {
    const int T = start % 50 == 0 ? 6 : 3 + start % 3;
    std::vector<double> best(2 * T + 2);
    for (double& v : best) v = 6 * normal(rng);
    double largest = FreeDescent(best).BestOtherOverBoot(), step = 1;
    for (int trial = 0; trial < 100; ++trial) {
      std::vector<double> next = best;
      for (double& v : next) {
        if (RandomInt(rng, 0, 2) == 0) v = std::clamp(v + step * normal(rng), -30.0, 30.0);
      }
      const double found = FreeDescent(next).BestOtherOverBoot();
      ASSERT_LE(found, 1e-31) << "start " << start << " trial " << trial;
      if (found >= largest) {
        largest = found;
        best = next;
        step *= 1.2;
      } else {
        step = std::max(1e-3, step * 0.95);
      }
    }
  }
}

// BOOT alone is best where it trains and something is to be learnt. Where it does not train, or
// without signal, all plans are the same.
TEST(ProvenChildJump, Uniqueness) {
  std::mt19937_64 rng(6);
  for (int trial = 0; trial < 200; ++trial) {
    const int T = RandomInt(rng, 3, 5);
    std::vector<double> x(2 * T + 2);
    for (double& v : x) v = Uniform(rng, -2, 2);
    EXPECT_LT(FreeDescent(x).BestOtherOverBoot(), -1e-12);
    x.back() = 13;  // gamma_T = 1
    EXPECT_LE(std::abs(FreeDescent(x).BestOtherOverBoot()), 1e-31);
    x.back() = -13;  // gamma_T = 0
    EXPECT_LE(FreeDescent(x).BestOtherOverBoot(), 1e-31);
  }
  const Problem no_signal = OracleProblem(CosineSchedule(4), {0}, 1, Init::kChildJump);
  const oracle::ValueRange range = RangeOfValues(no_signal, 1, Space::kNary);
  EXPECT_LE(ToDouble(range.largest[0] - range.least[0]), 1e-25);
}

// The remark on other x0 coefficients: where h_t r_t <= 1 and the teacher's products rise.
TEST(ProvenChildJump, OtherCoefficients) {
  std::mt19937_64 rng(7);
  int inside = 0, beaten_outside = 0;
  for (int trial = 0; trial < 6000; ++trial) {
    const int T = RandomInt(rng, 3, 5);
    Descent x;
    x.ratio.resize(T + 1);
    x.h.resize(T + 1);
    x.gamma.resize(T + 1);
    x.ratio[T] = trial % 3 == 0 ? 0 : LogUniform(rng, 1e-2, 10);
    for (int t = T; t >= 1; --t) {
      x.ratio[t - 1] = x.ratio[t] + Wide(LogUniform(rng, 1e-2, 10));
      x.h[t] = x.ratio[t] > 0 ? Uniform(rng, 0, 1) / x.ratio[t] : Wide(0);
      x.gamma[t] = Fraction(rng);
    }
    bool rising = true;
    for (int j = 2; j <= T; ++j) {
      for (int i = j; i >= 2; --i) rising &= x.Teacher(i - 1, j) >= x.Teacher(i, j);
    }
    const bool boot_is_best = x.BestOtherOverBoot() <= 1e-31;
    if (rising) {
      ++inside;
      EXPECT_TRUE(boot_is_best) << trial;
    } else {
      beaten_outside += !boot_is_best;
    }
  }
  EXPECT_GT(inside, 300);
  EXPECT_GT(beaten_outside, 300);  // the condition is not idle
}

}  // namespace
}  // namespace mergeplan
