// `mergeplan calibrate` from its command line to the tables that `plan --measured` takes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "adapters/network/script.h"
#include "planner/base/file.h"
#include "planner/cli/calibration_results.h"
#include "planner/measured/model.h"
#include "planner/mixture/mixture.h"
#include "planner/mixture/mixture_io.h"
#include "planner/plan/io/document.h"
#include "tests/adapters/command/distill_program.h"
#include "tests/adapters/network/support.h"

namespace mergeplan {
namespace {

using ::testing::HasSubstr;
using Json = nlohmann::json;

class CalibrateCommand : public Distill {
 protected:
  void SetUp() override {
    Distill::SetUp();
    ASSERT_TRUE(WriteMixture(*CircleMixture(3, 1.0, 0.3), File("mixture.toml")).ok());
    const network::Signature signature = network::testing::SmallSignature(2);
    ASSERT_TRUE(network::SaveScript(*network::testing::SmallNetwork(signature, 16, 5), signature,
                                    File("a net"))
                    .ok());
  }
  std::vector<std::string> Small(const std::string& output,
                                 const std::vector<std::string>& more = {}) const {
    std::vector<std::string> a = {"calibrate",
                                  "--teacher",
                                  "mixture:" + File("mixture.toml"),
                                  "--student-network",
                                  "script:" + File("a net") + "/model.toml",
                                  "--teacher-steps",
                                  "5",
                                  "--schedule",
                                  "cosine",
                                  "--batch",
                                  "32",
                                  "--lr",
                                  "0.01",
                                  "--iterations",
                                  "24",
                                  "--fit-iterations",
                                  "50",
                                  "--held-out-rows",
                                  "64",
                                  "--replicates",
                                  "2",
                                  "--threads",
                                  "1",
                                  "--quiet",
                                  "-o",
                                  File(output)};
    a.insert(a.end(), more.begin(), more.end());
    return a;
  }
  std::string Text(const std::string& name) const { return ReadFile(File(name)).value_or(""); }
};

TEST_F(CalibrateCommand, FillsTablesThatPlansAreMadeFrom) {
  const Outcome done = Run(Small("m.toml", {"--json", "--plan-output", File("plan.toml")}));
  ASSERT_EQ(done.code, 0) << done.err;
  const Json json = Json::parse(done.out);
  const auto tables = ReadMeasured(File("m.toml"));
  ASSERT_TRUE(tables.ok()) << tables.status();
  const auto model = MeasuredModel::Create(*tables);
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(model->steps(), 5);
  EXPECT_EQ(json["combine"], std::string(ToString(tables->combine)));
  EXPECT_THAT(tables->source, HasSubstr("sha256 " + *Sha256OfFile(File("m.npz"))));
  EXPECT_GT(json["held_out"].size(), 3U);
  for (const Json& held : json["held_out"]) {
    EXPECT_GT(held["measured"].get<double>(), 0);
    EXPECT_TRUE(std::isfinite(held["linear"].get<double>()));
    EXPECT_LE(held["rms"]["low"].get<double>(), held["rms"]["value"].get<double>());
    EXPECT_LE(held["rms"]["value"].get<double>(), held["rms"]["high"].get<double>());
  }
  for (const char* rule : {"sum", "rms", "linear"}) {
    EXPECT_GE(json["scores"][rule]["factor"].get<double>(), 1);
  }
  EXPECT_EQ(json["plans"].size(), 6U);
  EXPECT_EQ(json["plans"][0]["name"], "measured plan");
  // Its page.
  const auto page = cli::ReadCalibration(File("m.toml"));
  ASSERT_TRUE(page.ok()) << page.status();
  EXPECT_EQ(page->pilots.size(), json["pilots"].get<std::size_t>());
  EXPECT_EQ(page->tables, *tables);
  EXPECT_EQ(page->judged_merges, static_cast<int>(json["held_out"].size()));
  EXPECT_EQ(page->plans[0].plan, ReadPlan(File("plan.toml"))->plan);
  for (const CalibrationPilot& pilot : page->pilots) {
    EXPECT_EQ(pilot.updates.back(), 24);
    EXPECT_LE(pilot.fitted.back().low, pilot.fitted.back().value);
    // Of a merge that was fitted the fit is near its curve.
    if (!pilot.held_out && pilot.trained.empty()) {
      EXPECT_NEAR(std::log(pilot.fitted.back().value / pilot.error.back()), 0, 0.5);
    }
  }
  const auto html = RenderCalibration(*page);
  ASSERT_TRUE(html.ok()) << html.status();
  EXPECT_THAT(*html, HasSubstr("Merges that no fit has seen"));
  // The plan file is one that distill takes.
  const auto plan = ReadPlan(File("plan.toml"));
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->plan.size(), json["plans"][0]["merges_trained"].get<int>());
  const Outcome distilled = Run({"distill",
                                 "--plan",
                                 File("plan.toml"),
                                 "--teacher",
                                 "mixture:" + File("mixture.toml"),
                                 "--student-network",
                                 "script:" + File("a net") + "/model.toml",
                                 "--iterations",
                                 "5",
                                 "--fit-iterations",
                                 "5",
                                 "--batch",
                                 "8",
                                 "--held-out-rows",
                                 "16",
                                 "--threads",
                                 "1",
                                 "--quiet",
                                 "-o",
                                 File("run")});
  EXPECT_EQ(distilled.code, 0) << distilled.err;

