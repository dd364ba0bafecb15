#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/plugins/fakes.h"
#include "tests/plugins/plugin_folder.h"

namespace mergeplan {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

class PlanCall : public ::testing::Test {
 protected:
  PlanCall() {
    folder_.CopyLibrary("odd");
    folder_.Write("odd.toml", kOddManifest);
    auto plugin = LoadPlugin("odd", {folder_.path()});
    EXPECT_TRUE(plugin.ok()) << plugin.status();
    if (plugin.ok()) plugin_ = *plugin;
  }

  absl::StatusOr<Plan> Do(const std::string& what) { return Do(what, Question(4)); }
  absl::StatusOr<Plan> Do(const std::string& what, PlanRequest request) {
    request.parameters["do"] = what;
    auto plan = plugin_->MakePlan(request, services_);
    if (!plan.ok()) {
      EXPECT_THAT(Text(plan), AllOf(StartsWith("plugin odd: "), Not(HasSubstr("\n"))));
    }
    return plan;
  }
  static std::string Text(const absl::StatusOr<Plan>& plan) {
    return std::string(plan.status().message());
  }

  PluginFolder folder_;
  std::shared_ptr<const Plugin> plugin_;
  RecordingServices services_;
};

TEST_F(PlanCall, Good) {
  const auto plan = Do("good");
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->ToString(), "(1 2 (3 4))");
}

TEST_F(PlanCall, ThrownThroughTheBorder) {
  EXPECT_EQ(
      Do("throw").status(),
      absl::InternalError("plugin odd: plan: threw an exception across the border: went wrong"));
  const auto thrown = Do("throw-int");
  EXPECT_EQ(thrown.status().code(), absl::StatusCode::kInternal);
  EXPECT_THAT(Text(thrown), HasSubstr("no std::exception"));
}

TEST_F(PlanCall, ReportedErrors) {
  EXPECT_EQ(Do("error").status(), absl::OutOfRangeError("plugin odd: plan: no such thing"));
  EXPECT_EQ(Do("error-without-text").status(),
            absl::AbortedError("plugin odd: plan: failed without saying why"));
  for (const char* what : {"unknown-code", "negative-code"}) {
    const auto plan = Do(what);
    EXPECT_EQ(plan.status().code(), absl::StatusCode::kUnknown);
    EXPECT_THAT(Text(plan), HasSubstr("which is no canonical code"));
  }
  for (const char* what : {"huge-text", "text-without-end"}) {
    const auto plan = Do(what);
    EXPECT_EQ(plan.status().code(), absl::StatusCode::kInternal);
    EXPECT_GT(Text(plan).size(), 900u);
    EXPECT_LT(Text(plan).size(), 1100u);
  }
  EXPECT_THAT(Text(Do("control-text")), HasSubstr("plan: a [31mb c? d"));
}

TEST_F(PlanCall, TreesThatAreNoPlans) {
  const std::pair<const char*, const char*> cases[] = {
      {"nothing", "gave no blocks"},
      {"no-blocks", "gave no blocks"},
      {"gap", "gave no valid plan: merge [1, 4]: gap, step 2 is missing"},
      {"overlap", "gave no valid plan: merge [1, 4]: overlap"},
      {"missing-child", "merge [1, 4] uses [1, 2], but no merge with that range is given"},
      {"outside", "gave no valid plan: merge [2147483647, 2147483647]"},
      {"two-blocks", "gave 2 blocks, expected 1"},
      {"blocks-twice", "the blocks are set twice"},
      {"one-child", "merge [1, 2]: children: found 1, expected 2 to 4"},
      {"null-children", "merge [1, 4]: children: the list is NULL"},
      {"negative-count", "merge [1, 4]: children: found -2, expected 2 to 4"},
      {"merges-for-ever", "more merges than 3"},
      {"ignores-sink-error", "merge [1, 2]: children: found 1"},
      {"null-error", "failed without saying why"},
  };
  for (const auto& [what, expected] : cases) {
    const auto plan = Do(what);
    ASSERT_FALSE(plan.ok()) << what;
    EXPECT_THAT(Text(plan), HasSubstr(expected)) << what;
  }
  EXPECT_THAT(Text(Do("small-error")), HasSubstr("plan: mer|ed!"));
}

