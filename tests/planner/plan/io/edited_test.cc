// Plan files that people edited or wrote by hand.

#include <cmath>
#include <cstdlib>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "planner/plan/io/document.h"
#include "tests/planner/plan/io/documents.h"

namespace mergeplan {
namespace {

using ::testing::HasSubstr;

// The document of an edited file: computed afresh, nothing proven.
PlanDocument Unchecked(const absl::StatusOr<PlanDocument>& read) {
  EXPECT_TRUE(read.ok()) << read.status();
  if (!read.ok()) return PlanDocument();
  EXPECT_EQ(read->status, "unchecked");
  EXPECT_EQ(read->lower_bound, 0);
  EXPECT_THAT(read->guarantee, HasSubstr("nothing is proven"));
  const auto model = ModelOf(*read);
  EXPECT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(read->objective, model->Objective(read->plan));
  EXPECT_EQ(read->value, model->Value(read->plan));
  EXPECT_EQ(read->tau.size(), read->variances.size());
  EXPECT_EQ(read->objective_surrogate, model->Objective(read->value, Reference::kSurrogate));
  EXPECT_EQ(read->objective_teacher, model->Objective(read->value, Reference::kTeacher));
  EXPECT_EQ(read->input_sha256, VariancesHash(read->variances));
  EXPECT_EQ(read->strategies.size(), 4U);
  return *read;
}

class EditedTest : public ::testing::Test {
 protected:
  EditedTest() {
    EXPECT_TRUE(WritePlan(SmallDocument(), folder_.At("plan.toml")).ok());
    EXPECT_TRUE(WritePlan(SmallDocument(), folder_.At("plan.json")).ok());
    toml_ = *ReadFile(folder_.At("plan.toml"));
    json_ = *ReadFile(folder_.At("plan.json"));
  }
  absl::StatusOr<PlanDocument> Toml(const std::string& text) {
    return ReadPlan(folder_.Write("edited.toml", text));
  }
  absl::StatusOr<PlanDocument> Json(const std::string& text) {
    return ReadPlan(folder_.Write("edited.json", text));
  }

