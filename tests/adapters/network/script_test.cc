#include "adapters/network/script.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_replace.h"
#include "adapters/network/inputs.h"
#include "adapters/network/steps.h"
#include "adapters/network/wrapper.h"
#include "planner/base/file.h"
#include "planner/data/npz.h"
#include "planner/spectrum/spectrum.h"
#include "tests/adapters/network/support.h"
#include "tests/adapters/support.h"

namespace mergeplan::network {
namespace {

using mergeplan::testing::TemporaryFolder;
using ::testing::AllOf;
using ::testing::HasSubstr;

using testing::NetworkOf;
using testing::Numbers;
using testing::SmallNetwork;
using testing::SmallSignature;
using testing::WriteNetworkOf;

at::Tensor Forward(Module& module, const at::Tensor& z, double time) {
  const c10::NoGradGuard no_gradients;
  return module.Forward(z, at::full({z.size(0)}, time, z.options()), {}).value();
}

TEST(NetworkScript, CloneSaveAndLoadKeepEveryBit) {
  const Signature signature = SmallSignature(3);
  const auto network = SmallNetwork(signature, 8, 1);
  const at::Tensor z = at::linspace(-1, 1, 12).view({4, 3});
  const at::Tensor out = Forward(*network, z, 0.25);

  const auto clone = network->Clone().value();
  EXPECT_TRUE(at::equal(Forward(*clone, z, 0.25), out));
  for (const auto& [name, tensor] : clone->Parameters()) {
    EXPECT_TRUE(tensor.is_leaf() && tensor.requires_grad()) << name;
  }
  {
    const c10::NoGradGuard no_gradients;
    for (auto [name, tensor] : clone->Parameters()) tensor.add_(1);
  }
  EXPECT_TRUE(at::equal(Forward(*network, z, 0.25), out));  // tensors of their own

  const TemporaryFolder folder;
  const std::string model = folder.File("a student");
  ASSERT_TRUE(SaveScript(*network, signature, model).ok());
  for (const char* name : {"/model.ts", "/model.toml"}) {
    const auto loaded = LoadScript(model + name);
    ASSERT_TRUE(loaded.ok()) << loaded.status();
    EXPECT_EQ(Numbers(*loaded->module), Numbers(*network));
    EXPECT_TRUE(at::equal(Forward(*loaded->module, z, 0.25), out));
    EXPECT_EQ(loaded->signature.shape, signature.shape);
    std::vector<std::string> names;
    for (const auto& [parameter, tensor] : loaded->module->Parameters()) names.push_back(parameter);
    EXPECT_EQ(names, (std::vector<std::string>{"w1", "wt", "b1", "w2", "b2"}));
  }
}

// The profiling interpreter would compute the third call in another way than the first.
TEST(NetworkScript, EveryCallIsComputedAlike) {
  const Signature signature = SmallSignature(2);
  const auto network = SmallNetwork(signature, 16, 2);
  const at::Tensor z = at::linspace(-2, 2, 40).view({20, 2});
  at::Tensor first_gradient;
  for (int call = 0; call < 4; ++call) {
    for (auto [name, tensor] : network->Parameters()) tensor.mutable_grad().reset();
    network->Forward(z, at::full({20}, 0.5), {}).value().square().sum().backward();
    const at::Tensor gradient = network->Parameters().front().second.grad().clone();
    if (call == 0) first_gradient = gradient;
    EXPECT_TRUE(at::equal(gradient, first_gradient)) << call;
  }
}

TEST(NetworkScript, ArgumentsGoInTheirOrder) {
  Signature signature = SmallSignature(2);
  const auto usual = NetworkOf(signature, "return z * self.w + time.reshape(-1, 1)");
  signature.arguments = {"time", "z"};
  // Here `z` is the first of forward's arguments, which is given the times.
  const auto turned = NetworkOf(signature, "return time * self.w + z.reshape(-1, 1)");
  const at::Tensor z = at::ones({3, 2});
  EXPECT_TRUE(at::equal(Forward(*usual, z, 4), Forward(*turned, z, 4)));
}

TEST(NetworkScript, WhatANetworkCannotTakeIsSaid) {
  const Signature signature = SmallSignature(2);
  const auto network = NetworkOf(signature, "return z * self.w");
  const at::Tensor time = at::zeros({3});
  const auto error = [&](Module& module, const at::Tensor& z, const at::Tensor& t,
                         const at::Tensor& label = {}) {
    return std::string(module.Forward(z, t, label).status().message());
  };
  EXPECT_THAT(error(*network, at::zeros({3, 3}), time),
              AllOf(HasSubstr("[3, 3]"), HasSubstr("[B, 2]")));
  EXPECT_THAT(error(*network, at::zeros({3, 2}), at::zeros({2})), HasSubstr("[2]"));
  EXPECT_THAT(error(*network, at::zeros({3, 2}), time, at::zeros({3}, at::kLong)),
              HasSubstr("labels"));
  EXPECT_THAT(error(*NetworkOf(signature, "return z.sum(1)"), at::zeros({3, 2}), time),
              HasSubstr("the shape [3]"));
  EXPECT_THAT(error(*NetworkOf(signature, "return (z, time)"), at::zeros({3, 2}), time),
              HasSubstr("Tuple"));
  EXPECT_THAT(error(*NetworkOf(signature, "return torch.matmul(z, z)"), at::zeros({3, 2}), time),
              AllOf(HasSubstr("RuntimeError"), ::testing::Not(HasSubstr("\n"))));
  EXPECT_TRUE(network->Forward(at::zeros({0, 2}), at::zeros({0}), {}).ok());
}

TEST(NetworkScript, FilesThatAreNoNetworkAreErrors) {
  const TemporaryFolder folder;
  const std::string sidecar =
      "format = 1\nprediction = \"sample\"\nshape = [2]\ntime.kind = \"level/T\"\n";
  const auto error = [&](const std::string& path) {
    return std::string(LoadScript(path).status().message());
  };
  EXPECT_EQ(LoadScript(folder.File("none.ts")).status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(error(folder.File("none.ts")), AllOf(HasSubstr("sidecar"), HasSubstr("none.toml")));
  ASSERT_TRUE(WriteFileAtomically(folder.File("m.toml"), sidecar).ok());
  EXPECT_THAT(error(folder.File("m.toml")), HasSubstr("m.ts"));
  ASSERT_TRUE(WriteFileAtomically(folder.File("m.ts"), "no zip").ok());
  EXPECT_THAT(error(folder.File("m.ts")), HasSubstr("no TorchScript"));
  WriteNetworkOf(SmallSignature(2), "return z * self.w", folder.File("m.ts"));
  EXPECT_TRUE(LoadScript(folder.File("m.ts")).ok());
  const std::string good = ReadFile(folder.File("m.ts")).value();
  for (const std::size_t size : {good.size() / 2, good.size() - 1, std::size_t{0}}) {
    ASSERT_TRUE(WriteFileAtomically(folder.File("m.ts"), good.substr(0, size)).ok());
    EXPECT_THAT(error(folder.File("m.ts")), HasSubstr("no TorchScript"));
  }
  // A frozen one can teach, but not learn; that is said when it is trained.
  EXPECT_FALSE(LoadScript(folder.path()).ok());
}

// The shared MNIST network: its mean squared error of the noise, by tenths of its steps, as its
// README has it (1000 images each; here 96, hence the width).
TEST(NetworkScript, ThePretrainedMnistNetworkDenoises) {
  const std::string shared = testing::SharedFolder();
  if (shared.empty()) GTEST_SKIP() << "MERGEPLAN_SHARED names no folder of reference data";
  const std::string source =
      std::string(std::getenv("MERGEPLAN_SOURCE_DIR")) + "/tests/adapters/network/data/lin.toml";
  const TemporaryFolder folder;
  ASSERT_TRUE(WriteFileAtomically(
                  folder.File("lin.toml"),
                  absl::StrReplaceAll(ReadFile(source).value(), {{"@MERGEPLAN_SHARED@", shared}}))
                  .ok());
  const auto network = LoadScript(folder.File("lin.toml"));
  ASSERT_TRUE(network.ok()) << network.status();
  const TrainingTable& table = *network->signature.table;
  ASSERT_EQ(table.alpha.size(), 1001U);

  // Ten levels of its own table: 100, 200, ...
  Schedule run;
  run.spec = "test";
  run.alpha = {1};
  run.sigma = {0};
  for (int t = 1; t <= 10; ++t) {
    run.alpha.push_back(table.alpha[100 * t]);
    run.sigma.push_back(table.sigma[100 * t]);
  }
  run.level_scale.assign(11, 1);
  const NetworkSteps steps = NetworkSteps::Create(network->signature, run).value();
  for (int t = 1; t <= 10; ++t) EXPECT_NEAR(steps.input(t).time, 0.1 * t, 1e-12);

  const NpyArray images = ReadNpzArray(shared + "/data/mnist/mnist10k.npz", "images").value();
  const Scaling scaling = ParseScaling(network->signature.scaling).value();
  const int rows = 96;
  at::Tensor x0 = at::empty({rows, 1, 28, 28}, at::kFloat);
  for (int i = 0; i < rows * 784; ++i) {
    x0.mutable_data_ptr<float>()[i] =
        static_cast<float>(images.values[i] / 255 * (0.5 - -0.5) - 0.5);
  }
  EXPECT_NEAR(scaling.Apply(255), 0.5, 1e-6);
  const auto inputs = MakeDataInputs(x0, run, at::kFloat).value();
  // Between the tenths before and after each level.
  const double published[] = {0.0790, 0.0402, 0.0299, 0.0183, 0.0091, 0.0039,
                              0.0016, 0.0009, 0.0007, 0.0007, 0.0007};
  RowStream stream;
  stream.lane = Lane::kHeldOut;
  const c10::NoGradGuard no_gradients;
  for (const int t : {1, 2, 4, 6, 8, 10}) {
    // Data and noise of these rows: z at a level of pure signal, and of pure noise.
    Schedule only = run;
    only.alpha[t] = 1, only.sigma[t] = 0;
    const at::Tensor x =
        MakeDataInputs(x0, only, at::kFloat).value()->Draw(t, stream, 0, rows).value();
    only.alpha[t] = 0, only.sigma[t] = 1;
    const at::Tensor eps =
        MakeDataInputs(x0, only, at::kFloat).value()->Draw(t, stream, 0, rows).value();
    const at::Tensor z = inputs->Draw(t, stream, 0, rows).value();
    EXPECT_LT((z - run.alpha[t] * x - run.sigma[t] * eps).abs().max().item<double>(), 1e-6);
    const at::Tensor found =
        network->module->Forward(z, at::full({rows}, steps.input(t).time), {}).value();
    const double error = (found - eps).square().mean().item<double>();
    // At the last level of all it is worse than in the tenth before.
    EXPECT_LT(error, (t == 10 ? 2.5 : 1.35) * published[t - 1]) << t;
    EXPECT_GT(error, 0.65 * published[t]) << t;
    // And through the wrapper: x0 with an error of (sigma / alpha)^2 times that.
    const at::Tensor estimate = steps.Jump(*network->module, z, t, 0).value();
    const double ratio = run.sigma[t] / run.alpha[t];
    EXPECT_NEAR((estimate - x).square().mean().item<double>(), ratio * ratio * error,
                1e-3 * ratio * ratio * error);
  }
}

TEST(NetworkSteps, RowsWithLevelsOfTheirOwnAreTheJumpsOfEach) {
  for (const char* name : {"edm", "ddpm-linear", "flow"}) {
    const Schedule schedule = LoadSchedule(name, 5).value();
    const Signature signature = SmallSignature(2, Prediction::kVPrediction, "float64");
    const NetworkSteps steps = NetworkSteps::Create(signature, schedule).value();
    const auto network = SmallNetwork(signature, 8, 4);
    const c10::NoGradGuard no_gradients;
    const at::Tensor z = at::linspace(-2, 2, 10, at::kDouble).view({5, 2});
    const std::vector<int> from = {5, 5, 3, 1, 2}, to = {0, 0, 1, 0, 1};
    const at::Tensor all = steps.JumpRows(*network, z, from, to).value();
    for (int r = 0; r < 5; ++r) {
      const at::Tensor one = steps.Jump(*network, z.narrow(0, r, 1), from[r], to[r]).value();
      EXPECT_LT((one - all.narrow(0, r, 1)).abs().max().item<double>(), 1e-13) << name << r;
    }
    EXPECT_FALSE(steps.JumpRows(*network, z, {1, 2}, {0, 0}).ok());
  }
}

}  // namespace
}  // namespace mergeplan::network
