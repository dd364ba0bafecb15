// Plugins and hosts of different minor versions.
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "planner/base/file.h"
#include "plugins/abi/mergeplan_plugin.h"
#include "tests/plugins/fakes.h"
#include "tests/plugins/plugin_folder.h"

namespace mergeplan {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class Versions : public ::testing::Test {
 protected:
  std::shared_ptr<const Plugin> Load(const std::string& name, const std::string& manifest) {
    folder_.CopyLibrary(name);
    folder_.Write(name + ".toml", manifest);
    auto plugin = LoadPlugin(name, {folder_.path()});
    EXPECT_TRUE(plugin.ok()) << plugin.status();
    return plugin.ok() ? *plugin : nullptr;
  }

  PluginFolder folder_;
  RecordingServices services_;
};

// A plugin that was built against the header of 1.0 does all it did, and a host of a later minor
// does not touch what lies behind its structs.
TEST_F(Versions, APluginOfTheFirstMinorPlansAndExecutes) {
  ASSERT_GE(MERGEPLAN_ABI_MINOR, 1u);
  const auto plugin = Load("frozen", kFrozenManifest);
  ASSERT_NE(plugin, nullptr);
  const auto plan = plugin->MakePlan(Question(6), services_);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->student_steps(), 1);
  RecordingRuntime runtime(*plan);
  const absl::Status done = plugin->Execute(*plan, runtime);
  EXPECT_TRUE(done.ok()) << done;
  EXPECT_EQ(runtime.calls.size(), plan->size() + 1u);
  EXPECT_EQ(runtime.calls.back(), "evaluate");
}

// It cannot know of limits, so its plan is held against them.
TEST_F(Versions, LimitsHoldForPluginsThatDoNotKnowThem) {
  const auto plugin = Load("frozen", kFrozenManifest);
  ASSERT_NE(plugin, nullptr);
  PlanRequest request = Question(6);
  const auto free = plugin->MakePlan(request, services_);
  ASSERT_TRUE(free.ok()) << free.status();
  ASSERT_GT(free->size(), 1);  // 0.5 and 0.9: BOOT
  request.max_merges = 1;
  // Its solve asks for no limits of its own, so those of the request count.
  const auto limited = plugin->MakePlan(request, services_);
  ASSERT_TRUE(limited.ok()) << limited.status();
  EXPECT_EQ(limited->size(), 1);
  request.max_merges = 0;
  const auto odd = Load("odd", kOddManifest);
  ASSERT_NE(odd, nullptr);
  request = Question(4);
  request.parameters["do"] = "good";  // always (1 2 (3 4))
  request.max_merges = 1;
  EXPECT_EQ(odd->MakePlan(request, services_).status(),
            absl::FailedPreconditionError(
                "plugin odd: plan: gave 2 merges, expected at most 1, as was asked for"));
  request.max_merges = 2;
  request.max_rounds = 1;
  EXPECT_EQ(odd->MakePlan(request, services_).status(),
            absl::FailedPreconditionError(
                "plugin odd: plan: gave 2 rounds, expected at most 1, as was asked for"));
  request.max_rounds = -1;
  EXPECT_THAT(std::string(odd->MakePlan(request, services_).status().message()),
              HasSubstr("expected 0 (any number) or more"));
}

TEST_F(Versions, LimitsReachPluginsThatKnowThem) {
  const auto odd = Load("odd", kOddManifest);
  ASSERT_NE(odd, nullptr);
  PlanRequest request = Question(4);
  request.parameters["do"] = "request-limits";
  request.max_merges = 3;
  request.max_rounds = 2;
  ASSERT_TRUE(odd->MakePlan(request, services_).ok());
  EXPECT_THAT(services_.log, ElementsAre("0 odd: limits 3 2"));
  services_.log.clear();
  request = Question(4);
  request.parameters["do"] = "solve-two-merges";
  ASSERT_TRUE(odd->MakePlan(request, services_).ok());
  ASSERT_EQ(services_.log.size(), 1u);
  EXPECT_THAT(services_.log[0], ::testing::AnyOf("0 odd: merges 1", "0 odd: merges 2"));
}

// What the frozen copy says and what the header says of 1.0 are the same words for the compiler:
// its layout is checked by fixtures/layout_1_0.h, and this that nobody has touched the copy.
TEST_F(Versions, TheFrozenHeaderIsOfTheFirstMinor) {
  const char* source = std::getenv("MERGEPLAN_SOURCE_DIR");
  ASSERT_NE(source, nullptr) << "run this test through ctest";
  const std::string text =
      Slurp(std::string(source) + "/tests/plugins/fixtures/abi_1_0/mergeplan_plugin.h");
  EXPECT_THAT(text, HasSubstr("#define MERGEPLAN_ABI_MINOR 0u"));
  EXPECT_EQ(Sha256(text), "0e20eef3bb1070d0ecc010a63954da64c23f77bf62692f33fef1dc3bf5afe82b");
}

}  // namespace
}  // namespace mergeplan
