#include "adapters/experts/state_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "planner/base/file.h"
#include "planner/data/npz.h"
#include "planner/operators/canonical.h"
#include "tests/adapters/experts/support.h"

namespace mergeplan::experts {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class StateFile : public ::testing::Test {
 protected:
  StateFile() {
    std::string pattern = (std::filesystem::temp_directory_path() / "experts-XXXXXX").string();
    folder_ = mkdtemp(pattern.data());
    path_ = folder_ + "/state.npz";
  }
  ~StateFile() override { std::filesystem::remove_all(folder_); }

  static Executor Make(ExecutorOptions options) {
    options.seeds = {3, 4};
    return Executor::Create(SmallMixture(), CosineSchedule(4),
                            CanonicalPlan(Strategy::kProgressive, 4).value(), std::move(options))
        .value();
  }

  // The state of a run that was stopped at this question.
  static ExecutorState StoppedAt(int question, ExecutorOptions options) {
    options.stop = [&] { return --question < 0; };
    Executor executor = Make(options);
    EXPECT_EQ(executor.TrainAll().code(), absl::StatusCode::kCancelled);
    return executor.Save();
  }

  std::string folder_, path_;
};

// Through a file at several places: in the fit, in a merge, between rounds.
TEST_F(StateFile, ARunGoesOnBitByBit) {
  for (const OptimizerKind kind : {OptimizerKind::kAdam, OptimizerKind::kSgd}) {
    ExecutorOptions options = SmallOptions();
    options.optimizer.kind = kind;
    Executor expected = Make(options);
    ASSERT_TRUE(expected.TrainAll().ok());
    for (const int question : {0, 1, 3, 4, 5}) {
      SCOPED_TRACE(question);
      const ExecutorState state = StoppedAt(question, options);
      ASSERT_TRUE(WriteState(state, "print", path_).ok());
      const auto read = ReadState("print", path_);
      ASSERT_TRUE(read.ok()) << read.status();
      Executor executor = Make(options);
      ASSERT_TRUE(executor.Restore(*read).ok());
      ASSERT_TRUE(executor.TrainAll().ok());
      for (int trial = 0; trial < 2; ++trial) {
        ExpectSameTrial(executor.records(trial), expected.records(trial));
      }
    }
    // And when everything is done.
    ASSERT_TRUE(WriteState(expected.Save(), "print", path_).ok());
    const ExecutorState done = ReadState("print", path_).value();
    EXPECT_TRUE(done.active.empty());
    for (int trial = 0; trial < 2; ++trial) {
      ExpectSameTrial(done.trials[trial], expected.records(trial));
      EXPECT_EQ(done.trials[trial].merges[0].seconds, expected.records(trial).merges[0].seconds);
    }
  }
}

TEST_F(StateFile, WhatIsNotThisRunIsRefused) {
  EXPECT_EQ(ReadState("print", path_).status().code(), absl::StatusCode::kNotFound);
  const ExecutorState state = StoppedAt(1, SmallOptions());
  ASSERT_TRUE(WriteState(state, "print", path_).ok());
  const absl::Status other = ReadState("another", path_).status();
  EXPECT_EQ(other.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(other.message(), AllOf(HasSubstr(path_), HasSubstr("another mixture")));
}

// Every array in turn is left out, and given another shape.
TEST_F(StateFile, ADamagedFileIsNamed) {
  ASSERT_TRUE(WriteState(StoppedAt(1, SmallOptions()), "print", path_).ok());
  const std::vector<std::string> names = NpzNames(path_).value();
  for (const std::string& damaged : names) {
    for (const bool left_out : {true, false}) {
      // Without these there is nothing in training, or no moments.
      if (left_out && (damaged == "active" || damaged == "active_moments")) continue;
      NpzWriter npz;
      for (const std::string& name : names) {
        const NpyArray array = ReadNpzArray(path_, name).value();
        if (name != damaged) {
          npz.Add(name, array.shape, array.values);
        } else if (!left_out) {
          npz.Add(name, {1, 1, 1, array.size()}, array.values);
        }
      }
      const std::string path = folder_ + "/damaged.npz";
      ASSERT_TRUE(npz.Write(path).ok());
      const absl::Status status = ReadState("print", path).status();
      EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << damaged;
      EXPECT_THAT(status.message(), AllOf(HasSubstr(path), HasSubstr(damaged)));
    }
  }
  // Cut in the middle.
  const std::string bytes = ReadFile(path_).value();
  ASSERT_TRUE(WriteFileAtomically(path_, bytes.substr(0, bytes.size() / 2)).ok());
  EXPECT_EQ(ReadState("print", path_).status().code(), absl::StatusCode::kDataLoss);
}

TEST_F(StateFile, ListsThatRunBackwardsAreNamed) {
  ASSERT_TRUE(WriteState(StoppedAt(1, SmallOptions()), "print", path_).ok());
  NpzWriter npz;
  const std::vector<std::string> names = NpzNames(path_).value();
  for (const std::string& name : names) {
    NpyArray array = ReadNpzArray(path_, name).value();
    if (name == "curve_ends") array.values[0] = 1e6;
    npz.Add(name, array.shape, array.values);
  }
  ASSERT_TRUE(npz.Write(path_).ok());
  EXPECT_THAT(ReadState("print", path_).status().message(), HasSubstr("array curve_ends has"));
}

}  // namespace
}  // namespace mergeplan::experts
