#include "adapters/experts/optimizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace mergeplan::experts {
namespace {

using ::testing::HasSubstr;

// Adam as its authors write it, with corrected moments, for one parameter.
struct PlainAdam {
  double p = 0, m = 0, v = 0;
  void Step(double g, int k, const OptimizerOptions& o) {
    m = o.beta1 * m + (1 - o.beta1) * g;
    v = o.beta2 * v + (1 - o.beta2) * g * g;
    const double m_hat = m / (1 - std::pow(o.beta1, k));
    const double v_hat = v / (1 - std::pow(o.beta2, k));
    p -= o.lr * m_hat / (std::sqrt(v_hat) + o.epsilon);
  }
};

template <typename T>
void ExpectAdam(double tolerance) {
  std::mt19937 random(7);
  std::normal_distribution<double> normal;
  for (const std::size_t n : {std::size_t{1}, std::size_t{31}, std::size_t{100}}) {
    OptimizerOptions options;
    options.lr = 0.01;
    AlignedVector<T> p(n), m(n), v(n), g(n);
    std::vector<PlainAdam> plain(n);
    for (int k = 1; k <= 200; ++k) {
      for (std::size_t i = 0; i < n; ++i) {
        g[i] = static_cast<T>(i == 0 ? 1e-6 : std::exp(normal(random)) - 1);
        plain[i].Step(g[i], k, options);
      }
      OptimizerStep(options, k, g, m, v, p);
    }
    for (std::size_t i = 0; i < n; ++i) EXPECT_NEAR(p[i], plain[i].p, tolerance) << i;
  }
}

TEST(ExpertsOptimizer, AdamEqualsTheFormula) {
  ExpectAdam<double>(1e-13);
  ExpectAdam<float>(2e-5);
}

TEST(ExpertsOptimizer, SgdEqualsTheFormula) {
  OptimizerOptions options;
  options.kind = OptimizerKind::kSgd;
  options.lr = 0.25;
  AlignedVector<double> p = {1, 2}, g = {4, -8}, none;
  OptimizerStep(options, 1, g, none, none, p);
  EXPECT_EQ(p, (AlignedVector<double>{0, 4}));
}

TEST(ExpertsOptimizer, BadNumbersAreNamed) {
  OptimizerOptions options;
  EXPECT_TRUE(Validate(options).ok());
  options.lr = 0;
  EXPECT_THAT(Validate(options).message(), HasSubstr("the learning rate is 0"));
  options.lr = std::numeric_limits<double>::infinity();
  EXPECT_THAT(Validate(options).message(), HasSubstr("the learning rate is inf"));
  options = {};
  options.beta1 = 1;
  EXPECT_THAT(Validate(options).message(), HasSubstr("beta1 is 1"));
  options = {};
  options.beta2 = -0.5;
  EXPECT_THAT(Validate(options).message(), HasSubstr("beta2 is -0.5"));
  options = {};
  options.epsilon = 0;
  EXPECT_THAT(Validate(options).message(), HasSubstr("epsilon is 0"));
  options.kind = OptimizerKind::kSgd;  // which has none
  EXPECT_TRUE(Validate(options).ok());
}

TEST(ExpertsOptimizer, WordsGoBothWays) {
  for (const OptimizerKind kind : {OptimizerKind::kAdam, OptimizerKind::kSgd}) {
    EXPECT_EQ(ParseOptimizer(ToString(kind)).value(), kind);
  }
  EXPECT_THAT(ParseOptimizer("adamw").status().message(), HasSubstr("'adamw'"));
}

}  // namespace
}  // namespace mergeplan::experts
