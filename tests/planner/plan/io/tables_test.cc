// Plans of bare tables in both forms, by hand, edited and with faults.

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "planner/data/npz.h"
#include "tests/planner/plan/io/documents.h"

namespace mergeplan {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

PlanDocument TablesDocument(int steps, int dimensions, bool starts) {
  ModelTables tables;
  tables.steps = steps;
  tables.dimensions = dimensions;
  for (int t = 1; t <= steps; ++t) {
    for (int k = 0; k < dimensions; ++k) {
      tables.a.push_back(0.9 + 0.2 / (t + k));
      tables.gamma.push_back(0.1 + 0.8 / (1.0 + t * t + k));
      if (!starts) continue;
      tables.p.push_back(1.0 / t);
      tables.q.push_back(k % 2 == 0 ? 0.3 : -0.01 / t);
    }
  }
  if (starts) tables.weights.assign(static_cast<size_t>(dimensions), 0.7);
  const absl::StatusOr<Model> model = Model::FromTables(std::move(tables));
  EXPECT_TRUE(model.ok()) << model.status();
  PlanDocument d;
  d.input = "shrinkage.npz";
  d.tables = model->tables();
  d.plan = *CanonicalPlan(Strategy::kBoot, steps);
  EXPECT_TRUE(ComputeFigures(*model, &d).ok());
  d.lower_bound = d.objective * 0.9995;
  d.status = "within_gap";
  d.guarantee = "no plan is better by more than 0.05 %";
  return d;
}

std::string DifferenceOfTables(const PlanDocument& a, const PlanDocument& b) {
  return (a.tables == b.tables ? "" : "tables ") + Difference(a, b);
}

PlanDocument Reread(const TempFolder& folder, const std::string& name, const PlanDocument& d) {
  const absl::Status written = WritePlan(d, folder.At(name));
  EXPECT_TRUE(written.ok()) << written;
  absl::StatusOr<PlanDocument> read = ReadPlan(folder.At(name));
  EXPECT_TRUE(read.ok()) << read.status();
  return read.ok() ? *std::move(read) : PlanDocument();
}

TEST(TablesFiles, AreReadBackToTheLastBit) {
  const TempFolder folder;
  for (const bool starts : {false, true}) {
    for (const auto& [steps, dimensions] : {std::pair{1, 1}, {4, 3}, {12, 6}, {3, 5000}}) {
      const PlanDocument d = TablesDocument(steps, dimensions, starts);
      for (const char* name : {"plan.toml", "plan.json"}) {
        const PlanDocument read = Reread(folder, name, d);
        EXPECT_EQ(DifferenceOfTables(d, read), "") << name << " " << steps << " " << dimensions;
        const absl::StatusOr<Model> model = ModelOf(read);
        ASSERT_TRUE(model.ok()) << model.status();
        EXPECT_EQ(model->Objective(read.plan), d.objective);
      }
    }
  }
}

TEST(TablesFiles, LongTablesStandBesideWithTwoAxes) {
  const TempFolder folder;
  ASSERT_TRUE(WritePlan(TablesDocument(12, 6, true), folder.At("plan.toml")).ok());
  ASSERT_EQ(folder.Names().size(), 2U);
  const NpyArray a = *ReadNpzArray(folder.At(folder.Names()[0]), "A");
  EXPECT_EQ(a.shape, (std::vector<std::int64_t>{12, 6}));
  EXPECT_THAT(*ReadFile(folder.At("plan.toml")),
              HasSubstr("names = [\"A\", \"gamma\", \"p\", \"q\"]"));
}

TEST(TablesFiles, HoldNoFigureThatNeedsABudget) {
  const TempFolder folder;
  const PlanDocument d = TablesDocument(4, 2, true);
  EXPECT_FALSE(d.objective_surrogate.has_value());
  EXPECT_FALSE(d.objective_equal_total_time.has_value());
  for (const char* name : {"plan.toml", "plan.json"}) {
    ASSERT_TRUE(WritePlan(d, folder.At(name)).ok());
    const std::string text = *ReadFile(folder.At(name));
    for (const char* word : {"equal_total_time", "equal total time", "surrogate", "schedule\"",
                             "train_time", "variances", "init", "nan", "null"}) {
      EXPECT_THAT(text, Not(HasSubstr(word))) << name;
    }
  }
}

constexpr char kByHand[] = R"(format = 1
A = [[0.9, 1.0], [0.8, 1.1], [0.7, 1.0]]     # a row per level
gamma = [[0.5, 0.5], [0.25, 0.5], [0.5, 0.1]]
q = [[0, 0], [0, 0.1], [0, 0.1]]
merges = [ { first = 1, last = 3, children = [[1, 1], [2, 2], [3, 3]] } ]
)";

