// A U-Net in both layouts: the same numbers but for rounding, the same bits when it goes on.
#include "adapters/network/layout.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "adapters/network/executor.h"
#include "adapters/network/probe.h"
#include "planner/operators/canonical.h"
#include "tests/adapters/support.h"
#include "tests/adapters/unet/support.h"

namespace mergeplan::network {
namespace {

using mergeplan::testing::MakeUNet;
using mergeplan::testing::Relative;
using mergeplan::testing::SmallConfig;
using mergeplan::testing::TemporaryFolder;
using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

Signature SmallSignature() {
  Signature signature;
  signature.prediction = Prediction::kSample;
  signature.shape = {2, 8, 8};
  signature.time = TimeKind::kFraction;
  return signature;
}

TEST(Layout, TheNumbersAreTheSameButForRounding) {
  const auto plain = MakeUNet(SmallConfig()), other = MakeUNet(SmallConfig());
  ASSERT_TRUE(HasKernels(*other));
  ASSERT_TRUE(SetLayout(*other, Layout::kChannelsLast).ok());
  const at::Tensor z = at::randn({3, 2, 8, 8}), time = at::tensor({3.0F, 50.0F, 900.0F});
  const at::Tensor expected = plain->Forward(z, time, {}).value();
  const at::Tensor found = other->Forward(z, time, {}).value();
  EXPECT_LT(Relative(found, expected), 1e-5);
  expected.square().sum().backward();
  found.square().sum().backward();
  const auto wanted = plain->Parameters(), own = other->Parameters();
  int kernels = 0;
  for (std::size_t k = 0; k < own.size(); ++k) {
    const auto& [name, tensor] = own[k];
    EXPECT_TRUE(at::equal(tensor, wanted[k].second)) << name;
    EXPECT_TRUE(at::allclose(tensor.grad(), wanted[k].second.grad(), 1e-3, 1e-4)) << name;
    if (tensor.dim() != 4) continue;
    ++kernels;
    EXPECT_TRUE(tensor.is_contiguous(at::MemoryFormat::ChannelsLast)) << name;
    // The fused optimizers walk through both side by side.
    EXPECT_TRUE(tensor.grad().is_contiguous(at::MemoryFormat::ChannelsLast)) << name;
  }
  EXPECT_GT(kernels, 10);

  // Clones are as the original; a file says nothing of it.
  const auto clone = other->Clone().value();
  for (const auto& [name, tensor] : clone->Parameters()) {
    if (tensor.dim() != 4) continue;
    EXPECT_TRUE(tensor.is_contiguous(at::MemoryFormat::ChannelsLast)) << name;
  }
  TemporaryFolder folder;
  ASSERT_TRUE(plain->Save(folder.File("plain")).ok());
  ASSERT_TRUE(clone->Save(folder.File("clone")).ok());
  const std::string file = "/diffusion_pytorch_model.safetensors";
  EXPECT_EQ(ReadFile(folder.File("plain") + file).value(),
            ReadFile(folder.File("clone") + file).value());
  // And back.
  ASSERT_TRUE(SetLayout(*other, Layout::kContiguous).ok());
  EXPECT_TRUE(at::equal(other->Forward(z, time, {}).value(), expected));
}

// Vanilla over two steps of a teacher that is a U-Net.
struct LayoutRun {
  Schedule schedule = LoadSchedule("cosine", 2).value();
  NetworkSteps steps = NetworkSteps::Create(SmallSignature(), schedule).value();
  std::shared_ptr<Module> net;
  std::shared_ptr<Teacher> teacher;
  std::shared_ptr<Inputs> inputs;

