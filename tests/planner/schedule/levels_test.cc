// How the tables of a config become the levels of a schedule.

#include "tests/planner/schedule/test_util.h"

namespace mergeplan {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using testing::Folder;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::MustLoad;

const char kStableDiffusion[] =
    R"("beta_schedule": "scaled_linear", "beta_start": 0.00085, "beta_end": 0.012)";

std::string Config(const std::string& name, const std::string& options) {
  return R"({"_class_name": ")" + name + "\"" + (options.empty() ? "" : ", " + options) + "}";
}

class Levels : public ::testing::Test {
 protected:
  Schedule Load(const std::string& name, const std::string& options, int steps,
                const std::string& parameters = "") {
    return MustLoad(folder_.Write("c.json", Config(name, options)) + parameters, steps);
  }
  Folder folder_;
};

TEST_F(Levels, DdimTablesAreIndexedByTimesteps) {
  const Schedule s = Load("DDIMScheduler", R"("timestep_spacing": "trailing")", 4);
  EXPECT_EQ(s.name, "DDIMScheduler");
  EXPECT_EQ(s.prediction_type, "epsilon");
  EXPECT_TRUE(std::isnan(s.timesteps[0]));
  EXPECT_THAT(std::vector<double>(s.timesteps.begin() + 1, s.timesteps.end()),
              ElementsAre(249, 499, 749, 999));
  EXPECT_EQ(s.alpha[0], 1);
  EXPECT_EQ(s.sigma[0], 0);
  EXPECT_THAT(s.level_scale, ::testing::Each(1.0));
  EXPECT_THAT(s.notes, IsEmpty());
}

TEST_F(Levels, RepeatsAreDroppedWithANote) {
  // PNDM asks for timestep 501 twice; distinct are four.
  EXPECT_EQ(
      Load("PNDMScheduler",
           std::string(kStableDiffusion) + R"(, "skip_prk_steps": true, "steps_offset": 1)", 4)
          .steps(),
      4);
  // Timestep 0 is where the last step lands, too: set_alpha_to_one is false.
  const Schedule s = Load("DDIMScheduler", R"("set_alpha_to_one": false)", 50);
  EXPECT_EQ(s.steps(), 49);
  EXPECT_NEAR(s.sigma[0], 0.01, 1e-5);
  EXPECT_THAT(s.notes, Contains(AllOf(HasSubstr("set_timesteps(50)"), HasSubstr("T is 49"))));
  // Half steps of Runge-Kutta are levels of their own.
  EXPECT_EQ(Load("PNDMScheduler", "", 50).steps(), 50 + 3 - 1);
}

TEST_F(Levels, DdimLandsWhereItsStrideLeads) {
  // 1000/6 = 166.67: the last timestep is 166, and 166 - 1000 // 6 = 0.
  const Schedule s = Load("DDIMScheduler", R"("timestep_spacing": "trailing")", 6);
  EXPECT_EQ(s.timesteps[1], 166);
  EXPECT_NEAR(s.alpha[0], std::sqrt(0.9999), 1e-7);
  // With linspace the last timestep is 0 and the stride leads beyond it.
  EXPECT_EQ(Load("DDIMScheduler", R"("timestep_spacing": "linspace")", 6).alpha[0], 1);
}

TEST_F(Levels, ZeroTerminalSnrIsExactlyZero) {
  const Schedule s = Load(
      "DDIMScheduler",
      R"("rescale_betas_zero_snr": true, "timestep_spacing": "trailing", "prediction_type": "epsilon")",
      20);
  EXPECT_EQ(s.alpha.back(), 0);
  EXPECT_EQ(s.sigma.back(), 1);
  EXPECT_THAT(s.notes, Contains(HasSubstr("alpha is 0")));
  // Samplers that divide by alpha keep a small one: 2^-12.
  const Schedule euler =
      Load("EulerDiscreteScheduler",
           R"("rescale_betas_zero_snr": true, "timestep_spacing": "trailing")", 20);
  EXPECT_NEAR(euler.alpha.back(), std::ldexp(1, -12), 1e-9);
}

