// Which parts of a data set may be merged: against lists of sample numbers.
#include "planner/spectrum/parts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <set>

namespace mergeplan {
namespace {

using ::testing::HasSubstr;

SpectrumPart Part(int k, int of, bool every = false, const std::string& source = "x.npz") {
  SpectrumPart part;
  part.source = source;
  part.of = of;
  part.every = of > 1 && every;
  part.numbers = {{k, k}};
  return part;
}

// The samples of a part of `n`, as shard.h says.
std::set<int> SamplesOf(const SpectrumPart& part, int n) {
  std::set<int> out;
  for (const auto& [from, to] : part.numbers) {
    for (int k = from; k <= to; ++k) {
      for (int s = 0; s < n; ++s) {
        const bool in =
            part.every ? s % part.of == k - 1 : n / part.of * (k - 1) <= s && s < n / part.of * k;
        if (in) out.insert(s);
      }
    }
  }
  return out;
}

TEST(SpectrumParts, AreRefusedExactlyWhereTheyShareSamples) {
  std::mt19937_64 random(3);
  constexpr int kSamples = 2 * 2 * 2 * 3 * 3 * 5;  // divided evenly by all numbers of parts below
  constexpr int kCounts[] = {1, 2, 3, 4, 5, 6, 8, 9, 12};
  int refused = 0;
  for (int trial = 0; trial < 400; ++trial) {
    const bool every = trial % 2 == 0;
    std::vector<SpectrumPart> parts;
    std::set<int> seen;
    for (int added = 0; added < 5; ++added) {
      const int of = kCounts[random() % std::size(kCounts)];
      const SpectrumPart part = Part(static_cast<int>(random() % of) + 1, of, every);
      const std::set<int> samples = SamplesOf(part, kSamples);
      bool common = false;
      for (const int s : samples) common = common || seen.contains(s);
      const std::vector<SpectrumPart> before = parts;
      const absl::Status status = AddParts({part}, parts);
      EXPECT_EQ(status.ok(), !common) << Describe(part);
      refused += common;
      if (common) {
        EXPECT_THAT(status.message(), HasSubstr("samples in common"));
        parts = before;
        continue;
      }
      seen.insert(samples.begin(), samples.end());
    }
    std::set<int> described;
    for (const SpectrumPart& part : parts) described.merge(SamplesOf(part, kSamples));
    EXPECT_EQ(described, seen);
    EXPECT_EQ(MissingParts(parts)->empty(), static_cast<int>(seen.size()) == kSamples);
  }
  EXPECT_GT(refused, 100);
}

TEST(SpectrumParts, OfOneDivisionAreTheWhole) {
  std::vector<SpectrumPart> parts;
  ASSERT_TRUE(AddParts({Part(3, 4), Part(1, 4)}, parts).ok());
  EXPECT_EQ(PartNumbersText(parts[0]), "1,3");
  EXPECT_EQ(*MissingParts(parts), "only parts 1,3 of 4 of x.npz");
  ASSERT_TRUE(AddParts({Part(2, 4)}, parts).ok());
  EXPECT_EQ(PartNumbersText(parts[0]), "1-3");
  ASSERT_TRUE(AddParts({Part(4, 4)}, parts).ok());
  ASSERT_EQ(parts.size(), 1u);
  EXPECT_EQ(parts[0], Part(1, 1));
  EXPECT_EQ(*MissingParts(parts), "");
  EXPECT_FALSE(AddParts({Part(1, 1)}, parts).ok());
}

TEST(SpectrumParts, OfDifferentDataAreNoWhole) {
  std::vector<SpectrumPart> parts;
  // Two arrays of one file.
  SpectrumPart a = Part(1, 2), b = Part(2, 2);
  a.sha256 = b.sha256 = "same";
  a.array = "a";
  b.array = "b";
  ASSERT_TRUE(AddParts({a, b}, parts).ok());
  EXPECT_THAT(MissingParts(parts).status().message(),
              HasSubstr("part 1 of 2 of x.npz, array a beside part 2 of 2 of x.npz, array b"));
  b.array = "";  // the only one there is
  parts.clear();
  ASSERT_TRUE(AddParts({a, b}, parts).ok());
  EXPECT_EQ(*MissingParts(parts), "");
  // One file under two names, and two files under one.
  b.source = "elsewhere/x.npz";
  parts.clear();
  ASSERT_TRUE(AddParts({a, b}, parts).ok());
  EXPECT_EQ(*MissingParts(parts), "");
  b = Part(2, 2);
  b.sha256 = "other";
  parts.clear();
  ASSERT_TRUE(AddParts({a, b}, parts).ok());
  EXPECT_FALSE(MissingParts(parts).ok());
  // Whole ones may be merged.
  parts.clear();
  ASSERT_TRUE(AddParts({Part(1, 1), Part(1, 1, false, "y.npz")}, parts).ok());
  EXPECT_EQ(*MissingParts(parts), "");
  // Two ways to cut.
  parts.clear();
  EXPECT_THAT(AddParts({Part(1, 2), Part(2, 2, true)}, parts).message(),
              HasSubstr("of one division"));
}

TEST(SpectrumParts, NumbersAreReadAsWritten) {
  for (const std::string text : {"1", "1-3,5", "2,4,6-9"}) {
    SpectrumPart part = Part(1, 9);
    part.numbers = *ParsePartNumbers(text, 9);
    EXPECT_EQ(PartNumbersText(part), text);
  }
  for (const std::string text :
       {"", "0", "10", "3-2", "2,1", "1,1", "1-", "-1", "1-2-3", "x", "99999999999999999999"}) {
    EXPECT_FALSE(ParsePartNumbers(text, 9).ok()) << text;
  }
}

// A hash of a sample of the file says nothing beside one of all of it: then the name decides.
TEST(SpectrumParts, AreOfOneFileByHashesOfOneKind) {
  SpectrumPart a = Part(1, 2), b = Part(2, 2, false, "copy.npz");
  a.sha256 = b.sha256 = "quick:1";
  EXPECT_TRUE(SameData(a, b));
  b.sha256 = "quick:2";
  EXPECT_FALSE(SameData(a, b));
  b.sha256 = "1";
  EXPECT_FALSE(SameData(a, b));
  b.source = a.source;
  EXPECT_TRUE(SameData(a, b));
  b.sha256 = "";
  EXPECT_TRUE(SameData(a, b));
}

}  // namespace
}  // namespace mergeplan
