#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "planner/base/file.h"
#include "tests/planner/cli/command_line.h"

namespace mergeplan {
namespace {

using nlohmann::json;
using testing::HasSubstr;

std::vector<double> Numbers(const std::string& line) {
  std::vector<double> out;
  for (absl::string_view part : absl::StrSplit(line, ',')) {
    double x = 0;
    EXPECT_TRUE(absl::SimpleAtod(part, &x)) << line;
    out.push_back(x);
  }
  return out;
}

// A config and a plan of two blocks for ten steps of it, in a folder of its own.
struct Case {
  std::string folder = TestFolder(), plan = "'" + folder + "/plan.toml'",
              config = folder + "/scheduler_config.json";

  void Plan(const std::string& scheduler, const std::string& schedule = "",
            const std::string& more = "-T 10 -N 2") const {
    if (!scheduler.empty()) {
      ASSERT_TRUE(WriteFileAtomically(config, scheduler).ok());
    }
    const Outcome made =
        RunMergeplan("plan --variances 0.4,1.3 -s 1 --schedule '" +
                     (schedule.empty() ? config : schedule) + "' " + more + " -o " + plan);
    ASSERT_EQ(made.code, 0) << made.err;
  }
  Outcome Export(const std::string& format, const std::string& more = "") const {
    return RunMergeplan("export " + plan + " --format " + format + " " + more);
  }
};

constexpr char kDdim[] =
    R"({"_class_name": "DDIMScheduler", "beta_start": 0.0001, "beta_end": 0.02, "beta_schedule":
        "linear", "num_train_timesteps": 1000, "prediction_type": "sample",
        "timestep_spacing": "trailing", "set_alpha_to_one": true})";

// sqrt((1 - a) / a) of the linear table at a timestep.
double SigmaAt(int timestep) {
  double product = 1;
  for (int t = 0; t <= timestep; ++t) product *= 1 - (0.0001 + (0.02 - 0.0001) * t / 999);
  return std::sqrt((1 - product) / product);
}

TEST(ExportCommand, TimestepsAndSigmasAreThoseOfTheBordersOfTheBlocks) {
  Case c;
  c.Plan(kDdim);
  const json plan = json::parse(RunMergeplan("show " + c.plan + " --json").out);
  const int border = plan["blocks"][1][0].get<int>() - 1;  // the level between the two steps
  const Outcome times = c.Export("timesteps");
  ASSERT_EQ(times.code, 0) << times.err;
  // Trailing: level t is timestep 100 t - 1.
  EXPECT_THAT(Numbers(times.out), testing::ElementsAre(999, 100 * border - 1));
  const std::vector<double> sigmas = Numbers(c.Export("sigmas").out);
  ASSERT_EQ(sigmas.size(), 3u);
  EXPECT_NEAR(sigmas[0], SigmaAt(999), 1e-4 * SigmaAt(999));
  EXPECT_NEAR(sigmas[1], SigmaAt(100 * border - 1), 1e-4 * SigmaAt(100 * border - 1));
  EXPECT_EQ(sigmas[2], 0);
}

TEST(ExportCommand, AStockSchedulerHasTheTableAndTheTimesteps) {
  Case c;
  c.Plan(kDdim);
  const Outcome run = c.Export("diffusers");
  ASSERT_EQ(run.code, 0) << run.err;
  const json out = json::parse(run.out);
  EXPECT_EQ(out["scheduler"]["_class_name"], "EulerDiscreteScheduler");
  EXPECT_EQ(out["scheduler"]["prediction_type"], "sample");
  EXPECT_EQ(out["scheduler"]["beta_end"], 0.02);
  EXPECT_EQ(out["timesteps"].get<std::vector<double>>(), Numbers(c.Export("timesteps").out));
  EXPECT_EQ(out["num_inference_steps"], 2);
}

TEST(ExportCommand, FlowMatchingHasSharesOfNoise) {
  Case c;
  c.Plan("", "flow:shift=3", "-T 4 -N 4");
  const std::vector<double> sigmas = Numbers(c.Export("sigmas").out);
  ASSERT_EQ(sigmas.size(), 5u);
  for (int t = 0; t <= 4; ++t) EXPECT_NEAR(sigmas[4 - t], 3.0 * t / (4 + 2 * t), 1e-12);
  const json out = json::parse(c.Export("diffusers").out);
  EXPECT_EQ(out["scheduler"]["_class_name"], "FlowMatchEulerDiscreteScheduler");
  EXPECT_EQ(out["scheduler"]["shift"], 1);  // the sigmas are shifted already
  EXPECT_EQ(out["sigmas"].size(), 4u);
}

