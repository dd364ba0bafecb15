// Models of bare tables: what they refuse, what they compute, which theorems they meet. The search
// over them is compared with the enumeration in tests/planner/search/tables_test.cc.

#include "planner/operators/tables.h"

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "planner/operators/canonical.h"
#include "planner/operators/law.h"
#include "planner/operators/model.h"
#include "planner/operators/regimes.h"

namespace mergeplan {
namespace {

using ::testing::HasSubstr;

ModelTables Constant(int steps, int dimensions, double a, double gamma) {
  ModelTables tables;
  tables.steps = steps;
  tables.dimensions = dimensions;
  const auto size = static_cast<size_t>(steps) * static_cast<size_t>(dimensions);
  tables.a.assign(size, a);
  tables.gamma.assign(size, gamma);
  return tables;
}

std::string Fault(ModelTables tables) {
  return std::string(Model::FromTables(std::move(tables)).status().message());
}

TEST(ModelTables, FaultsNameLevelAndCoordinate) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double infinity = std::numeric_limits<double>::infinity();
  const auto with = [](auto change) {
    ModelTables tables = Constant(3, 2, 0.9, 0.5);
    tables.p.assign(6, 1);
    tables.q.assign(6, 0);
    tables.tau = {1, 1};
    tables.weights = {1, 1};
    change(tables);
    return Fault(tables);
  };
  EXPECT_EQ(with([](ModelTables&) {}), "");
  EXPECT_EQ(with([](ModelTables& t) { t.a[3] = -1; }),
            "A at level 2, coordinate 2 is -1, expected a finite number >= 0");
  EXPECT_THAT(with([&](ModelTables& t) { t.a[0] = nan; }),
              HasSubstr("A at level 1, coordinate 1 is nan"));
  EXPECT_EQ(with([](ModelTables& t) { t.gamma[4] = 1.5; }),
            "gamma at level 3, coordinate 1 is 1.5, expected 0..1");
  EXPECT_THAT(with([&](ModelTables& t) { t.gamma[4] = nan; }), HasSubstr("gamma at level 3"));
  EXPECT_THAT(with([](ModelTables& t) { t.p[5] = -0.1; }),
              HasSubstr("p at level 3, coordinate 2 is -0.1"));
  EXPECT_THAT(with([&](ModelTables& t) { t.q[5] = infinity; }),
              HasSubstr("q at level 3, coordinate 2 is inf"));
  EXPECT_THAT(with([](ModelTables& t) { t.tau[1] = -1; }), HasSubstr("tau of coordinate 2 is -1"));
  EXPECT_THAT(with([&](ModelTables& t) { t.weights[1] = infinity; }),
              HasSubstr("weight of coordinate 2 is inf"));
  EXPECT_THAT(with([](ModelTables& t) { t.a.pop_back(); }),
              HasSubstr("A has 5 numbers, expected 6"));
  EXPECT_THAT(with([](ModelTables& t) { t.p.pop_back(); }),
              HasSubstr("p has 5 numbers, expected 6"));
  EXPECT_THAT(with([](ModelTables& t) { t.tau.pop_back(); }),
              HasSubstr("tau has 1 numbers, expected 2, one per coordinate"));
  EXPECT_THAT(with([](ModelTables& t) { t.steps = 0; }), HasSubstr("tables of 0 levels"));
  EXPECT_THAT(with([](ModelTables& t) { t.dimensions = 0; }), HasSubstr("0 coordinates"));
}

// At T = 3 the nodes that merges start from are the steps 2 and 3 and the merge [2,3].
TEST(ModelTables, StartsMustNotBeNegative) {
  ModelTables tables = Constant(3, 1, 0.8, 0.5);
  tables.q = {0, -0.8, 0};  // the merge [1,2] starts as 0.8 - 0.8
  EXPECT_EQ(Fault(tables), "");
  tables.q = {0, -0.80001, 0};
  EXPECT_THAT(Fault(tables), HasSubstr("q at level 2, coordinate 1 is -0.80001: a merge whose "
                                       "noisiest child is [2,2] with the value 0.8 would start"));
  // The merge [2,3] has 0.5 * 0.64 + 0.5 * (0.8 + q); the least start is that plus q.
  tables.q = {0, 0, -0.48};
  EXPECT_EQ(Fault(tables), "");
  tables.q = {0, 0, -0.4801};
  EXPECT_THAT(Fault(tables), HasSubstr("noisiest child is [2,3]"));
  tables.q = {-5, 0, 0};  // no merge ends in level 1
  EXPECT_EQ(Fault(tables), "");
}

TEST(ModelTables, OverflowIsRefusedAndNothingElse) {
  EXPECT_THAT(Fault(Constant(100, 1, 10, 0.5)), HasSubstr("expected at most 1e+60"));
  EXPECT_EQ(Fault(Constant(50, 1, 10, 0.5)), "");
  // A thousand amplifying steps that start as the teacher, and starts that add up.
  ModelTables teacher = Constant(1000, 1, 1.05, 0.5);
  teacher.p.assign(1000, 0);
  teacher.q.assign(1000, 1.05);
  EXPECT_EQ(Fault(teacher), "");
  ModelTables growing = Constant(40, 1, 0.5, 1);
  growing.p.assign(40, 2);
  EXPECT_EQ(Fault(growing), "");  // 2^39, though a coarse bound says far more
  growing = Constant(300, 1, 0.9, 1);
  growing.p.assign(300, 2);
  EXPECT_THAT(Fault(growing), HasSubstr("coordinate 1 and below: a part of a plan could have"));
  ModelTables heavy = Constant(3, 2, 1, 0.5);
  heavy.weights = {1, 1e300};
  EXPECT_THAT(Fault(heavy), HasSubstr("coordinate 2 has values up to 1"));
}

TEST(ModelTables, ValuesAreThoseOfTheFormula) {
  ModelTables tables = Constant(3, 2, 0, 0);
  tables.a = {0.9, 1.1, 0.8, 1.2, 0.7, 1.3};
  tables.gamma = {0.3, 0.3, 0.5, 0.25, 0.125, 1};
  tables.p = {9, 9, 0.5, 2, 1.5, 0};
  tables.q = {9, 9, 0.1, 0.2, -0.05, 0.4};
  tables.weights = {2, 3};
  const Model model = *Model::FromTables(tables);
  EXPECT_FALSE(model.has_schedule());
  PlanBuilder builder(3);
  const Range inner = builder.Merge({PlanBuilder::Step(2), PlanBuilder::Step(3)});
  const Range top = builder.Merge({PlanBuilder::Step(1), inner});
  const Plan plan = *builder.Finish({top});
  const double x0 = 0.875 * (0.8 * 0.7) + 0.125 * (1.5 * 0.7 - 0.05);
  const double y0 = 0.875 * (0.9 * x0) + 0.125 * (1.5 * x0 - 0.05);
  const std::vector<double> value = model.Value(plan);
  EXPECT_DOUBLE_EQ(value[0], y0);
  EXPECT_DOUBLE_EQ(value[1], 0.4);
  const double tau0 = 0.9 * 0.8 * 0.7, tau1 = 1.1 * 1.2 * 1.3;  // where none is given
  EXPECT_DOUBLE_EQ(model.tau()[1], tau1);
  EXPECT_DOUBLE_EQ(model.Objective(plan),
                   2 * (tau0 - y0) * (tau0 - y0) + 3 * (tau1 - 0.4) * (tau1 - 0.4));
  EXPECT_EQ(model.Objective(value, Reference::kTeacher), model.Objective(value));
}

// Where q < 0 digits cancel: the tolerance must cover what is lost.
TEST(ModelTables, ToleranceKnowsOfCancellation) {
  ModelTables tables = Constant(2, 1, 1, 1);
  tables.a = {1, 1000};
  tables.q = {0, -999.999};
  const Model model = *Model::FromTables(tables);
  const double value = model.Value(*CanonicalPlan(Strategy::kVanilla, 2))[0];
  EXPECT_NEAR(value, 1e-3, 1e-12);
  EXPECT_GE(model.Rounding(0, value, 0), 1000 * 0x1p-53);
}

TEST(ModelTables, TheoremsThatNeedNoSchedule) {
  const auto proven = [](double a, bool teacher, double tau) -> std::string {
    ModelTables tables = Constant(6, 2, a, 0.4);
    tables.gamma[7] = 0.1;  // not monotone
    tables.tau = {tau, tau};
    if (teacher) {
      tables.p.assign(12, 0);
      tables.q.assign(12, a);
    }
    tables.p.resize(teacher ? 12 : 0);
    const auto best = ProvenBest(*Model::FromTables(tables));
    return best ? std::string(ToString(best->strategy)) : "none";
  };
  EXPECT_EQ(proven(0.9, false, 0.1), "boot");
  EXPECT_EQ(proven(0.9, false, 1), "consistency");
  EXPECT_EQ(proven(1.1, false, 2), "vanilla");
  EXPECT_EQ(proven(0.9, true, 0.1), "vanilla");
  EXPECT_EQ(proven(1.1, true, 2), "vanilla");
  EXPECT_EQ(proven(0.9, false, 0.75), "none");  // tau lies between
  ModelTables other = Constant(6, 1, 0.9, 0.4);
  other.p.assign(6, 1);
  other.p[5] = 0.99;
  other.tau = {0.1};
  EXPECT_FALSE(ProvenBest(*Model::FromTables(other)).has_value());
}

TEST(ModelTables, HaveNoBudget) {
  const Model model = *Model::FromTables(Constant(4, 1, 0.9, 0.4));
  EXPECT_FALSE(model.WithBudget(Budget::Flow(1)).ok());
  EXPECT_THAT(std::string(LawOfValue(model, *CanonicalPlan(Strategy::kBoot, 4)).status().message()),
              HasSubstr("the model is given by tables"));
}

TEST(ModelTablesDeathTest, WhatTheyDoNotHaveIsNotMadeUp) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  const Model model = *Model::FromTables(Constant(4, 1, 0.9, 0.4));
  EXPECT_DEATH((void)model.schedule(), "a model of tables was asked for its schedule");
  EXPECT_DEATH((void)model.tau(Reference::kSurrogate), "a model of tables was asked");
}

}  // namespace
}  // namespace mergeplan
