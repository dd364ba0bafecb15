#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "planner/operators/canonical.h"
#include "planner/operators/regimes.h"
#include "planner/search/search.h"
#include "tests/oracle/enumerate.h"
#include "tests/planner/search/problems.h"

namespace mergeplan {
namespace {

using oracle::ToDouble;
using oracle::Wide;

// A problem of tables as the library takes it and as the oracle does.
struct TablesProblem {
  ModelTables tables;
  oracle::ProblemSpec oracle;
  std::string text;
};

// Coordinates start as `child` or `teacher` or in any way; q is negative in some where `negative`,
// which makes starts below 0 in some of them.
TablesProblem MakeTables(std::mt19937_64& random, int least_steps, int most_steps, int most,
                         bool negative) {
  TablesProblem out;
  ModelTables& tables = out.tables;
  const int T = tables.steps = Integer(random, least_steps, most_steps);
  const int d = tables.dimensions = Integer(random, 1, most);
  for (auto* table : {&tables.a, &tables.gamma, &tables.p, &tables.q}) table->resize(T * d);
  for (int k = 0; k < d; ++k) {
    const int steps = Integer(random, 0, 3), start = Integer(random, 0, 4);
    double product = 1;
    for (int t = 1; t <= T; ++t) {
      const size_t at = tables.at(t, k);
      const double a = std::exp(Uniform(random, steps == 1 ? 0.0 : -0.8, steps == 0 ? 0.0 : 0.8));
      const int odd = Integer(random, 0, 19);
      tables.a[at] = odd == 0 ? 1 : odd == 1 && steps != 1 ? 0 : a;
      product *= tables.a[at];
      const int kind = Integer(random, 0, 9);
      tables.gamma[at] = kind == 0 ? 0 : kind == 1 ? 1 : Uniform(random, 0, 1);
      tables.p[at] = start == 0 ? 1 : start == 1 ? 0 : Uniform(random, 0, 2);
      tables.q[at] = start == 0   ? 0
                     : start == 1 ? tables.a[at]
                     : negative   ? Uniform(random, -0.25, 0.25)
                                  : Uniform(random, 0, 1);
      if (start == 2) tables.q[at] = 0;
    }
    if (k > 0 && Integer(random, 0, 7) == 0) {  // the same as the one before
      for (int t = 1; t <= T; ++t) {
        for (auto* table : {&tables.a, &tables.gamma, &tables.p, &tables.q}) {
          (*table)[tables.at(t, k)] = (*table)[tables.at(t, k - 1)];
        }
      }
      tables.tau.push_back(tables.tau.back());
    } else {
      const int kind = Integer(random, 0, 4);
      tables.tau.push_back(product * (kind == 0   ? 1
                                      : kind == 1 ? 0
                                      : kind == 2 ? 4
                                                  : Uniform(random, 0.6, 1.6)));
    }
  }
  if (Integer(random, 0, 1) == 0) {
    for (int k = 0; k < d; ++k)
      tables.weights.push_back(Integer(random, 0, 9) == 0 ? 0 : Uniform(random, 0.1, 5));
  }
  const auto rows = [&](const std::vector<double>& table) {
    std::vector<std::vector<double>> levels;
    for (int t = 0; t < T; ++t)
      levels.emplace_back(table.begin() + t * d, table.begin() + (t + 1) * d);
    return levels;
  };
  out.oracle.weights = tables.weights;
  out.oracle.tables = {rows(tables.a), rows(tables.gamma), rows(tables.p), rows(tables.q),
                       tables.tau};
  const auto list = [](const std::vector<double>& numbers) {
    return absl::StrJoin(
        numbers, ",", [](std::string* text, double x) { absl::StrAppendFormat(text, "%.17g", x); });
  };
  out.text = absl::StrCat("T=", T, " d=", d, " A=", list(tables.a), " gamma=", list(tables.gamma),
                          " p=", list(tables.p), " q=", list(tables.q), " tau=", list(tables.tau),
                          " weights=", list(tables.weights));
  return out;
}

// The least start of any merge, by enumeration.
double LeastStart(const oracle::Problem& problem) {
  double least = 1;
  for (const Plan& plan : oracle::AllPlans(problem.steps(), 1, Space::kNary)) {
    const auto values = problem.NodeValues(plan);
    for (const Merge& merge : plan.merges()) {
      for (int k = 0; k < problem.dimensions(); ++k) {
        const auto& tables = problem.spec().tables;
        least = std::min(least,
                         ToDouble(tables.p[merge.last - 1][k] * values[merge.children.back()][k] +
                                  tables.q[merge.last - 1][k]));
      }
    }
  }
  return least;
}

struct Counts {
  int solved = 0, refused = 0, proven = 0;
};

Counts Compare(int count, std::uint64_t seed, int least_steps, int most_steps, int most_dimensions,
               bool negative, double gap) {
  std::mt19937_64 random(seed);
  Counts counts;
  for (int trial = 0; trial < count; ++trial) {
    const TablesProblem problem =
        MakeTables(random, least_steps, most_steps, most_dimensions, negative);
    SCOPED_TRACE(problem.text);
    const int blocks = Integer(random, 1, std::min(3, problem.tables.steps));
    const oracle::Problem exact(problem.oracle);
    const absl::StatusOr<Model> model = Model::FromTables(problem.tables);
    const double least = LeastStart(exact);
    if (std::abs(least) > 1e-14) {
      EXPECT_EQ(model.ok(), least > 0) << model.status() << " least start " << least;
    }
    if (!model.ok()) {
      ++counts.refused;
      continue;
    }
    for (Space space : {Space::kNary, Space::kBinary}) {
      SearchOptions options;
      options.student_steps = blocks;
      options.space = space;
      options.gap = gap;
      options.threads = 1 + trial % 2;
      const absl::StatusOr<SearchResult> result = Solve(*model, options);
      EXPECT_TRUE(result.ok()) << result.status();
      if (!result.ok()) return counts;
      const oracle::Solution best = oracle::Solve(exact, blocks, space);
      const double optimum = ToDouble(best.objective);
      const double found = ToDouble(exact.Objective(result->plan));
      const double tolerance = std::max(model->Tolerance(model->Value(best.plan)),
                                        model->Tolerance(model->Value(result->plan)));
      SCOPED_TRACE(best.plan.ToString());
      ExpectCertificateHolds(*result, blocks, gap, optimum, found, tolerance);
      if (const auto proven = ProvenBest(*model, 1); proven && blocks == 1) {
        ++counts.proven;
        const double claimed =
            ToDouble(exact.Objective(*CanonicalPlan(proven->strategy, problem.tables.steps)));
        EXPECT_LE(claimed, optimum * (1 + 1e-12) + 2 * tolerance);
      }
      ++counts.solved;
      if (testing::Test::HasFailure()) return counts;
    }
  }
  return counts;
}

TEST(Tables, ThousandsAgainstEnumeration) {
  const Counts counts = Compare(2500, 41, 1, 6, 4, false, 0);
  EXPECT_EQ(counts.refused, 0);
  EXPECT_GT(counts.proven, 100);
}

TEST(Tables, NegativeStartOffsets) {
  const Counts counts = Compare(2000, 42, 2, 6, 3, true, 0);
  EXPECT_GT(counts.refused, 200);
  EXPECT_GT(counts.solved, 800);
}

TEST(Tables, LongerOnes) { Compare(60, 43, 7, 7, 4, false, 0); }
TEST(Tables, WithAGap) { Compare(100, 44, 5, 7, 4, false, 0.2); }

// The tables of a model with a schedule are the same problem.
TEST(Tables, OfAModelGiveItsPlans) {
  for (const Init init : {Init::kChild, Init::kTeacher}) {
    ModelSpec spec;
    spec.schedule = CosineSchedule(24);
    spec.variances = {0.3, 0.9, 1.2, 2.5, 0.9};
    spec.weights = {1, 2, 1, 0.5, 1};
    spec.budget = Budget::Flow(0.8);
    spec.init = init;
    const Model model = *Model::Create(spec);
    ModelTables tables;
    tables.steps = 24;
    tables.dimensions = 5;
    for (int t = 1; t <= 24; ++t) {
      for (int k = 0; k < 5; ++k) {
        tables.a.push_back(model.A(t)[k]);
        tables.gamma.push_back(model.gamma(t)[k]);
        if (init == Init::kTeacher) {
          tables.p.push_back(0);
          tables.q.push_back(model.A(t)[k]);
        }
      }
    }
    tables.tau.assign(model.tau().begin(), model.tau().end());
    tables.weights = spec.weights;
    const Model same = *Model::FromTables(tables);
    for (int blocks : {1, 3}) {
      SearchOptions options;
      options.gap = 0;
      options.student_steps = blocks;
      const SearchResult one = *Solve(model, options), other = *Solve(same, options);
      EXPECT_EQ(one.status, SearchStatus::kOptimal);
      EXPECT_EQ(other.status, SearchStatus::kOptimal);
      EXPECT_NEAR(one.objective, other.objective, 1e-12 * one.objective);
      EXPECT_NEAR(model.Objective(other.plan), one.objective, 1e-12 * one.objective);
    }
  }
}

// Many coordinates: no grouping of variances, which there are none of, and a certificate all the
// same.
TEST(Tables, ManyCoordinates) {
  std::mt19937_64 random(45);
  ModelTables tables;
  tables.steps = 24;
  tables.dimensions = 300;
  for (int t = 1; t <= tables.steps; ++t) {
    for (int k = 0; k < tables.dimensions; ++k) {
      tables.a.push_back(Uniform(random, 0.9, 1.05));
      tables.gamma.push_back(Uniform(random, 0.2, 0.6));
      tables.q.push_back(Uniform(random, 0, 0.05));
    }
  }
  const Model model = *Model::FromTables(tables);
  SearchOptions options;
  options.gap = 0.05;
  options.time_limit_seconds = 5;
  const SearchResult result = *Solve(model, options);
  EXPECT_EQ(result.groups, 0);
  EXPECT_GT(result.lower_bound, 0);
  EXPECT_LE(result.lower_bound, result.objective);
  for (Strategy strategy : kStrategies) {
    EXPECT_LE(result.objective, model.Objective(*CanonicalPlan(strategy, tables.steps)));
  }
}

}  // namespace
}  // namespace mergeplan