TEST(ExportCommand, EdmSigmasAreInUnitsOfTheData) {
  Case c;
  c.Plan("", "edm:sigma_min=0.01,sigma_max=50", "-T 5 -N 5");
  const std::vector<double> sigmas = Numbers(c.Export("sigmas").out);
  EXPECT_NEAR(sigmas.front(), 50, 1e-9);
  EXPECT_NEAR(sigmas[4], 0.01, 1e-12);
  EXPECT_EQ(sigmas[5], 0);
}

TEST(ExportCommand, WhatCannotBeSaidIsAnErrorWithTheReason) {
  Case c;
  c.Plan("", "cosine");
  for (const auto& [format, words] :
       {std::pair{"timesteps", "has no timesteps"}, std::pair{"sigmas", "pure noise"},
        std::pair{"diffusers", "no scheduler of diffusers"}}) {
    const Outcome run = c.Export(format);
    EXPECT_EQ(run.code, 1);
    EXPECT_EQ(run.out, "");
    EXPECT_THAT(run.err, HasSubstr(words));
    EXPECT_THAT(run.err, HasSubstr("plan.toml"));
  }
  EXPECT_EQ(c.Export("numbers").code, 2);
  EXPECT_EQ(RunMergeplan("export '" + c.folder + "/none.toml' --format sigmas").code, 1);

  Case rescaled;
  std::string zero = kDdim;
  zero.insert(zero.size() - 1, R"(, "rescale_betas_zero_snr": true)");
  rescaled.Plan(zero);
  EXPECT_THAT(rescaled.Export("diffusers").err, HasSubstr("zero terminal SNR"));
  EXPECT_EQ(rescaled.Export("timesteps").code, 0);
}

TEST(ExportCommand, AMissingPlanIsNamedOnce) {
  const Outcome run = RunMergeplan("export missing.toml --format sigmas");
  EXPECT_EQ(run.code, 1);
  EXPECT_EQ(run.err, "mergeplan export: missing.toml: cannot be read: No such file or directory\n");
}

std::string Config(const std::string& name, const std::string& more = "") {
  return R"({"_class_name": ")" + name + R"(", "num_train_timesteps": 1000)" + more + "}";
}

// EulerDiscreteScheduler takes the sigmas of timesteps from its table: where those are not the
// plan's it is given the sigmas, and where it would find other timesteps, nothing.
TEST(ExportCommand, AStockSchedulerMakesThePlansStepsOrNone) {
  constexpr char kKarras[] = R"(, "use_karras_sigmas": true)";
  Case karras;
  karras.Plan(Config("EulerDiscreteScheduler", kKarras), "", "-T 10 -N 8");
  const json out = json::parse(karras.Export("diffusers").out);
  EXPECT_FALSE(out.contains("timesteps"));
  EXPECT_EQ(out["sigmas"].get<std::vector<double>>(), Numbers(karras.Export("sigmas").out));
  EXPECT_EQ(out["sigmas"].back(), 0);

  for (const auto& [config, words] :
       {std::pair{Config("DPMSolverMultistepScheduler", kKarras), "rounds its timesteps"},
        std::pair{Config("CogVideoXDDIMScheduler", R"(, "snr_shift_scale": 3.0)"),
                  "snr_shift_scale 3"},
        std::pair{Config("IPNDMScheduler"), "has no table of betas"},
        std::pair{Config("DDPMScheduler", R"(, "beta_schedule": "sigmoid")"),
                  "beta_schedule \"sigmoid\" is none of EulerDiscreteScheduler's"}}) {
    Case c;
    c.Plan(config, "", "-T 10 -N 8");
    const Outcome run = c.Export("diffusers");
    EXPECT_EQ(run.code, 1);
    EXPECT_THAT(run.err, HasSubstr(words));
    EXPECT_EQ(c.Export("timesteps").code, 0);
  }

  Case turned;
  turned.Plan(Config("FlowMatchEulerDiscreteScheduler", R"(, "invert_sigmas": true)"));
  EXPECT_EQ(json::parse(turned.Export("diffusers").out)["scheduler"]["invert_sigmas"], true);
}

TEST(ExportCommand, AScheduleThatMovedIsNamed) {
  Case c;
  c.Plan(kDdim);
  const std::string before = c.Export("sigmas").out;
  const std::string moved = c.folder + "/moved.json";
  ASSERT_EQ(std::rename(c.config.c_str(), moved.c_str()), 0);
  EXPECT_THAT(c.Export("sigmas").err, HasSubstr("--schedule"));
  EXPECT_EQ(c.Export("sigmas", "--schedule '" + moved + "'").out, before);
  // Another schedule is not taken for it.
  EXPECT_THAT(c.Export("sigmas", "--schedule ddpm-linear").err, HasSubstr("other noise levels"));
  const std::string file = c.folder + "/sigmas.txt";
  EXPECT_EQ(c.Export("sigmas", "--schedule '" + moved + "' -o '" + file + "'").out, "");
  EXPECT_EQ(*ReadFile(file), before);
}

}  // namespace
}  // namespace mergeplan
