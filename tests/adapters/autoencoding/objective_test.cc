// The loss of a variational autoencoder against plain arithmetic.
#include "adapters/autoencoding/objective.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <memory>
#include <nlohmann/json.hpp>

#include "adapters/autoencoding/module.h"
#include "adapters/denoising/batches.h"
#include "adapters/network/inputs.h"
#include "adapters/noise/noise.h"
#include "tests/adapters/autoencoding/support.h"

namespace mergeplan::autoencoding {
namespace {

using ::testing::HasSubstr;

std::unique_ptr<AutoencoderModule> Network() {
  const auto config = vae::ParseConfig(SmallVaeConfig(), "config").value();
  return std::make_unique<AutoencoderModule>(vae::Autoencoder::Create(config, 4).value());
}

at::Tensor SomePictures(std::int64_t count) {
  return at::sin(at::arange(count * 16 * 16, at::kFloat) * 0.37).view({count, 1, 16, 16}) * 0.9;
}

TEST(AutoencodingObjective, IsTheLossWorkedOutByHand) {
  const auto network = Network();
  for (const std::string loss : {"ms-ssim", "squared"}) {
    const Options options =
        Options::Parse(
            {{"loss", loss}, {"kl-weight", "0.03"}, {"batch", "3"}, {"seed", "9"}, {"flip", "yes"}})
            .value();
    const auto objective = AutoencodingObjective(SomePictures(7), options, at::kCPU).value();
    EXPECT_THAT(objective->parts(), ::testing::ElementsAre("reconstruction", "kl"));
    const auto found = objective->Of(*network, 5).value();

    const at::Tensor x = denoising::TakeSamples(SomePictures(7), 9, 15, 3, true);
    const vae::Encoded law = network->net().Encode(x).value();
    at::Tensor noise = at::empty(law.mean.sizes(), at::kFloat);
    network::RowStream stream;
    stream.seed = 9;
    NoiseStream(stream.Name(network::Lane::kTraining))
        .FillAt(15 * static_cast<std::uint64_t>(law.mean.numel() / 3),
                noise.mutable_data_ptr<float>(), noise.numel());
    const at::Tensor y =
        network->net().Decode(law.mean + at::exp(law.log_variance / 2) * noise).value();
    double kl = 0;
    const at::Tensor m = law.mean.flatten(), v = law.log_variance.flatten();
    for (std::int64_t k = 0; k < m.numel(); ++k) {
      const auto mean = m[k].item<double>(), log = v[k].item<double>();
      kl += (mean * mean + std::exp(log) - 1 - log) / 2 / 3;
    }
    const double reconstruction =
        loss == "squared" ? (x - y).pow(2).mean().item<double>()
                          : 1 - MsSsim((x + 1) / 2, (y + 1) / 2, MsSsimOptions::For(16, 16).value())
                                    .mean()
                                    .item<double>();
    EXPECT_NEAR(found.parts[0], reconstruction, 1e-5);
    EXPECT_NEAR(found.parts[1], kl, 1e-4 * kl);
    EXPECT_NEAR(found.value.item<double>(), reconstruction + 0.03 * kl, 1e-5);
    EXPECT_TRUE(found.value.requires_grad());
  }
}

TEST(AutoencodingObjective, SaysWhatIsWrongWithPictures) {
  const Options options = Options::Parse({}).value();
  const auto fault = [&](const at::Tensor& pictures) {
    return std::string(AutoencodingObjective(pictures, options, at::kCPU).status().message());
  };
  EXPECT_THAT(fault(at::zeros({0, 1, 16, 16})), HasSubstr("no pictures"));
  EXPECT_THAT(fault(SomePictures(2) * 100), HasSubstr("expected -1 to 1"));
  at::Tensor broken = SomePictures(2);
  broken[1][0][3][3] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_THAT(fault(broken), HasSubstr("not finite"));
  EXPECT_THAT(fault(at::zeros({2, 1, 4, 4})), HasSubstr("window"));
}

}  // namespace
}  // namespace mergeplan::autoencoding
