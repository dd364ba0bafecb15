// The two parsers, and hostile bytes.

#include "planner/plan/io/node.h"

#include <cmath>
#include <fstream>
#include <random>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "planner/plan/io/document.h"
#include "tests/planner/plan/io/documents.h"

namespace mergeplan {
namespace {

using plan_io::kMaxDepth;
using plan_io::ParseJson;
using plan_io::ParseToml;

using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string JsonError(const std::string& text) {
  return std::string(ParseJson(text, "f.json").status().message());
}
std::string TomlError(const std::string& text) {
  return std::string(ParseToml(text, "f.toml").status().message());
}

TEST(ParseJsonTest, LinesOfValues) {
  const auto root = ParseJson("{\n\"a\": 1,\n\n\"b\": [\n2,\n3.5\n],\n\"c\": \"x\"}", "f.json");
  ASSERT_TRUE(root.ok()) << root.status();
  EXPECT_EQ(root->line, 1);
  EXPECT_EQ(root->Find("a")->line, 2);
  EXPECT_EQ(root->Find("b")->line, 4);
  EXPECT_EQ((*root->Find("b")->list())[0].line, 5);
  EXPECT_EQ((*root->Find("b")->list())[1].line, 6);
  EXPECT_EQ(root->Find("c")->line, 8);
  EXPECT_EQ(root->Find("d"), nullptr);
}

TEST(ParseJsonTest, ErrorsSayWhere) {
  EXPECT_THAT(JsonError("{\n  \"a\": 1,\n  \"b\": tru\n}"), StartsWith("f.json:3:"));
  EXPECT_THAT(JsonError("{\n  \"a\": 1,\n  \"b\": tru\n}"), HasSubstr("no valid JSON"));
  EXPECT_THAT(JsonError(""), StartsWith("f.json:1:"));
  EXPECT_THAT(JsonError("{\"a\": 1"), HasSubstr("no valid JSON"));
  EXPECT_THAT(JsonError("{\"a\": 1}\n}"), StartsWith("f.json:2:"));
  EXPECT_THAT(JsonError("{\"a\": 1e999}"), HasSubstr("f.json:1:"));
  EXPECT_THAT(JsonError("{\"a\": NaN}"), HasSubstr("no valid JSON"));
  EXPECT_THAT(JsonError("{\"a\": 1,\n\"a\": 2}"), HasSubstr("the key \"a\" is given twice"));
  EXPECT_THAT(JsonError("{\"a\": 1,\n\"a\": 2}"), StartsWith("f.json:2:"));
  EXPECT_THAT(JsonError("\"\xFF\""), HasSubstr("no valid JSON"));
}

TEST(ParseJsonTest, DeepNestingIsRefused) {
  const std::string deep(1'000'000, '[');
  EXPECT_THAT(JsonError(deep), HasSubstr("nested deeper than"));
  EXPECT_TRUE(ParseJson(std::string(kMaxDepth, '[') + std::string(kMaxDepth, ']'), "f").ok());
  EXPECT_FALSE(
      ParseJson(std::string(kMaxDepth + 1, '[') + std::string(kMaxDepth + 1, ']'), "f").ok());
}

TEST(ParseTomlTest, LinesAndOrder) {
  const auto root = ParseToml("z = 1\n\na = [\n 2,\n 3.5]\n[t]\ny = 1\nb = 2\n", "f.toml");
  ASSERT_TRUE(root.ok()) << root.status();
  EXPECT_EQ(root->Find("z")->line, 1);
  EXPECT_EQ((*root->Find("a")->list())[1].line, 5);
  ASSERT_EQ(root->Find("t")->table()->size(), 2U);
  EXPECT_EQ((*root->Find("t")->table())[0].key, "y");
  EXPECT_EQ((*root->Find("t")->table())[1].key, "b");
}

TEST(ParseTomlTest, ErrorsSayWhere) {
  EXPECT_THAT(TomlError("a = 1\nb = [1, 2\nc = 3\n"), StartsWith("f.toml:3:"));
  EXPECT_THAT(TomlError("a = 1\nb == 2\n"), StartsWith("f.toml:2:"));
  EXPECT_THAT(TomlError("a = 1\nb == 2\n"), HasSubstr("no valid TOML"));
  EXPECT_THAT(TomlError("a = \"\xFF\""), StartsWith("f.toml:1:"));
  EXPECT_THAT(TomlError("a = " + std::string(100'000, '[')), HasSubstr("f.toml:1:"));
}

TEST(ParseTest, BrokenFilesNameTheirPath) {
  const TempFolder folder;
  for (const char* name : {"plan.toml", "plan.json"}) {
    const std::string path = folder.Write(name, "{ \"a\": [1, 2 }");
    const auto read = ReadPlan(path);
    ASSERT_FALSE(read.ok());
    EXPECT_THAT(std::string(read.status().message()), StartsWith(path + ":1:"));
  }
  // Well-formed, but no document.
  EXPECT_THAT(std::string(ReadPlan(folder.Write("p.json", "[1]")).status().message()),
              HasSubstr("is a list, expected a table"));
  EXPECT_FALSE(ReadPlan(folder.Write("p.toml", "")).ok());
  EXPECT_THAT(std::string(ReadPlan(folder.At("")).status().message()), HasSubstr("is a folder"));
}

// Bytes of a good file changed, cut or doubled at random: an error or a document, never a crash,
// and never a certificate for another plan.
TEST(ParseTest, DamagedFiles) {
  const TempFolder folder;
  std::mt19937_64 random(5);
  const PlanDocument d = SmallDocument();
  for (const char* name : {"plan.toml", "plan.json"}) {
    ASSERT_TRUE(WritePlan(d, folder.At(name)).ok());
    const std::string good = *ReadFile(folder.At(name));
    int errors = 0;
    for (int round = 0; round < 500; ++round) {
      std::string text = good;
      for (int edits = 1 + static_cast<int>(random() % 3); edits > 0; --edits) {
        const size_t at = random() % text.size();
        switch (random() % 4) {
          case 0:
            text[at] = static_cast<char>(random());
            break;
          case 1:
            text.erase(at, 1 + random() % 20);
            break;
          case 2:
            text.insert(at, text.substr(random() % text.size(), random() % 20));
            break;
          default:
            text[at] = static_cast<char>('0' + random() % 10);
        }
        if (text.empty()) text.assign(1, ' ');
      }
      std::ofstream(folder.At(name), std::ios::binary | std::ios::trunc) << text;
      const auto read = ReadPlan(folder.At(name));
      if (!read.ok()) {
        ++errors;
        EXPECT_THAT(std::string(read.status().message()), StartsWith(folder.At(name)));
        continue;
      }
      if (read->status != "unchecked") {
        PlanDocument same = *read;
        same.input = d.input;
        same.seconds = d.seconds;
        EXPECT_EQ(Difference(d, same), "") << text;
      } else {
        EXPECT_EQ(read->lower_bound, 0);
        EXPECT_TRUE(std::isfinite(read->objective));
      }
    }
    EXPECT_GT(errors, 100);
  }
}

}  // namespace
}  // namespace mergeplan