TEST_F(Levels, ExplodingSamplesAreScaledBack) {
  const Schedule s = Load("EulerDiscreteScheduler", "", 10);
  EXPECT_EQ(s.alpha[0], 1);
  for (int t = 0; t <= s.steps(); ++t) {
    EXPECT_NEAR(s.level_scale[t] * s.alpha[t], 1, 1e-14);
    EXPECT_GE(s.level_scale[t], 1);
  }
  EXPECT_EQ(s.data_scale, 1);
  // The same levels, but samples that are variance preserving already.
  EXPECT_THAT(Load("DPMSolverMultistepScheduler", "", 10).level_scale, ::testing::Each(1.0));
}

TEST_F(Levels, FlowMatching) {
  const Schedule s = Load("FlowMatchEulerDiscreteScheduler", R"("shift": 3.0)", 4);
  EXPECT_EQ(s.prediction_type, "flow_prediction");
  EXPECT_EQ(s.alpha.back(), 0);
  EXPECT_EQ(s.sigma[0], 0);
  for (int t = 0; t <= 4; ++t) {
    EXPECT_NEAR(s.level_scale[t] * (s.alpha[t] + s.sigma[t]), 1, 1e-14);
  }
  EXPECT_NEAR(s.timesteps.back(), 1000, 1e-9);
  // What is written as the share of the data means the same levels.
  const Schedule inverted =
      Load("FlowMatchEulerDiscreteScheduler", R"("shift": 3.0, "invert_sigmas": true)", 4);
  testing::ExpectNear(inverted.alpha, s.alpha, 1e-12, "inverted");
  EXPECT_EQ(inverted.timesteps.back(), 0);
  // Its network says x0 - eps.
  EXPECT_EQ(inverted.prediction_type, "");
  EXPECT_THAT(inverted.notes, ::testing::Contains(::testing::HasSubstr("sign turned")));
  EXPECT_EQ(s.prediction_type, "flow_prediction");
}

TEST_F(Levels, DynamicShiftingTakesMuFromWhereItIs) {
  const std::string dynamic = R"("use_dynamic_shifting": true)";
  const std::string name = "FlowMatchEulerDiscreteScheduler";
  const Schedule largest = Load(name, dynamic, 4);
  EXPECT_THAT(largest.notes, Contains(HasSubstr("1.15")));
  EXPECT_EQ(Load(name, dynamic, 4, ":mu=1.15").alpha, largest.alpha);
  EXPECT_THAT(Load(name, dynamic, 4, ":mu=1.15").notes, IsEmpty());
  testing::ExpectNear(Load(name, dynamic, 4, ":image_seq_len=4096").alpha, largest.alpha, 1e-6, "");
  // Half way between 256 and 4096 tokens, half way between 0.5 and 1.15.
  testing::ExpectNear(Load(name, dynamic, 4, ":image_seq_len=2176").alpha,
                      Load(name, dynamic, 4, ":mu=0.825").alpha, 1e-6, "");
  // e^mu is a shift of the whole range.
  const Schedule s = Load(name, dynamic, 2, ":mu=0.6931471805599453");
  const double middle = 0.5005;  // of 1 and 1/1000
  EXPECT_NEAR(s.level_scale[1] * s.sigma[1], 2 * 0.001 / (1.001), 1e-9);
  EXPECT_NEAR(Load(name, dynamic, 3, ":mu=0.6931471805599453").level_scale[2] *
                  Load(name, dynamic, 3, ":mu=0.6931471805599453").sigma[2],
              2 * middle / (1 + middle), 1e-7);
}