  // Nothing is left to train; the answer is the same. A text for people, too.
  const std::string before = Text("m.toml");
  const Outcome again = Run(Small("m.toml", {"--resume"}));
  EXPECT_EQ(again.code, 0) << again.err;
  EXPECT_EQ(Text("m.toml"), before);
  EXPECT_THAT(again.out, HasSubstr("predicts held-out merges better"));
  // Anew elsewhere: the same bits.
  const Outcome anew = Run(Small("other.toml"));
  ASSERT_EQ(anew.code, 0) << anew.err;
  const auto other = ReadMeasured(File("other.toml"));
  ASSERT_TRUE(other.ok());
  EXPECT_EQ(other->distance, tables->distance);
  EXPECT_EQ(other->gain, tables->gain);
  EXPECT_EQ(other->residual, tables->residual);
  EXPECT_EQ(other->floor, tables->floor);
  // Not over what was measured, and not with another question.
  const Outcome over = Run(Small("m.toml"));
  EXPECT_EQ(over.code, 2);
  EXPECT_THAT(over.err, HasSubstr("go on with --resume"));
  const Outcome changed = Run(Small("m.toml", {"--resume", "--seed", "4"}));
  EXPECT_EQ(changed.code, 1);
  EXPECT_THAT(changed.err, HasSubstr("another teacher, schedule, data or training"));
}

TEST_F(CalibrateCommand, StopsAtItsLimitAndGoesOn) {
  const Outcome stopped = Run(Small("m.toml", {"--time-limit", "1e-6"}));
  EXPECT_EQ(stopped.code, 3) << stopped.err;
  EXPECT_FALSE(std::filesystem::exists(File("m.toml")));
  const bool kept = std::filesystem::exists(File("m.pilots.json"));
  std::vector<std::string> more;
  if (kept) more.emplace_back("--resume");
  const Outcome done = Run(Small("m.toml", more));
  EXPECT_EQ(done.code, 0) << done.err;
  EXPECT_TRUE(std::filesystem::exists(File("m.toml")));
}

// What the machine chose is the calibration's from then on.
TEST_F(CalibrateCommand, KeepsWhatAProbeChose) {
  const std::vector<std::string> open = {"--precision", "auto"};
  ASSERT_EQ(Run(Small("m.toml", open)).code, 0);
  const Json kept = Json::parse(Text("m.pilots.json"));
  EXPECT_EQ(kept["chosen"].size(), 1U);
  const std::string chosen = kept["chosen"]["precision"];
  const std::string before = Text("m.toml");
  EXPECT_EQ(Run(Small("m.toml", {"--precision", "auto", "--resume"})).code, 0);
  EXPECT_EQ(Run(Small("m.toml", {"--precision", chosen, "--resume"})).code, 0);
  EXPECT_EQ(Text("m.toml"), before);
  // What was not left open is not chosen afterwards.
  const Outcome late =
      Run(Small("m.toml", {"--precision", chosen, "--layout", "auto", "--resume"}));
  EXPECT_EQ(late.code, 2);
  EXPECT_THAT(late.err, HasSubstr("did not leave it open"));
}

TEST_F(CalibrateCommand, ForecastsAndKeepsToABudget) {
  std::vector<std::string> loud = Small("m.toml", {"--budget", "updates=300"});
  std::erase(loud, "--quiet");
  const Outcome done = Run(loud);
  ASSERT_EQ(done.code, 0) << done.err;
  EXPECT_THAT(done.err, HasSubstr("everything would take"));
  EXPECT_THAT(done.err, HasSubstr("teacher calls, about"));
  const Outcome little = Run(Small("n.toml", {"--budget", "updates=60"}));
  EXPECT_EQ(little.code, 1);
  EXPECT_THAT(little.err, HasSubstr("the least that fills the model takes"));
  EXPECT_FALSE(std::filesystem::exists(File("n.pilots.json")));
}

TEST_F(CalibrateCommand, SaysWhatIsWrong) {
  const auto wrong = [&](const std::vector<std::string>& arguments, const std::string& expected) {
    const Outcome outcome = Run(arguments);
    EXPECT_EQ(outcome.code, 2) << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr(expected));
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
  };
  wrong(Small("m.json"), "expected a name that ends in .toml");
  wrong(Small("m.toml", {"--budget", "hours=1"}), "--budget: \"hours=1\": expected updates=K");
  wrong(Small("m.toml", {"--pilot-updates", "25"}), "expected at most --iterations, 24");
  wrong(Small("m.toml", {"--gain-bound", "0.1"}), "--gain-bound: pilots train as many");
  wrong(Small("m.toml", {"--total-updates", "100"}), "--total-updates");
  wrong(Small("m.toml", {"--student-steps", "5"}), "there is nothing to merge");
  wrong(Small("m.toml", {"--plan-output", File("p.txt")}), "ends in .toml or .json");
  wrong(Small("m.toml", {"--plan-output", File("./m.toml")}), "is the file of the measured model");
  wrong(Small("m.toml", {"--resume"}), "to go on from");
  wrong({"calibrate", "-o", File("m.toml")}, "--teacher: missing");
  wrong({"calibrate", "--teacher", "mixture:" + File("mixture.toml"), "-o", File("m.toml")},
        "--student-network");
  const Outcome nowhere = Run(Small("none/m.toml"));
  EXPECT_EQ(nowhere.code, 1);
  EXPECT_THAT(nowhere.err, HasSubstr("cannot be written"));
  ASSERT_TRUE(WriteFileAtomically(File("m.pilots.json"), "{").ok());
  const Outcome damaged = Run(Small("m.toml", {"--resume"}));
  EXPECT_EQ(damaged.code, 1);
  EXPECT_THAT(damaged.err, HasSubstr("m.pilots.json"));
}

// Two steps have one merge; starts of the teacher know no children.
TEST_F(CalibrateCommand, SmallestProblemsAndOtherStarts) {
  for (const char* init : {"child-jump", "jump"}) {
    for (const char* steps : {"2", "3"}) {
      std::vector<std::string> a = Small(std::string(init) + steps + ".toml", {"--init", init});
      *(std::find(a.begin(), a.end(), "--teacher-steps") + 1) = steps;
      const Outcome done = Run(a);
      EXPECT_EQ(done.code, 0) << init << " " << steps << ": " << done.err;
    }
  }
}

}  // namespace
}  // namespace mergeplan
