#include <array>
#include <cstdio>
#include <filesystem>
#include <limits>
#include <memory>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "planner/operators/canonical.h"
#include "planner/plan/io/document.h"
#include "planner/search/search.h"
#include "tests/plugins/fakes.h"
#include "tests/plugins/plugin_folder.h"

namespace mergeplan {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::shared_ptr<const Plugin> Load(const std::string& name) {
  auto plugin = LoadPlugin(name, {});
  EXPECT_TRUE(plugin.ok()) << plugin.status();
  return plugin.ok() ? *plugin : nullptr;
}

std::string StrategyMessage(const absl::Status& status) { return std::string(status.message()); }

std::string Output(const std::string& command) {
  FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return "";
  std::string out;
  std::array<char, 4096> buffer;
  while (const size_t got = fread(buffer.data(), 1, buffer.size(), pipe)) {
    out.append(buffer.data(), got);
  }
  EXPECT_EQ(pclose(pipe), 0) << command;
  return out;
}

class Canonical : public ::testing::TestWithParam<Strategy> {};

TEST_P(Canonical, PluginsMakeThePlansOfThePaper) {
  const auto plugin = Load(std::string(ToString(GetParam())));
  ASSERT_NE(plugin, nullptr);
  RecordingServices services;
  for (int steps = 1; steps <= 20; ++steps) {
    for (int blocks = 1; blocks <= steps; ++blocks) {
      const auto plan = plugin->MakePlan(Question(steps, blocks), services);
      ASSERT_TRUE(plan.ok()) << plan.status();
      EXPECT_EQ(*plan, CanonicalPlan(GetParam(), steps, blocks).value()) << steps << " " << blocks;
    }
  }
}

TEST_P(Canonical, AThousandSteps) {
  const auto plugin = Load(std::string(ToString(GetParam())));
  ASSERT_NE(plugin, nullptr);
  RecordingServices services;
  for (const int blocks : {1, 7}) {
    const auto plan = plugin->MakePlan(Question(1000, blocks), services);
    ASSERT_TRUE(plan.ok()) << plan.status();
    EXPECT_EQ(*plan, CanonicalPlan(GetParam(), 1000, blocks).value());
  }
}

TEST_P(Canonical, NeedsNoSpectrum) {
  const auto plugin = Load(std::string(ToString(GetParam())));
  ASSERT_NE(plugin, nullptr);
  RecordingServices services;
  PlanRequest request = Question(8);
  request.variances.clear();
  EXPECT_TRUE(plugin->MakePlan(request, services).ok());
}

INSTANTIATE_TEST_SUITE_P(Strategies, Canonical, ::testing::ValuesIn(kStrategies),
                         [](const auto& info) { return std::string(ToString(info.param)); });

TEST(Progressive, FactorGroupsNeighbours) {
  const auto plugin = Load("progressive");
  ASSERT_NE(plugin, nullptr);
  RecordingServices services;
  const auto plan = [&](int steps, const std::string& factor, int blocks = 1) {
    PlanRequest request = Question(steps, blocks);
    request.parameters["factor"] = factor;
    const auto made = plugin->MakePlan(request, services);
    EXPECT_TRUE(made.ok()) << made.status();
    return made.ok() ? made->ToString() : "";
  };
  EXPECT_EQ(plan(7, "2"), "(((1 2) (3 4)) ((5 6) 7))");
  EXPECT_EQ(plan(8, "4"), "((1..4) (5..8))");
  EXPECT_EQ(plan(9, "4"), "((1..4) (5..8) 9)");
  EXPECT_EQ(plan(10, "3"), "(((1..3) (4..6) (7..9)) 10)");
  EXPECT_EQ(plan(11, "3"), "(((1..3) (4..6) (7..9)) (10 11))");
  EXPECT_EQ(plan(5, "1000000"), "(1..5)");
  EXPECT_EQ(plan(8, "4", 2), "(1..4) (5..8)");
  PlanRequest request = Question(8);
  request.parameters["factor"] = "1";
  EXPECT_THAT(StrategyMessage(plugin->MakePlan(request, services).status()),
              HasSubstr("plugin progressive: parameter factor: found \"1\", "
                        "expected an integer from 2 to 1000000"));
}

// The definition, step by step: of all runs of neighbours the one with the least error after it.
Plan SlowGreedy(const PlanRequest& request, size_t width, PlannerServices& services) {
  const int steps = request.schedule.steps();
  std::vector<Range> blocks;
  for (int t = 1; t <= steps; ++t) blocks.push_back({t, t});
  std::vector<MergeSpec> merges;
  while (blocks.size() > static_cast<size_t>(request.student_steps)) {
    double best = std::numeric_limits<double>::infinity();
    std::vector<Range> best_blocks;
    std::vector<MergeSpec> best_merges;
    for (size_t count = 2; count <= width; ++count) {
      for (size_t first = 0; first + count <= blocks.size(); ++first) {
        if (blocks.size() - count + 1 < static_cast<size_t>(request.student_steps)) continue;
        const std::vector<Range> children(blocks.begin() + first, blocks.begin() + first + count);
        std::vector<Range> left = blocks;
        left.erase(left.begin() + first, left.begin() + first + count);
        left.insert(left.begin() + first, {children.front().first, children.back().last});
        std::vector<MergeSpec> more = merges;
        more.push_back({left[first], children});
        const double error =
            services.EvaluateTree(request, Plan::Create(steps, more, left).value()).value();
        if (error < best) {
          best = error;
          best_blocks = left;
          best_merges = more;
        }
      }
    }
    blocks = best_blocks;
    merges = best_merges;
  }
  return Plan::Create(steps, merges, blocks).value();
}

TEST(Greedy, MakesTheBestNextMerge) {
  const auto plugin = Load("greedy");
  ASSERT_NE(plugin, nullptr);
  RecordingServices services;
  std::set<std::string> plans;
  for (const double scale : {0.03, 0.3, 1.0, 1.4, 4.0, 30.0}) {
    for (const int blocks : {1, 2, 5}) {
      for (const int width : {2, 3, 9}) {
        PlanRequest request = Question(9, blocks);
        for (double& variance : request.variances) variance *= scale;
        request.parameters["width"] = std::to_string(width);
        const auto plan = plugin->MakePlan(request, services);
        ASSERT_TRUE(plan.ok()) << plan.status();
        EXPECT_EQ(*plan, SlowGreedy(request, width, services))
            << scale << " " << blocks << " " << width << " " << plan->ToString();
        plans.insert(plan->ToString());
      }
    }
  }
  EXPECT_GT(plans.size(), 6u) << "the questions are too much alike to tell anything";
}

TEST(Greedy, EqualErrorsGoToTheNarrowestAndCleanest) {
  const auto plugin = Load("greedy");
  ASSERT_NE(plugin, nullptr);
  class Flat : public RecordingServices {
   public:
    absl::StatusOr<double> EvaluateTree(const PlanRequest&, const Plan&) override { return 1.0; }
  } services;
  PlanRequest request = Question(5, 2);
  request.parameters["width"] = "5";
  const auto plan = plugin->MakePlan(request, services);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->ToString(), "(((1 2) 3) 4) 5");
}