TEST_F(Levels, EdmStaysFiniteAtItsLargestSigma) {
  const Schedule s = Load("EDMDPMSolverMultistepScheduler", R"("sigma_data": 0.5)", 20);
  EXPECT_EQ(s.data_scale, 0.5);
  EXPECT_EQ(s.alpha[0], 1);
  EXPECT_NEAR(s.level_scale.back() * s.sigma.back(), 80, 1e-4);
  EXPECT_NEAR(s.alpha.back(), 0.5 / std::hypot(80, 0.5), 1e-8);
  EXPECT_NEAR(s.timesteps.back(), std::log(80.0) / 4, 1e-6);
  // final_sigmas_type "sigma_min" repeats the last level.
  EXPECT_EQ(
      Load("EDMDPMSolverMultistepScheduler", R"("final_sigmas_type": "sigma_min", "rho": 5.0)", 20)
          .steps(),
      19);
}

TEST_F(Levels, OldFilesHaveTheDefaultsOfTheirClass) {
  // beta_start, beta_end, the schedule, the spacing and set_alpha_to_one all differ.
  EXPECT_NEAR(Load("LCMScheduler", "", 4).alpha.back(), std::sqrt(0.00466009509), 1e-8);
  EXPECT_NEAR(Load("DDIMScheduler", "", 1000).alpha.back(), std::sqrt(4.03583035e-05), 1e-10);
  EXPECT_EQ(Load("DDIMScheduler", "", 4).alpha[0], 1);
  EXPECT_LT(Load("PNDMScheduler", R"("skip_prk_steps": true, "steps_offset": 1)", 4).alpha[0], 1);
  EXPECT_EQ(Load("DDIMScheduler", "", 4).timesteps.back(), 750);
  EXPECT_EQ(Load("EulerDiscreteScheduler", "", 4).timesteps.back(), 999);
}

TEST_F(Levels, OptionsThatMoveNothingAreIgnored) {
  const std::string inert =
      R"("clip_sample": true, "thresholding": false, "solver_order": 3, "variance_type": null,
         "algorithm_type": "sde-dpmsolver++", "skip_prk_steps": true, "_note": 3, "sigma_data": 2,
         "lambda_min_clipped": -Infinity, "trained_betas": null)";
  EXPECT_EQ(Load("DDIMScheduler", inert, 7).alpha, Load("DDIMScheduler", "", 7).alpha);
  EXPECT_EQ(Load("DPMSolverMultistepScheduler", R"("lambda_min_clipped": -Infinity)", 7).alpha,
            Load("DPMSolverMultistepScheduler", "", 7).alpha);
  // A value that was only the default of the class that wrote the file does not count.
  EXPECT_EQ(
      Load("DDIMScheduler",
           R"("timestep_spacing": "linspace", "_use_default_values": ["timestep_spacing"])", 7)
          .alpha,
      Load("DDIMScheduler", "", 7).alpha);
}

TEST_F(Levels, TrainedBetasAreTheTable) {
  const Schedule s =
      Load("DDPMScheduler", R"("num_train_timesteps": 3, "trained_betas": [0.5, 0.5, 0.5])", 3);
  testing::ExpectNear(s.alpha, {1, std::sqrt(0.5), std::sqrt(0.25), std::sqrt(0.125)}, 1e-15, "");
}

TEST_F(Levels, ParametersReplaceOptions) {
  const std::string path =
      folder_.Write("p/scheduler/scheduler_config.json", Config("PNDMScheduler", kStableDiffusion));
  for (const std::string& spec : {folder_.path() + "/p", folder_.path() + "/p/scheduler", path}) {
    const std::string full = spec +
                             ":class=DDIMScheduler,timestep_spacing=trailing,"
                             "rescale_betas_zero_snr=true,prediction_type=v_prediction";
    const Schedule s = MustLoad(full, 10);
    EXPECT_EQ(s.spec, full);
    EXPECT_EQ(s.name, "DDIMScheduler");
    EXPECT_EQ(s.prediction_type, "v_prediction");
    EXPECT_EQ(s.alpha.back(), 0);
  }
}

TEST_F(Levels, APathMayHoldColons) {
  const std::string path = folder_.Write("a:b=c.json", Config("DDPMScheduler", ""));
  EXPECT_EQ(MustLoad(path, 5).steps(), 5);
  EXPECT_EQ(MustLoad(path + ":timestep_spacing=trailing", 5).timesteps.back(), 999);
}

}  // namespace
}  // namespace mergeplan
