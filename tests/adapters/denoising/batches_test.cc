// Batches: reproducible by number, all levels, mirrored rows, noise of the right law.
#include "adapters/denoising/batches.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>

namespace mergeplan::denoising {
namespace {

// Sample n is n + column / 100, so that rows tell who they are.
at::Tensor Data(std::int64_t count, at::IntArrayRef shape = {1, 2, 4}) {
  const at::Tensor columns = at::arange(shape.back(), at::kFloat) / 100;
  std::vector<std::int64_t> sizes = {count};
  sizes.insert(sizes.end(), shape.begin(), shape.end());
  std::vector<std::int64_t> first(sizes.size(), 1);
  first[0] = count;
  return (at::arange(count, at::kFloat).view(first) + columns).expand(sizes).contiguous();
}

// Level k shows nothing but the data and says its number by its time.
std::vector<Level> Clean(int count) {
  std::vector<Level> levels(count);
  for (int k = 0; k < count; ++k) {
    levels[k].input_data = 1;
    levels[k].output_noise = 1;
    levels[k].time = k;
    levels[k].weight = k + 0.5;
  }
  return levels;
}

BatchOptions Of(std::int64_t rows, std::uint64_t seed = 3) {
  BatchOptions options;
  options.seed = seed;
  options.rows = rows;
  options.network = at::TensorOptions().dtype(at::kFloat);
  return options;
}

TEST(DenoisingBatches, AreTheSameInAnyOrder) {
  const Batches one = Batches::Create(Data(10), Clean(5), Of(8)).value();
  const Batches two = Batches::Create(Data(10), Clean(5), Of(8)).value();
  const Batch third = one.Draw(2).value();
  (void)two.Draw(9).value();
  const Batch again = two.Draw(2).value();
  EXPECT_TRUE(at::equal(third.input, again.input));
  EXPECT_TRUE(at::equal(third.target, again.target));
  EXPECT_TRUE(at::equal(third.time, again.time));
  EXPECT_FALSE(at::equal(third.target, one.Draw(3).value().target));
  const Batches other = Batches::Create(Data(10), Clean(5), Of(8, 4)).value();
  EXPECT_FALSE(at::equal(third.target, other.Draw(2).value().target));
}

// With batches of another size the rows are the same ones (but for their levels).
TEST(DenoisingBatches, RowsHaveNumbers) {
  const Batches large = Batches::Create(Data(10), Clean(1), Of(6)).value();
  const Batches small = Batches::Create(Data(10), Clean(1), Of(3)).value();
  const at::Tensor whole = large.Draw(1).value().input;
  EXPECT_TRUE(
      at::equal(whole, at::cat({small.Draw(2).value().input, small.Draw(3).value().input})));
}

TEST(DenoisingBatches, EveryBatchSeesAllLevels) {
  for (const int levels : {1, 3, 8, 100}) {
    const std::int64_t rows = 8;
    const Batches batches = Batches::Create(Data(4), Clean(levels), Of(rows)).value();
    std::set<double> seen;
    for (int b = 0; b < 200; ++b) {
      const Batch batch = batches.Draw(b).value();
      for (std::int64_t r = 0; r < rows; ++r) {
        const double level = batch.time[r].item<double>();
        EXPECT_GE(level, std::floor(static_cast<double>(r) * levels / rows));
        EXPECT_LE(level, std::ceil(static_cast<double>(r + 1) * levels / rows) - 1);
        EXPECT_EQ(batch.weight[r].item<double>(), level + 0.5);
        seen.insert(level);
      }
    }
    EXPECT_EQ(seen.size(), static_cast<std::size_t>(levels));
  }
}

TEST(DenoisingBatches, DrawAllSamplesAlikeAndMirrorHalf) {
  BatchOptions options = Of(100);
  options.flip = true;
  const Batches batches = Batches::Create(Data(5), Clean(1), options).value();
  std::vector<int> counts(5);
  int mirrored = 0;
  constexpr int kBatches = 50, kRows = kBatches * 100;
  for (int b = 0; b < kBatches; ++b) {
    const at::Tensor input = batches.Draw(b).value().input;
    for (int r = 0; r < 100; ++r) {
      const at::Tensor row = input[r][0][0];
      const double first = row[0].item<double>(), last = row[3].item<double>();
      EXPECT_NEAR(std::abs(last - first), 0.03, 1e-5);
      mirrored += last < first ? 1 : 0;
      ++counts[static_cast<int>(std::floor(std::min(first, last) + 0.001))];
    }
  }
  // Five standard deviations.
  EXPECT_NEAR(mirrored, kRows / 2, 5 * std::sqrt(kRows * 0.25));
  for (const int count : counts) EXPECT_NEAR(count, kRows / 5, 5 * std::sqrt(kRows * 0.16));
}

TEST(DenoisingBatches, InputAndTargetAreMadeOfDataAndNoise) {
  Level level;
  level.input_data = 0.8;
  level.input_noise = 0.6;
  level.output_data = -0.6;
  level.output_noise = 0.8;
  for (const auto type : {at::kFloat, at::kDouble}) {
    BatchOptions options = Of(500);
    options.network = at::TensorOptions().dtype(type);
    const Batch batch = Batches::Create(Data(7), {level}, options).value().Draw(0).value();
    EXPECT_EQ(batch.input.scalar_type(), type);
    EXPECT_EQ(batch.target.scalar_type(), type);
    // z = a x + s e and v = a e - s x are solved for both.
    const at::Tensor x = 0.8 * batch.input - 0.6 * batch.target;
    const at::Tensor e = 0.6 * batch.input + 0.8 * batch.target;
    const at::Tensor number = (x.select(3, 0)).round();
    EXPECT_LT((x.select(3, 0) - number).abs().max().item<double>(), 1e-5);
    EXPECT_LT((x.select(3, 3) - number - 0.03).abs().max().item<double>(), 1e-5);
    const double n = static_cast<double>(e.numel());
    EXPECT_NEAR(e.mean().item<double>(), 0, 5 / std::sqrt(n));
    EXPECT_NEAR(e.square().mean().item<double>(), 1, 5 * std::sqrt(2 / n));
  }
}

TEST(DenoisingBatches, TimesAreOfTheTypeThatTheNetworkWants) {
  BatchOptions options = Of(2);
  options.integer_time = true;
  EXPECT_EQ(Batches::Create(Data(2), Clean(2), options)->Draw(0)->time.scalar_type(), at::kLong);
}

TEST(DenoisingBatches, RefuseWhatCannotBeTrainedOn) {
  EXPECT_FALSE(Batches::Create(Data(3), {}, Of(2)).ok());
  EXPECT_FALSE(Batches::Create(Data(3), Clean(2), Of(0)).ok());
  EXPECT_FALSE(Batches::Create(at::empty({0, 1, 2, 4}), Clean(2), Of(2)).ok());
  at::Tensor data = Data(3);
  data.view(-1)[5] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_FALSE(Batches::Create(data, Clean(2), Of(2)).ok());
}

}  // namespace
}  // namespace mergeplan::denoising