TEST(Greedy, SaysWhatItLacks) {
  const auto plugin = Load("greedy");
  ASSERT_NE(plugin, nullptr);
  RecordingServices services;
  PlanRequest request = Question(8);
  request.variances.clear();
  EXPECT_THAT(StrategyMessage(plugin->MakePlan(request, services).status()),
              AllOf(HasSubstr("plugin greedy: plan: "), HasSubstr("spectrum is not known")));
  request = Question(8);
  request.parameters["width"] = "1";
  EXPECT_THAT(StrategyMessage(plugin->MakePlan(request, services).status()),
              HasSubstr("parameter width: found \"1\", expected an integer from 2 to 1000000"));
  services.cancel = true;
  const auto stopped = plugin->MakePlan(Question(8, 3), services);
  EXPECT_EQ(stopped.status().code(), absl::StatusCode::kCancelled);
  EXPECT_THAT(StrategyMessage(stopped.status()),
              HasSubstr("stopped with 8 blocks left, of which 3"));
  class Nan : public RecordingServices {
   public:
    absl::StatusOr<double> EvaluateTree(const PlanRequest&, const Plan&) override {
      return std::numeric_limits<double>::quiet_NaN();
    }
  } nan;
  const auto plan = plugin->MakePlan(Question(8), nan);
  EXPECT_EQ(plan.status().code(), absl::StatusCode::kInternal);
  EXPECT_THAT(StrategyMessage(plan.status()), HasSubstr("with a merge of 1-2 is nan"));
}