  TempFolder folder_;
  std::string toml_, json_;
};

TEST_F(EditedTest, OtherMergesLoseTheCertificate) {
  // (1 (2 (3 4))) becomes (1 (2 3 4)).
  std::string text =
      Replaced(toml_, "  { first = 3, last = 4, round = 1, children = [[3, 3], [4, 4]] },\n", "");
  text = Replaced(text, "round = 2, children = [[2, 2], [3, 4]]",
                  "children = [[2, 2], [3, 3], [4, 4]]");
  text = Replaced(text, "round = 3", "round = 2");
  const PlanDocument d = Unchecked(Toml(text));
  EXPECT_EQ(d.plan.ToString(), "(1 (2..4))");
  EXPECT_THAT(d.guarantee, HasSubstr("edited"));
  EXPECT_NE(d.objective, SmallDocument().objective);
  EXPECT_NE(d.objective_equal_total_time, d.objective);  // two merges share the time of three

  // What is now written is a plan of its own right, and reads back as such.
  ASSERT_TRUE(WritePlan(d, folder_.At("again.toml")).ok());
  const auto again = ReadPlan(folder_.At("again.toml"));
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(Difference(d, *again), "");
}

TEST_F(EditedTest, JsonToo) {
  std::string text =
      Replaced(json_, "    {\"first\":3,\"last\":4,\"round\":1,\"children\":[[3,3],[4,4]]},\n", "");
  text = Replaced(text, "\"round\":2,\"children\":[[2,2],[3,4]]",
                  "\"round\":1,\"children\":[[2,2],[3,3],[4,4]]");
  text = Replaced(text, "\"round\":3", "\"round\":2");
  const auto stale = Json(text);
  ASSERT_FALSE(stale.ok());
  EXPECT_THAT(std::string(stale.status().message()), HasSubstr("tree: is not the tree"));
  const size_t begin = text.find("  \"tree\"");
  text.erase(begin, text.find('\n', begin) + 1 - begin);
  EXPECT_EQ(Unchecked(Json(text)).plan.ToString(), "(1 (2..4))");
}

TEST_F(EditedTest, AnyChangeOfTheQuestionLosesTheCertificate) {
  const std::pair<const char*, const char*> edits[] = {
      {"train_time = 1.6", "train_time = 1.5"},
      {"train_time = 1.6", "lr = 0.01\niterations = 50"},
      {"init = \"child\"", "init = \"jump\""},
      {"reference = \"surrogate\"", "reference = \"data\""},
      {"space = \"nary\"", "space = \"binary\""},
      {"variances = [0.25, 1.5]", "variances = [0.25, 1.4]"},
      {"variances = [0.25, 1.5]", "variances = [0.25, 1.5]\nweights = [1, 2]"},
      {"basis = \"given\"", "basis = \"pca\""},
      {"data_scale = 1.0", "data_scale = 1"},  // no change at all
  };
  for (const auto& [from, to] : edits) {
    const auto read = Toml(Replaced(toml_, from, to));
    if (std::string(to) == "data_scale = 1") {
      ASSERT_TRUE(read.ok()) << read.status();
      EXPECT_EQ(read->status, "within_gap");
    } else {
      Unchecked(read);
    }
  }
}

TEST_F(EditedTest, AFlatteredCertificateIsNotBelieved) {
  const PlanDocument d = SmallDocument();
  const auto line = [&](const std::string& key) {
    const size_t begin = toml_.find("\n" + key + " = ") + 1;
    return toml_.substr(begin, toml_.find('\n', begin) - begin);
  };
  // Half the error, proven by a bound to match.
  std::string text = Replaced(toml_, "\n" + line("objective") + "\n", "\nobjective = 1e-9\n");
  text = Replaced(text, line("lower_bound"), "lower_bound = 1e-9");
  text = Replaced(text, line("gap"), "");
  EXPECT_EQ(Unchecked(Toml(text)).objective, d.objective);
  // A bound raised to the objective, called optimal.
  text = Replaced(toml_, line("lower_bound"),
                  "lower_bound = " + line("objective").substr(std::string("objective = ").size()));
  text =
      Replaced(Replaced(text, line("gap"), ""), "status = \"within_gap\"", "status = \"optimal\"");
  Unchecked(Toml(text));
  Unchecked(Toml(Replaced(toml_, line("guarantee"), "guarantee = \"perfect\"")));
  Unchecked(Toml(Replaced(toml_, line("fingerprint"), "")));
  Unchecked(Toml(Replaced(toml_, line("fingerprint"), "fingerprint = \"0\"")));
  Unchecked(Toml(Replaced(toml_, line("tau"), "tau = [1, 1]")));
  Unchecked(Toml(Replaced(toml_, "merges_trained = 1 }", "merges_trained = 2 }")));
}

TEST_F(EditedTest, NotesOfWhereItCameFromMayChange) {
  std::string text = Replaced(toml_, "input = \"--variances\"", "input = \"else\"");
  text = Replaced(text, "seconds = 0.125", "seconds = 4");
  text = "# a comment of mine\n" + text;
  const auto read = Toml(text);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->status, "within_gap");
  EXPECT_EQ(read->input, "else");
}

TEST_F(EditedTest, WithoutRoundsTheCertificateStays) {
  std::string text = toml_;
  for (const char* round : {"round = 1, ", "round = 2, ", "round = 3, "}) {
    text = Replaced(text, round, "");
  }
  text = Replaced(Replaced(text, "student_steps = 1\n", ""), "dimensions = 2\n", "");
  const auto read = Toml(text);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(Difference(SmallDocument(), *read), "");
}

// What files said before they said how often a plan calls teacher and students.
TEST_F(EditedTest, FilesOfOlderVersionsKeepTheirCertificate) {
  PlanDocument d = SmallDocument();
  for (StrategyFigures& s : d.strategies) s.costs.reset();
  const TempFolder folder;
  ASSERT_TRUE(WritePlan(d, folder.At("old.toml")).ok());
  std::string text = *ReadFile(folder.At("old.toml"));
  for (const char* line : {"\nrounds = 3", "\nteacher_calls = 4", "\nstudent_calls = 2"}) {
    text = Replaced(text, line, "");
  }
  const auto read = Toml(text);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->status, "within_gap");
  EXPECT_EQ(Difference(d, *read), "");
}

