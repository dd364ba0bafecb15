// Named schedules against values worked out by hand (and, for tables, by their definition).

#include <numbers>

#include "planner/schedule/named.h"
#include "tests/planner/schedule/test_util.h"

namespace mergeplan {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using testing::ErrorOf;
using testing::ExpectNear;
using ::testing::HasSubstr;
using testing::MustLoad;

TEST(Named, CosineHasExactEnds) {
  const Schedule s = MustLoad("cosine", 4);
  EXPECT_EQ(s.alpha.front(), 1);
  EXPECT_EQ(s.sigma.front(), 0);
  EXPECT_EQ(s.alpha.back(), 0);
  EXPECT_EQ(s.sigma.back(), 1);
  EXPECT_NEAR(s.alpha[2], std::numbers::sqrt2 / 2, 1e-16);
  EXPECT_NEAR(s.alpha[1], std::cos(std::numbers::pi / 8), 1e-16);
  EXPECT_EQ(s.spec, "cosine");
  EXPECT_TRUE(s.variance_preserving());
}

// alpha_bar at index floor(1000 k / T + 1/2) - 1 for betas given by a function of the index.
void ExpectTable(const std::string& spec, int steps, double (*beta)(int)) {
  const Schedule s = MustLoad(spec, steps);
  ASSERT_EQ(s.steps(), steps);
  EXPECT_EQ(s.alpha[0], 1);
  EXPECT_EQ(s.sigma[0], 0);
  for (int k = 1; k <= steps; ++k) {
    const int index = static_cast<int>(std::floor(k * 1000.0 / steps + 0.5)) - 1;
    double product = 1;
    for (int i = 0; i <= index; ++i) product *= 1 - beta(i);
    EXPECT_NEAR(s.alpha[k], std::sqrt(product), 1e-13 * s.alpha[k]) << spec << " level " << k;
    EXPECT_NEAR(s.sigma[k], std::sqrt(1 - product), 1e-12) << spec << " level " << k;
    EXPECT_EQ(s.timesteps[k], index);
  }
}

double Linear(int i) { return 1e-4 + (0.02 - 1e-4) * i / 999; }
double ScaledLinear(int i) {
  const double root = std::sqrt(0.00085) + (std::sqrt(0.012) - std::sqrt(0.00085)) * i / 999;
  return root * root;
}
double SigmoidBeta(int i) { return 1 / (1 + std::exp(6 - 12.0 * i / 999)) * (0.02 - 1e-4) + 1e-4; }
double CosineBeta(int i) {
  const auto f = [](double t) {
    return std::pow(std::cos((t + 0.008) / 1.008 * std::numbers::pi / 2), 2);
  };
  return std::min(0.999, 1 - f((i + 1) / 1000.0) / f(i / 1000.0));
}

TEST(Named, DdpmSchedulesSampleTheirTables) {
  for (const int steps : {1, 3, 7, 32, 1000}) {
    ExpectTable("ddpm-linear", steps, Linear);
    ExpectTable("ddpm-scaled-linear", steps, ScaledLinear);
    ExpectTable("sigmoid", steps, SigmoidBeta);
    ExpectTable("ddpm-cosine", steps, CosineBeta);
  }
}

TEST(Named, DdpmNumbers) {
  // Made with numpy: sqrt(cumprod(1 - linspace(a, b, 1000)))[[166, 332, 499, 666, 832, 999]].
  ExpectNear(MustLoad("ddpm-linear", 6).alpha,
             {1, 0.86366342, 0.56637868, 0.28033416, 0.10480568, 0.02981796, 0.00635282}, 1e-6,
             "ddpm-linear");
  ExpectNear(MustLoad("ddpm-scaled-linear", 6).alpha,
             {1, 0.8971345814430955, 0.7325585739485163, 0.526943688126604, 0.3241611761000486,
              0.166158153617999, 0.06826491421716747},
             1e-14, "ddpm-scaled-linear");
  EXPECT_NEAR(MustLoad("ddpm-linear:beta_start=0.01,beta_end=0.01", 1).alpha[1],
              std::pow(0.99, 500), 1e-14);
}

TEST(Named, FlowIsTurnedIntoVariancePreservingCoordinates) {
  const Schedule s = MustLoad("flow:shift=3", 4);
  EXPECT_TRUE(s.variance_preserving());
  EXPECT_EQ(s.spec, "flow:shift=3");
  EXPECT_EQ(s.alpha.back(), 0);
  EXPECT_EQ(s.sigma.back(), 1);
  for (int t = 0; t <= 4; ++t) {
    const double tau = t / 4.0;
    const double sigma = 3 * tau / (1 + 2 * tau);
    EXPECT_NEAR(s.level_scale[t] * s.alpha[t], 1 - sigma, 1e-15);
    EXPECT_NEAR(s.level_scale[t] * s.sigma[t], sigma, 1e-15);
  }
  // Level 2: sigma = 0.75, alpha = 0.25.
  EXPECT_NEAR(s.sigma[2], 0.75 / std::sqrt(0.625), 1e-15);
}

TEST(Named, EdmIsScaledByItsData) {
  const Schedule s = MustLoad("edm", 3);
  EXPECT_EQ(s.data_scale, 0.5);
  const double middle = std::pow((std::pow(80.0, 1 / 7.0) + std::pow(0.002, 1 / 7.0)) / 2, 7);
  const double native[] = {0, 0.002, middle, 80};
  for (int t = 0; t <= 3; ++t) {
    const double norm = std::sqrt(native[t] * native[t] + 0.25);
    EXPECT_NEAR(s.alpha[t], 0.5 / norm, 1e-14);
    EXPECT_NEAR(s.sigma[t], native[t] / norm, 1e-14);
    // z = x0 + sigma eps natively.
    EXPECT_NEAR(s.level_scale[t] * s.sigma[t], native[t], 1e-12);
    EXPECT_NEAR(s.level_scale[t] * s.alpha[t], s.data_scale, 1e-14);
  }
  EXPECT_EQ(s.sigma[0], 0);
  EXPECT_NEAR(MustLoad("edm:sigma_max=10,sigma_data=1", 1).sigma[1], 10 / std::sqrt(101), 1e-15);
}

TEST(Named, EveryNameLoadsAtEveryLength) {
  for (const std::string& line : ScheduleNames()) {
    const std::string name = line.substr(0, line.find_first_of(": "));
    EXPECT_TRUE(IsScheduleName(name)) << name;
    for (const int steps : {1, 2, 5, 100, 1000}) {
      const Schedule s = MustLoad(name, steps);
      EXPECT_EQ(s.steps(), steps) << name;
      EXPECT_TRUE(ValidateSchedule(s).ok()) << name;
      EXPECT_TRUE(s.variance_preserving()) << name;
      EXPECT_EQ(s.level_scale.size(), s.alpha.size()) << name;
      EXPECT_EQ(s.alpha[0], 1) << name;
      EXPECT_EQ(s.sigma[0], 0) << name;
    }
    // The line shows the defaults in the form in which they are written.
    const std::string spec = line.substr(0, line.find("  "));
    EXPECT_EQ(MustLoad(spec, 7).alpha, MustLoad(name, 7).alpha) << spec;
  }
}

TEST(Named, StepsAreChecked) {
  EXPECT_THAT(ErrorOf("cosine", std::nullopt),
              AllOf(HasSubstr("cosine"), HasSubstr("teacher steps are missing")));
  for (const int steps : {0, -5, 100'001, 2'000'000'000}) {
    EXPECT_THAT(ErrorOf("flow", steps),
                AllOf(HasSubstr(std::to_string(steps)), HasSubstr("from 1 to 100000")));
  }
  EXPECT_THAT(ErrorOf("ddpm-linear", 1001),
              AllOf(HasSubstr("1001"), HasSubstr("at most the 1000")));
  EXPECT_EQ(MustLoad("cosine", 100'000).steps(), 100'000);
}

TEST(Named, ErrorsListWhatIsKnown) {
  EXPECT_THAT(ErrorOf("cosin", 8), AllOf(HasSubstr("cosin"), HasSubstr("ddpm-scaled-linear"),
                                         HasSubstr("sigmoid"), HasSubstr("edm")));
  EXPECT_THAT(ErrorOf("", 8), HasSubstr("cosine"));
  EXPECT_THAT(ErrorOf("flow:shft=3", 8), AllOf(HasSubstr("shft"), HasSubstr("expected shift")));
  EXPECT_THAT(ErrorOf("cosine:a=3", 8), AllOf(HasSubstr("\"a\""), HasSubstr("expected none")));
  EXPECT_THAT(ErrorOf("edm:rho=7,rho=8", 8), HasSubstr("twice"));
  EXPECT_THAT(ErrorOf("edm:sigma_min=3,sigma_max=2", 8), HasSubstr("sigma_min < sigma_max"));
  for (const char* bad : {"flow:shift", "flow:shift=", "flow:=3", "flow:shift=3,"}) {
    EXPECT_THAT(ErrorOf(bad, 8), HasSubstr("expected key=value")) << bad;
  }
  for (const char* bad : {"nan", "inf", "-1", "0", "three", "1e9"}) {
    EXPECT_THAT(ErrorOf(std::string("flow:shift=") + bad, 8),
                AllOf(HasSubstr("shift"), HasSubstr(bad), HasSubstr("above 0")));
  }
}

TEST(Validate, NamesTheLevel) {
  Schedule s = CosineSchedule(4);
  std::swap(s.alpha[2], s.alpha[3]);
  std::swap(s.sigma[2], s.sigma[3]);
  EXPECT_THAT(std::string(ValidateSchedule(s).message()),
              AllOf(HasSubstr("t = 2"), HasSubstr("t = 3")));
  s = CosineSchedule(4);
  s.alpha[1] = std::nan("");
  EXPECT_THAT(std::string(ValidateSchedule(s).message()), HasSubstr("at t = 1"));
  s = CosineSchedule(4);
  s.sigma.pop_back();
  EXPECT_THAT(std::string(ValidateSchedule(s).message()), AllOf(HasSubstr("5"), HasSubstr("4")));
}

TEST(Determinant, IsPositiveWhereTheRatioFallsByOneBit) {
  Schedule s;
  s.alpha = {0.75, std::nextafter(0.75, 0)};
  s.sigma = {0.5, 0.5};
  EXPECT_EQ(SignalNoiseDeterminant(s, 0, 1), 0.5 * (s.alpha[0] - s.alpha[1]));
  EXPECT_EQ(SignalNoiseDeterminant(s, 1, 0), -SignalNoiseDeterminant(s, 0, 1));
}

}  // namespace
}  // namespace mergeplan