TEST(TablesFiles, ByHand) {
  const TempFolder folder;
  const absl::StatusOr<PlanDocument> d = ReadPlan(folder.Write("plan.toml", kByHand));
  ASSERT_TRUE(d.ok()) << d.status();
  EXPECT_EQ(d->plan.teacher_steps(), 3);
  EXPECT_EQ(d->dimensions(), 2);
  EXPECT_EQ(d->status, "unchecked");
  EXPECT_EQ(d->lower_bound, 0);
  EXPECT_EQ(d->tau, (std::vector<double>{0.9 * 0.8 * 0.7, 1.0 * 1.1 * 1.0}));
  EXPECT_DOUBLE_EQ(d->value[0], 0.5 * (0.9 * 0.8 * 0.7) + 0.5 * 0.7);
  EXPECT_DOUBLE_EQ(d->value[1], 0.9 * 1.1 + 0.1 * (1.0 + 0.1));
}

TEST(TablesFiles, AnEditedTableTakesTheCertificateAway) {
  const TempFolder folder;
  ASSERT_TRUE(WritePlan(TablesDocument(3, 1, false), folder.At("plan.toml")).ok());
  const std::string text = *ReadFile(folder.At("plan.toml"));
  const size_t at = text.find("gamma = [[") + 10;
  const std::string edited = text.substr(0, at) + "0.25" + text.substr(text.find(']', at));
  const absl::StatusOr<PlanDocument> d = ReadPlan(folder.Write("edited.toml", edited));
  ASSERT_TRUE(d.ok()) << d.status();
  EXPECT_EQ(d->tables->gamma[0], 0.25);
  EXPECT_EQ(d->status, "unchecked");
}

TEST(TablesFiles, Faults) {
  const TempFolder folder;
  const auto expect = [&](const std::string& from, const std::string& to, const char* message) {
    const auto d = ReadPlan(folder.Write("plan.toml", Replaced(kByHand, from, to)));
    ASSERT_FALSE(d.ok()) << to;
    EXPECT_THAT(std::string(d.status().message()), HasSubstr(message)) << to;
    EXPECT_THAT(std::string(d.status().message()), HasSubstr("plan.toml"));
  };
  expect("format = 1", "format = 1\nschedule = \"cosine\"",
         "plan.toml:2: schedule: stands beside A");
  expect("format = 1", "format = 1\ntrain_time = 1.0", "train_time: stands beside A");
  expect("format = 1", "format = 1\ninit = \"child\"", "init: stands beside A");
  expect("format = 1", "format = 1\nvariances = [1.0]", "variances: stands beside A");
  expect("format = 1", "format = 1\nteacher_steps = 4", "is 4, but A has 3 levels");
  expect("format = 1", "format = 1\ndimensions = 3", "is 3, but A has 2");
  expect("format = 1", "format = 1\nlambda = [[1.0]]", "lambda");
  expect("A = [[0.9, 1.0], [0.8, 1.1], [0.7, 1.0]]", "", "gamma: stands without A");
  expect("gamma = [[0.5, 0.5], [0.25, 0.5], [0.5, 0.1]]", "", "gamma: the key is missing");
  expect("[0.8, 1.1]", "[0.8]", "A[1]: has 1 numbers, expected 2");
  expect("[0.8, 1.1]", "0.8", "A[1]");
  expect(", [0.5, 0.1]]", "]", "gamma: has 2 rows and 2 columns, expected 3 and 2");
  expect("[0.8, 1.1]", "[0.8, -1.1]", "A at level 2, coordinate 2 is -1.1");
  expect("[0.25, 0.5]", "[0.25, 1.5]", "gamma at level 2, coordinate 2 is 1.5, expected 0..1");
  expect("[0, 0.1], [0, 0.1]]", "[0, 0.1], [0, -2.0]]",
         "q at level 3, coordinate 2 is -2: a merge whose noisiest child is [3,3]");
  expect("merges", "target = [1.0]\nmerges", "tau has 1 numbers, expected 2");
  expect("merges", "weights = [1.0, -1.0]\nmerges", "weight of coordinate 2 is -1");
  expect("A = [[0.9, 1.0], [0.8, 1.1], [0.7, 1.0]]", "A = []", "A: has 0 rows");
}

TEST(TablesFiles, FiguresOfABudgetAreRefused) {
  const TempFolder folder;
  ASSERT_TRUE(WritePlan(TablesDocument(3, 1, false), folder.At("plan.toml")).ok());
  const std::string text = *ReadFile(folder.At("plan.toml"));
  const auto read = [&](const std::string& from, const std::string& to) {
    return std::string(
        ReadPlan(folder.Write("plan.toml", Replaced(text, from, to))).status().message());
  };
  EXPECT_THAT(read("[certificate]\n", "[certificate]\nobjective_surrogate = 1.0\n"),
              HasSubstr("certificate.objective_surrogate: has no meaning for a plan of tables"));
  EXPECT_THAT(read("boot = {", "boot = { objective_equal_total_time = 1.0,"),
              HasSubstr("certificate.strategies.boot.objective_equal_total_time"));
}

TEST(TablesFiles, AreNotForThoseThatNeedASchedule) {
  EXPECT_TRUE(CheckHasSchedule(SmallDocument(), "plan.toml").ok());
  EXPECT_THAT(std::string(CheckHasSchedule(TablesDocument(3, 1, false), "plan.toml").message()),
              HasSubstr("plan.toml: is a plan of bare tables (A, gamma), expected one made with"));
}

}  // namespace
}  // namespace mergeplan
