#include "adapters/network/wrapper.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "adapters/network/loss.h"
#include "planner/data/npz.h"
#include "planner/operators/model.h"

namespace mergeplan::network {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr Prediction kPredictions[] = {Prediction::kEpsilon, Prediction::kSample,
                                       Prediction::kVPrediction, Prediction::kFlow};
constexpr const char* kSchedules[] = {"ddpm-cosine", "flow:shift=3", "edm", "ddpm-linear"};

Signature Of(Prediction prediction, double sigma_data = 1) {
  Signature s;
  s.prediction = prediction;
  s.shape = {1};
  s.sigma_data = sigma_data;
  return s;
}

// Data and noise go in, what a perfect network would say is written out by hand in native units,
// and the wrapper must land on the state with the same data and noise.
TEST(NetworkWrapper, APerfectNetworkLandsWhereItShould) {
  std::mt19937 generator(3);
  std::normal_distribution<double> normal;
  for (const char* name : kSchedules) {
    const int T = 9;
    const Schedule s = LoadSchedule(name, T).value();
    for (const Prediction prediction : kPredictions) {
      for (int j = 1; j <= T; ++j) {
        if (s.alpha[j] == 0) continue;
        const double x = normal(generator), eps = normal(generator);  // x native
        const double alpha = s.level_scale[j] * s.alpha[j] / s.data_scale;
        const double sigma = s.level_scale[j] * s.sigma[j];
        double F = 0;
        switch (prediction) {
          case Prediction::kEpsilon:
            F = eps;
            break;
          case Prediction::kSample:
            F = x;
            break;
          case Prediction::kVPrediction: {
            // EDM's F: (sigma_data eps alpha - sigma x / sigma_data) over the root, up to its sign.
            const double sd = s.data_scale, norm = std::hypot(alpha * sd, sigma);
            F = (alpha * sd * eps - sigma * x / sd) / norm;
            break;
          }
          case Prediction::kFlow:
            F = eps - x;
            break;
        }
        const double z = s.alpha[j] * x / s.data_scale + s.sigma[j] * eps;
        const Signature signature = Of(prediction, s.data_scale);
        const Landing estimate = EstimateAt(signature, s, j).value();
        const double size = 1 + std::abs(x) + std::abs(eps);
        EXPECT_NEAR(estimate.state * z + estimate.output * F, x / s.data_scale,
                    1e-9 * size * s.sigma[j] / s.alpha[j] + 1e-11 * size);
        for (int l = 0; l < j; ++l) {
          const Landing landing = LandingAt(signature, s, j, l).value();
          const double landed = s.alpha[l] * x / s.data_scale + s.sigma[l] * eps;
          EXPECT_NEAR(landing.state * z + landing.output * F, landed,
                      1e-9 * size * s.sigma[j] / s.alpha[j] + 1e-11 * size)
              << name << " " << ToString(prediction) << " " << j << " to " << l;
          // The x0 that a landing implies moves with it as said.
          const double implied = EstimatePerLanding(s, j, l) * landing.output;
          EXPECT_NEAR(implied, estimate.output, 1e-9 * std::abs(estimate.output));
        }
      }
    }
  }
}

// EDM's preconditioning written as in Karras et al.: D = c_skip x + c_out F, F = -v here.
TEST(NetworkWrapper, VIsWhatEdmNetworksPredict) {
  const Schedule s = LoadSchedule("edm", 7).value();
  for (int j = 1; j <= 7; ++j) {
    const double sigma = s.level_scale[j] * s.sigma[j], sd = 0.5;
    const Landing estimate = EstimateAt(Of(Prediction::kVPrediction, sd), s, j).value();
    const double skip = sd * sd / (sigma * sigma + sd * sd);
    const double out = sigma * sd / std::hypot(sigma, sd);
    EXPECT_NEAR(s.data_scale * estimate.state / s.level_scale[j], skip, 1e-12 * skip);
    EXPECT_NEAR(-s.data_scale * estimate.output, out, 1e-12);
  }
}

// A denoiser that knows the Gaussian: the wrapper's single step is the planner's A_t.
TEST(NetworkWrapper, StepsOfTheGaussianAreThePlanners) {
  for (const char* name : kSchedules) {
    const int T = 12;
    const Schedule s = LoadSchedule(name, T).value();
    for (const double variance : {0.01, 0.5, 1.0, 7.0}) {
      const Model model = Model::Create({.schedule = s,
                                         .variances = {variance},
                                         .weights = {},
                                         .budget = Budget::Flow(1),
                                         .init = Init::kChild,
                                         .reference = Reference::kSurrogate})
                              .value();
      const double lambda = variance / (s.data_scale * s.data_scale);
      for (int t = 1; t <= T; ++t) {
        const double n = s.alpha[t] * s.alpha[t] * lambda + s.sigma[t] * s.sigma[t];
        const double x0 = s.alpha[t] * lambda / n, eps = s.sigma[t] / n;  // of z = 1
        for (const Prediction prediction : kPredictions) {
          if (prediction == Prediction::kEpsilon && s.alpha[t] < 1e-6) continue;
          double F = 0;
          switch (prediction) {
            case Prediction::kEpsilon:
              F = eps;
              break;
            case Prediction::kSample:
              F = x0 * s.data_scale;
              break;
            case Prediction::kVPrediction:
              F = s.alpha[t] * eps - s.sigma[t] * x0;  // alpha^2 + sigma^2 = 1
              break;
            case Prediction::kFlow:
              F = eps - x0 * s.data_scale;
              break;
          }
          const Landing step = LandingAt(Of(prediction, s.data_scale), s, t, t - 1).value();
          EXPECT_NEAR(step.state + step.output * F, model.A(t)[0], 1e-9)
              << name << " " << t << " " << ToString(prediction);
        }
      }
    }
  }
}

TEST(NetworkWrapper, EpsilonWithoutSignalIsAnErrorThatHelps) {
  const Schedule s = CosineSchedule(4);
  EXPECT_THAT(
      std::string(LandingAt(Of(Prediction::kEpsilon), s, 4, 0).status().message()),
      AllOf(HasSubstr("level 4"), HasSubstr("zero terminal SNR"), HasSubstr("v_prediction")));
  EXPECT_FALSE(EstimateAt(Of(Prediction::kEpsilon), s, 4).ok());
  for (const Prediction prediction :
       {Prediction::kSample, Prediction::kVPrediction, Prediction::kFlow}) {
    const Landing landing = LandingAt(Of(prediction), s, 4, 2).value();
    EXPECT_TRUE(std::isfinite(landing.state) && std::isfinite(landing.output));
  }
  EXPECT_TRUE(LandingAt(Of(Prediction::kEpsilon), s, 3, 0).ok());
}

// Rollouts of diffusers: the network's outputs are stored, the wrapper does the rest.
TEST(NetworkWrapper, FollowsTheRolloutsOfDiffusers) {
  const char* shared = std::getenv("MERGEPLAN_SHARED");
  if (shared == nullptr) GTEST_SKIP() << "MERGEPLAN_SHARED names no folder of reference data";
  for (const char* name : {"epsilon", "sample", "v_prediction"}) {
    SCOPED_TRACE(name);
    const std::string folder = std::string(shared) + "/reference/diffusers/teacher-ddim/" + name;
    const Schedule s = LoadSchedule(folder + "/scheduler", 8).value();
    EXPECT_EQ(s.prediction_type, name);
    Signature signature = Of(ParsePrediction(name).value());
    const auto read = [&](const char* array) {
      return ReadNpzArray(folder + "/io.npz", array).value();
    };
    const NpyArray z = read("z_f64"), prediction = read("prediction_f64"), x0 = read("x0_f64");
    const NpyArray times = read("timesteps");
    const std::size_t n = x0.values.size() / 8;
    double largest = 0;
    for (const double value : z.values) largest = std::max(largest, std::abs(value));
    for (int i = 0; i < 8; ++i) {
      const int level = 8 - i;
      EXPECT_EQ(s.timesteps[level], times.values[i]);
      const Landing step = LandingAt(signature, s, level, level - 1).value();
      const Landing estimate = EstimateAt(signature, s, level).value();
      for (std::size_t k = 0; k < n; ++k) {
        const double state = z.values[i * n + k], F = prediction.values[i * n + k];
        ASSERT_NEAR(step.state * state + step.output * F, z.values[(i + 1) * n + k],
                    1e-6 * largest);
        ASSERT_NEAR(estimate.state * state + estimate.output * F, x0.values[i * n + k],
                    2e-6 * largest);
      }
    }
    // The first merge: the student is the teacher's estimate used over two steps.
    const Landing jump = LandingAt(signature, s, 8, 6).value();
    const NpyArray student = read("student_f64"), target = read("target_f64");
    double loss = 0;
    for (std::size_t k = 0; k < n; ++k) {
      const double out = jump.state * z.values[k] + jump.output * prediction.values[k];
      ASSERT_NEAR(out, student.values[k], 1e-6 * largest);
      loss += (out - target.values[k]) * (out - target.values[k]);
    }
    const double expected = read("loss_sum_f64").values[0];
    EXPECT_NEAR(loss / 2, expected, 1e-3 * expected);
  }
}

TEST(NetworkLoss, SpacesAreTheErrorsThatTheyName) {
  std::mt19937 generator(4);
  std::normal_distribution<double> normal;
  for (const char* name : kSchedules) {
    const Schedule s = LoadSchedule(name, 6).value();
    for (int j = 1; j <= 6; ++j) {
      if (s.alpha[j] == 0) continue;
      for (int l = 0; l < j; ++l) {
        // Two pairs of data and noise with the same z_j.
        const double z = normal(generator), a = normal(generator), b = normal(generator);
        const double eps_a = (z - s.alpha[j] * a) / s.sigma[j];
        const double eps_b = (z - s.alpha[j] * b) / s.sigma[j];
        const double landed = s.alpha[l] * (a - b) + s.sigma[l] * (eps_a - eps_b);
        const double v = s.alpha[j] * (eps_a - eps_b) - s.sigma[j] * (a - b);
        const double e = landed * landed;
        const auto factor = [&](LossSpace space) {
          return LossFactor({space, Weighting::kUniform, 5}, s, j, l).value();
        };
        EXPECT_EQ(factor(LossSpace::kZ), 1);
        EXPECT_NEAR(factor(LossSpace::kX0) * e, (a - b) * (a - b), 1e-8 * (a - b) * (a - b));
        const double eps = (eps_a - eps_b) * (eps_a - eps_b);
        EXPECT_NEAR(factor(LossSpace::kEpsilon) * e, eps, 1e-8 * eps);
        EXPECT_NEAR(factor(LossSpace::kV) * e, v * v, 1e-8 * v * v);
      }
    }
  }
}

TEST(NetworkLoss, WeightingsAreThoseOfTheLiterature) {
  const Schedule s = LoadSchedule("ddpm-linear", 20).value();
  for (int j = 1; j <= 20; ++j) {
    const double snr = s.alpha[j] * s.alpha[j] / (s.sigma[j] * s.sigma[j]);
    // To the clean end the jump is x0 itself (level 0 is clean).
    const auto total = [&](LossSpace space, Weighting weighting, double gamma = 5) {
      return LossFactor({space, weighting, gamma}, s, j, 0).value();
    };
    const auto is = [](double found, double expected) {
      EXPECT_NEAR(found, expected, 1e-12 * expected);
    };
    is(total(LossSpace::kX0, Weighting::kUniform), 1);
    is(total(LossSpace::kEpsilon, Weighting::kUniform), snr);
    is(total(LossSpace::kV, Weighting::kUniform), snr + 1);
    for (const LossSpace space : {LossSpace::kX0, LossSpace::kEpsilon, LossSpace::kV}) {
      const double per_space = total(space, Weighting::kUniform);
      is(total(space, Weighting::kSnr), snr);
      is(total(space, Weighting::kTruncatedSnr), std::max(snr, 1.0));
      for (const double gamma : {1.0, 5.0}) {
        double weight = std::min(snr, gamma);  // what the loss of the prediction is multiplied with
        if (space == LossSpace::kEpsilon) weight /= snr;
        if (space == LossSpace::kV) weight /= snr + 1;
        is(total(space, Weighting::kMinSnrGamma, gamma), weight * per_space);
      }
    }
    is(LossFactor({LossSpace::kZ, Weighting::kSnr, 5}, s, j, j - 1).value(), snr);
  }
}

TEST(NetworkLoss, LossesWithoutASignalAreRefused) {
  const Schedule s = CosineSchedule(3);
  for (const Weighting weighting : {Weighting::kSnr, Weighting::kMinSnrGamma}) {
    EXPECT_THAT(std::string(LossFactor({LossSpace::kX0, weighting, 5}, s, 3, 0).status().message()),
                AllOf(HasSubstr("level 3"), HasSubstr("truncated-snr")));
  }
  EXPECT_FALSE(LossFactor({LossSpace::kEpsilon, Weighting::kUniform, 5}, s, 3, 0).ok());
  EXPECT_EQ(LossFactor({LossSpace::kX0, Weighting::kTruncatedSnr, 5}, s, 3, 0).value(), 1);
  for (const double gamma : {0.0, -1.0, static_cast<double>(NAN)}) {
    EXPECT_FALSE(LossFactor({LossSpace::kX0, Weighting::kMinSnrGamma, gamma}, s, 2, 0).ok());
  }
  EXPECT_EQ(ParseLossSpace("v").value(), LossSpace::kV);
  EXPECT_FALSE(ParseLossSpace("eps").ok());
  EXPECT_EQ(ParseWeighting("min-snr-gamma").value(), Weighting::kMinSnrGamma);
  EXPECT_FALSE(ParseWeighting("").ok());
}

}  // namespace
}  // namespace mergeplan::network
