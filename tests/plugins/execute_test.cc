#include <algorithm>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "planner/operators/canonical.h"
#include "tests/plugins/fakes.h"
#include "tests/plugins/plugin_folder.h"

namespace mergeplan {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::StartsWith;

constexpr const char* kOurs[] = {"boot",   "consistency", "dp_custom", "greedy",
                                 "manual", "progressive", "vanilla"};

std::string ExecuteMessage(const absl::Status& status) { return std::string(status.message()); }

// ---- our own, which execute any plan round by round

class Ours : public ::testing::TestWithParam<const char*> {
 protected:
  Ours() : plugin_(LoadPlugin(GetParam(), {}).value()) {}
  std::shared_ptr<const Plugin> plugin_;
};

TEST_P(Ours, RoundsInOrderWithACheckpointEachAndAnEvaluation) {
  const Plan plan = CanonicalPlan(Strategy::kProgressive, 8).value();
  RecordingRuntime runtime(plan);
  ASSERT_TRUE(plugin_->Execute(plan, runtime).ok());
  EXPECT_THAT(runtime.calls, ElementsAre("round 1-2 3-4 5-6 7-8", "checkpoint", "round 1-4 5-8",
                                         "checkpoint", "round 1-8", "checkpoint", "evaluate"));
  EXPECT_THAT(runtime.progress,
              ElementsAre(Pair(4.0 / 7, "round 1 of 3"), Pair(6.0 / 7, "round 2 of 3"),
                          Pair(1.0, "round 3 of 3")));
  EXPECT_THAT(runtime.log, IsEmpty());
}

TEST_P(Ours, AChainIsARoundEach) {
  const Plan plan = CanonicalPlan(Strategy::kBoot, 4).value();
  RecordingRuntime runtime(plan);
  ASSERT_TRUE(plugin_->Execute(plan, runtime).ok());
  EXPECT_THAT(runtime.calls, ElementsAre("round 3-4", "checkpoint", "round 2-4", "checkpoint",
                                         "round 1-4", "checkpoint", "evaluate"));
}

TEST_P(Ours, BlocksTrainTogether) {
  const Plan plan = CanonicalPlan(Strategy::kVanilla, 7, 3).value();
  RecordingRuntime runtime(plan);
  ASSERT_TRUE(plugin_->Execute(plan, runtime).ok());
  EXPECT_THAT(runtime.calls, ElementsAre("round 1-2 3-5 6-7", "checkpoint", "evaluate"));
}

TEST_P(Ours, NothingToTrain) {
  const Plan plan = CanonicalPlan(Strategy::kVanilla, 3, 3).value();
  RecordingRuntime runtime(plan);
  ASSERT_TRUE(plugin_->Execute(plan, runtime).ok());
  EXPECT_THAT(runtime.calls, ElementsAre("evaluate"));
}

TEST_P(Ours, StopsBetweenRounds) {
  const Plan plan = CanonicalPlan(Strategy::kBoot, 5).value();
  for (int rounds_before = 0; rounds_before < 4; ++rounds_before) {
    RecordingRuntime runtime(plan);
    int trained = 0;
    runtime.cancel = rounds_before == 0;
    runtime.on_train = [&] { runtime.cancel = ++trained >= rounds_before; };
    const absl::Status status = plugin_->Execute(plan, runtime);
    EXPECT_EQ(status.code(), absl::StatusCode::kCancelled);
    EXPECT_THAT(ExecuteMessage(status),
                HasSubstr("stopped after " + std::to_string(rounds_before) + " of 4 merges"));
    EXPECT_EQ(trained, rounds_before);
    // What was trained has been written.
    EXPECT_EQ(std::count(runtime.calls.begin(), runtime.calls.end(), "checkpoint"), rounds_before);
    EXPECT_EQ(std::count(runtime.calls.begin(), runtime.calls.end(), "evaluate"), 0);
  }
}

TEST_P(Ours, ErrorsOfTheRuntimeEndTheRun) {
  const Plan plan = CanonicalPlan(Strategy::kBoot, 5).value();
  RecordingRuntime training(plan);
  training.train_status = absl::ResourceExhaustedError("out of device memory");
  EXPECT_EQ(plugin_->Execute(plan, training),
            absl::ResourceExhaustedError("plugin " + plugin_->name() +
                                         ": execute: out of device memory"));
  EXPECT_THAT(training.calls, ElementsAre("round 4-5"));

  RecordingRuntime writing(plan);
  writing.checkpoint_status = absl::DataLossError("disk full");
  EXPECT_EQ(plugin_->Execute(plan, writing).code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(writing.calls, ElementsAre("round 4-5", "checkpoint"));

  RecordingRuntime stopped(plan);
  stopped.train_status = absl::CancelledError("Ctrl-C");
  EXPECT_EQ(plugin_->Execute(plan, stopped).code(), absl::StatusCode::kCancelled);

  RecordingRuntime throwing(plan);
  throwing.on_train = [] { throw std::runtime_error("from the runtime"); };
  const absl::Status thrown = plugin_->Execute(plan, throwing);
  EXPECT_EQ(thrown.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(ExecuteMessage(thrown), HasSubstr("from the runtime"));

  RecordingRuntime wrong(plan);
  wrong.results_missing = true;
  EXPECT_THAT(ExecuteMessage(plugin_->Execute(plan, wrong)),
              HasSubstr("the runtime gave 0 results for 1 merges"));
}

INSTANTIATE_TEST_SUITE_P(Plugins, Ours, ::testing::ValuesIn(kOurs),
                         [](const auto& info) { return std::string(info.param); });

// ---- one that misbehaves

class OddExecute : public ::testing::Test {
 protected:
  OddExecute() {
    folder_.CopyLibrary("odd");
    folder_.Write("odd.toml", kOddManifest);
    plugin_ = LoadPlugin("odd", {folder_.path()}).value();
  }
  absl::Status Do(const std::string& what) {
    return plugin_->Execute(plan_, runtime_, {{"do", what}});
  }

  PluginFolder folder_;
  std::shared_ptr<const Plugin> plugin_;
  Plan plan_ =
      Plan::Create(
          4, std::vector<MergeSpec>{{{3, 4}, {{3, 3}, {4, 4}}}, {{1, 4}, {{1, 1}, {2, 2}, {3, 4}}}},
          std::vector<Range>{{1, 4}})
          .value();
  RecordingRuntime runtime_{plan_};
};

TEST_F(OddExecute, MergeByMerge) {
  EXPECT_TRUE(Do("good").ok());
  EXPECT_THAT(runtime_.calls, ElementsAre("train 3-4", "train 1-4"));
}

TEST_F(OddExecute, NamesThePluginAndTheFault) {
  struct Case {
    const char* what;
    absl::StatusCode code;
    const char* expected;
    std::vector<std::string> calls;
  };
  const Case cases[] = {
      {"throw", absl::StatusCode::kInternal, "across the border: in the run", {}},
      {"error", absl::StatusCode::kDataLoss, "lost it", {}},
      {"nothing",
       absl::StatusCode::kFailedPrecondition,
       "said that it was done, but trained 0 of 2 merges; [3, 4] is missing",
       {}},
      {"half",
       absl::StatusCode::kFailedPrecondition,
       "trained 1 of 2 merges; [1, 4] is missing",
       {"train 3-4"}},
      {"parent-first",
       absl::StatusCode::kFailedPrecondition,
       "merge [1, 4]: its child [3, 4] is not trained yet",
       {}},
      {"round-with-parent",
       absl::StatusCode::kFailedPrecondition,
       "merge [1, 4]: its child [3, 4] is not trained yet",
       {}},
      {"twice", absl::StatusCode::kAlreadyExists, "merge [3, 4] is trained already", {"train 3-4"}},
      {"twice-in-round",
       absl::StatusCode::kInvalidArgument,
       "merge [3, 4]: twice in one round",
       {}},
      {"unknown-merge",
       absl::StatusCode::kNotFound,
       "merge [2, 3]: the plan has no such merge",
       {}},
      {"empty-round",
       absl::StatusCode::kInvalidArgument,
       "merges of a round: found 0, expected 1 to 2",
       {}},
      {"endless-round",
       absl::StatusCode::kInvalidArgument,
       "merges of a round: found 2147483647",
       {}},
      {"other-thread", absl::StatusCode::kFailedPrecondition, "another thread", {}},
      {"small-result",
       absl::StatusCode::kInvalidArgument,
       "mergeplan_train_result: struct_size is 8",
       {}},
      {"small-evaluation",
       absl::StatusCode::kInvalidArgument,
       "mergeplan_evaluation: struct_size is 0",
       {}},
  };
  for (const Case& c : cases) {
    runtime_.calls.clear();
    const absl::Status status = Do(c.what);
    EXPECT_EQ(status.code(), c.code) << c.what << ": " << status;
    EXPECT_THAT(ExecuteMessage(status),
                AllOf(StartsWith("plugin odd: execute: "), HasSubstr(c.expected)));
    EXPECT_THAT(runtime_.calls, ElementsAreArray(c.calls)) << c.what;
  }
}

TEST_F(OddExecute, HiddenErrorsAreToldAnyway) {
  runtime_.checkpoint_status = absl::DataLossError("disk full");
  EXPECT_TRUE(Do("ignores-errors").ok());
  EXPECT_THAT(runtime_.log, ElementsAre("1 odd: went on after an error: disk full"));
  runtime_.train_status = absl::ResourceExhaustedError("no memory");
  EXPECT_THAT(ExecuteMessage(Do("ignores-errors")), HasSubstr("it was told before: disk full"));
}

TEST_F(OddExecute, ResultsArrive) {
  EXPECT_TRUE(Do("results").ok());
  EXPECT_THAT(runtime_.log, ElementsAre("0 odd: restored 1 updates 320 loss 2 to 0.5 in 0.125"));
}

TEST_F(OddExecute, ForgottenSnapshotsAreReleased) {
  const absl::Status status = Do("snapshots");
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_THAT(runtime_.calls, ElementsAre("train 3-4", "snapshot 3-4", "snapshot 3-4",
                                          "release 3-4", "train 1-4", "release 3-4"));
}

TEST_F(OddExecute, ProgressOutsideItsRangeIsDropped) {
  EXPECT_TRUE(Do("progress").ok());
  EXPECT_THAT(runtime_.progress, ElementsAre(Pair(0.25, ""), Pair(1.0, "")));
}

TEST_F(OddExecute, ParametersAreChecked) {
  const absl::Status status = plugin_->Execute(plan_, runtime_, {{"rate", "nan"}});
  EXPECT_THAT(ExecuteMessage(status), HasSubstr("plugin odd: parameter rate: found \"nan\""));
  EXPECT_THAT(runtime_.calls, IsEmpty());
}

TEST_F(OddExecute, APluginInPlainC) {
  folder_.CopyLibrary("c_plugin");
  folder_.Write("c_plugin.toml", kCPluginManifest);
  const auto plugin = LoadPlugin("c_plugin", {folder_.path()});
  ASSERT_TRUE(plugin.ok()) << plugin.status();
  EXPECT_TRUE((*plugin)->Execute(plan_, runtime_).ok());
  EXPECT_THAT(runtime_.calls, ElementsAre("train 3-4", "train 1-4"));
}

}  // namespace
}  // namespace mergeplan