TEST_F(EditedTest, LimitsBelongToTheCertificate) {
  PlanDocument d = SmallDocument();
  d.max_merges = 3;
  d.max_rounds = 4;
  const TempFolder folder;
  for (const char* name : {"limited.toml", "limited.json"}) {
    ASSERT_TRUE(WritePlan(d, folder.At(name)).ok());
    const auto read = ReadPlan(folder.At(name));
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(Difference(d, *read), "");
  }
  const std::string text = *ReadFile(folder.At("limited.toml"));
  // Without the limit the certificate would say too much.
  Unchecked(Toml(Replaced(text, "\nmax_merges = 3", "")));
  Unchecked(Toml(Replaced(text, "\nmax_rounds = 4", "\nmax_rounds = 5")));
  d.max_merges = 2;
  const absl::Status refused = WritePlan(d, folder.At("more.toml"));
  EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(refused.message().find("max_merges: is 2, but the plan has 3"), std::string::npos)
      << refused;
}

TEST_F(EditedTest, RemarksOfTheRunAreNotLookedAt) {
  const PlanDocument d = SmallDocument();
  const TempFolder folder;
  const std::string json = PlanJson(d, {{"fewer_blocks_better", "null"},
                                        {"sensitivity", R"({"draws": 3, "lead": {"p5": 0.1}})"}});
  EXPECT_NE(json.find(R"("sensitivity": {"draws":3,)"), std::string::npos) << json;
  const auto read = ReadPlan(folder.Write("plan.json", json));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(Difference(d, *read), "");
}

TEST_F(EditedTest, ANewScheduleNameNeedsNewArrays) {
  const auto read = Toml(Replaced(toml_, "schedule = \"cosine\"", "schedule = \"flow\""));
  ASSERT_FALSE(read.ok());
  EXPECT_THAT(std::string(read.status().message()),
              HasSubstr("schedule: is \"flow\", but alpha and sigma are not that schedule's"));
  // A file that is gone is no reason to refuse the arrays.
  EXPECT_EQ(Unchecked(Toml(Replaced(toml_, "schedule = \"cosine\"", "schedule = \"gone.json\"")))
                .schedule_spec,
            "gone.json");
}

TEST_F(EditedTest, AQuestionThatTheModelRefusesIsAnError) {
  const auto rate = Toml(Replaced(toml_, "train_time = 1.6", "lr = 7.0\niterations = 10"));
  ASSERT_FALSE(rate.ok());
  EXPECT_THAT(std::string(rate.status().message()), HasSubstr("edited.toml: learning rate 7"));
  const auto huge = Toml(Replaced(toml_, "[0.25, 1.5]", "[0.25, 1e308]"));
  ASSERT_FALSE(huge.ok());
}

// ---- written by hand

constexpr char kByHand[] = R"(format = 1
schedule = "cosine"
teacher_steps = 4
variances = [0.25, 1.5]
train_time = 1.6
init = "child"
merges = [
  { first = 1, last = 4, children = [[1, 1], [2, 4]] },
  { first = 2, last = 4, children = [[2, 2], [3, 4]] },
  { first = 3, last = 4, children = [[3, 3], [4, 4]] },
]
)";

TEST_F(EditedTest, WrittenByHand) {
  const PlanDocument d = Unchecked(Toml(kByHand));
  EXPECT_THAT(d.guarantee, HasSubstr("without a certificate"));
  const PlanDocument same = SmallDocument();
  EXPECT_EQ(d.plan, same.plan);
  EXPECT_EQ(d.alpha, same.alpha);
  EXPECT_EQ(d.objective, same.objective);
  EXPECT_EQ(d.value, same.value);
  EXPECT_EQ(d.basis, "given");
  EXPECT_EQ(d.reference, Reference::kSurrogate);
  EXPECT_EQ(d.strategies[2].objective, same.strategies[2].objective);
}

TEST_F(EditedTest, MergesAsTables) {
  std::string text(kByHand);
  text.resize(text.find("merges"));
  text += R"(
[[merges]]
first = 1
last = 2
children = [[1, 1], [2, 2]]

[[merges]]
first = 1
last = 4
children = [[1, 2], [3, 3], [4, 4]]
)";
  EXPECT_EQ(Unchecked(Toml(text)).plan.ToString(), "((1 2) 3 4)");
}

