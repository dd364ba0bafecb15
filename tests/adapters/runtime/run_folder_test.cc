#include "adapters/runtime/run_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "adapters/runtime/arguments.h"
#include "planner/base/file.h"
#include "tests/adapters/support.h"
#include "tests/planner/runs/some_info.h"

namespace mergeplan {
namespace {

using ::mergeplan::testing::TemporaryFolder;
using ::testing::HasSubstr;

TEST(RunFolder, KeepsWhatARunIs) {
  const TemporaryFolder temporary;
  const std::string path = temporary.File("a/run");
  {
    const auto folder = RunFolder::Open(path, /*resume=*/false);
    ASSERT_TRUE(folder.ok()) << folder.status();
    EXPECT_FALSE(folder->previous());
    ASSERT_TRUE(folder->WriteInfo(SomeInfo()).ok());
  }
  const auto folder = RunFolder::Open(path, /*resume=*/true);
  ASSERT_TRUE(folder.ok()) << folder.status();
  ASSERT_TRUE(folder->previous());
  const RunInfo &a = *folder->previous(), b = SomeInfo();
  EXPECT_EQ(a.status, b.status);
  EXPECT_EQ(a.strategy, b.strategy);
  EXPECT_EQ(a.plugin, b.plugin);
  EXPECT_EQ(a.parameters, b.parameters);
  EXPECT_EQ(a.teacher_file, b.teacher_file);
  EXPECT_EQ(a.seed, b.seed);
  EXPECT_EQ(a.batch, b.batch);
  EXPECT_EQ(a.plan_sha256, b.plan_sha256);
  EXPECT_EQ(a.fingerprint, b.fingerprint);
}

TEST(RunFolder, RefusesToBeginWhereSomethingIs) {
  const TemporaryFolder temporary;
  const std::string path = temporary.File("run");
  EXPECT_TRUE(IsMisuse(RunFolder::Check(path, /*resume=*/true)));
  EXPECT_TRUE(RunFolder::Check(path, /*resume=*/false).ok());
  {
    const auto folder = RunFolder::Open(path, /*resume=*/false);
    ASSERT_TRUE(folder.ok());
    // Two programs in one folder.
    EXPECT_EQ(RunFolder::Open(path, false).status().code(), absl::StatusCode::kFailedPrecondition);
    // Begun, but killed before it wrote what it is: may begin again.
    ASSERT_TRUE(WriteFileAtomically(folder->File("plan.toml"), "x").ok());
    EXPECT_TRUE(RunFolder::Check(path, false).ok());
    RunInfo info = SomeInfo();
    info.status = RunStatus::kFinished;
    ASSERT_TRUE(folder->WriteInfo(info).ok());
  }
  const absl::Status finished = RunFolder::Check(path, /*resume=*/false);
  EXPECT_TRUE(IsMisuse(finished));
  EXPECT_THAT(finished.message(), HasSubstr("holds a finished run of boot"));

  const std::string other = temporary.File("other");
  ASSERT_TRUE(MakeDirectories(other).ok());
  ASSERT_TRUE(WriteFileAtomically(other + "/thesis.txt", "x").ok());
  const absl::Status foreign = RunFolder::Open(other, /*resume=*/false).status();
  EXPECT_TRUE(IsMisuse(foreign));
  EXPECT_THAT(foreign.message(), HasSubstr("thesis.txt"));
  EXPECT_FALSE(std::filesystem::exists(other + "/lock"));
}

}  // namespace
}  // namespace mergeplan