  explicit LayoutRun(Layout layout) : net(MakeUNet(SmallConfig())) {
    EXPECT_TRUE(SetLayout(*net, layout).ok());
    teacher = MakeNetworkTeacher(net, steps);
    inputs = MakeRolloutInputs(teacher, schedule, 4, 0, at::kFloat).value();
  }
  std::unique_ptr<Executor> Begin(ExecutorOptions options = {}) const {
    options.recipe =
        Recipe::Parse({{"optimizer", "adamw"}, {"ema", "0.9"}, {"clip-norm", "1"}}).value();
    options.lr = 1e-3;
    options.iterations = 5;
    options.batch = 3;
    options.held_out_rows = 4;
    auto executor = Executor::Create(teacher, *net, steps, inputs,
                                     CanonicalPlan(Strategy::kVanilla, 2).value(), options);
    EXPECT_TRUE(executor.ok()) << executor.status();
    return std::move(*executor);
  }
};

std::vector<at::Tensor> Weights(Executor& executor) {
  std::vector<at::Tensor> out;
  for (const auto& [name, tensor] : executor.Weights(0).value()->Parameters()) {
    out.push_back(tensor.detach().contiguous());
  }
  return out;
}

TEST(Layout, TrainingsHaveTheSameLosses) {
  std::map<Layout, std::vector<double>> losses;
  for (const Layout layout : {Layout::kContiguous, Layout::kChannelsLast}) {
    const LayoutRun run(layout);
    const auto executor = run.Begin();
    ASSERT_TRUE(executor->TrainAll().ok());
    losses[layout] = executor->records()[0].curve;
  }
  const auto &plain = losses[Layout::kContiguous], &other = losses[Layout::kChannelsLast];
  ASSERT_EQ(plain.size(), other.size());
  ASSERT_GE(plain.size(), 5U);
  EXPECT_NE(plain.front(), plain.back());
  for (std::size_t k = 0; k < plain.size(); ++k) {
    EXPECT_NEAR(other[k], plain[k], 1e-3 * plain[k]) << k;
  }
}

// Moments, average and snapshots come back in the layout that they had.
TEST(Layout, AStoppedTrainingGoesOnBitByBit) {
  const LayoutRun run(Layout::kChannelsLast);
  const auto whole = run.Begin();
  ASSERT_TRUE(whole->TrainAll().ok());
  const std::vector<at::Tensor> expected = Weights(*whole);
  for (const int stop : {2, 4}) {
    TemporaryFolder folder;
    ExecutorOptions options;
    options.folder = folder.File("snapshots");
    int asked = 0;
    options.stop = [&] { return asked++ == stop; };
    options.checkpoint = [&](Executor& executor, bool forced) {
      return forced ? executor.WriteState(folder.File("state"), "run") : absl::OkStatus();
    };
    EXPECT_TRUE(absl::IsCancelled(run.Begin(options)->TrainAll()));
    options.stop = nullptr;
    const LayoutRun again(Layout::kChannelsLast);
    const auto second = again.Begin(options);
    ASSERT_TRUE(second->ReadState(folder.File("state"), "run").ok());
    ASSERT_TRUE(second->TrainAll().ok());
    const std::vector<at::Tensor> found = Weights(*second);
    for (std::size_t k = 0; k < found.size(); ++k) EXPECT_TRUE(at::equal(found[k], expected[k]));
    EXPECT_EQ(second->records()[0].curve, whole->records()[0].curve);
  }
}

TEST(Probe, ChoosesAmongWhatThereIsAndLeavesTheNetworkAlone) {
  const auto net = MakeUNet(SmallConfig());
  const std::vector<Arithmetic> all = Choices(*net, "float32", std::nullopt, std::nullopt);
  EXPECT_EQ(all, (std::vector<Arithmetic>{{Layout::kContiguous, Precision::kFull},
                                          {Layout::kChannelsLast, Precision::kFull},
                                          {Layout::kContiguous, Precision::kBfloat16},
                                          {Layout::kChannelsLast, Precision::kBfloat16}}));
  EXPECT_EQ(Choices(*net, "float64", std::nullopt, std::nullopt).size(), 2U);
  EXPECT_EQ(Choices(*net, "float32", Layout::kChannelsLast, Precision::kFloat16),
            (std::vector<Arithmetic>{{Layout::kChannelsLast, Precision::kFloat16}}));
  const auto before = net->Clone().value()->Parameters();
  const auto probed = Probe(*net, SmallSignature(), at::kCPU, 3, all);
  ASSERT_TRUE(probed.ok()) << probed.status();
  EXPECT_THAT(all, ::testing::Contains(probed->chosen));
  for (const Arithmetic& way : all) EXPECT_THAT(probed->text, HasSubstr(ToString(way)));
  const auto after = net->Parameters();
  for (std::size_t k = 0; k < after.size(); ++k) {
    EXPECT_TRUE(at::equal(after[k].second, before[k].second));
    EXPECT_TRUE(after[k].second.is_contiguous());
    EXPECT_FALSE(after[k].second.grad().defined());
  }
  // One choice is no question.
  EXPECT_THAT(Probe(*net, SmallSignature(), at::kCPU, 3, {all[1]})->text,
              StartsWith("channels_last full (there is nothing else"));
  // What fails everywhere is an error; what is stopped, too.
  Signature wrong = SmallSignature();
  wrong.shape = {3, 8, 8};
  EXPECT_THAT(std::string(Probe(*net, wrong, at::kCPU, 3, all).status().message()),
              HasSubstr("z has shape [3, 3, 8, 8]"));
  EXPECT_TRUE(absl::IsCancelled(
      Probe(*net, SmallSignature(), at::kCPU, 3, all, [] { return true; }).status()));
}

}  // namespace
}  // namespace mergeplan::network