TEST(Manual, MakesTheMergesThatAreListed) {
  const auto plugin = Load("manual");
  ASSERT_NE(plugin, nullptr);
  RecordingServices services;
  const auto plan = [&](int steps, int blocks, const std::string& merges) {
    PlanRequest request = Question(steps, blocks);
    request.parameters["merges"] = merges;
    const auto made = plugin->MakePlan(request, services);
    return made.ok() ? made->ToString() : StrategyMessage(made.status());
  };
  EXPECT_EQ(plan(8, 1, "1-4,5-8,1-8"), "((1..4) (5..8))");
  EXPECT_EQ(plan(8, 1, " 1-8 5-8\n1-4, "), "((1..4) (5..8))") << "in any order";
  EXPECT_EQ(plan(8, 4, "2-4,6-8"), "1 (2..4) 5 (6..8)");
  EXPECT_EQ(plan(9, 1, "3-4,2-6,1-9,7-8"), "(1 (2 (3 4) 5 6) (7 8) 9)");
  EXPECT_EQ(plan(5, 1, "1-2,1-3,1-4,1-5"), "((((1 2) 3) 4) 5)");
  EXPECT_EQ(plan(5, 1, "4-5,3-5,2-5,1-5"), "(1 (2 (3 (4 5))))");
  EXPECT_EQ(plan(3, 3, ""), CanonicalPlan(Strategy::kVanilla, 3, 3)->ToString());
  EXPECT_EQ(plan(1, 1, ""), "1");
}

// Every plan can be written as a list.
TEST(Manual, GivesBackAnyPlan) {
  const auto plugin = Load("manual");
  ASSERT_NE(plugin, nullptr);
  RecordingServices services;
  for (const Strategy strategy : kStrategies) {
    for (const int blocks : {1, 3, 20}) {
      const Plan wanted = CanonicalPlan(strategy, 20, blocks).value();
      PlanRequest request = Question(20, blocks);
      for (const MergeSpec& merge : wanted.Specs()) {
        request.parameters["merges"] +=
            std::to_string(merge.range.first) + "-" + std::to_string(merge.range.last) + ",";
      }
      const auto plan = plugin->MakePlan(request, services);
      ASSERT_TRUE(plan.ok()) << plan.status();
      EXPECT_EQ(*plan, wanted);
    }
  }
}

