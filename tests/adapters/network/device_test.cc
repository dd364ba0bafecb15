// The kernels of a network's training on a device, as loops on the processor, against LibTorch.
#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <vector>

#include "adapters/network/cuda/average.h"
#include "adapters/network/cuda/landing.h"
#include "adapters/network/optimizer.h"
#include "adapters/network/tensor_list.h"
#include "adapters/runtime/device.h"

namespace mergeplan::network {
namespace {

using network_device::Emulation;

at::Tensor Random(std::vector<std::int64_t> sizes, at::ScalarType type, double scale = 1) {
  return (at::randn(sizes, at::kDouble) * scale).to(type);
}

struct Landed {
  at::Tensor state, gradient;
};
// With a loss that weights every number differently.
Landed LandAndPull(const at::Tensor& z, const at::Tensor& out, const LandingFactors& factors,
                   const network_device::Kernels* kernels) {
  const at::Tensor leaf = out.detach().clone().set_requires_grad(true);
  const at::Tensor state = Land(z, leaf, factors, kernels);
  const at::Tensor weights = at::linspace(-1, 2, z.numel(), z.options()).view(z.sizes());
  (state * weights).sum().backward();
  return {state.detach(), leaf.grad()};
}

void ExpectSame(const Landed& a, const Landed& b) {
  EXPECT_TRUE(at::equal(a.state, b.state));
  EXPECT_EQ(a.gradient.scalar_type(), b.gradient.scalar_type());
  EXPECT_TRUE(at::equal(a.gradient, b.gradient));
}

TEST(Landing, HasTheBitsOfLibTorchForwardAndBackward) {
  at::manual_seed(1);
  const auto kernels = Emulation();
  for (const at::ScalarType type : {at::kFloat, at::kDouble, at::kHalf, at::kBFloat16}) {
    const at::ScalarType states = type == at::kDouble ? at::kDouble : at::kFloat;
    for (const std::vector<std::int64_t>& sizes :
         std::vector<std::vector<std::int64_t>>{{1, 1}, {7, 3}, {4, 3, 5, 5}, {300, 2}}) {
      SCOPED_TRACE(::testing::Message() << at::toString(type) << " of " << sizes.size() << " axes");
      const at::Tensor z = Random(sizes, states), out = Random(sizes, type);
      const LandingFactors same = {0.8123456789, -157.25, {}, {}};
      ExpectSame(LandAndPull(z, out, same, kernels.get()), LandAndPull(z, out, same, nullptr));
      std::vector<std::int64_t> column(sizes.size(), 1);
      column[0] = sizes[0];
      const LandingFactors own = {0, 0, Random(column, states), Random(column, states, 20)};
      ExpectSame(LandAndPull(z, out, own, kernels.get()), LandAndPull(z, out, own, nullptr));
      const c10::NoGradGuard no_gradients;
      EXPECT_TRUE(at::equal(Land(z, out, own, kernels.get()), Land(z, out, own)));
      EXPECT_FALSE(Land(z, out, own, kernels.get()).requires_grad());
    }
  }
}

TEST(Landing, TakesAnyLayoutInMemory) {
  at::manual_seed(2);
  const auto kernels = Emulation();
  const at::Tensor z = Random({4, 3, 6, 5}, at::kFloat), out = Random({4, 3, 6, 5}, at::kFloat);
  const LandingFactors own = {0, 0, Random({4, 1, 1, 1}, at::kFloat),
                              Random({4, 1, 1, 1}, at::kFloat)};
  const Landed plain = LandAndPull(z, out, own, nullptr);
  const auto last = [](const at::Tensor& x) {
    return x.contiguous(at::MemoryFormat::ChannelsLast);
  };
  ExpectSame(LandAndPull(last(z), last(out), own, kernels.get()), plain);
  ExpectSame(LandAndPull(z, last(out), own, kernels.get()), plain);          // by LibTorch
  const at::Tensor turned = z.transpose(0, 1).contiguous().transpose(0, 1);  // rows lie apart
  ExpectSame(LandAndPull(turned, out, own, kernels.get()), plain);
}

TEST(Landing, LeavesToLibTorchWhatItCannotDo) {
  at::manual_seed(3);
  const auto kernels = Emulation();
  // A gradient by the state too.
  const at::Tensor z = Random({5, 2}, at::kFloat).set_requires_grad(true);
  const at::Tensor out = Random({5, 2}, at::kFloat).set_requires_grad(true);
  Land(z, out, {3, 4, {}, {}}, kernels.get()).sum().backward();
  EXPECT_TRUE(at::equal(z.grad(), at::full({5, 2}, 3.0)));
  EXPECT_TRUE(at::equal(out.grad(), at::full({5, 2}, 4.0)));
  // A narrow network's output with wide states.
  const at::Tensor wide = Random({5, 2}, at::kDouble), narrow = Random({5, 2}, at::kHalf);
  EXPECT_TRUE(at::equal(Land(wide, narrow, {3, 4, {}, {}}, kernels.get()),
                        wide * 3 + narrow.to(at::kDouble) * 4));
}

TEST(FusedAverage, MovesEveryParameterAsLerpDoes) {
  at::manual_seed(4);
  const auto kernels = Emulation();
  for (const at::ScalarType type : {at::kFloat, at::kDouble}) {
    const double tolerance = type == at::kFloat ? 2e-7 : 4e-16;
    for (const double weight : {0.001, 0.3, 0.5, 0.9, 1.0}) {
      std::vector<at::Tensor> parameters, averages;
      for (const std::int64_t n : {1, 4095, 4096, 4097, 10000, 0, 3}) {
        parameters.push_back(Random({n}, type));
      }
      parameters.push_back(Random({2, 3, 4, 4}, type).contiguous(at::MemoryFormat::ChannelsLast));
      for (const at::Tensor& p : parameters) averages.push_back(at::randn_like(p));
      std::vector<at::Tensor> theirs = Copies(averages);
      const auto fused = FusedAverage::Create(averages, parameters, kernels.get());
      ASSERT_NE(fused, nullptr);
      for (int k = 0; k < 3; ++k) {
        ASSERT_TRUE(fused->Move(weight).ok());
        at::_foreach_lerp_(theirs, parameters, weight);
      }
      for (std::size_t i = 0; i < parameters.size(); ++i) {
        EXPECT_TRUE(at::allclose(averages[i], theirs[i], tolerance, tolerance)) << i << weight;
        if (weight == 1) {
          EXPECT_TRUE(at::equal(averages[i], parameters[i]));
        }
      }
    }
  }
}

TEST(FusedAverage, IsNotMadeOfWhatItCannotMove) {
  const auto kernels = Emulation();
  const std::vector<at::Tensor> floats = {at::zeros({2, 3})}, more = {at::zeros({6})};
  EXPECT_EQ(FusedAverage::Create({}, {}, kernels.get()), nullptr);
  EXPECT_EQ(FusedAverage::Create(floats, more, kernels.get()), nullptr);
  EXPECT_EQ(FusedAverage::Create({at::zeros({3, 2}).t()}, floats, kernels.get()), nullptr);
  EXPECT_EQ(FusedAverage::Create({at::zeros({2, 3}, at::kDouble)}, floats, kernels.get()), nullptr);
  const std::vector<at::Tensor> halves = {at::zeros({2}, at::kHalf)};
  EXPECT_EQ(FusedAverage::Create(halves, halves, kernels.get()), nullptr);
  EXPECT_EQ(FusedAverage::Create(floats, floats), nullptr);  // on the processor
}

// The kernels themselves, against LibTorch on the processor.
TEST(Landing, OnCudaIsWhatTheProcessorGives) {
  if (const auto device = OpenDevice("cuda"); !device.ok()) {
    GTEST_SKIP() << device.status().message();
  }
  ASSERT_NE(network_device::CudaKernels(), nullptr);
  at::manual_seed(6);
  for (const at::ScalarType type : {at::kFloat, at::kDouble, at::kHalf, at::kBFloat16}) {
    const at::ScalarType states = type == at::kDouble ? at::kDouble : at::kFloat;
    const at::Tensor z = Random({500, 3, 8, 8}, states), out = Random({500, 3, 8, 8}, type);
    const at::Tensor one = Random({500, 1, 1, 1}, states), other = Random({500, 1, 1, 1}, states);
    for (const bool rows : {false, true}) {
      const LandingFactors here =
          rows ? LandingFactors{0, 0, one, other} : LandingFactors{0.7, -3.25, {}, {}};
      LandingFactors there = here;
      if (rows) there.states = one.to(at::kCUDA), there.outputs = other.to(at::kCUDA);
      const Landed plain = LandAndPull(z, out, here, nullptr);
      const Landed found = LandAndPull(z.to(at::kCUDA), out.to(at::kCUDA), there, nullptr);
      EXPECT_TRUE(at::equal(found.state.cpu(), plain.state));
      // The weights of the loss come from linspace, which a device may round in another way.
      const double tolerance = type == at::kDouble ? 1e-13 : type == at::kFloat ? 1e-5 : 1e-2;
      EXPECT_TRUE(at::allclose(found.gradient.cpu(), plain.gradient, tolerance, tolerance));
    }
  }
}

TEST(FusedAverage, OnCudaIsWhatTheProcessorGives) {
  if (const auto device = OpenDevice("cuda"); !device.ok()) {
    GTEST_SKIP() << device.status().message();
  }
  at::manual_seed(7);
  std::vector<at::Tensor> here, there, own, averages;
  for (const std::int64_t n : {1, 4096, 100001}) {
    here.push_back(Random({n}, at::kFloat));
    there.push_back(here.back().to(at::kCUDA));
    own.push_back(Random({n}, at::kFloat));
    averages.push_back(own.back().to(at::kCUDA));
  }
  const auto fused = FusedAverage::Create(averages, there);
  ASSERT_NE(fused, nullptr);
  ASSERT_TRUE(fused->Move(0.01).ok());
  const auto kernels = Emulation();
  ASSERT_TRUE(FusedAverage::Create(own, here, kernels.get())->Move(0.01).ok());
  for (std::size_t i = 0; i < own.size(); ++i) EXPECT_TRUE(at::equal(averages[i].cpu(), own[i]));
}

}  // namespace
}  // namespace mergeplan::network
