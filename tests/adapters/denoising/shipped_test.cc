// The teacher that comes with the project: examples/unet/teacher.
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "adapters/cases/network_files.h"
#include "adapters/denoising/batches.h"
#include "adapters/denoising/levels.h"
#include "adapters/network/data.h"
#include "planner/runs/run_info.h"

namespace mergeplan::denoising {
namespace {

constexpr char kTest[] = "/usr/share/datasets/fashion-mnist/t10k-images-idx3-ubyte.gz";

TEST(ShippedTeacher, DenoisesPicturesThatItHasNotSeen) {
  const char* source = std::getenv("MERGEPLAN_SOURCE_DIR");
  const std::string folder =
      std::string(source != nullptr ? source : ".") + "/examples/unet/teacher";
  const auto teacher = LoadNetwork({kUnetTeacher, folder});
  ASSERT_TRUE(teacher.ok()) << teacher.status();
  EXPECT_LT(std::filesystem::file_size(folder + "/unet/diffusion_pytorch_model.safetensors"),
            1'000'000U);
  EXPECT_EQ(teacher->signature.prediction, network::Prediction::kVPrediction);
  if (!std::filesystem::exists(kTest)) {
    GTEST_SKIP() << kTest << " is missing; install the package dataset-fashion-mnist";
  }
  const auto data =
      network::LoadData(kTest, {}, teacher->signature.scaling, teacher->signature.shape, 500);
  ASSERT_TRUE(data.ok()) << data.status();
  BatchOptions options;
  options.seed = 1;
  options.rows = 250;
  options.network = at::TensorOptions().dtype(at::kFloat);
  const auto batches = Batches::Create(
      *data,
      TrainingLevels(teacher->signature, ScheduleOfTable(*teacher->signature.table), Options())
          .value(),
      options);
  ASSERT_TRUE(batches.ok()) << batches.status();
  const c10::NoGradGuard no_gradients;
  const Batch batch = batches->Draw(0).value();
  const auto out = teacher->module->Forward(batch.input, batch.time, {});
  ASSERT_TRUE(out.ok()) << out.status();
  // The best that treats pixels as independent numbers of variance 0.5 leaves sqrt(0.5).
  EXPECT_LT((*out - batch.target).square().mean().item<double>(), 0.19);
}

}  // namespace
}  // namespace mergeplan::denoising
