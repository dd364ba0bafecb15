#include "adapters/linear/recipe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "adapters/linear/embedding.h"

namespace mergeplan {
namespace {

using ::testing::HasSubstr;
using Options = std::map<std::string, std::string>;

TEST(Recipe, GoesThroughItsOptions) {
  for (const Options& options :
       {Options{}, Options{{"draws", "chi2"}, {"momentum", "0.9"}, {"accumulate", "3"}},
        Options{{"optimizer", "adam"}, {"beta1", "0.8"}, {"eps", "1e-6"}, {"ema", "0.999"}},
        Options{{"optimizer", "adamw"},
                {"student", "embedding"},
                {"lr-schedule", "cosine"},
                {"warmup", "7"},
                {"clip-norm", "0.1"}},
        Options{{"draws", "fixed"}, {"weight-decay", "0.3"}, {"lr-schedule", "linear"}}}) {
    const absl::StatusOr<Recipe> recipe = Recipe::Parse(options);
    ASSERT_TRUE(recipe.ok()) << recipe.status();
    const Options written = recipe->Options();
    for (const auto& [option, value] : options) {
      EXPECT_TRUE(IsRecipeOption(option));
      ASSERT_EQ(written.count(option), 1u) << option;
      EXPECT_EQ(std::atof(written.at(option).c_str()), std::atof(value.c_str())) << option;
    }
    const absl::StatusOr<Recipe> again = Recipe::Parse(written);
    ASSERT_TRUE(again.ok()) << again.status();
    EXPECT_TRUE(*again == *recipe);
  }
  EXPECT_EQ(Recipe::Parse({{"optimizer", "adamw"}})->weight_decay, 0.01);
  EXPECT_FALSE(IsRecipeOption("lr"));
}

TEST(Recipe, NamesWhatMakesNoSense) {
  const auto expect = [](const Options& options, const std::string& text) {
    const absl::Status status = Recipe::Parse(options).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(status.message(), HasSubstr(text));
  };
  expect({{"draws", "some"}}, "--draws some: expected one of samples, chi2, fixed");
  expect({{"optimizer", "lion"}}, "--optimizer lion: expected one of sgd, adam, adamw");
  expect({{"lr-schedule", "step"}}, "--lr-schedule step: expected one of constant, linear, cosine");
  expect({{"student", "unet"}}, "--student unet: expected one of step, embedding");
  expect({{"momentum", "1"}}, "--momentum 1: expected 0 or more, below 1");
  expect({{"optimizer", "adam"}, {"beta2", "1.5"}}, "--beta2 1.5");
  expect({{"optimizer", "adam"}, {"eps", "0"}}, "--eps 0: expected a positive");
  expect({{"ema", "1"}}, "--ema 1: expected a number above 0 and below 1");
  expect({{"clip-norm", "nan"}}, "--clip-norm nan");
  expect({{"weight-decay", "-1"}}, "--weight-decay -1");
  expect({{"warmup", "1.5"}}, "--warmup 1.5: expected a whole number");
  expect({{"accumulate", "0"}}, "--accumulate 0: expected a whole number, 1 or more");
  // What belongs to another optimizer.
  expect({{"beta1", "0.9"}}, "--beta1 0.9: expected --optimizer adam or adamw");
  expect({{"optimizer", "adamw"}, {"momentum", "0.9"}}, "--momentum 0.9: expected --optimizer sgd");
  expect({{"optimizer", "adam"}, {"student", "embedding"}, {"weight-decay", "0.1"}},
         "use --optimizer adamw");
  expect({{"speed", "9"}}, "--speed");
}

TEST(Recipe, RatesWarmUpAndDecay) {
  Recipe recipe = *Recipe::Parse({{"warmup", "4"}});
  EXPECT_EQ(recipe.RateFactor(0, 20), 0.25);
  EXPECT_EQ(recipe.RateFactor(3, 20), 1);
  EXPECT_EQ(recipe.RateFactor(19, 20), 1);
  recipe = *Recipe::Parse({{"warmup", "4"}, {"lr-schedule", "linear"}});
  EXPECT_EQ(recipe.RateFactor(4, 20), 1);
  EXPECT_EQ(recipe.RateFactor(12, 20), 0.5);
  EXPECT_EQ(recipe.RateFactor(19, 20), 0.0625);
  recipe = *Recipe::Parse({{"lr-schedule", "cosine"}});
  EXPECT_EQ(recipe.RateFactor(0, 10), 1);
  EXPECT_NEAR(recipe.RateFactor(5, 10), 0.5, 1e-15);
  EXPECT_NEAR(recipe.RateFactor(9, 10), (1 + std::cos(M_PI * 0.9)) / 2, 1e-15);
}

TEST(SinusoidalEmbedding, HasTheNormOfThePaper) {
  for (const double u : {0.0, 1.0 / 32, 0.5, 1.0}) {
    const std::vector<double> phi = SinusoidalEmbedding(u);
    EXPECT_EQ(phi.size(), 64u);
    EXPECT_NEAR(std::inner_product(phi.begin(), phi.end(), phi.begin(), 0.0), kEmbeddingNorm,
                1e-12);
    EXPECT_NEAR(phi[0], std::sin(std::pow(10000, -1.0 / 32) * u), 1e-15);
    EXPECT_NEAR(phi[63], std::cos(1e-4 * u), 1e-15);
  }
}

}  // namespace
}  // namespace mergeplan
