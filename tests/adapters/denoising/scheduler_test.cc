// The scheduler that a trained network is written with.
#include "adapters/denoising/scheduler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "planner/base/file.h"
#include "planner/schedule/schedule.h"
#include "tests/adapters/support.h"

namespace mergeplan::denoising {
namespace {

using mergeplan::testing::TemporaryFolder;
using network::Prediction;
using ::testing::HasSubstr;

TEST(TeacherScheduler, NamesBecomeConfigsWithTheSameLevels) {
  const TemporaryFolder folder;
  for (const std::string spec : {"ddpm-linear", "ddpm-linear:beta_end=0.03", "ddpm-scaled-linear",
                                 "ddpm-cosine", "sigmoid", "flow", "flow:shift=3"}) {
    const auto scheduler = FindScheduler(spec, "");
    ASSERT_TRUE(scheduler.ok()) << scheduler.status();
    const bool flow = spec.substr(0, 4) == "flow";
    EXPECT_EQ(scheduler->prediction, flow ? Prediction::kFlow : Prediction::kVPrediction);
    EXPECT_EQ(scheduler->pipeline, flow ? "" : spec == "sigmoid" ? "DDPMPipeline" : "DDIMPipeline");
    ASSERT_EQ(scheduler->steps, 1000);
    const std::string path = folder.File("scheduler_config.json");
    ASSERT_TRUE(WriteFileAtomically(path, scheduler->text).ok());
    // Sampling begins at the noisiest level that was trained.
    const Schedule eight = LoadSchedule(path, 8).value();
    if (spec != "sigmoid") {
      EXPECT_NEAR(eight.alpha[8] / eight.sigma[8],
                  scheduler->table.alpha.back() / scheduler->table.sigma.back(), 1e-6);
    }
    if (flow) continue;
    const Schedule named = LoadSchedule(spec, 1000).value();
    for (int t = 1; t <= 1000; ++t) {
      EXPECT_NEAR(scheduler->table.alpha[t - 1], named.alpha[t], 1e-6) << spec << t;
      EXPECT_EQ(scheduler->table.timestep[t - 1], t - 1);
    }
  }
}

TEST(TeacherScheduler, FilesKeepWhatTheySay) {
  const TemporaryFolder folder;
  ASSERT_TRUE(MakeDirectories(folder.File("scheduler")).ok());
  const std::string path = folder.File("scheduler/scheduler_config.json");
  ASSERT_TRUE(WriteFileAtomically(path, R"({"_class_name": "DDPMScheduler", "beta_end": 0.01,
      "num_train_timesteps": 50, "prediction_type": "sample", "variance_type": "fixed_small"})")
                  .ok());
  for (const std::string& spec : {path, folder.File("scheduler"), folder.path()}) {
    const auto scheduler = FindScheduler(spec, "");
    ASSERT_TRUE(scheduler.ok()) << scheduler.status();
    EXPECT_EQ(scheduler->prediction, Prediction::kSample);
    EXPECT_EQ(scheduler->steps, 50);
    EXPECT_EQ(scheduler->pipeline, "DDPMPipeline");
  }
  const auto changed = FindScheduler(path, "epsilon");
  ASSERT_TRUE(changed.ok()) << changed.status();
  const auto json = nlohmann::json::parse(changed->text);
  EXPECT_EQ(json["prediction_type"], "epsilon");
  EXPECT_EQ(json["variance_type"], "fixed_small");
  EXPECT_EQ(json["beta_end"], 0.01);
}

TEST(TeacherScheduler, SaysWhatDoesNotGoTogether) {
  const TemporaryFolder folder;
  const std::string path = folder.File("s.json");
  const auto message = [](const std::string& spec, const std::string& prediction) {
    const auto scheduler = FindScheduler(spec, prediction);
    EXPECT_FALSE(scheduler.ok()) << spec << prediction;
    return std::string(scheduler.status().message());
  };
  EXPECT_THAT(message("cosine", ""), HasSubstr("use ddpm-cosine"));
  EXPECT_THAT(message("edm", ""), HasSubstr("no scheduler of diffusers"));
  EXPECT_THAT(message("nothing", ""), HasSubstr("neither"));
  EXPECT_THAT(message("ddpm-linear", "flow"), HasSubstr("--schedule flow"));
  EXPECT_THAT(message("flow", "epsilon"), HasSubstr("expected flow"));
  EXPECT_THAT(message("ddpm-linear", "score"), HasSubstr("score"));
  EXPECT_THAT(message("ddpm-linear:beta_end=2", ""), HasSubstr("beta_end"));
  const auto file = [&](const std::string& text) {
    EXPECT_TRUE(WriteFileAtomically(path, text).ok());
    return path;
  };
  EXPECT_THAT(message(file("[1]"), ""), HasSubstr("no JSON object"));
  EXPECT_THAT(message(file("{"), ""), HasSubstr("s.json"));
  EXPECT_THAT(message(file(R"({"_class_name": "EulerDiscreteScheduler"})"), ""),
              HasSubstr("EulerDiscreteScheduler"));
  EXPECT_THAT(message(file(R"({"_class_name": "FlowMatchEulerDiscreteScheduler",
                               "invert_sigmas": true})"),
                      ""),
              HasSubstr("invert_sigmas is true"));
  // Zero terminal SNR and epsilon.
  const std::string zero = R"({"_class_name": "DDIMScheduler", "timestep_spacing": "trailing",
                              "rescale_betas_zero_snr": true})";
  EXPECT_THAT(message(file(zero), "epsilon"), HasSubstr("zero terminal SNR"));
  EXPECT_TRUE(FindScheduler(file(zero), "v_prediction").ok());
}

TEST(TeacherScheduler, KnowsWhatIsBadlyConditioned) {
  const auto factor = [](const std::string& prediction) {
    return LargestFactor(FindScheduler("ddpm-linear", prediction).value());
  };
  EXPECT_NEAR(factor("epsilon"), 157.4, 0.5);
  EXPECT_NEAR(factor("v_prediction"), 1, 1e-4);
  EXPECT_NEAR(factor("sample"), 1, 1e-9);
}

}  // namespace
}  // namespace mergeplan::denoising