TEST(Manual, NamesWhatIsWrong) {
  const auto plugin = Load("manual");
  ASSERT_NE(plugin, nullptr);
  RecordingServices services;
  const std::pair<const char*, const char*> cases[] = {
      {"1-4,3-6", "merges: 1-4 and 3-6 overlap; expected ranges that lie apart"},
      {"1-8,2-5,5-7", "merges: 2-5 and 5-7 overlap"},
      {"1-4,1-8,1-4", "merges: 1-4 is listed twice"},
      {"1-9", "merges: \"1-9\": expected steps from 1 to 8"},
      {"0-3", "merges: \"0-3\": expected steps from 1 to 8"},
      {"3-3", "merges: \"3-3\": expected two steps or more"},
      {"4-1", "merges: \"4-1\": expected two steps or more, the cleaner one first"},
      {"4", "merges: \"4\": expected a range FIRST-LAST such as 1-4"},
      {"1-4;5-8", "merges: \"1-4;5-8\": expected a range"},
      {"1-", "merges: \"1-\": expected a range"},
      {"1-99999999999", "expected a range"},
      {"1-4,5-7", "found a list that leaves 3 blocks (1-4, 5-7, 8), expected 1"},
      {"", "leaves 8 blocks (1, 2, 3, 4, 5, 6, 7, 8), expected 1, the student's steps"},
  };
  for (const auto& [merges, expected] : cases) {
    PlanRequest request = Question(8);
    request.parameters["merges"] = merges;
    const auto plan = plugin->MakePlan(request, services);
    ASSERT_FALSE(plan.ok()) << merges;
    EXPECT_EQ(plan.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(StrategyMessage(plan.status()),
                AllOf(HasSubstr("plugin manual: "), HasSubstr(expected)));
  }
}

TEST(DpCustom, PlansByItselfWithTheHostsSearch) {
  const auto plugin = Load("dp_custom");
  ASSERT_NE(plugin, nullptr);
  RecordingServices services;
  for (const int blocks : {1, 3}) {
    const PlanRequest request = Question(12, blocks);
    const auto plan = plugin->MakePlan(request, services);
    ASSERT_TRUE(plan.ok()) << plan.status();
    // No worse than the gap allows, measured against each canonical strategy.
    const double objective = services.EvaluateTree(request, *plan).value();
    for (const Strategy strategy : kStrategies) {
      const Plan other = CanonicalPlan(strategy, 12, blocks).value();
      EXPECT_LE(objective * (1 - request.gap), services.EvaluateTree(request, other).value())
          << ToString(strategy);
    }
  }
}

TEST(DpCustom, WithoutASpectrumItSaysSo) {
  const auto plugin = Load("dp_custom");
  ASSERT_NE(plugin, nullptr);
  RecordingServices services;
  PlanRequest request = Question(8);
  request.variances.clear();
  const auto plan = plugin->MakePlan(request, services);
  EXPECT_EQ(plan.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(StrategyMessage(plan.status()),
              AllOf(HasSubstr("plugin dp_custom: plan: "), HasSubstr("spectrum is not known")));
}

// A document as `mergeplan plan` would write it for the request, around any plan.
PlanDocument Document(const PlanRequest& request, const Plan& plan) {
  ModelSpec spec{request.schedule, request.variances, request.weights,
                 request.budget,   request.init,      request.reference};
  const Model model = Model::Create(spec).value();
  PlanDocument document;
  document.schedule_spec = "cosine";
  document.alpha = request.schedule.alpha;
  document.sigma = request.schedule.sigma;
  document.input = "--variances";
  document.input_sha256 = VariancesHash(request.variances);
  document.basis = "given";
  document.variances = request.variances;
  document.budget = request.budget;
  document.init = request.init;
  document.reference = request.reference;
  document.plan = plan;
  document.value = model.Value(plan);
  document.tau.assign(model.tau().begin(), model.tau().end());
  document.objective = model.Objective(plan);
  document.objective_surrogate = model.Objective(document.value, Reference::kSurrogate);
  document.objective_teacher = model.Objective(document.value, Reference::kTeacher);
  document.objective_equal_total_time = document.objective;
  document.tolerance = model.Tolerance(document.value, request.reference);
  document.status = "within_gap";
  document.guarantee = "none, made for a test";
  return document;
}

TEST(DpCustom, RunsAnyPlanFile) {
  const auto plugin = Load("dp_custom");
  ASSERT_NE(plugin, nullptr);
  const PluginFolder folder;
  RecordingServices services;
  PlanRequest request = Question(9, 2);
  const Plan strange =
      Plan::Create(9,
                   std::vector<MergeSpec>{{{2, 3}, {{2, 2}, {3, 3}}},
                                          {{1, 4}, {{1, 1}, {2, 3}, {4, 4}}},
                                          {{5, 9}, {{5, 5}, {6, 6}, {7, 7}, {8, 8}, {9, 9}}}},
                   std::vector<Range>{{1, 4}, {5, 9}})
          .value();
  for (const char* name : {"a plan.toml", "a plan.json"}) {
    const std::string path = folder.File(name);
    const absl::Status written = WritePlan(Document(request, strange), path);
    ASSERT_TRUE(written.ok()) << written;
    request.parameters["plan"] = path;
    const auto plan = plugin->MakePlan(request, services);
    ASSERT_TRUE(plan.ok()) << plan.status();
    EXPECT_EQ(*plan, strange);
  }

  const std::string path = request.parameters["plan"];
  const auto complaint = [&](const PlanRequest& changed) {
    const auto plan = plugin->MakePlan(changed, services);
    EXPECT_FALSE(plan.ok());
    return StrategyMessage(plan.status());
  };
  PlanRequest other = Question(10, 2);
  other.parameters = request.parameters;
  EXPECT_THAT(complaint(other), AllOf(HasSubstr("plugin dp_custom"), HasSubstr(path),
                                      HasSubstr("teacher_steps: found 9, expected 10")));
  other = Question(9, 1);
  other.parameters = request.parameters;
  EXPECT_THAT(complaint(other), HasSubstr("student_steps: found 2, expected 1"));
  other = request;
  other.init = Init::kJump;
  EXPECT_THAT(complaint(other), HasSubstr("init: found child, expected jump"));
  other = request;
  other.schedule.alpha[4] *= 1 + 1e-6;
  EXPECT_THAT(complaint(other), HasSubstr("alpha[4]: found "));
  other = request;
  other.parameters["plan"] = folder.File("none.toml");
  EXPECT_THAT(complaint(other), HasSubstr("none.toml"));
  other.parameters["plan"] = folder.Write("broken.toml", "format = 1\nformta = 2\n");
  EXPECT_THAT(complaint(other), HasSubstr("broken.toml"));
  other.parameters["plan"] = folder.Write("tables.toml",
                                          "format = 1\nA = [[0.9], [0.9]]\ngamma = [[0.5], "
                                          "[0.5]]\nmerges = []\nblocks = [[1, 1], [2, 2]]\n");
  EXPECT_THAT(complaint(other), HasSubstr("tables.toml: is a plan of bare tables"));
}

TEST(Libraries, ExportOneSymbolAndNeedNothingOfOurs) {
  for (const char* name :
       {"vanilla", "progressive", "boot", "consistency", "dp_custom", "greedy", "manual"}) {
    const auto plugin = Load(name);
    ASSERT_NE(plugin, nullptr);
    const std::string library = "'" + plugin->manifest().library + "'";
    std::istringstream symbols(Output("nm -D --defined-only --format=posix " + library));
    std::vector<std::string> names;
    for (std::string line; std::getline(symbols, line);) {
      names.push_back(line.substr(0, line.find(' ')));
    }
    EXPECT_THAT(names, ElementsAre("mergeplan_plugin_entry")) << name;

    const std::set<std::string> allowed = {"libstdc++.so.6", "libgcc_s.so.1", "libc.so.6",
                                           "libm.so.6",      "libasan.so.8",  "libubsan.so.1"};
    std::istringstream dynamic(Output("readelf -d " + library));
    int needed = 0;
    for (std::string line; std::getline(dynamic, line);) {
      if (line.find("(NEEDED)") == std::string::npos) continue;
      ++needed;
      const size_t begin = line.find('[') + 1;
      EXPECT_EQ(allowed.count(line.substr(begin, line.find(']') - begin)), 1u) << name << line;
    }
    EXPECT_GT(needed, 0);
    EXPECT_EQ(Output("nm -D --undefined-only " + library).find("absl"), std::string::npos) << name;
  }
}

}  // namespace
}  // namespace mergeplan
