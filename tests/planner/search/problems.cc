#include "tests/planner/search/problems.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numbers>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

namespace mergeplan {

double Uniform(std::mt19937_64& random, double low, double high) {
  return std::uniform_real_distribution<double>(low, high)(random);
}

int Integer(std::mt19937_64& random, int low, int high) {
  return std::uniform_int_distribution<int>(low, high)(random);
}

namespace {

double LogUniform(std::mt19937_64& random, double low, double high) {
  return std::exp(Uniform(random, std::log(low), std::log(high)));
}

}  // namespace

ModelSpec ToModelSpec(const oracle::ProblemSpec& problem) {
  ModelSpec spec;
  spec.schedule.spec = spec.schedule.name = "arrays";
  spec.schedule.alpha = problem.alpha;
  spec.schedule.sigma = problem.sigma;
  spec.schedule.level_scale.assign(problem.alpha.size(), 1.0);
  spec.variances = problem.lambda;
  spec.weights = problem.weights;
  spec.budget = Budget::Flow(problem.train_time);
  spec.init = problem.init;
  spec.reference = problem.reference;
  return spec;
}

void ExpectCertificateHolds(const SearchResult& result, int blocks, double gap, double optimum,
                            double found, double tolerance) {
  EXPECT_EQ(result.plan.student_steps(), blocks);
  EXPECT_LE(std::abs(result.objective - found), tolerance);
  EXPECT_LE(result.lower_bound, optimum * (1 + 1e-12)) << result.guarantee;
  EXPECT_LE(result.lower_bound, result.objective);
  if (result.status == SearchStatus::kOptimal) {
    EXPECT_LE(found, optimum * (1 + 1e-12) + 2 * tolerance) << result.plan.ToString();
  } else {
    EXPECT_EQ(result.status, SearchStatus::kWithinGap);
    EXPECT_LE(found * (1 - gap), optimum + 2 * tolerance);
  }
  if (gap == 0) {
    EXPECT_EQ(result.status, SearchStatus::kOptimal) << result.guarantee;
  }
}

RandomProblem MakeRandomProblem(std::mt19937_64& random, const RandomRange& range) {
  RandomProblem out;
  oracle::ProblemSpec& problem = out.oracle;
  const int T = Integer(random, range.least_steps, range.most_steps);
  const int kind = Integer(random, 0, 2);
  std::vector<double> angles;
  for (int t = 0; t <= T; ++t) {
    angles.push_back(kind == 1 && t > 0 && t < T
                         ? Uniform(random, 0.01, std::numbers::pi / 2 - 0.01)
                         : std::numbers::pi / 2 * t / T);
  }
  std::sort(angles.begin(), angles.end());
  for (int t = 0; t <= T; ++t) {
    if (kind == 2) {
      problem.alpha.push_back(1 - static_cast<double>(t) / T);
      problem.sigma.push_back(static_cast<double>(t) / T);
    } else {
      problem.alpha.push_back(t == T ? 0.0 : std::cos(angles[t]));
      problem.sigma.push_back(t == 0 ? 0.0 : std::sin(angles[t]));
    }
  }
  const int d = Integer(random, 1, range.most_dimensions);
  for (int k = 0; k < d; ++k) {
    const int style = Integer(random, 0, 9);
    problem.lambda.push_back(style == 0   ? 1.0
                             : style <= 4 ? Uniform(random, 0.5, 2.5)
                                          : LogUniform(random, 1e-4, 50));
  }
  if (Integer(random, 0, 2) == 0) {
    for (int k = 0; k < d; ++k)
      problem.weights.push_back(Integer(random, 0, 9) == 0 ? 0.0 : LogUniform(random, 0.1, 10));
  }
  problem.train_time = LogUniform(random, 0.05, 20);
  problem.init = static_cast<Init>(Integer(random, 0, 3));
  problem.reference = static_cast<Reference>(Integer(random, 0, 2));
  out.blocks = Integer(random, 1, std::min(range.most_blocks, T));
  out.model = ToModelSpec(problem);

  const auto digits = [](std::string* s, double x) { absl::StrAppendFormat(s, "%.17g", x); };
  const char* kinds[] = {"cosine", "random", "flow"};
  out.text = absl::StrCat(
      kinds[kind], " T=", T, " N=", out.blocks, " s=", absl::StrFormat("%.17g", problem.train_time),
      " init=", std::string(ToString(problem.init)),
      " reference=", std::string(ToString(problem.reference)),
      " lambda=", absl::StrJoin(problem.lambda, ",", digits),
      " weights=", absl::StrJoin(problem.weights, ",", digits),
      kind == 1 ? absl::StrCat(" alpha=", absl::StrJoin(problem.alpha, ",", digits)) : "");
  return out;
}

}  // namespace mergeplan
