// The fast forward and backward loops against the plain student of tests/oracle.
#include "adapters/experts/network.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "adapters/experts/kernel.h"
#include "adapters/experts/level.h"
#include "tests/oracle/experts_net.h"

namespace mergeplan::experts {
namespace {

using ::testing::HasSubstr;

struct Case {
  NetworkShape shape;
  double time = 0;
  std::vector<double> parameters, z, target;
  oracle::ExpertsNet plain;

  Case(NetworkShape shape_in, std::size_t rows, unsigned seed) : shape(shape_in) {
    std::mt19937 random(seed);
    std::normal_distribution<double> normal;
    time = std::uniform_real_distribution<double>(0, 1)(random);
    parameters = InitialParameters(shape, seed);
    for (double& p : parameters) p = static_cast<float>(2 * p);  // the same number as float
    for (std::size_t i = 0; i < rows * shape.dimensions; ++i) {
      z.push_back(static_cast<float>(2 * normal(random)));
      target.push_back(static_cast<float>(normal(random)));
    }
    plain.d = shape.dimensions;
    plain.E = shape.experts;
    plain.H = shape.hidden;
    plain.M = shape.embedding;
    plain.parameters.assign(parameters.begin(), parameters.end());
  }
  std::size_t rows() const { return z.size() / shape.dimensions; }
};

const NetworkShape kShapes[] = {{2, 8, 64, 64}, {2, 8, 5, 4},  {1, 3, 7, 2},   {3, 9, 16, 6},
                                {5, 17, 9, 8},  {2, 1, 1, 2},  {7, 8, 33, 10}, {4, 24, 12, 64},
                                {2, 5, 64, 64}, {16, 4, 20, 4}};
const std::size_t kRows[] = {1, 15, 16, 17, 40, 128, 129, 300};

template <typename T>
std::vector<double> Forward(const Case& c) {
  LevelNetwork<T> level(c.shape, c.time);
  const std::vector<T> parameters(c.parameters.begin(), c.parameters.end());
  level.Prepare(parameters.data());
  AlignedVector<T> scratch(KernelScratch(c.shape.dimensions, c.shape.experts, c.shape.hidden));
  std::vector<double> out = c.z;
  ForwardRows(level.tables(), out.data(), c.rows(), out.data(), scratch.data());
  return out;
}

struct Derivative {
  double loss = 0;
  std::vector<double> gradient;
};

template <typename T>
Derivative Backward(const Case& c) {
  LevelNetwork<T> level(c.shape, c.time);
  const std::vector<T> parameters(c.parameters.begin(), c.parameters.end());
  level.Prepare(parameters.data());
  const SumLayout at = SumLayout::Of(c.shape.dimensions, c.shape.experts, c.shape.hidden);
  AlignedVector<T> scratch(KernelScratch(c.shape.dimensions, c.shape.experts, c.shape.hidden));
  AlignedVector<T> lanes(at.count * kTile), sums(at.count);
  AccumulateRows(level.tables(), c.z.data(), c.target.data(), c.rows(), lanes.data(),
                 scratch.data());
  SumLanes(lanes.data(), at.count, sums.data());
  AlignedVector<T> gradient(c.parameters.size());
  level.AddGradient(parameters.data(), sums.data(), static_cast<T>(2.0 / c.rows()),
                    gradient.data());
  return {sums[at.loss] / static_cast<double>(c.rows()), {gradient.begin(), gradient.end()}};
}

double Largest(const std::vector<double>& values) {
  double largest = 0;
  for (const double v : values) largest = std::max(largest, std::abs(v));
  return largest;
}

// Runs `check` with every version of the loops that the processor has.
template <typename Check>
void WithEveryVersion(const Check& check) {
  for (int version = 0; version < KernelVersions(); ++version) {
    UseKernelVersion(version);
    SCOPED_TRACE(::testing::Message() << "version " << version);
    check();
  }
}

TEST(ExpertsForward, EqualsThePlainStudent) {
  unsigned seed = 1;
  for (const NetworkShape& shape : kShapes) {
    for (const std::size_t rows : kRows) {
      const Case c(shape, rows, ++seed);
      const std::size_t d = shape.dimensions;
      std::vector<long double> expected;
      for (std::size_t r = 0; r < rows; ++r) {
        const auto row = c.plain.Forward({c.z.begin() + r * d, c.z.begin() + (r + 1) * d}, c.time);
        expected.insert(expected.end(), row.begin(), row.end());
      }
      WithEveryVersion([&] {
        const std::vector<double> wide = Forward<double>(c), narrow = Forward<float>(c);
        const double size = 1 + Largest(wide);
        for (std::size_t i = 0; i < wide.size(); ++i) {
          const auto plain = static_cast<double>(expected[i]);
          ASSERT_NEAR(wide[i], plain, 1e-13 * size) << "d " << d << ", E " << shape.experts;
          ASSERT_NEAR(narrow[i], plain, 3e-6 * size) << "d " << d << ", E " << shape.experts;
        }
      });
    }
  }
}

TEST(ExpertsGradient, EqualsDifferences) {
  unsigned seed = 1;
  for (const NetworkShape& shape : kShapes) {
    for (const std::size_t rows : {std::size_t{1}, std::size_t{35}}) {
      Case c(shape, rows, ++seed);
      // Some parameters of each part.
      std::mt19937 random(seed);
      std::vector<int> which;
      const std::int64_t begins[] = {shape.gate_w1(),   shape.gate_b1(),   shape.gate_w2(),
                                     shape.gate_b2(),   shape.expert_w1(), shape.expert_b1(),
                                     shape.expert_w2(), shape.expert_b2(), shape.parameters()};
      for (int part = 0; part < 8; ++part) {
        std::uniform_int_distribution<int> pick(static_cast<int>(begins[part]),
                                                static_cast<int>(begins[part + 1] - 1));
        for (int i = 0; i < 5; ++i) which.push_back(pick(random));
      }
      const auto expected = c.plain.Gradient(c.z, c.target, c.time, which, 1e-7L);
      const auto loss = static_cast<double>(c.plain.Loss(c.z, c.target, c.time));
      WithEveryVersion([&] {
        const Derivative wide = Backward<double>(c), narrow = Backward<float>(c);
        ASSERT_NEAR(wide.loss, loss, 1e-12 * loss);
        ASSERT_NEAR(narrow.loss, loss, 1e-5 * loss);
        const double size = 1 + Largest(wide.gradient);
        for (std::size_t i = 0; i < which.size(); ++i) {
          const auto plain = static_cast<double>(expected[i]);
          // Differences of width 1e-7 in long double are good to about 1e-11.
          ASSERT_NEAR(wide.gradient[which[i]], plain, 1e-9 * size) << "parameter " << which[i];
          ASSERT_NEAR(narrow.gradient[which[i]], plain, 2e-5 * size) << "parameter " << which[i];
        }
      });
    }
  }
}

// Many rows go through several chunks; the gradient is linear in the rows.
TEST(ExpertsGradient, OfManyRowsIsTheMeanOfItsParts) {
  const Case all({2, 8, 64, 64}, 384, 3);
  const Derivative whole = Backward<double>(all);
  std::vector<double> sum(whole.gradient.size());
  for (std::size_t begin = 0; begin < 384; begin += 48) {
    Case part = all;
    part.z.assign(all.z.begin() + 2 * begin, all.z.begin() + 2 * (begin + 48));
    part.target.assign(all.target.begin() + 2 * begin, all.target.begin() + 2 * (begin + 48));
    const Derivative found = Backward<double>(part);
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += found.gradient[i] / 8;
  }
  for (std::size_t i = 0; i < sum.size(); ++i) {
    ASSERT_NEAR(whole.gradient[i], sum[i], 1e-12 * Largest(sum)) << i;
  }
}

TEST(ExpertsForward, ARowDoesNotDependOnTheRowsBesideIt) {
  const Case all({2, 8, 64, 64}, 300, 5);
  const std::vector<double> together = Forward<float>(all);
  for (const std::size_t row :
       {std::size_t{0}, std::size_t{1}, std::size_t{130}, std::size_t{299}}) {
    Case one = all;
    one.z = {all.z[2 * row], all.z[2 * row + 1]};
    EXPECT_EQ(Forward<float>(one), (std::vector<double>{together[2 * row], together[2 * row + 1]}));
  }
}

TEST(ExpertsForward, NotANumberPasses) {
  Case c({2, 8, 16, 4}, 3, 5);
  c.z[2] = std::numeric_limits<double>::quiet_NaN();
  const std::vector<double> out = Forward<float>(c);
  EXPECT_TRUE(std::isfinite(out[0]) && std::isfinite(out[1]));
  EXPECT_TRUE(std::isnan(out[2]) && std::isnan(out[3]));
  EXPECT_TRUE(std::isfinite(out[4]) && std::isfinite(out[5]));
  // Also from the weights, through the rectifier and the softmax.
  for (const std::int64_t at : {c.shape.gate_w1(), c.shape.expert_w1(), c.shape.expert_b2()}) {
    Case broken({2, 8, 16, 4}, 1, 5);
    broken.parameters[at] = std::numeric_limits<double>::quiet_NaN();
    EXPECT_TRUE(std::isnan(Forward<double>(broken)[0])) << at;
  }
}

TEST(ExpertsForward, FarLogitsStayFinite) {
  Case c({2, 8, 16, 4}, 20, 6);
  for (std::int64_t i = c.shape.gate_w1(); i < c.shape.expert_w1(); ++i) {
    c.parameters[i] *= 1e4;
    c.plain.parameters[i] = c.parameters[i];
  }
  const std::vector<double> found = Forward<double>(c);
  for (std::size_t r = 0; r < c.rows(); ++r) {
    const auto expected = c.plain.Forward({c.z[2 * r], c.z[2 * r + 1]}, c.time);
    EXPECT_NEAR(found[2 * r], static_cast<double>(expected[0]), 1e-6);
  }
}

TEST(ExpertsNetwork, HasThePapersSize) {
  const NetworkShape paper;
  EXPECT_EQ(paper.inputs(), 66);
  EXPECT_EQ(paper.outputs(), 48);
  EXPECT_EQ(paper.parameters(), (66 * 64 + 64) + (64 * 8 + 8) + (64 * 64 + 64) + (64 * 48 + 48));
}

TEST(ExpertsNetwork, StartsWithinTheBoundsOfEachLayer) {
  const NetworkShape shape;
  const std::vector<double> p = InitialParameters(shape, 3);
  EXPECT_EQ(p, InitialParameters(shape, 3));
  EXPECT_NE(p, InitialParameters(shape, 4));
  const struct {
    std::int64_t begin, end;
    double inputs;
  } layers[] = {{shape.gate_w1(), shape.gate_w2(), 66},
                {shape.gate_w2(), shape.expert_w1(), 64},
                {shape.expert_w1(), shape.expert_w2(), 64},
                {shape.expert_w2(), shape.parameters(), 64}};
  for (const auto& layer : layers) {
    const double bound = 1 / std::sqrt(layer.inputs);
    double sum = 0, squares = 0;
    for (std::int64_t i = layer.begin; i < layer.end; ++i) {
      ASSERT_LE(std::abs(p[i]), bound);
      sum += p[i] / bound;
      squares += p[i] * p[i] / (bound * bound);
    }
    const auto n = static_cast<double>(layer.end - layer.begin);
    // Uniform: mean 0 and mean square 1/3, deviations sqrt(1/3n) and sqrt(4/45n); five of them.
    EXPECT_NEAR(sum / n, 0, 5 * std::sqrt(1 / (3 * n)));
    EXPECT_NEAR(squares / n, 1.0 / 3, 5 * std::sqrt(4 / (45 * n)));
  }
}

TEST(ExpertsNetwork, AFoldedWrapperIsExact) {
  for (const NetworkShape& shape : kShapes) {
    Case c(shape, 20, 9);
    const std::vector<double> before = Forward<double>(c);
    FoldWrapper(shape, 3.5, -2.25, c.parameters);
    const std::vector<double> after = Forward<double>(c);
    for (std::size_t i = 0; i < before.size(); ++i) {
      EXPECT_NEAR(after[i], 3.5 * before[i] - 2.25 * c.z[i], 1e-12 * (1 + Largest(after)));
    }
  }
}

TEST(ExpertsNetwork, BadSizesAreNamed) {
  const auto message = [](NetworkShape shape) { return std::string(Validate(shape).message()); };
  EXPECT_TRUE(Validate(NetworkShape{}).ok());
  EXPECT_THAT(message({0, 8, 64, 64}), HasSubstr("the number of dimensions is 0"));
  EXPECT_THAT(message({2, 0, 64, 64}), HasSubstr("the number of experts is 0"));
  EXPECT_THAT(message({2, 8, -1, 64}), HasSubstr("the number of hidden units is -1"));
  EXPECT_THAT(message({2, 8, 64, 0}), HasSubstr("the size of the time embedding is 0"));
  EXPECT_THAT(message({2, 8, 64, 63}), HasSubstr("expected an even size"));
  EXPECT_THAT(message({4000, 4000, 64, 64}), HasSubstr("expected at most"));
}

}  // namespace
}  // namespace mergeplan::experts
