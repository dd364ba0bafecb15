#include "adapters/autoencoding/options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace mergeplan::autoencoding {
namespace {

using ::testing::HasSubstr;

TEST(AutoencodingOptions, ComeBackFromTheirTexts) {
  const Options defaults = Options::Parse({}).value();
  EXPECT_EQ(defaults.loss, LossKind::kMsSsim);
  EXPECT_EQ(defaults.kl_weight, 2.5e-4);
  EXPECT_EQ(defaults.training.lr, 1e-3);
  const Options options = Options::Parse({{"loss", "ms-ssim"},
                                          {"kl-weight", "0.01"},
                                          {"window", "5"},
                                          {"scales", "2"},
                                          {"lr", "0.5"},
                                          {"flip", "yes"},
                                          {"samples", "3"}})
                              .value();
  EXPECT_EQ(options.window, 5);
  EXPECT_EQ(options.scales, 2);
  EXPECT_TRUE(options.training.flip);
  EXPECT_EQ(Options::Parse(options.Texts())->Texts(), options.Texts());
  EXPECT_EQ(Options::Parse(defaults.Texts())->Texts(), defaults.Texts());
  EXPECT_EQ(options.DecidingTexts().count("samples"), 0U);
  EXPECT_EQ(options.DecidingTexts().at("kl-weight"), "0.01");
  const Options squared = Options::Parse({{"loss", "squared"}}).value();
  EXPECT_EQ(squared.Texts().count("window"), 0U);
  EXPECT_EQ(Options::Parse(squared.Texts())->loss, LossKind::kSquared);
}

TEST(AutoencodingOptions, NameWhatIsWrong) {
  const auto fault = [](const std::map<std::string, std::string>& texts) {
    return std::string(Options::Parse(texts).status().message());
  };
  EXPECT_THAT(fault({{"loss", "l7"}}), HasSubstr("--loss l7: expected ms-ssim or squared"));
  EXPECT_THAT(fault({{"kl-weight", "-1"}}), HasSubstr("--kl-weight -1"));
  EXPECT_THAT(fault({{"kl-weight", "nan"}}), HasSubstr("--kl-weight nan"));
  EXPECT_THAT(fault({{"window", "4"}, {"scales", "2"}}), HasSubstr("odd"));
  EXPECT_THAT(fault({{"window", "5"}}), HasSubstr("both or none"));
  EXPECT_THAT(fault({{"window", "5"}, {"scales", "6"}}), HasSubstr("--scales 6"));
  EXPECT_THAT(fault({{"loss", "squared"}, {"window", "5"}}), HasSubstr("--loss ms-ssim"));
  EXPECT_THAT(fault({{"weighting", "snr"}}), HasSubstr("--weighting"));
  EXPECT_THAT(fault({{"lr", "-1"}}), HasSubstr("--lr -1"));
}

}  // namespace
}  // namespace mergeplan::autoencoding
