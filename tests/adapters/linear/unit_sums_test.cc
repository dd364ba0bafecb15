// Training whose noise is drawn and summed by the kernels of a device, run as loops here and on a
// device where there is one, against the processor's own loops.
#include "adapters/linear/unit_sums.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "adapters/linear/sum_squares.h"
#include "tests/adapters/linear/support.h"

namespace mergeplan {
namespace {

using ::mergeplan::testing::RandomTask;
using ::mergeplan::testing::RunToEnd;
using ::mergeplan::testing::TrainToEnd;
using ::testing::HasSubstr;

TEST(NormalAt, IsTheNumberOfTheStream) {
  const StreamName name = StreamName::Of(7, 3, 9, 0);
  for (const std::uint64_t begin : {std::uint64_t{0}, std::uint64_t{1} << 40}) {
    std::vector<float> stream(101);
    NoiseStream(name).FillAt(begin, stream.data(), 101);
    for (std::uint64_t k = 0; k < 101; ++k) EXPECT_EQ(NormalAt(name, begin + k), stream[k]) << k;
  }
}

TEST(UnitSums, AreThoseOfTheStreams) {
  for (const std::int64_t d : {1, 3, 40}) {
    for (const std::int64_t rows : {1, 64, 65, 300}) {
      UnitSumsShape shape{
          {StreamName::Of(1, 1, 2, 0), StreamName::Of(2, 1, 2, 0)}, d, rows, 0, rows};
      shape.row_begin = rows / 3;
      constexpr std::int64_t kFirst = 5, kCount = 4;
      std::vector<double> sums(2 * kCount * d);
      ASSERT_TRUE(EmulatedUnitSums(shape)->Sum(kFirst, kCount, sums.data()).ok());
      for (std::int64_t i = 0; i < 2; ++i) {
        for (std::int64_t u = 0; u < kCount; ++u) {
          const std::int64_t left = rows - shape.row_begin;
          std::vector<float> noise(left * d);
          NoiseStream(shape.names[i])
              .FillAt(((kFirst + u) * rows + shape.row_begin) * d, noise.data(), left * d);
          std::vector<double> expected(d);
          SumSquares(noise.data(), left, d, expected.data());
          for (std::int64_t k = 0; k < d; ++k) {
            EXPECT_NEAR(sums[(i * kCount + u) * d + k], expected[k], 1e-13 * expected[k]);
          }
        }
      }
    }
  }
}

TrainerOptions DeviceOptions(int batch, std::int64_t updates,
                             const std::map<std::string, std::string>& recipe) {
  TrainerOptions options;
  options.lr = 0.02;
  options.updates = updates;
  options.batch = batch;
  options.recipe = *Recipe::Parse(recipe);
  if (options.recipe.student == StudentKind::kEmbedding) {
    options.feature_norm = 32;
    options.lr /= 32;
  }
  return options;
}

std::vector<std::map<std::string, std::string>> DeviceRecipes() {
  return {{},
          {{"momentum", "0.9"}, {"lr-schedule", "cosine"}, {"warmup", "3"}},
          {{"optimizer", "adamw"}, {"weight-decay", "0.2"}, {"ema", "0.9"}},
          {{"clip-norm", "0.1"}, {"accumulate", "3"}, {"student", "embedding"}},
          {{"draws", "fixed"}},
          {{"draws", "chi2"}}};
}

void ExpectSameTraining(const OpenUnitSums& elsewhere) {
  for (const auto& recipe : DeviceRecipes()) {
    for (const DType dtype : {DType::kFloat64, DType::kFloat32}) {
      TrainerOptions options = DeviceOptions(150, 30, recipe);
      options.dtype = dtype;
      const std::vector<MergeTask> tasks = {RandomTask({1, 2}, 40, 2), RandomTask({3, 7}, 40, 3)};
      const TrainerState here = TrainToEnd(tasks, options);
      options.unit_sums = elsewhere;
      const TrainerState there = TrainToEnd(tasks, options);
      const double tolerance = dtype == DType::kFloat64 ? 1e-12 : 2e-5;
      ASSERT_EQ(here.parameters.size(), there.parameters.size());
      for (size_t k = 0; k < here.parameters.size(); ++k) {
        EXPECT_NEAR(here.Frozen()[k], there.Frozen()[k], tolerance);
      }
      for (size_t k = 0; k < here.curve.size(); ++k) {
        EXPECT_NEAR(here.curve[k], there.curve[k], tolerance * (1 + 100 * here.curve[0]));
      }
    }
  }
}

OpenUnitSums Emulated() {
  return [](const UnitSumsShape& shape) { return EmulatedUnitSums(shape); };
}

TEST(UnitSums, TrainWhatTheProcessorTrains) { ExpectSameTraining(Emulated()); }

TEST(UnitSums, ATrainingGoesOnBitByBit) {
  TrainerOptions options = DeviceOptions(64, 40, {{"optimizer", "adam"}});
  options.unit_sums = Emulated();
  const std::vector<MergeTask> tasks = {RandomTask({1, 2}, 300000, 2)};  // 13 updates at a time
  const TrainerState whole = TrainToEnd(tasks, options);
  auto first = MakeLinearTrainer(tasks, options);
  ASSERT_TRUE((*first)->Advance().ok());
  const TrainerState middle = (*first)->Save();
  ASSERT_GT(middle.updates, 0);
  ASSERT_LT(middle.updates, 40);
  auto second = MakeLinearTrainer(tasks, options);
  ASSERT_TRUE((*second)->Restore(middle).ok());
  const TrainerState resumed = RunToEnd(std::move(second));
  EXPECT_EQ(whole.parameters, resumed.parameters);
  EXPECT_EQ(whole.first, resumed.first);
  EXPECT_EQ(whole.curve, resumed.curve);
}

TEST(UnitSums, AnErrorOfTheDeviceEndsTheTraining) {
  class Lost : public UnitSums {
    absl::Status Sum(std::uint64_t, std::int64_t, double*) override {
      return absl::UnavailableError("the device is lost");
    }
  };
  TrainerOptions options = DeviceOptions(64, 40, {});
  options.unit_sums = [](const UnitSumsShape&) { return std::make_unique<Lost>(); };
  auto trainer = MakeLinearTrainer({RandomTask({1, 2}, 4, 2)}, options);
  ASSERT_TRUE(trainer.ok());
  EXPECT_THAT((*trainer)->Advance().message(), HasSubstr("the device is lost"));
  EXPECT_EQ((*trainer)->Save().updates, 0);
}

TEST(UnitSums, TrainOnCudaWhatTheProcessorTrains) {
  const auto device = CudaUnitSums({{StreamName::Of(1, 1, 2, 0)}, 1, 1, 0, 1}, 0);
  if (!device.ok()) {
    ASSERT_FALSE(std::filesystem::exists("/dev/nvidia0")) << device.status();
    GTEST_SKIP() << device.status().message();
  }
  ExpectSameTraining([](const UnitSumsShape& shape) { return CudaUnitSums(shape, 0); });
}

}  // namespace
}  // namespace mergeplan
