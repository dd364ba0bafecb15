// What diffusers computes for every class that is known (golden.json, numbers to nine digits).

#include <set>

#include "nlohmann/json.hpp"
#include "planner/base/file.h"
#include "planner/schedule/diffusers_config.h"
#include "tests/planner/schedule/test_util.h"

namespace mergeplan {
namespace {

using testing::ExpectNear;
using Json = nlohmann::json;

std::vector<Json> Cases() {
  const std::string path =
      std::string(std::getenv("MERGEPLAN_SOURCE_DIR")) + "/tests/planner/schedule/golden.json";
  const auto text = ReadFile(path);
  EXPECT_TRUE(text.ok()) << text.status();
  return text.ok() ? Json::parse(*text)["cases"].get<std::vector<Json>>() : std::vector<Json>();
}

std::vector<double> Numbers(const Json& json) { return json.get<std::vector<double>>(); }

TEST(Golden, EveryClassAgreesWithDiffusers) {
  std::set<std::string> seen;
  for (const Json& c : Cases()) {
    const std::string what = c["config"].dump();
    seen.insert(c["config"]["_class_name"].get<std::string>());
    std::vector<SpecParameter> parameters;
    if (c.contains("mu")) parameters.emplace_back("mu", c["mu"].dump());
    const auto t = ReadDiffusersTables(what, c["steps"].get<int>(), "golden.json", parameters);
    ASSERT_TRUE(t.ok()) << t.status() << what;
    // Single precision of a square root decides the last bits where the terminal SNR is moved.
    const bool rescaled = c["config"].value("rescale_betas_zero_snr", false);
    const double tolerance = rescaled ? 5e-6 : 1e-6;
    if (c.contains("timesteps")) {
      // Midpoints of the ancestral sampler come from logarithms in single precision.
      const bool midpoints = t->class_name == "KDPM2AncestralDiscreteScheduler";
      ExpectNear(t->timesteps, Numbers(c["timesteps"]), midpoints ? 1e-4 : 1e-6,
                 what + " timesteps", midpoints ? 1e-2 : 1e-6);
    }
    if (c.contains("sigmas")) {
      ExpectNear(t->sigmas, Numbers(c["sigmas"]), tolerance, what + " sigmas");
    }
    EXPECT_NEAR(t->init_noise_sigma, c["init_noise_sigma"].get<double>(),
                1e-6 * t->init_noise_sigma)
        << what;
    if (c.contains("alphas_cumprod")) {
      const std::vector<double>& a = t->alphas_cumprod;
      ExpectNear({a.front(), a[a.size() / 2], a.back()}, Numbers(c["alphas_cumprod"]), tolerance,
                 what + " alphas_cumprod");
    }
    const auto s = ScheduleOfTables(*t, "golden.json");
    ASSERT_TRUE(s.ok()) << s.status() << what;
    const double level = c["config"].value("invert_sigmas", false) ? 1e-4 : tolerance;
    ExpectNear(s->alpha, Numbers(c["alpha"]), level, what + " alpha", 1e-8);
    ExpectNear(s->sigma, Numbers(c["sigma"]), level, what + " sigma");
    EXPECT_TRUE(s->variance_preserving()) << what;
    EXPECT_EQ(s->timesteps.size(), s->alpha.size()) << what;
  }
  for (const std::string& name : SamplerClassNames()) {
    EXPECT_TRUE(seen.contains(name)) << name << " has no case";
  }
}

}  // namespace
}  // namespace mergeplan
