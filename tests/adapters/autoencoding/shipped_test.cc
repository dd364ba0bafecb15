// The autoencoder that comes with the project: examples/mssim_vae/vae.
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "adapters/autoencoding/data.h"
#include "adapters/autoencoding/ms_ssim.h"
#include "adapters/vae_latent/autoencoder.h"

namespace mergeplan::autoencoding {
namespace {

constexpr char kTest[] = "/usr/share/datasets/fashion-mnist/t10k-images-idx3-ubyte.gz";

TEST(ShippedVae, GivesPicturesBackThatItHasNotSeen) {
  const char* source = std::getenv("MERGEPLAN_SOURCE_DIR");
  const std::string folder =
      std::string(source != nullptr ? source : ".") + "/examples/mssim_vae/vae";
  const auto net = vae::Autoencoder::Load(folder);
  ASSERT_TRUE(net.ok()) << net.status();
  EXPECT_LT(std::filesystem::file_size(folder + "/diffusion_pytorch_model.safetensors"),
            4'000'000U);
  EXPECT_EQ((*net)->config().latent_channels * (32 / (*net)->config().reduction()) *
                (32 / (*net)->config().reduction()),
            128);
  if (!std::filesystem::exists(kTest)) {
    GTEST_SKIP() << kTest << " is missing; install the package dataset-fashion-mnist";
  }
  DataRequest request;
  request.path = kTest;
  request.size = "32";
  request.rows = 256;
  const auto data = LoadPictures(request, (*net)->config(), folder);
  ASSERT_TRUE(data.ok()) << data.status();
  const at::Tensor& x = data->pictures;
  const c10::NoGradGuard no_gradients;
  const vae::Encoded law = (*net)->Encode(x).value();
  const at::Tensor y = (*net)->Decode(law.mean).value();
  const MsSsimOptions options = MsSsimOptions::For(32, 32).value();
  const auto similarity = [&](const at::Tensor& other) {
    return MsSsim((x + 1) * 0.5, (other + 1) * 0.5, options).mean().item<double>();
  };
  EXPECT_GT(similarity(y), 0.94);
  // The mean picture, which is all that a collapsed latent could say.
  EXPECT_LT(similarity(x.mean(0, true).expand_as(x)), 0.6);
  // Not one latent dimension in ten says nothing.
  const at::Tensor spread = law.mean.flatten(1).var(0);
  EXPECT_LT((spread < 0.01).sum().item<double>(), 13);
}

}  // namespace
}  // namespace mergeplan::autoencoding
