// The configs of well-known models against what diffusers computes for them (reference data beside
// the source folder; skipped where it is absent).

#include "absl/strings/str_cat.h"
#include "planner/base/file.h"
#include "planner/data/npz.h"
#include "planner/schedule/diffusers_config.h"
#include "tests/planner/schedule/test_util.h"

namespace mergeplan {
namespace {

using testing::ExpectNear;
using testing::MustLoad;

std::string Shared(const std::string& inside) {
  const char* shared = std::getenv("MERGEPLAN_SHARED");
  const char* source = std::getenv("MERGEPLAN_SOURCE_DIR");
  return shared ? absl::StrCat(shared, "/", inside)
                : absl::StrCat(source ? source : ".", "/../shared/", inside);
}

const char* const kNames[] = {"sd15",      "sd21",          "sdxl",         "sd3",
                              "flux1-dev", "flux1-schnell", "playground25", "ddpm-butterflies-128"};

class Reference : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    for (const std::string& needed :
         {Shared("reference/diffusers/schedulers"), Shared("data/configs/") + GetParam()}) {
      if (!std::filesystem::exists(needed)) GTEST_SKIP() << needed << " is missing";
    }
  }
  std::string config() const {
    return Shared(std::string("data/configs/") + GetParam() + "/scheduler/scheduler_config.json");
  }
  std::string npz(const std::string& suffix) const {
    return Shared(std::string("reference/diffusers/schedulers/") + GetParam() + suffix + ".npz");
  }
  DiffusersTables Tables(int steps, const std::vector<SpecParameter>& parameters) const {
    const auto text = ReadFile(config());
    EXPECT_TRUE(text.ok()) << text.status();
    auto t = ReadDiffusersTables(*text, steps, config(), parameters);
    EXPECT_TRUE(t.ok()) << t.status();
    return t.ok() ? *std::move(t) : DiffusersTables{};
  }
};

bool Has(const std::string& path, const std::string& key) {
  const auto names = NpzNames(path);
  return names.ok() && std::find(names->begin(), names->end(), key) != names->end();
}

std::vector<double> Array(const std::string& path, const std::string& key) {
  const auto array = ReadNpzArray(path, key);
  EXPECT_TRUE(array.ok()) << array.status();
  return array.ok() ? array->values : std::vector<double>();
}

TEST_P(Reference, TablesAndStepsAgree) {
  const std::string path = npz("");
  std::vector<SpecParameter> parameters;
  if (Has(path, "mu")) parameters.emplace_back("mu", std::to_string(Array(path, "mu")[0]));
  for (const int steps : {1, 4, 20, 50}) {
    const DiffusersTables t = Tables(steps, parameters);
    const std::string n = absl::StrCat("_", steps);
    const std::string what = GetParam() + n;
    if (Has(path, "betas")) {
      ExpectNear(t.betas, Array(path, "betas"), 1e-6, what + " betas");
      ExpectNear(t.alphas_cumprod, Array(path, "alphas_cumprod"), 1e-6, what + " alphas_cumprod");
    }
    if (Has(path, "final_alpha_cumprod")) {
      ASSERT_TRUE(t.final_alpha_cumprod.has_value()) << what;
      ExpectNear({*t.final_alpha_cumprod}, Array(path, "final_alpha_cumprod"), 1e-6, what);
    }
    ExpectNear(t.timesteps, Array(path, "timesteps" + n), 1e-6, what + " timesteps", 1e-7);
    if (Has(path, "sigmas" + n)) {
      ExpectNear(t.sigmas, Array(path, "sigmas" + n), 1e-6, what + " sigmas");
    } else {
      EXPECT_TRUE(t.sigmas.empty()) << what;
    }
    ExpectNear({t.init_noise_sigma}, Array(path, "init_noise_sigma" + n), 1e-6, what + " init");
  }
}

