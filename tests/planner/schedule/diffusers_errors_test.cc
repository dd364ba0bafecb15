// Configs that cannot be used, and what is said about them.

#include "tests/planner/schedule/test_util.h"

namespace mergeplan {
namespace {

using ::testing::AllOf;
using testing::ErrorOf;
using testing::Folder;
using ::testing::HasSubstr;
using testing::MustLoad;

struct Bad {
  const char* name;
  const char* options;
  int steps;
  std::vector<const char*> parts;
};

TEST(DiffusersErrors, NameWhatIsWrong) {
  const Folder folder;
  const Bad cases[] = {
      {"KarrasVeScheduler", "", 4, {"KarrasVeScheduler", "DDIMScheduler", "TCDScheduler"}},
      {"", "", 4, {"unknown class \"\""}},
      {"DDIMScheduler",
       R"("beta_schedule": "quadratic")",
       4,
       {"\"beta_schedule\" is \"quadratic\"", "linear, scaled_linear, squaredcos_cap_v2"}},
      {"DDIMScheduler", R"("beta_schedule": "sigmoid")", 4, {"sigmoid", "DDIMScheduler"}},
      {"DDIMScheduler",
       R"("timestep_spacing": "karras")",
       4,
       {"\"timestep_spacing\" is \"karras\"", "leading, linspace, trailing"}},
      {"DDIMScheduler", R"("timestep_spacing": 3)", 4, {"\"timestep_spacing\" is 3"}},
      {"DDIMScheduler", R"("prediction_type": "noise")", 4, {"\"prediction_type\" is \"noise\""}},
      {"DDIMScheduler", R"("beta_strat": 0.1)", 4, {"unknown key \"beta_strat\""}},
      {"DDIMScheduler", R"("mu": 1)", 4, {"unknown key \"mu\""}},
      {"DDIMScheduler", R"("beta_start": "0.1")", 4, {"\"beta_start\" is \"0.1\"", "a number"}},
      {"DDIMScheduler", R"("beta_start": 0)", 4, {"\"beta_start\" is 0", "above 0"}},
      {"DDIMScheduler", R"("beta_end": 1.5)", 4, {"\"beta_end\" is 1.5", "at most 1"}},
      {"DDIMScheduler", R"("beta_end": Infinity)", 4, {"\"beta_end\""}},
      {"DDIMScheduler", R"("num_train_timesteps": 10.5)", 4, {"num_train_timesteps", "whole"}},
      {"DDIMScheduler", R"("num_train_timesteps": 0)", 4, {"num_train_timesteps", "from 1"}},
      {"DDIMScheduler", R"("num_train_timesteps": 1e15)", 4, {"num_train_timesteps"}},
      {"DDIMScheduler", R"("steps_offset": -1)", 4, {"steps_offset", "-1"}},
      {"DDIMScheduler", R"("rescale_betas_zero_snr": 1)", 4, {"true or false"}},
      {"DDIMScheduler",
       R"("rescale_betas_zero_snr": true, "num_train_timesteps": 1)",
       1,
       {"rescale_betas_zero_snr"}},
      {"DDIMScheduler", R"("trained_betas": 3)", 4, {"\"trained_betas\" is 3", "list"}},
      {"DDIMScheduler", R"("trained_betas": [0.1, "x"])", 4, {"trained_betas[1]", "\"x\""}},
      {"DDIMScheduler", R"("trained_betas": [0.1, 1.5])", 4, {"trained_betas[1]", "1.5"}},
      {"DDIMScheduler", R"("trained_betas": [0.1, 0.2])", 4, {"2 numbers", "1000"}},
      {"DDIMScheduler", "", 1001, {"1001", "num_train_timesteps = 1000"}},
      {"DDIMScheduler", R"("steps_offset": 1)", 1000, {"timestep 1000", "at most 999"}},
      {"DDIMScheduler", R"("set_alpha_to_one": false)", 1, {"one noise level only"}},
      {"DDIMInverseScheduler", R"("timestep_spacing": "linspace")", 4, {"timestep_spacing"}},
      {"PNDMScheduler", "", 3, {"at least 4", "skip_prk_steps"}},
      {"LCMScheduler", "", 51, {"51", "original_inference_steps = 50"}},
      {"LCMScheduler", R"("original_inference_steps": 2000)", 4, {"original_inference_steps"}},
      {"UnCLIPScheduler", "", 1, {"at least 2"}},
      {"IPNDMScheduler", R"("trained_betas": [1, 0.5, 0.1])", 4, {"3 numbers", "5"}},
      {"EulerDiscreteScheduler",
       R"("use_karras_sigmas": true, "use_beta_sigmas": true)",
       4,
       {"use_karras_sigmas", "one at most"}},
      {"EulerDiscreteScheduler", R"("final_sigmas_type": "one")", 4, {"final_sigmas_type"}},
      {"EulerDiscreteScheduler", R"("interpolation_type": "cubic")", 4, {"interpolation_type"}},
      {"EulerDiscreteScheduler",
       R"("sigma_min": 3, "sigma_max": 2, "use_karras_sigmas": true)",
       4,
       {"sigma_min is 3"}},
      {"EulerDiscreteScheduler",
       R"("beta_start": 1e-12, "beta_end": 1e-12)",
       4,
       {"alphas_cumprod is 1 at timestep 0"}},
      {"EulerAncestralDiscreteScheduler",
       R"("rescale_betas_zero_snr": true, "timestep_spacing": "trailing")",
       1000,
       {"fall strictly", "t = 999"}},
      {"DEISMultistepScheduler",
       R"("timestep_spacing": "leading")",
       1000,
       {"one noise level only"}},
      {"DPMSolverMultistepScheduler", R"("lambda_min_clipped": 20)", 4, {"lambda_min_clipped 20"}},
      {"DPMSolverMultistepScheduler",
       R"("use_flow_sigmas": true, "use_karras_sigmas": true)",
       4,
       {"use_flow_sigmas"}},
      {"UniPCMultistepScheduler", R"("use_dynamic_shifting": true)", 4, {"expected mu"}},
      {"UniPCMultistepScheduler", R"("shift_terminal": 0.1)", 4, {"use_flow_sigmas"}},
      {"EDMEulerScheduler", R"("sigma_max": 0.001)", 4, {"sigma_max 0.001"}},
      {"EDMEulerScheduler", R"("sigma_schedule": "linear")", 4, {"karras, exponential"}},
      {"EDMEulerScheduler", R"("sigma_data": 0)", 4, {"sigma_data"}},
      {"EDMEulerScheduler", R"("prediction_type": "flow_prediction")", 4, {"prediction_type"}},
      {"CMStochasticIterativeScheduler", "", 41, {"41", "40"}},
      {"FlowMatchEulerDiscreteScheduler", R"("shift": 0)", 4, {"\"shift\" is 0"}},
      {"FlowMatchEulerDiscreteScheduler", R"("shift_terminal": 0.1)", 1, {"shift_terminal"}},
      {"FlowMatchEulerDiscreteScheduler", R"("shift_terminal": 1)", 4, {"shift_terminal"}},
      {"FlowMatchEulerDiscreteScheduler", R"("time_shift_type": "cubic")", 4, {"time_shift_type"}},
      {"FlowMatchEulerDiscreteScheduler",
       R"("use_dynamic_shifting": true, "time_shift_type": "linear", "max_shift": -1)",
       4,
       {"mu is -1", "linear"}},
      {"DDPMScheduler", "", 0, {"from 1 to 100000"}},
  };
  for (const Bad& c : cases) {
    const std::string options = c.options;
    const std::string path =
        folder.Write("c.json", std::string(R"({"_class_name": ")") + c.name + "\"" +
                                   (options.empty() ? "" : ", " + options) + "}");
    const std::string message = ErrorOf(path, c.steps);
    EXPECT_THAT(message, HasSubstr(path)) << c.name << options;
    EXPECT_EQ(message.find('\n'), std::string::npos) << message;
    for (const char* part : c.parts) EXPECT_THAT(message, HasSubstr(part)) << c.name << options;
  }
}

TEST(DiffusersErrors, Parameters) {
  const Folder folder;
  const std::string path =
      folder.Write("c.json", R"({"_class_name": "FlowMatchEulerDiscreteScheduler"})");
  EXPECT_THAT(ErrorOf(path + ":shft=3", 4),
              AllOf(HasSubstr("unknown parameter \"shft\""), HasSubstr("image_seq_len")));
  EXPECT_THAT(ErrorOf(path + ":mu=1", 4), HasSubstr("use_dynamic_shifting is false"));
  EXPECT_THAT(ErrorOf(path + ":use_dynamic_shifting=true,mu=x", 4), HasSubstr("\"mu\" is \"x\""));
  EXPECT_THAT(ErrorOf(path + ":class=Foo", 4), HasSubstr("unknown class \"Foo\""));
  EXPECT_THAT(ErrorOf(path + ":steps_offset=1", 4), HasSubstr("steps_offset"));
  EXPECT_THAT(ErrorOf(path + ":shift", 4), HasSubstr("expected key=value"));
  EXPECT_THAT(ErrorOf(path, std::nullopt), HasSubstr("teacher steps are missing"));
  EXPECT_EQ(MustLoad(path + ":shift=3", 4).steps(), 4);
}

// Whatever the options, a schedule is valid or an error is given.
TEST(DiffusersErrors, OddNumbersNeverGiveAnInvalidSchedule) {
  const Folder folder;
  const char* names[] = {"DDIMScheduler",
                         "PNDMScheduler",
                         "EulerDiscreteScheduler",
                         "HeunDiscreteScheduler",
                         "KDPM2AncestralDiscreteScheduler",
                         "DPMSolverMultistepScheduler",
                         "DPMSolverMultistepInverseScheduler",
                         "UniPCMultistepScheduler",
                         "SASolverScheduler",
                         "LCMScheduler",
                         "TCDScheduler",
                         "RePaintScheduler"};
  const char* options[] = {R"("num_train_timesteps": 1)",
                           R"("num_train_timesteps": 2)",
                           R"("num_train_timesteps": 7)",
                           R"("beta_start": 1e-300, "beta_end": 1)",
                           R"("beta_start": 1, "beta_end": 1)",
                           R"("beta_start": 0.9, "beta_end": 1e-9)",
                           R"("steps_offset": 900)",
                           R"("use_karras_sigmas": true, "sigma_min": 1e-300, "sigma_max": 1e9)",
                           R"("use_beta_sigmas": true, "timestep_spacing": "trailing")"};
  int good = 0;
  for (const char* name : names) {
    for (const char* option : options) {
      const std::string path = folder.Write(
          "c.json", std::string(R"({"_class_name": ")") + name + "\", " + option + "}");
      for (const int steps : {1, 2, 3, 7, 61, 1000, 5000}) {
        const auto s = LoadSchedule(path, steps);
        if (!s.ok()) {
          EXPECT_THAT(std::string(s.status().message()), HasSubstr(path));
          continue;
        }
        ++good;
        EXPECT_TRUE(ValidateSchedule(*s).ok()) << name << option << steps;
        EXPECT_TRUE(s->variance_preserving()) << name << option << steps;
      }
    }
  }
  EXPECT_GT(good, 100);
}

}  // namespace
}  // namespace mergeplan
