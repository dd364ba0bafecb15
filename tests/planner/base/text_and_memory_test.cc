#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "planner/base/memory.h"
#include "planner/base/utf8.h"

namespace mergeplan {
namespace {

TEST(Utf8, TellsWellFormedTextFromOther) {
  for (const char* text : {"", "plain", "caf\xC3\xA9", "\xE2\x82\xAC", "\xF0\x9F\x98\x80", "\x7F",
                           "\xEF\xBF\xBD", "\xF4\x8F\xBF\xBF", "\xED\x9F\xBF"}) {
    EXPECT_TRUE(IsUtf8(text)) << text;
    EXPECT_EQ(ReplaceInvalidUtf8(text), text);
  }
  // Latin-1, cut short, overlong twice, a surrogate, beyond U+10FFFF, bare continuations, 0xFF.
  for (const char* text : {"caf\xE9", "\xE2\x82", "\xC0\x80", "\xE0\x80\xAF", "\xED\xA0\x80",
                           "\xF4\x90\x80\x80", "\x80", "\xFF", "\xF5\x80\x80\x80"}) {
    EXPECT_FALSE(IsUtf8(text)) << text;
    EXPECT_TRUE(IsUtf8(ReplaceInvalidUtf8(text)));
  }
  EXPECT_EQ(ReplaceInvalidUtf8("a\xE9z\xC3\xA9\x80"), "a\xEF\xBF\xBDz\xC3\xA9\xEF\xBF\xBD");
}

TEST(Memory, RefusesOnlyWhatIsNotThere) {
  EXPECT_GT(AvailableMemory(), std::uint64_t{1} << 20);
  EXPECT_TRUE(CheckMemory("this", 1 << 20).ok());
  const absl::Status refused = CheckMemory("that", 1e18);
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(
      std::string(refused.message()),
      testing::MatchesRegex("that needs about 931322574.6 GiB of memory, [0-9.]+ [GM]iB are free"));
}

}  // namespace
}  // namespace mergeplan
