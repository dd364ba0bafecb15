// What a network is shown and asked for at every level.
#include "adapters/denoising/levels.h"

#include <gtest/gtest.h>

#include <cmath>

#include "adapters/denoising/job.h"
#include "adapters/network/wrapper.h"

namespace mergeplan::denoising {
namespace {

using network::Prediction;
using network::Signature;

Signature Of(Prediction prediction, const std::string& schedule) {
  Signature signature;
  signature.prediction = prediction;
  signature.shape = {1, 4, 4};
  signature.table = network::TableOfSchedule(schedule, 1000).value();
  return signature;
}

std::vector<Level> LevelsOf(const Signature& signature,
                            const std::map<std::string, std::string>& options = {}) {
  const auto levels =
      TrainingLevels(signature, ScheduleOfTable(*signature.table), Options::Parse(options).value());
  EXPECT_TRUE(levels.ok()) << levels.status();
  return levels.value_or(std::vector<Level>());
}

TEST(DenoisingLevels, AreTheTextbookOnes) {
  for (const Prediction prediction :
       {Prediction::kEpsilon, Prediction::kSample, Prediction::kVPrediction}) {
    const Signature signature = Of(prediction, "ddpm-linear");
    const std::vector<Level> levels = LevelsOf(signature);
    ASSERT_EQ(levels.size(), 1000U);
    double product = 1;
    for (int t = 0; t < 1000; ++t) {
      product *= 1 - (1e-4 + (0.02 - 1e-4) * t / 999);
      const double a = std::sqrt(product), s = std::sqrt(1 - product);
      const Level& level = levels[t];
      EXPECT_NEAR(level.input_data, a, 1e-9);
      EXPECT_NEAR(level.input_noise, s, 1e-9);
      EXPECT_EQ(level.time, t);
      EXPECT_EQ(level.weight, 1);
      const double data = prediction == Prediction::kEpsilon  ? 0
                          : prediction == Prediction::kSample ? 1
                                                              : -s;
      const double noise = prediction == Prediction::kEpsilon  ? 1
                           : prediction == Prediction::kSample ? 0
                                                               : a;
      EXPECT_NEAR(level.output_data, data, 1e-9);
      EXPECT_NEAR(level.output_noise, noise, 1e-9);
    }
  }
}

TEST(DenoisingLevels, OfAFlow) {
  const Signature signature = Of(Prediction::kFlow, "flow:shift=3");
  const std::vector<Level> levels = LevelsOf(signature);
  ASSERT_EQ(levels.size(), 1000U);
  for (int t = 1; t <= 1000; ++t) {
    const double sigma = 3.0 * t / (1000 + 2.0 * t);
    EXPECT_NEAR(levels[t - 1].input_data, 1 - sigma, 1e-12);
    EXPECT_NEAR(levels[t - 1].input_noise, sigma, 1e-12);
    EXPECT_NEAR(levels[t - 1].output_data, -1, 1e-12);
    EXPECT_NEAR(levels[t - 1].output_noise, 1, 1e-12);
  }
}

// The right answer of the network, put through the wrapper, is the data.
TEST(DenoisingLevels, TheTargetSaysWhatTheDataIs) {
  for (const Prediction prediction :
       {Prediction::kEpsilon, Prediction::kSample, Prediction::kVPrediction, Prediction::kFlow}) {
    Signature signature =
        Of(prediction, prediction == Prediction::kFlow ? "flow" : "ddpm-scaled-linear");
    for (const bool normalized : {false, true}) {
      signature.normalized_input = normalized;
      signature.sigma_data = normalized ? 0.5 : 1;
      const Schedule schedule = ScheduleOfTable(*signature.table);
      const std::vector<Level> levels = LevelsOf(signature);
      const double x0 = 0.7, eps = -1.3;
      for (int t = 1; t <= schedule.steps(); t += 37) {
        const Level& level = levels[t - 1];
        const double z = schedule.alpha[t] * x0 + schedule.sigma[t] * eps;
        const double answer = level.output_data * x0 + level.output_noise * eps;
        const auto estimate = network::EstimateAt(signature, schedule, t);
        ASSERT_TRUE(estimate.ok()) << estimate.status();
        EXPECT_NEAR(estimate->state * z + estimate->output * answer, x0, 1e-9) << t;
        if (normalized) {
          EXPECT_NEAR(std::hypot(level.input_data * 0.5, level.input_noise), 1, 1e-9);
        }
      }
    }
  }
}

// Weights are stated for the output's error: err(x0) = -sigma err(v), err(eps) = alpha err(v).
TEST(DenoisingLevels, Weights) {
  const Signature signature = Of(Prediction::kVPrediction, "ddpm-linear");
  const Schedule schedule = ScheduleOfTable(*signature.table);
  const auto check = [&](const std::map<std::string, std::string>& options, auto expected) {
    const std::vector<Level> levels = LevelsOf(signature, options);
    for (int t = 1; t <= 1000; t += 111) {
      const double a = schedule.alpha[t], s = schedule.sigma[t], snr = a * a / (s * s);
      const double weight = expected(a, s, snr);
      EXPECT_NEAR(levels[t - 1].weight, weight, 1e-8 * std::abs(weight)) << t;
    }
  };
  check({{"loss", "v"}}, [](double, double, double) { return 1.0; });
  check({{"loss", "x0"}}, [](double, double s, double) { return s * s; });
  check({{"loss", "epsilon"}}, [](double a, double, double) { return a * a; });
  check({{"weighting", "min-snr-gamma"}},
        [](double, double, double snr) { return std::min(snr, 5.0) / (snr + 1); });
  check({{"weighting", "min-snr-gamma"}, {"gamma", "2"}, {"loss", "v"}},
        [](double, double, double snr) { return std::min(snr, 2.0) / (snr + 1); });
  check({{"weighting", "truncated-snr"}},
        [](double, double, double snr) { return std::max(snr, 1.0) / (snr + 1); });
}

TEST(DenoisingLevels, EpsilonSaysNothingWithoutSignal) {
  Signature signature = Of(Prediction::kEpsilon, "flow");
  const auto levels = TrainingLevels(signature, ScheduleOfTable(*signature.table), Options());
  ASSERT_FALSE(levels.ok());
  EXPECT_NE(levels.status().message().find("level 1000"), std::string::npos) << levels.status();
}

TEST(DenoisingLevels, ThinnedKeepsTheNoisiest) {
  const Schedule schedule = ScheduleOfTable(network::TableOfSchedule("ddpm-cosine", 1000).value());
  const Schedule eight = Thinned(schedule, 8);
  ASSERT_EQ(eight.steps(), 8);
  for (int k = 1; k <= 8; ++k) {
    EXPECT_EQ(eight.timesteps[k], 125 * k - 1);
    EXPECT_EQ(eight.alpha[k], schedule.alpha[125 * k]);
  }
  EXPECT_EQ(eight.alpha[0], 1);
  EXPECT_EQ(Thinned(schedule, 5000).steps(), 1000);
  EXPECT_EQ(Thinned(schedule, 1).timesteps[1], 999);
  EXPECT_TRUE(ValidateSchedule(eight).ok());
}

}  // namespace
}  // namespace mergeplan::denoising