TEST_F(PlanCall, CallsFromOtherThreadsAreRefused) {
  const auto plan = Do("other-thread");
  EXPECT_EQ(plan.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(Text(plan), HasSubstr("another thread"));
}

TEST_F(PlanCall, SolveAndItsOptions) {
  ASSERT_TRUE(Do("solve").ok());
  EXPECT_THAT(services_.log, ElementsAre("0 odd: status 0 bounded"));
  services_.log.clear();
  ASSERT_TRUE(Do("solve-two-steps").ok());
  EXPECT_THAT(services_.log, ElementsAre("0 odd: blocks 2"));
  const std::pair<const char*, const char*> cases[] = {
      {"solve-full-sink", "the plugin's sink is full"},
      {"solve-throwing-sink", "the plugin's sink throws"},
      {"solve-null-sink", "sink is NULL"},
      {"solve-small-sink", "mergeplan_plan_sink: struct_size is 8"},
      {"solve-nan-gap", "options.gap: found nan"},
      {"solve-nan-time", "options.time_limit_seconds: found nan"},
      {"solve-bad-init", "options.init: found 4, expected 0 to 3"},
      {"solve-unknown-field", "options.fields: found 256, expected no bits above 255"},
      {"solve-negative-limit", "options.max_rounds: found -1, expected 0 (any number) or more"},
      {"solve-limit-outside", "mergeplan_solve_options: struct_size is"},
      {"solve-small-options", "mergeplan_solve_options: struct_size is 4"},
      {"evaluate-bad-tree", "no merge with that range is given"},
      {"evaluate-null", "merges: an entry is NULL"},
      {"parse-null", "path is NULL"},
  };
  for (const auto& [what, expected] : cases) {
    const auto plan = Do(what);
    ASSERT_FALSE(plan.ok()) << what;
    EXPECT_THAT(Text(plan), HasSubstr(expected)) << what;
  }
}

TEST_F(PlanCall, EvaluateTreeIsTheModelsObjective) {
  const PlanRequest request = Question(4);
  const auto plan = Do("evaluate", request);
  ASSERT_TRUE(plan.ok()) << plan.status();
  const double expected = services_.EvaluateTree(request, *plan).value();
  EXPECT_GT(expected, 0);
  EXPECT_THAT(services_.log, ElementsAre(absl::StrFormat("0 odd: objective %.17g", expected)));
}

TEST_F(PlanCall, ErrorsOfTheServicesReachTheCaller) {
  PlanRequest request = Question(4);
  request.budget = Budget::Sgd(10, 3);
  const auto plan = Do("evaluate", request);
  EXPECT_EQ(plan.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(Text(plan), HasSubstr("learning rate 10 is too large"));
}

TEST_F(PlanCall, LogsAreOneLineAndMayComeFromAnyThread) {
  ASSERT_TRUE(Do("log").ok());
  ASSERT_EQ(services_.log.size(), 3u);
  EXPECT_EQ(services_.log[0], "0 odd: from another thread");
  EXPECT_EQ(services_.log[1], "0 odd: ");
  EXPECT_THAT(services_.log[2], StartsWith("2 odd: zzz"));
  EXPECT_LT(services_.log[2].size(), 1100u);
}

TEST_F(PlanCall, Cancellation) {
  EXPECT_TRUE(Do("cancelled").ok());
  services_.cancel = true;
  EXPECT_EQ(Do("cancelled").status(), absl::CancelledError("plugin odd: plan: stopped"));
}

TEST_F(PlanCall, UnknownExtensionsAreNull) { EXPECT_TRUE(Do("extension").ok()); }

TEST_F(PlanCall, TheRequestArrives) {
  PlanRequest request = Question(4);
  request.weights = {2, 3};
  request.budget = Budget::Sgd(0.005, 320, 32);
  request.init = Init::kJump;
  request.reference = Reference::kData;
  request.space = Space::kBinary;
  request.gap = 0.25;
  request.time_limit_seconds = 7;
  ASSERT_TRUE(Do("request", request).ok());
  request.weights.clear();
  request.budget = Budget::Flow(1);
  ASSERT_TRUE(Do("request", request).ok());
  EXPECT_THAT(services_.log,
              ElementsAre("0 odd: T4 N1 d2 a1 s1 v0.9 w2 b1 32 init2 ref2 space1 gap0.25 limit7",
                          "0 odd: T4 N1 d2 a1 s1 v0.9 w-1 b0 64 init2 ref2 space1 gap0.25 limit7"));
}

TEST_F(PlanCall, RequestsThatAreNone) {
  std::vector<std::pair<PlanRequest, const char*>> cases;
  const auto add = [&](const char* expected) -> PlanRequest& {
    cases.emplace_back(Question(4), expected);
    return cases.back().first;
  };
  add("variances[1]: found nan").variances[1] = kNan;
  add("variances[0]: found -1").variances[0] = -1;
  add("weights: found 1 values, expected 2").weights = {1};
  add("weights[1]: found inf").weights = {1, std::numeric_limits<double>::infinity()};
  add("student steps: found 0, expected 1 to 4").student_steps = 0;
  add("student steps: found 5, expected 1 to 4").student_steps = 5;
  add("gap: found nan").gap = kNan;
  add("gap: found -1").gap = -1;
  add("time limit: found nan").time_limit_seconds = kNan;
  add("time limit: found 0").time_limit_seconds = 0;
  add("train time is nan").budget.train_time = kNan;
  add("learning rate is 0").budget = Budget::Sgd(0, 10);
  add("data scale: found nan").schedule.data_scale = kNan;
  add("request: ").schedule.alpha[2] = kNan;
  add("request: ").schedule.sigma.pop_back();
  add("request: ").schedule = Schedule();
  add("parameter rate: found \"nan\", expected a finite number").parameters["rate"] = "nan";
  add("unknown parameter \"rte\"").parameters["rte"] = "1";
  for (const auto& [request, expected] : cases) {
    const auto plan = Do("good", request);
    ASSERT_FALSE(plan.ok()) << expected;
    EXPECT_EQ(plan.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(Text(plan), HasSubstr(expected));
  }
}

// One plugin's failure is its own.
TEST_F(PlanCall, OtherPluginsGoOn) {
  const auto other = LoadPlugin("vanilla", {});
  ASSERT_TRUE(other.ok()) << other.status();
  for (const char* what : {"throw", "throw-int", "error", "gap", "merges-for-ever", "solve-nan-gap",
                           "solve-throwing-sink", "other-thread"}) {
    EXPECT_FALSE(Do(what).ok()) << what;
    const auto plan = (*other)->MakePlan(Question(4), services_);
    ASSERT_TRUE(plan.ok()) << what << ": " << plan.status();
    EXPECT_EQ(*plan, CanonicalPlan(Strategy::kVanilla, 4).value());
    EXPECT_TRUE(Do("good").ok()) << "the same plugin, after " << what;
  }
}

TEST_F(PlanCall, APluginInPlainC) {
  folder_.CopyLibrary("c_plugin");
  folder_.Write("c_plugin.toml", kCPluginManifest);
  const auto plugin = LoadPlugin("c_plugin", {folder_.path()});
  ASSERT_TRUE(plugin.ok()) << plugin.status();
  const auto plan = (*plugin)->MakePlan(Question(6), services_);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(*plan, CanonicalPlan(Strategy::kVanilla, 6).value());
  EXPECT_EQ((*plugin)->MakePlan(Question(65), services_).status().code(),
            absl::StatusCode::kUnimplemented);
}

}  // namespace
}  // namespace mergeplan