// The levels of the whole chain against sigma/alpha worked out here from the reference arrays.
TEST_P(Reference, LevelsAgree) {
  const std::string path = npz("");
  const std::string folder = Shared(std::string("data/configs/") + GetParam());
  for (const int steps : {4, 20, 50}) {
    const Schedule s = MustLoad(folder, steps);
    EXPECT_EQ(s.spec, folder);
    EXPECT_TRUE(s.variance_preserving());
    const std::string n = absl::StrCat("_", steps);
    std::vector<double> ratios;  // native sigma/alpha, from the clean end
    if (Has(path, "sigmas" + n)) {
      ratios = Array(path, "sigmas" + n);
      const bool flow = s.name == "FlowMatchEulerDiscreteScheduler";
      for (double& r : ratios) r = flow ? r / (1 - r) : r;
    } else {
      const std::vector<double> table = Array(path, "alphas_cumprod");
      for (const double t : Array(path, "timesteps" + n)) {
        const double a = table[static_cast<size_t>(t)];
        ratios.push_back(std::sqrt((1 - a) / a));
      }
      double last = 1;
      if (Has(path, "final_alpha_cumprod")) last = Array(path, "final_alpha_cumprod")[0];
      ratios.push_back(std::sqrt((1 - last) / last));
    }
    std::sort(ratios.begin(), ratios.end());
    ratios.erase(std::unique(ratios.begin(), ratios.end()), ratios.end());
    ASSERT_EQ(s.alpha.size(), ratios.size()) << GetParam() << n;
    for (size_t t = 0; t < ratios.size(); ++t) {
      if (std::isinf(ratios[t])) {
        EXPECT_EQ(s.alpha[t], 0);
        continue;
      }
      const double ratio = s.data_scale * s.sigma[t] / s.alpha[t];
      EXPECT_NEAR(ratio, ratios[t], 1e-6 * ratios[t]) << GetParam() << n << " level " << t;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Configs, Reference, ::testing::ValuesIn(kNames));

class DdimReference : public Reference {};

TEST_P(DdimReference, EveryVariantAgrees) {
  const std::string path = npz("-ddim");
  if (!std::filesystem::exists(path)) GTEST_SKIP() << path << " is missing";
  for (const bool zero_snr : {false, true}) {
    const std::string z = zero_snr ? "zsnr1." : "zsnr0.";
    for (const char* spacing : {"trailing", "leading", "linspace"}) {
      for (const char* prediction : {"epsilon", "sample", "v_prediction"}) {
        const std::string what = absl::StrCat(path, " ", z, spacing, " ", prediction);
        const DiffusersTables t =
            Tables(8, {{"class", "DDIMScheduler"},
                       {"timestep_spacing", spacing},
                       {"prediction_type", prediction},
                       {"rescale_betas_zero_snr", zero_snr ? "true" : "false"}});
        const std::vector<double> table = Array(path, z + "alphas_cumprod");
        // Rescaling divides by differences of square roots that are right to one bit of single
        // precision only, which is more than 1e-6 of the entries next to zero, and of small betas.
        ExpectNear(t.alphas_cumprod, table, zero_snr ? 5e-6 : 1e-6, what + " alphas_cumprod");
        ExpectNear(t.betas, Array(path, z + "betas"), 1e-6, what + " betas", zero_snr ? 3e-6 : 0);
        ExpectNear({*t.final_alpha_cumprod}, Array(path, z + "final_alpha_cumprod"), 1e-6, what);
        const std::string p = absl::StrCat(prediction, ".", spacing, ".", z);
        const std::vector<double> timesteps = Array(path, p + "timesteps_8");
        ExpectNear(t.timesteps, timesteps, 0, what + " timesteps");

        const auto s = ScheduleOfTables(t, path);
        ASSERT_TRUE(s.ok()) << s.status();
        EXPECT_EQ(s->prediction_type, prediction);
        for (size_t i = 0; i < timesteps.size(); ++i) {
          const double a = table[static_cast<size_t>(timesteps[i])];
          const size_t level = s->alpha.size() - 1 - i;
          if (level == 0) continue;  // dropped as a repeat of where the last step lands
          EXPECT_EQ(s->timesteps[level], timesteps[i]) << what;
          EXPECT_NEAR(s->alpha[level], std::sqrt(a), 1e-6 * std::sqrt(a)) << what;
          EXPECT_NEAR(s->sigma[level], std::sqrt(1 - a), 1e-6) << what;
        }
        if (zero_snr && std::string(spacing) != "leading") {
          EXPECT_EQ(s->alpha.back(), 0) << what;
          EXPECT_EQ(s->sigma.back(), 1) << what;
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Configs, DdimReference,
                         ::testing::Values("sd15", "sd21", "sdxl", "ddpm-butterflies-128"));

TEST(MnistDdpm, ArraysOfTheWeightsLoad) {
  const std::string path = Shared("data/weights/mnist-ddpm/lin_schedule.npz");
  if (!std::filesystem::exists(path)) GTEST_SKIP() << path << " is missing";
  const Schedule s = MustLoad(path, std::nullopt);
  EXPECT_EQ(s.steps(), 1000);
  EXPECT_NEAR(s.alpha[0] * s.alpha[0], 0.9999, 1e-6);
}

}  // namespace
}  // namespace mergeplan
