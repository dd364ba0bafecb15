// Every kind of fault in a plan file is named with file, line and key.

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "planner/plan/io/document.h"
#include "tests/planner/plan/io/documents.h"

namespace mergeplan {
namespace {

using ::testing::HasSubstr;

constexpr char kPlan[] = R"(format = 1
schedule = "cosine"
teacher_steps = 4
variances = [0.25, 1.5]
train_time = 1.6
init = "child"
blocks = [[1, 4]]
merges = [
  { first = 3, last = 4, children = [[3, 3], [4, 4]] },
  { first = 1, last = 4, children = [[1, 1], [2, 2], [3, 4]] },
]
)";

struct Fault {
  const char* name;
  const char* from;  // of kPlan
  const char* to;
  const char* line;  // "plan.toml" and what follows, up to the key
  std::vector<const char*> words;
};

class FaultTest : public ::testing::TestWithParam<Fault> {};

TEST_P(FaultTest, IsNamed) {
  const Fault& fault = GetParam();
  const TempFolder folder;
  const std::string path = folder.Write("plan.toml", Replaced(kPlan, fault.from, fault.to));
  const auto read = ReadPlan(path);
  ASSERT_FALSE(read.ok());
  const std::string message(read.status().message());
  EXPECT_THAT(message, ::testing::StartsWith(folder.At(fault.line)));
  for (const char* word : fault.words) EXPECT_THAT(message, HasSubstr(word));
  EXPECT_EQ(message.find('\n'), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(
    Question, FaultTest,
    ::testing::Values(
        Fault{"NewerFormat",
              "format = 1",
              "format = 2",
              "plan.toml:1: format: ",
              {"is 2", "reads format 1"}},
        Fault{"NoFormat", "format = 1\n", "", "plan.toml: format: ", {"missing"}},
        Fault{"FormatAsText",
              "format = 1",
              "format = \"1\"",
              "plan.toml:1: format: ",
              {"is a text, expected a whole number"}},
        Fault{"UnknownKey",
              "init = \"child\"",
              "init = \"child\"\nstudents = 1",
              "plan.toml:7: students: ",
              {"unknown key"}},
        Fault{"MisspeltKey",
              "variances",
              "varainces",
              "plan.toml:4: varainces: ",
              {"unknown key", "did you mean \"variances\"?"}},
        Fault{"NoSchedule",
              "schedule = \"cosine\"\n",
              "",
              "plan.toml: schedule: ",
              {"missing", "alpha and sigma"}},
        Fault{
            "UnknownSchedule", "\"cosine\"", "\"cosinus\"", "plan.toml:2: schedule: ", {"cosinus"}},
        Fault{
            "NoVariances", "variances = [0.25, 1.5]\n", "", "plan.toml: variances: ", {"missing"}},
        Fault{"NoBudget",
              "train_time = 1.6\n",
              "",
              "plan.toml: train_time: ",
              {"missing", "lr and iterations"}},
        Fault{"TwoBudgets",
              "train_time = 1.6",
              "train_time = 1.6\nlr = 0.1",
              "plan.toml:5: train_time: ",
              {"beside lr"}},
        Fault{"LrAlone", "train_time = 1.6", "lr = 0.1", "plan.toml: iterations: ", {"missing"}},
        Fault{"NoIterations",
              "train_time = 1.6",
              "lr = 0.1\niterations = 0",
              "plan.toml:6: iterations: ",
              {"is 0, expected 1.."}},
        Fault{"NegativeRate",
              "train_time = 1.6",
              "lr = -0.1\niterations = 1",
              "plan.toml:5: lr: ",
              {"-0.1"}},
        Fault{"NegativeTime", "1.6", "-1.6", "plan.toml:5: train_time: ", {"-1.6", "positive"}},
        Fault{"TimeIsNan", "1.6", "nan", "plan.toml:5: train_time: ", {"nan", "finite"}},
        Fault{"TimeIsText",
              "1.6",
              "\"long\"",
              "plan.toml:5: train_time: ",
              {"is a text, expected a number"}},
        Fault{"TimeIsADate",
              "1.6",
              "2024-05-01",
              "plan.toml:5: train_time: ",
              {"is a date, expected a number"}},
        Fault{"BatchZero",
              "train_time = 1.6",
              "train_time = 1.6\nbatch = 0",
              "plan.toml:6: batch: ",
              {"is 0"}},
        Fault{"FeatureNorm",
              "train_time = 1.6",
              "train_time = 1.6\nfeature_norm = 0.0",
              "plan.toml:6: feature_norm: ",
              {"is 0", "positive"}},
        Fault{"NoInit", "init = \"child\"\n", "", "plan.toml: init: ", {"missing"}},
        Fault{"UnknownInit",
              "\"child\"",
              "\"chidl\"",
              "plan.toml:6: init: ",
              {"chidl", "child-jump"}},
        Fault{"UnknownReference",
              "init = \"child\"",
              "init = \"child\"\nreference = \"best\"",
              "plan.toml:7: reference: ",
              {"best", "surrogate"}},
        Fault{"UnknownSpace",
              "init = \"child\"",
              "init = \"child\"\nspace = \"all\"",
              "plan.toml:7: space: ",
              {"all", "nary"}},
        Fault{
            "NegativeVariance", "0.25", "-0.25", "plan.toml:4: variances: ", {"number 1 is -0.25"}},
        Fault{"VarianceIsText",
              "0.25",
              "\"x\"",
              "plan.toml:4: variances[0]: ",
              {"is a text, expected a number"}},
        Fault{
            "VarianceIsInfinite", "0.25", "inf", "plan.toml:4: variances[0]: ", {"inf", "finite"}},
        Fault{"NoVariance", "[0.25, 1.5]", "[]", "plan.toml:4: variances: ", {"empty"}},
        Fault{"OneVariance",
              "[0.25, 1.5]",
              "0.25",
              "plan.toml:4: variances: ",
              {"is a number, expected a list"}},
        Fault{"WeightsLength",
              "init = \"child\"",
              "init = \"child\"\nweights = [1]",
              "plan.toml:7: weights: ",
              {"has 1 numbers, expected 2"}},
        Fault{"WrongDimensions",
              "init = \"child\"",
              "init = \"child\"\ndimensions = 3",
              "plan.toml:7: dimensions: ",
              {"is 3", "2"}},
        Fault{"AlphaAlone",
              "schedule = \"cosine\"",
              "alpha = [1, 0]",
              "plan.toml:2: alpha: ",
              {"sigma is missing"}},
        Fault{"ScaleAlone",
              "schedule = \"cosine\"",
              "schedule = \"cosine\"\ndata_scale = 2.0",
              "plan.toml:3: data_scale: ",
              {"without alpha and sigma"}},
        Fault{"AlphaTooShort",
              "schedule = \"cosine\"",
              "alpha = [1, 0.5, 0]\nsigma = [0, 0.5, 1, 1, 1]",
              "plan.toml:2: alpha: ",
              {"has 3 numbers, expected 5"}},
        Fault{"SigmaTooLong",
              "schedule = \"cosine\"",
              "alpha = [1, 0.9, 0.5, 0.2, 0]\nsigma = [0, 0.5, 1, 1, 1, 1]",
              "plan.toml:3: sigma: ",
              {"has 6 numbers, expected 5"}},
        Fault{"NoiseFalls",
              "schedule = \"cosine\"",
              "alpha = [1, 0.5, 0.9, 0.2, 0]\nsigma = [0, 1, 1, 1, 1]",
              "plan.toml:2: alpha: ",
              {"2"}},
        Fault{"WrongT",
              "teacher_steps = 4",
              "teacher_steps = 5",
              "plan.toml:7: blocks: gap",
              {"step 5 is missing"}},
        Fault{"SmallT",
              "teacher_steps = 4",
              "teacher_steps = 3",
              "plan.toml:7: blocks: ",
              {"[1, 4] lies outside [1, 3]"}},
        Fault{"ZeroT",
              "teacher_steps = 4",
              "teacher_steps = 0",
              "plan.toml:3: teacher_steps: ",
              {"is 0"}},
        Fault{"HugeT",
              "teacher_steps = 4",
              "teacher_steps = 9000000000",
              "plan.toml:3: teacher_steps: ",
              {"9000000000"}},
        Fault{"FractionOfT",
              "teacher_steps = 4",
              "teacher_steps = 4.0",
              "plan.toml:3: teacher_steps: ",
              {"is a number, expected a whole number"}}),
    [](const auto& info) { return std::string(info.param.name); });

INSTANTIATE_TEST_SUITE_P(
    Merges, FaultTest,
    ::testing::Values(
        Fault{"Gap",
              "[[1, 1], [2, 2], [3, 4]]",
              "[[1, 1], [3, 4]]",
              "plan.toml:10: merge [1, 4]: gap",
              {"step 2 is missing"}},
        Fault{"Overlap",
              "[[1, 1], [2, 2], [3, 4]]",
              "[[1, 1], [2, 3], [3, 4]]",
              "plan.toml:10: merge [1, 4]: overlap",
              {"[3, 4]"}},
        Fault{"Duplicate",
              "  { first = 1",
              "  { first = 3, last = 4, children = [[3, 3], [4, 4]] },\n  { first = 1",
              "plan.toml:10: merge [3, 4]: given twice",
              {}},
        Fault{"Unused",
              "[2, 2], [3, 4]]",
              "[2, 2], [3, 3], [4, 4]]",
              "plan.toml:9: merge [3, 4]: no other merge",
              {}},
        Fault{"MissingMerge",
              "  { first = 3, last = 4, children = [[3, 3], [4, 4]] },\n",
              "",
              "plan.toml:9: merge [1, 4] uses [3, 4]",
              {"no merge with that range"}},
        Fault{"MissingTop",
              "  { first = 1, last = 4, children = [[1, 1], [2, 2], [3, 4]] },\n",
              "",
              "plan.toml:7: the blocks use [1, 4]",
              {"no merge"}},
        Fault{"NoMerges", "merges = [\n", "blocks2 = [\n", "plan.toml:8: blocks2: unknown key", {}},
        Fault{"BlocksGap",
              "blocks = [[1, 4]]",
              "blocks = [[1, 1], [3, 4]]",
              "plan.toml:7: blocks: gap",
              {"step 2 is missing"}},
        Fault{"BlocksOverlap",
              "blocks = [[1, 4]]",
              "blocks = [[1, 3], [3, 4]]",
              "plan.toml:7: blocks: overlap",
              {}},
        Fault{"StudentSteps",
              "blocks = [[1, 4]]",
              "blocks = [[1, 4]]\nstudent_steps = 2",
              "plan.toml:8: student_steps: ",
              {"is 2"}},
        Fault{"UnknownMergeKey",
              "{ first = 3",
              "{ frist = 3, first = 3",
              "plan.toml:9: merges[0].frist: ",
              {"did you mean \"first\"?"}},
        Fault{"MissingLast",
              "first = 3, last = 4, ",
              "first = 3, ",
              "plan.toml:9: merges[0].last: ",
              {"missing"}},
        Fault{"MissingChildren",
              "first = 3, last = 4, children = [[3, 3], [4, 4]]",
              "first = 3, last = 4",
              "plan.toml:9: merges[0].children: ",
              {"missing"}},
        Fault{"FirstIsText",
              "first = 3",
              "first = \"3\"",
              "plan.toml:9: merges[0].first: ",
              {"is a text, expected a whole number"}},
        Fault{"FirstIsHuge",
              "first = 3",
              "first = 99999999999",
              "plan.toml:9: merges[0].first: ",
              {"99999999999"}},
        Fault{"ChildIsNumber",
              "[[3, 3], [4, 4]]",
              "[3, [4, 4]]",
              "plan.toml:9: merges[0].children[0]: ",
              {"is a whole number, expected a range [first, last]"}},
        Fault{"ChildIsTriple",
              "[[3, 3], [4, 4]]",
              "[[3, 3], [4, 4, 4]]",
              "plan.toml:9: merges[0].children[1]: ",
              {"a list of 3"}},
        Fault{"MergeIsList",
              "{ first = 3, last = 4, children = [[3, 3], [4, 4]] }",
              "[3, 4]",
              "plan.toml:9: merges[0]: ",
              {"is a list, expected a table"}},
        Fault{"WrongRound",
              "first = 1, last = 4, ",
              "first = 1, last = 4, round = 1, ",
              "plan.toml:10: merges[1].round: ",
              {"is 1", "round 2"}},
        Fault{"BrokenList",
              "[[3, 3], [4, 4]] }",
              "[[3, 3], [4, 4] }",
              "plan.toml:9:",
              {"no valid TOML"}},
        Fault{"TwiceTheSameKey",
              "init = \"child\"",
              "init = \"child\"\ninit = \"jump\"",
              "plan.toml:7:",
              {"no valid TOML", "init"}}),
    [](const auto& info) { return std::string(info.param.name); });

// ---- the certificate, from a file that was written with one

class CertificateFaultTest : public ::testing::Test {
 protected:
  CertificateFaultTest() {
    EXPECT_TRUE(WritePlan(SmallDocument(), folder_.At("plan.toml")).ok());
    EXPECT_TRUE(WritePlan(SmallDocument(), folder_.At("plan.json")).ok());
    toml_ = *ReadFile(folder_.At("plan.toml"));
    json_ = *ReadFile(folder_.At("plan.json"));
  }
  // Replaces the whole line `key = …` in both forms; the message must name the line and say
  // `words`.
  void Expect(const std::string& key, const std::string& value, const std::string& words) {
    const size_t certificate = toml_.find("[certificate]");
    const size_t begin = toml_.find("\n" + key + " = ", certificate) + 1;
    ASSERT_NE(begin, 0U) << key;
    std::string text = toml_;
    text.replace(begin, text.find('\n', begin) - begin, value.empty() ? "" : key + " = " + value);
    const auto line = 1 + std::count(toml_.begin(), toml_.begin() + static_cast<long>(begin), '\n');
    const auto read = ReadPlan(folder_.Write("edited.toml", text));
    ASSERT_FALSE(read.ok()) << key << " = " << value;
    const std::string message(read.status().message());
    EXPECT_THAT(message, HasSubstr("certificate." + key + ": "));
    EXPECT_THAT(message, HasSubstr(words));
    if (!value.empty()) {
      EXPECT_THAT(message,
                  ::testing::StartsWith(folder_.At("edited.toml:") + std::to_string(line) + ": "));
    }

    const size_t at = json_.find("  \"" + key + "\": ");
    ASSERT_NE(at, std::string::npos) << key;
    text = json_;
    text.replace(at, text.find('\n', at) - at,
                 value.empty() ? "" : "  \"" + key + "\": " + value + ",");
    // The last member has no comma.
    for (const char* end : {",\n}", ",\n\n}"}) {
      if (text.find(end) != std::string::npos) text.erase(text.find(end), 1);
    }
    const auto json = ReadPlan(folder_.Write("edited.json", text));
    ASSERT_FALSE(json.ok()) << key << " = " << value;
    const std::string said(json.status().message());
    EXPECT_THAT(said, HasSubstr(key + ": "));
    EXPECT_THAT(said, HasSubstr(words));
    if (!value.empty()) {
      const auto json_line =
          1 + std::count(json_.begin(), json_.begin() + static_cast<long>(at), '\n');
      EXPECT_THAT(said, ::testing::StartsWith(folder_.At("edited.json:") +
                                              std::to_string(json_line) + ": "));
    }
  }

  TempFolder folder_;
  std::string toml_, json_;
};

TEST_F(CertificateFaultTest, ContradictionsAndWrongTypes) {
  Expect("lower_bound", "-1e-9", "is -1e-09");
  Expect("lower_bound", "0.5", "above the objective");
  Expect("objective", "-1", "is -1");
  Expect("objective", "\"small\"", "is a text, expected a number");
  Expect("objective_surrogate", "-1", "is -1");
  Expect("objective_teacher", "true", "is a truth value, expected a number");
  Expect("tolerance", "-1", "is -1");
  Expect("seconds", "-1", "is -1");
  Expect("gap", "0.5", "but objective and lower_bound give");
  Expect("status", "\"best\"", "is \"best\", expected optimal");
  Expect("status", "\"optimal\"", "is optimal, but objective - lower_bound is");
  Expect("status", "3", "is a whole number, expected a text");
  Expect("value", "[1.0]", "has 1 numbers, expected 2");
  Expect("tau", "[1.0, 2.0, 3.0]", "has 3 numbers, expected 2");
  Expect("value", "[1.0, -2.0]", "number 2 is -2");
  Expect("value", "7", "is a whole number, expected a list");
  Expect("merges_trained", "-1", "is -1");
  Expect("merges_trained", "4", "there are 3 merges");
  Expect("fingerprint", "17", "is a whole number, expected a text");
}

TEST_F(CertificateFaultTest, MissingKeys) {
  for (const char* key :
       {"status", "guarantee", "objective", "lower_bound", "tolerance", "objective_surrogate",
        "objective_teacher", "objective_equal_total_time", "seconds", "value", "tau"}) {
    Expect(key, "", "the key is missing");
  }
}

TEST_F(CertificateFaultTest, UncheckedProvesNothing) {
  std::string text = Replaced(toml_, "status = \"within_gap\"", "status = \"unchecked\"");
  const auto read = ReadPlan(folder_.Write("edited.toml", text));
  ASSERT_FALSE(read.ok());
  EXPECT_THAT(std::string(read.status().message()),
              HasSubstr("expected 0 where the status is unchecked"));
}

TEST_F(CertificateFaultTest, Strategies) {
  const auto fails = [&](const std::string& from, const std::string& to, const std::string& words) {
    const auto read = ReadPlan(folder_.Write("edited.toml", Replaced(toml_, from, to)));
    ASSERT_FALSE(read.ok()) << to;
    EXPECT_THAT(std::string(read.status().message()), HasSubstr(words));
  };
  fails("vanilla = { objective =", "vanilla = { objektive =", "did you mean \"objective\"?");
  fails("vanilla = { objective =", "vanilla = { objective = 1, objective =", "no valid TOML");
  fails(", merges_trained = 1 }", " }", "strategies.vanilla.merges_trained: the key is missing");
  fails("merges_trained = 1 }", "merges_trained = -1 }", "is -1");
  fails("[certificate.strategies]", "[certificate.strategys]", "did you mean \"strategies\"?");
  fails("\n[certificate]\n", "\n[certifikate]\n", "did you mean \"certificate\"?");
}

TEST(CertificateTest, AnEmptyOneIsNone) {
  const TempFolder folder;
  const auto read = ReadPlan(folder.Write("p.toml", std::string(kPlan) + "[certificate]\n"));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->status, "unchecked");
  const auto unknown =
      ReadPlan(folder.Write("p.toml", std::string(kPlan) + "[certificate]\nx = 1\n"));
  EXPECT_THAT(std::string(unknown.status().message()),
              HasSubstr("p.toml:13: certificate.x: unknown key"));
  const auto text =
      ReadPlan(folder.Write("p.toml", std::string(kPlan) + "certificate = \"yes\"\n"));
  EXPECT_THAT(std::string(text.status().message()), HasSubstr("p.toml:12: certificate: is a text"));
}

// ---- the .npz

class StoredArraysTest : public ::testing::Test {
 protected:
  StoredArraysTest() {
    EXPECT_TRUE(WritePlan(LargeDocument(70, 3), folder_.At("plan.toml")).ok());
    text_ = *ReadFile(folder_.At("plan.toml"));
    npz_ = folder_.At(folder_.Names()[0]);
  }
  std::string Message(const std::string& from, const std::string& to) {
    const auto read = ReadPlan(folder_.Write("plan.toml", Replaced(text_, from, to)));
    EXPECT_FALSE(read.ok());
    return std::string(read.status().message());
  }

  TempFolder folder_;
  std::string text_, npz_;
};

TEST_F(StoredArraysTest, AChangedNpzIsFoundOut) {
  std::string bytes = *ReadFile(npz_);
  bytes[bytes.size() / 2] ^= 1;
  ASSERT_TRUE(WriteFileAtomically(npz_, bytes).ok());
  const auto read = ReadPlan(folder_.At("plan.toml"));
  EXPECT_EQ(read.status().code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(read.status().message()), HasSubstr("arrays.sha256: is "));
  EXPECT_THAT(std::string(read.status().message()), HasSubstr(npz_));
}

TEST_F(StoredArraysTest, AMissingNpzIsNamed) {
  std::filesystem::remove(npz_);
  const auto read = ReadPlan(folder_.At("plan.toml"));
  EXPECT_EQ(read.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(read.status().message()), HasSubstr("arrays.file: "));
  EXPECT_THAT(std::string(read.status().message()), HasSubstr(npz_));
}

TEST_F(StoredArraysTest, FaultsOfTheTable) {
  EXPECT_THAT(Message("[\"alpha\", \"sigma\"]", "[\"alpha\"]"),
              HasSubstr("alpha: stands alone; sigma is missing"));
  EXPECT_THAT(Message("[\"alpha\", \"sigma\"]", "[\"alpha\", \"sigma\", \"tau\"]"),
              HasSubstr("tau"));
  EXPECT_THAT(Message("[\"alpha\", \"sigma\"]", "[\"alpha\", \"beta\"]"),
              HasSubstr("unknown array \"beta\""));
  EXPECT_THAT(Message("[\"alpha\", \"sigma\"]", "[1]"),
              HasSubstr("arrays.names: is a whole number"));
  EXPECT_THAT(Message("data_scale = 1.0", "data_scale = 1.0\nalpha = [1, 0]"),
              HasSubstr("alpha: stands here and in the .npz"));
  EXPECT_THAT(Message("names = ", "name = "), HasSubstr("did you mean \"names\"?"));
  EXPECT_THAT(Message("[arrays]", "[arrais]"), HasSubstr("did you mean \"arrays\"?"));
}

TEST_F(StoredArraysTest, ThePlanMayMoveWithItsNpz) {
  std::filesystem::create_directories(folder_.At("else"));
  std::filesystem::rename(folder_.At("plan.toml"), folder_.At("else/renamed.toml"));
  std::filesystem::rename(
      npz_, folder_.At("else") + "/" + std::filesystem::path(npz_).filename().string());
  const auto read = ReadPlan(folder_.At("else/renamed.toml"));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(Difference(LargeDocument(70, 3), *read), "");
}

}  // namespace
}  // namespace mergeplan