TEST_F(EditedTest, JsonByHand) {
  const PlanDocument d = Unchecked(Json(R"({"format": 1, "schedule": "flow:shift=3",
    "teacher_steps": 3, "variances": [2], "lr": 0.01, "iterations": 5, "init": "child-jump",
    "blocks": [[1, 1], [2, 3]], "merges": [{"first": 2, "last": 3, "children": [[2, 2], [3, 3]]}]})"));
  EXPECT_EQ(d.plan.ToString(), "1 (2 3)");
  EXPECT_TRUE(d.budget.sgd);
  EXPECT_EQ(d.init, Init::kChildJump);
  EXPECT_EQ(d.budget.batch, Budget().batch);
}

TEST_F(EditedTest, ArraysInsteadOfASchedule) {
  const std::string text =
      Replaced(Replaced(kByHand, "teacher_steps = 4\n", ""), "schedule = \"cosine\"",
               "alpha = [1, 0.9, 0.5, 0.25, 0]\nsigma = [0, 0.4, 0.8, 1, 1]");
  const PlanDocument d = Unchecked(Toml(text));
  EXPECT_EQ(d.schedule_spec, "arrays");
  EXPECT_EQ(d.plan.teacher_steps(), 4);
  EXPECT_EQ(d.data_scale, 1);
}

TEST_F(EditedTest, FilesAreLookedForBesideThePlan) {
  folder_.Write("levels.json",
                R"({"alpha": [1, 0.9, 0.5, 0.25, 0], "sigma": [0, 0.4, 0.8, 1, 1]})");
  const std::string text = Replaced(kByHand, "schedule = \"cosine\"", "schedule = \"levels.json\"");
  const PlanDocument d = Unchecked(Toml(text));
  EXPECT_EQ(d.alpha[2], 0.5);
  EXPECT_EQ(d.schedule_spec, "levels.json");
}

TEST_F(EditedTest, VariancesFromAnNpyFile) {
  // numpy's format 1.0: magic, version, length of the header, the header, the numbers.
  const auto npy = [](const std::string& shape, const std::vector<double>& numbers) {
    std::string header = "{'descr': '<f8', 'fortran_order': False, 'shape': " + shape + ", }";
    header.resize(118 - 1, ' ');
    header += '\n';
    std::string out("\x93NUMPY\x01\x00", 8);
    out += static_cast<char>(header.size());
    out += '\0';
    out += header;
    out.append(reinterpret_cast<const char*>(numbers.data()), 8 * numbers.size());
    return out;
  };
  const std::string text = Replaced(kByHand, "variances = [0.25, 1.5]", "input = \"v.npy\"");
  const auto missing = Toml(text);
  ASSERT_FALSE(missing.ok());
  EXPECT_THAT(std::string(missing.status().message()), HasSubstr("edited.toml:4: input: "));
  folder_.Write("v.npy", npy("(3,)", {0.5, 1, 2}));
  EXPECT_EQ(Unchecked(Toml(text)).variances, (std::vector<double>{0.5, 1, 2}));
  folder_.Write("v.npy", npy("(1, 3)", {0.5, 1, 2}));
  EXPECT_THAT(std::string(Toml(text).status().message()), HasSubstr("2 axes"));
}

// The example of the README is read as it stands there.
TEST_F(EditedTest, TheReadmesExample) {
  const char* source = std::getenv("MERGEPLAN_SOURCE_DIR");
  const std::string root = source != nullptr ? source : ".";
  const auto readme = ReadFile(root + "/planner/plan/io/README.md");
  ASSERT_TRUE(readme.ok()) << readme.status();
  const size_t begin = readme->find("```toml\n");
  ASSERT_NE(begin, std::string::npos);
  const size_t end = readme->find("```", begin + 8);
  ASSERT_NE(end, std::string::npos);
  const PlanDocument d = Unchecked(Toml(readme->substr(begin + 8, end - begin - 8)));
  EXPECT_GT(d.plan.size(), 1);
  EXPECT_GT(d.objective, 0);
  // What the README says of it.
  EXPECT_THAT(*readme, HasSubstr("`" + d.plan.ToString() + "`"));
}

}  // namespace
}  // namespace mergeplan
