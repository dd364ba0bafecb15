// The kernels that sum moments on a device, as loops on the processor, against sums in long double.
#include <ATen/TensorOperators.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/randn.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <random>
#include <vector>

#include "adapters/runtime/device.h"
#include "adapters/stream/stream.h"
#include "adapters/vae_latent/cuda/kernels.h"
#include "adapters/vae_latent/latent_moments.h"
#include "planner/device/numbers.h"
#include "tests/planner/spectrum/estimates.h"

namespace mergeplan {
namespace {

using latents_device::Emulation;

std::vector<double> Random(std::int64_t n, double mean, std::mt19937_64* random) {
  std::exponential_distribution<double> skewed;
  std::vector<double> values;
  for (std::int64_t i = 0; i < n; ++i) values.push_back(mean + skewed(*random));
  return values;
}

// n rows of d numbers as a tensor of the type, and as they are in it.
struct Data {
  Data(std::vector<double> values, std::int64_t d, at::ScalarType type)
      : n(static_cast<std::int64_t>(values.size()) / d), d(d) {
    tensor = at::from_blob(values.data(), {n, d}, at::kDouble).to(type).clone();
    const at::Tensor wide = tensor.to(at::kDouble).contiguous();
    numbers.assign(wide.const_data_ptr<double>(), wide.const_data_ptr<double>() + n * d);
  }
  long double At(std::int64_t row, std::int64_t k) const { return numbers[row * d + k]; }
  long double Mean(std::int64_t k) const {
    // From the first number on, since sums of numbers far from zero lose digits even here.
    long double sum = 0;
    for (std::int64_t row = 0; row < n; ++row) sum += At(row, k) - At(0, k);
    return At(0, k) + sum / n;
  }
  std::int64_t n, d;
  at::Tensor tensor;
  std::vector<double> numbers;
};

// Each sum within `tolerance` of the sum of the sizes of what is added; the mean within that of the
// spread.
void ExpectPlain(const Data& data, const CentralMoments& found, double tolerance) {
  ASSERT_EQ(found.count, data.n);
  for (std::int64_t k = 0; k < data.d; ++k) {
    const long double mean = data.Mean(k);
    long double sums[5] = {}, sizes[5] = {};
    for (std::int64_t row = 0; row < data.n; ++row) {
      const long double e = data.At(row, k) - mean;
      for (int power = 2; power <= 4; ++power) {
        sums[power] += std::pow(e, power);
        sizes[power] += std::pow(std::fabs(e), power);
      }
    }
    const long double spread = std::sqrt(sums[2] / data.n);
    EXPECT_NEAR(found.mean[k], mean, tolerance * spread + 1e-15 * std::fabs(mean)) << k;
    EXPECT_NEAR(found.m2[k], sums[2], tolerance * sizes[2]) << k;
    EXPECT_NEAR(found.m3[k], sums[3], tolerance * sizes[3]) << k;
    EXPECT_NEAR(found.m4[k], sums[4], tolerance * sizes[4]) << k;
    for (std::int64_t j = 0; !found.comoment.empty() && j < data.d; ++j) {
      const long double other = data.Mean(j);
      long double sum = 0, size = 0;
      for (std::int64_t row = 0; row < data.n; ++row) {
        const long double product = (data.At(row, k) - mean) * (data.At(row, j) - other);
        sum += product;
        size += std::fabs(product);
      }
      EXPECT_NEAR(found.comoment[k * data.d + j], sum, tolerance * size) << k << " " << j;
    }
  }
}

CentralMoments SumsOf(const at::Tensor& rows, std::int64_t threads, bool covariance) {
  const auto kernels = Emulation(threads);
  LatentMoments moments(covariance, *kernels);
  EXPECT_TRUE(moments.Add(rows).ok());
  return moments.Sums().value();
}

TEST(DeviceMoments, AreThoseOfPlainSums) {
  std::mt19937_64 random(3);
  for (const at::ScalarType type : {at::kFloat, at::kDouble, at::kHalf, at::kBFloat16}) {
    for (const std::int64_t n : {1, 2, 15, 16, 17, 333, 1000}) {
      for (const std::int64_t d : {1, 3, 16}) {
        // From one block for all rows to more blocks than rows of a tile.
        for (const std::int64_t threads : {1, 40, 100000}) {
          SCOPED_TRACE(::testing::Message() << at::toString(type) << " " << n << " x " << d << ", "
                                            << threads << " threads");
          const Data data(Random(n * d, -1, &random), d, type);
          ExpectPlain(data, SumsOf(data.tensor, threads, d == 3), 1e-14);
        }
      }
    }
  }
}

TEST(DeviceMoments, KeepTheirDigitsFarFromZero) {
  std::mt19937_64 random(4);
  for (const at::ScalarType type : {at::kFloat, at::kDouble}) {
    for (const std::int64_t threads : {1, 64}) {
      const Data data(Random(5000 * 4, 1e6, &random), 4, type);
      ExpectPlain(data, SumsOf(data.tensor, threads, true), 1e-13);
    }
  }
  // A first row that is nothing like the others: what is taken off costs digits of the others'
  // mean, but those of its own size only.
  std::vector<double> values = Random(3000, 0, &random);
  values[0] = 1e4;
  const Data data(values, 1, at::kDouble);
  ExpectPlain(data, SumsOf(data.tensor, 32, true), 1e-11);
}

TEST(DeviceMoments, AreTheSameOnEveryRunAndInAnyCutUpToRounding) {
  std::mt19937_64 random(5);
  const Data data(Random(700 * 5, 2, &random), 5, at::kFloat);
  const CentralMoments once = SumsOf(data.tensor, 300, true);
  const CentralMoments again = SumsOf(data.tensor, 300, true);
  EXPECT_EQ(once.m4, again.m4);
  EXPECT_EQ(once.mean, again.mean);
  // Transposed in memory, and one column of many.
  const at::Tensor turned = data.tensor.t().contiguous().t();
  EXPECT_EQ(SumsOf(turned, 300, true).m3, once.m3);
  const CentralMoments column = SumsOf(data.tensor.narrow(1, 2, 1), 300, false);
  EXPECT_NEAR(column.m2[0] / once.m2[2], 1, 1e-14);
}

TEST(DeviceMoments, JoinWithOtherBatches) {
  std::vector<double> values = Correlated(300, 12, 1e3, 1, 4);
  const at::Tensor rows = at::from_blob(values.data(), {300, 3, 2, 2}, at::kDouble).clone();
  const auto kernels = Emulation(50);
  LatentMoments ours(true, *kernels), theirs;
  std::int64_t first = 0;
  for (const std::int64_t some : {1, 99, 200}) {
    ASSERT_TRUE(ours.Add(rows.narrow(0, first, some)).ok());
    ASSERT_TRUE(theirs.Add(rows.narrow(0, first, some)).ok());
    first += some;
  }
  const CentralMoments a = ours.Sums().value(), b = theirs.Sums().value();
  EXPECT_EQ(a.shape, b.shape);
  for (int k = 0; k < 12; ++k) {
    EXPECT_NEAR(a.mean[k] / b.mean[k], 1, 1e-14);
    EXPECT_NEAR(a.m4[k] / b.m4[k], 1, 1e-12);
    EXPECT_NEAR(a.comoment[12 + k], b.comoment[12 + k], 1e-12 * a.m2[1]);
  }
}

TEST(DeviceMoments, NameTheDimensionOfABrokenNumber) {
  std::mt19937_64 random(6);
  const Data data(Random(64 * 3, 0, &random), 3, at::kFloat);
  const auto kernels = Emulation(30);
  for (const std::int64_t row : {0, 40}) {
    at::Tensor rows = data.tensor.clone();
    rows[row][1] = std::numeric_limits<float>::infinity();
    LatentMoments moments(true, *kernels);
    EXPECT_NE(moments.Add(rows).message().find("in dimension 1"), std::string::npos);
    EXPECT_EQ(moments.count(), 0);
  }
}

// The kernels themselves: the same blocks, joined in the same order, as the emulation's. Prints how
// fast they are.
TEST(DeviceMoments, OnCudaAreThoseOfTheEmulation) {
  if (const auto device = OpenDevice("cuda"); !device.ok()) {
    GTEST_SKIP() << device.status().message();
  }
  ASSERT_NE(latents_device::CudaKernels(), nullptr);
  std::mt19937_64 random(8);
  for (const at::ScalarType type : {at::kFloat, at::kDouble, at::kHalf, at::kBFloat16}) {
    for (const std::int64_t d : {1, 7}) {
      const Data data(Random(70000 * d, 1000, &random), d, type);
      LatentMoments moments;
      ASSERT_TRUE(moments.Add(data.tensor.to(at::kCUDA)).ok());
      const CentralMoments found = moments.Sums().value();
      const CentralMoments same =
          SumsOf(data.tensor, latents_device::CudaKernels()->threads(), true);
      for (std::int64_t k = 0; k < d; ++k) {
        EXPECT_NEAR(found.mean[k] / same.mean[k], 1, 1e-15);
        EXPECT_NEAR(found.m2[k] / same.m2[k], 1, 1e-13);
        EXPECT_NEAR(found.m3[k] / same.m3[k], 1, 1e-12);
        EXPECT_NEAR(found.m4[k] / same.m4[k], 1, 1e-13);
      }
      for (std::size_t k = 0; k < same.comoment.size(); ++k) {
        EXPECT_NEAR(found.comoment[k], same.comoment[k], 1e-12 * same.m2[0]);
      }
    }
  }
  const at::Tensor large = at::randn({65536, 4096}, at::TensorOptions(at::kCUDA));
  for (const bool covariance : {false, true}) {
    LatentMoments moments(covariance);
    double seconds = 0;
    for (int turn = 0; turn < 3; ++turn) {
      const auto begin = std::chrono::steady_clock::now();
      ASSERT_TRUE(moments.Add(large).ok());
      seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    }
    std::printf("65536 x 4096 float32%s: %.2f ms, %.0f GB/s\n",
                covariance ? " with covariance" : "", 1e3 * seconds, 65536 * 4096 * 4e-9 / seconds);
  }
}

// All halves and brain floats; floats of every size, and halfway between two narrow ones.
TEST(DeviceNumbers, AreWidenedAndNarrowedAsLibTorchDoes) {
  const auto bits = [](float x) { return device::BitsOf(x); };
  for (unsigned k = 0; k < 65536; ++k) {
    const auto narrow = static_cast<std::uint16_t>(k);
    const float half = c10::Half(narrow, c10::Half::from_bits());
    const float brain = c10::BFloat16(narrow, c10::BFloat16::from_bits());
    if (std::isnan(half)) {
      ASSERT_TRUE(std::isnan(device::Widen(device::Half{narrow}))) << k;
    } else {
      ASSERT_EQ(bits(device::Widen(device::Half{narrow})), bits(half)) << k;
    }
    ASSERT_EQ(bits(device::Widen(device::Bfloat{narrow})), bits(brain)) << k;
  }
  std::mt19937 random(7);
  for (int k = 0; k < 2000000; ++k) {
    std::uint32_t some = static_cast<std::uint32_t>(random());
    if (k % 3 == 1) some = (some & 0xffffe000u) | 0x1000u;  // halfway between halves
    if (k % 3 == 2) some = (some & 0x80000000u) | (0x32000000u + some % 0x07000000u);  // small ones
    if (k % 30 == 3) some = (some & 0xffff0000u) | 0x8000u;
    const float x = device::FloatOf(some);
    device::Half half;
    device::Bfloat brain;
    device::Narrow(x, &half);
    device::Narrow(x, &brain);
    if (std::isnan(x)) {
      ASSERT_TRUE(std::isnan(device::Widen(half)) && std::isnan(device::Widen(brain)));
      continue;
    }
    ASSERT_EQ(half.bits, c10::Half(x).x) << some;
    ASSERT_EQ(brain.bits, c10::BFloat16(x).x) << some;
  }
}

}  // namespace
}  // namespace mergeplan
