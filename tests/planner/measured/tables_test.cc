#include "planner/measured/tables.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <random>

#include "planner/measured/model.h"
#include "tests/planner/measured/cases.h"

namespace mergeplan {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

class MeasuredFile : public testing::Test {
 protected:
  MeasuredFile() {
    std::string pattern = testing::TempDir() + "measured XXXXXX";
    EXPECT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  ~MeasuredFile() override { std::filesystem::remove_all(folder_); }
  std::string Path() const { return folder_ + "/measured.toml"; }
  // Not synced, unlike the files of the library: there are thousands.
  void Write(const std::string& text) const {
    std::ofstream out(Path(), std::ios::binary);
    out << text;
    EXPECT_TRUE(out.flush().good());
  }
  std::string ErrorOf(const std::string& text) const {
    Write(text);
    const auto read = ReadMeasured(Path());
    return read.ok() ? "none" : std::string(read.status().message());
  }

 private:
  std::string folder_;
};

constexpr char kByHand[] = R"(format = 1
kind = "measured"
teacher_steps = 4
combine = "rms"
gain = [
  { first = 1, last = 1, value = 0.9 },
  { first = 3, last = 3, value = 1.1, low = 1.0, high = 1.25 },
  { first = 1, last = 3, value = 1 },
]
distance = [
  { first = 1, last = 2, value = 0.1 },
  { first = 3, last = 4, value = 0.2 },
  { first = 1, last = 4, start = 4, value = 0.5 },
  { first = 1, last = 4, start = 2, value = 0.1 },
]
residual = [
  { first = 1, last = 2, updates = 100, value = 0.5 },
  { first = 3, last = 4, updates = 100, value = 0.4 },
  { first = 3, last = 4, updates = 300, value = 0.3 },
  { first = 1, last = 4, updates = 100, value = 0.6, low = 0.5, high = 0.7 },
]
floor = [
  { first = 1, last = 2, value = 0.0 },
  { first = 3, last = 4, value = 0.02 },
  { first = 1, last = 4, value = 0.05 },
]
)";

TEST_F(MeasuredFile, ByHand) {
  ASSERT_EQ(ErrorOf(kByHand), "none");
  const MeasuredTables t = *ReadMeasured(Path());
  EXPECT_EQ(t.combine, Combine::kRms);
  EXPECT_EQ(t.gain[0].low, 0.9);
  EXPECT_EQ(t.gain[0].high, 0.9);
  EXPECT_EQ(t.gain[1].high, 1.25);
  EXPECT_EQ(t.distance[3].start, 2);
  EXPECT_EQ(t.residual[2].updates, 300);
}

TEST_F(MeasuredFile, ReadsBackEqual) {
  std::mt19937_64 random(1);
  for (int n = 0; n < 40; ++n) {
    CaseKind kind;
    kind.steps = Pick(random, 2, 8);
    kind.start_matters = n % 2 == 0;
    MeasuredTables t = MakeCase(kind, random).Tables();
    t.combine = n % 3 == 0 ? Combine::kRms : Combine::kSum;
    t.source = "run \"7\"\\\n\ttab, ü";
    for (MeasuredEntry& e : t.floor) {
      e.low = e.value / 3;
      e.high = e.value * 1e9;
    }
    ASSERT_TRUE(WriteMeasured(t, Path()).ok());
    const auto read = ReadMeasured(Path());
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(*read, t);
  }
}

struct Fault {
  const char* from;
  const char* to;
  const char* line;  // expected after the path; empty: none
  const char* says;
};

TEST_F(MeasuredFile, FaultsAreNamed) {
  const Fault faults[] = {
      {"format = 1", "format = 2", ":1: ", "format: is 2; expected 1..1"},
      {"kind = \"measured\"", "kind = \"plan\"", ":2: ", "kind: is \"plan\""},
      {"kind = \"measured\"", "", ":1: ", "kind: is missing"},
      {"teacher_steps = 4", "teacher_steps = 1", ":3: ", "teacher_steps: is 1; expected 2..1024"},
      {"teacher_steps = 4", "teacher_steps = 4.0", ":3: ", "expected a whole number"},
      {"teacher_steps = 4", "teacher_steps = 4\nstart = 2", ":4: ", "start: unknown key"},
      {"\"rms\"", "\"mean\"", ":4: ", "combine: is \"mean\"; expected sum or rms"},
      {"value = 0.9", "valu = 0.9", ":6: ", "gain[0].valu: unknown key"},
      {"value = 0.9", "updates = 3, value = 0.9", ":6: ", "gain[0].updates: unknown key"},
      {"value = 0.9", "value = \"a\"", ":6: ", "gain[0].value: is of type string"},
      {"value = 0.9", "value = nan", ": ", "gain[0]: value is nan"},
      {"value = 0.9", "value = inf", ": ", "gain[0]: value is inf"},
      {"value = 0.9", "value = -0.1", ": ", "gain[0]: value is -0.1"},
      {"low = 1.0", "low = 1.2", ": ", "gain[1]: low, value, high are 1.2, 1.1, 1.25"},
      {"high = 1.25", "high = 1.05", ": ", "gain[1]: low, value, high are 1, 1.1, 1.05"},
      {"first = 1, last = 3, value = 1", "first = 1, last = 4, value = 1", ": ",
       "gain[2]: first = 1, last = 4; expected 1 <= first, last <= 3"},
      {"first = 1, last = 3, value = 1", "first = 2, last = 3, value = 1", ": ",
       "gain: nothing is measured for [1, 3]; the corners [1, 1], [3, 3] and [1, 3]"},
      {"first = 1, last = 1, value = 0.9", "first = 2, last = 2, value = 0.9", ": ",
       "gain: nothing is measured for [1, 1]; with ranges of 1 step measured, both ends"},
      {"first = 1, last = 2, value = 0.1", "first = 1, last = 1, value = 0.1", ": ",
       "distance[0]: first = 1, last = 1"},
      {"start = 2, value", "start = 1, value", ": ", "distance[3]: start is 1"},
      {"start = 2, value", "start = 3, value", ": ", "distance: [1, 4]: start 2 is missing"},
      {"start = 2, value", "start = 4, value", ": ", "given twice, also as distance[2]"},
      {"start = 4, value", "value", ": ", "with a start and without"},
      {"updates = 300", "updates = 0", ":19: ", "residual[2].updates: is 0"},
      {"updates = 300", "updates = 100", ": ", "[3, 4] after 100 updates is given twice"},
      {"updates = 300, value = 0.3", "updates = 300, value = 0.5", ": ",
       "residual: [3, 4]: value is 0.5 after 300 updates and 0.4 after 100"},
      {"high = 0.7", "high = 1.2", ": ", "residual[3]: high is 1.2; expected a number from 0 to 1"},
      {"first = 1, last = 4, value = 0.05", "first = 2, last = 4, value = 0.05", ": ",
       "floor: nothing is measured for [1, 4]"},
      {"floor = [", "flor = [", ":22: ", "flor: unknown key; expected one of format"},
      {"floor = [", "floor = [ 3,", ":22: ", "floor[0]: is of type integer; expected a table"},
      {"floor = [", "floor = [", "", "none"},
      {"format = 1", "format = = 1", ":1:", "expected a TOML file"},
  };
  for (const Fault& fault : faults) {
    std::string text = kByHand;
    const size_t at = text.find(fault.from);
    ASSERT_NE(at, text.npos) << fault.from;
    text.replace(at, std::string(fault.from).size(), fault.to);
    const std::string error = ErrorOf(text);
    EXPECT_THAT(error, HasSubstr(fault.says)) << fault.to;
    if (*fault.line != 0) {
      EXPECT_THAT(error, StartsWith(Path() + fault.line)) << fault.to;
    }
    EXPECT_EQ(error.find('\n'), error.npos);
  }
  EXPECT_THAT(std::string(ReadMeasured(Path() + ".none").status().message()),
              HasSubstr("measured.toml.none"));
}

TEST_F(MeasuredFile, APlanIsToldFromTables) {
  EXPECT_THAT(ErrorOf("format = 1\nteacher_steps = 5\nblocks = [[1, 5]]\n[certificate]\n"),
              HasSubstr("is a plan, expected measured tables (mergeplan calibrate"));
}

// No damaged file crashes, and none is read as something else than it says.
TEST_F(MeasuredFile, DamagedFilesGiveErrorsOrWholeTables) {
  std::mt19937_64 random(2);
  const std::string good = kByHand;
  for (int n = 0; n < 2000; ++n) {
    std::string text = good;
    for (int k = Pick(random, 1, 3); k > 0; --k) {
      const size_t at = random() % text.size();
      if (random() % 2 == 0) {
        text[at] = static_cast<char>(Pick(random, 1, 126));
      } else {
        text.erase(at, Pick(random, 1, 8));
      }
    }
    Write(text);
    const auto read = ReadMeasured(Path());
    if (read.ok()) {
      EXPECT_TRUE(MeasuredModel::Create(*read).ok());
    } else {
      EXPECT_FALSE(read.status().message().empty());
    }
  }
}

TEST_F(MeasuredFile, WritingRefusesWhatReadingWould) {
  ASSERT_EQ(ErrorOf(kByHand), "none");
  MeasuredTables t = *ReadMeasured(Path());
  t.floor[1].high = std::nan("");
  EXPECT_THAT(std::string(WriteMeasured(t, Path()).message()),
              AllOf(StartsWith(Path()), HasSubstr("floor[1]: high is nan")));
  t = *ReadMeasured(Path());  // the old file stands
  t.source = "\xff";
  EXPECT_THAT(WriteMeasured(t, Path()).message(), HasSubstr("source"));
}

TEST(Functions, TablesHoldTheirValues) {
  MeasuredFunctions functions;
  functions.gain = [](int i, int m) { return MeasuredValue{1.0 + m - i, 0.5, 20}; };
  functions.distance = [](int i, int a, int j) {
    return MeasuredValue::Exactly(100.0 * i + 10 * a + j);
  };
  functions.residual = [](int, int, std::int64_t u) {
    return MeasuredValue::Exactly(1.0 / (1 + static_cast<double>(u)));
  };
  functions.floor = [](int i, int j) { return MeasuredValue::Exactly(i + j); };
  const auto tables = TablesOfFunctions(6, functions, {1, 10}, true);
  ASSERT_TRUE(tables.ok()) << tables.status();
  const auto model = MeasuredModel::Create(*tables);
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(model->Distance(2, 4, 5).At(model->values()), 245);
  EXPECT_EQ(model->Residual(2, 5, 10).At(model->values()), 1.0 / 11);
  EXPECT_EQ(model->Gain(2, 4).At(model->highs()), 20);
  const auto plain = TablesOfFunctions(6, functions, {1, 10}, false);
  ASSERT_TRUE(plain.ok());
  EXPECT_FALSE(MeasuredModel::Create(*plain)->start_matters());
  functions.floor = [](int, int) { return MeasuredValue::Exactly(-1); };
  EXPECT_THAT(TablesOfFunctions(6, functions, {1}, false).status().message(),
              HasSubstr("floor[0]: value is -1"));
  EXPECT_THAT(TablesOfFunctions(1, functions, {1}, false).status().message(),
              HasSubstr("teacher_steps is 1"));
}

TEST(CombineWord, BothWords) {
  EXPECT_EQ(*ParseCombine("sum"), Combine::kSum);
  EXPECT_EQ(*ParseCombine("rms"), Combine::kRms);
  EXPECT_THAT(ParseCombine("max").status().message(), HasSubstr("expected sum or rms"));
}

}  // namespace
}  // namespace mergeplan
