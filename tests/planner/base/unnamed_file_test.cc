#include "planner/base/unnamed_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "planner/base/file.h"

namespace mergeplan {
namespace {

using testing::HasSubstr;

std::string Folder() {
  std::string pattern = testing::TempDir() + "unnamed XXXXXX";
  EXPECT_NE(mkdtemp(pattern.data()), nullptr);
  return pattern;
}

TEST(UnnamedFile, HoldsWhatWasAppendedAndLeavesNothing) {
  const std::string folder = Folder();
  {
    auto file = UnnamedFile::Create(folder);
    ASSERT_TRUE(file.ok()) << file.status();
    EXPECT_TRUE(std::filesystem::is_empty(folder));
    ASSERT_TRUE(file->Append("one, ").ok());
    UnnamedFile moved = std::move(*file);
    ASSERT_TRUE(moved.Append("two").ok());
    std::string out(6, ' ');
    ASSERT_TRUE(moved.Read(2, absl::MakeSpan(out)).ok());
    EXPECT_EQ(out, "e, two");
    EXPECT_EQ(ReadFile(moved.path()).value(), "one, two");
    const absl::Status beyond = moved.Read(3, absl::MakeSpan(out));
    EXPECT_EQ(beyond.code(), absl::StatusCode::kDataLoss);
    EXPECT_THAT(std::string(beyond.message()), HasSubstr("ends 1 bytes before"));
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder));
}

TEST(UnnamedFile, NamesTheFolder) {
  const auto none = UnnamedFile::Create("/nowhere at all");
  ASSERT_FALSE(none.ok());
  EXPECT_THAT(std::string(none.status().message()), HasSubstr("/nowhere at all: no file can be"));
}

}  // namespace
}  // namespace mergeplan
