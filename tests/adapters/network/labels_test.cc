// Class labels: a row has one from its name on, wherever it goes.
#include "adapters/network/labels.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "adapters/network/executor.h"
#include "planner/base/file.h"
#include "planner/data/npz.h"
#include "planner/operators/canonical.h"
#include "tests/adapters/network/support.h"
#include "tests/adapters/support.h"

namespace mergeplan::network {
namespace {

using mergeplan::testing::TemporaryFolder;
using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::NetworkOf;
using testing::Numbers;
using testing::SmallSignature;
using testing::WithClasses;

constexpr int kClasses = 3;

std::vector<std::int64_t> List(const at::Tensor& labels) {
  return {labels.const_data_ptr<std::int64_t>(),
          labels.const_data_ptr<std::int64_t>() + labels.numel()};
}

TEST(Labels, AreNamedByTheRow) {
  const StreamName name = StreamName::Of(7, 1, 3, 12);
  const std::vector<std::int64_t> all = List(UniformLabels(name, 0, 3000, kClasses));
  for (std::int64_t k = 0; k < kClasses; ++k) {
    EXPECT_NEAR(std::count(all.begin(), all.end(), k), 1000, 120);
  }
  EXPECT_EQ(List(UniformLabels(name, 100, 50, kClasses)),
            (std::vector<std::int64_t>(all.begin() + 100, all.begin() + 150)));
  EXPECT_NE(List(UniformLabels(StreamName::Of(8, 1, 3, 12), 0, 3000, kClasses)), all);
  EXPECT_EQ(List(TurnLabels(2, 5, 3)), (std::vector<std::int64_t>{2, 0, 1, 2, 0}));
}

TEST(Labels, AreReadAndChecked) {
  TemporaryFolder folder;
  const std::string path = folder.File("labels.npz");
  const auto write = [&](const std::vector<double>& numbers) {
    NpzWriter npz;
    npz.Add("x", {2, 2}, {1, 2, 3, 4});
    npz.Add("y", {static_cast<std::int64_t>(numbers.size())}, numbers);
    ASSERT_TRUE(npz.Write(path).ok());
  };
  write({2, 0, 1});
  EXPECT_EQ(LabelArrayOf(path), "y");
  EXPECT_EQ(LabelArrayOf(folder.File("labels.npy")), "");
  EXPECT_EQ(List(LoadLabels(path, "y", 3, 3, false).value()), (std::vector<std::int64_t>{2, 0, 1}));
  EXPECT_EQ(List(LoadLabels(path, "y", 3, 2, true).value()), (std::vector<std::int64_t>{2, 0}));
  const auto refused = [&](int samples, const std::string& array, const std::string& words) {
    const auto labels = LoadLabels(path, array, kClasses, samples, false);
    ASSERT_FALSE(labels.ok()) << words;
    EXPECT_THAT(std::string(labels.status().message()), AllOf(HasSubstr(path), HasSubstr(words)));
  };
  refused(2, "y", "holds 3 labels, expected one for each of the 2 samples");
  refused(4, "y", "holds 3 labels");
  refused(2, "x", "has 2 numbers for every sample");
  for (const double wrong : {3.0, -1.0, 0.5, std::nan("")}) {
    write({0, wrong, 1});
    refused(3, "y", "the label of sample 1 is ");
  }
}

// What it says of x0 is a number for each class, whatever z and time are: a step of it of any
// length is the same as its steps one after the other, so long as every one is told the same class.
constexpr char kTable[] = "return self.w[label].unsqueeze(1).expand_as(z)";

Signature Conditional() {
  return WithClasses(SmallSignature(kClasses, Prediction::kSample, "float64"), kClasses);
}

std::unique_ptr<Module> TableOf(const std::vector<double>& numbers) {
  std::unique_ptr<Module> out = NetworkOf(Conditional(), kTable);
  at::Tensor w = out->Parameters().front().second;
  const c10::NoGradGuard no_gradients;
  w.copy_(at::tensor(numbers, at::kDouble));
  return out;
}

const std::vector<double> kNumbers = {-1.5, 0.25, 2};

struct Conditioned {
  Schedule schedule = LoadSchedule("cosine", 4).value();
  NetworkSteps steps = NetworkSteps::Create(Conditional(), schedule).value();
  std::shared_ptr<Module> net = TableOf(kNumbers);
  std::shared_ptr<Teacher> teacher = MakeNetworkTeacher(net, steps);

  std::shared_ptr<Inputs> Rollouts(std::int64_t pool) const {
    return MakeRolloutInputs(teacher, schedule, 5, pool, at::kDouble).value();
  }
  // Data of the teacher's own law: a row of every class, and one that is no class's.
  std::shared_ptr<Inputs> Data() const {
    at::Tensor data = at::tensor(kNumbers, at::kDouble).unsqueeze(1).repeat({1, kClasses});
    data = at::cat({data, data.narrow(0, 1, 1)}).to(at::kFloat);
    const at::Tensor labels = at::tensor(std::vector<std::int64_t>{0, 1, 2, 1}, at::kLong);
    return MakeDataInputs(data, schedule, at::kDouble, labels).value();
  }
  absl::StatusOr<std::unique_ptr<Executor>> Begin(const Module& student,
                                                  std::shared_ptr<Inputs> inputs, Strategy strategy,
                                                  ExecutorOptions options) const {
    options.recipe = Recipe::Parse({{"optimizer", "adam"}, {"accumulate", "2"}}).value();
    options.batch = 9;
    options.held_out_rows = 50;
    options.block = 16;
    options.seed = 11;
    if (options.iterations == 0) options.iterations = 6;
    if (options.lr == 1e-3) options.lr = 1e-9;
    return Executor::Create(teacher, student, steps, std::move(inputs),
                            CanonicalPlan(strategy, 4).value(), std::move(options));
  }
};

// A copy of the teacher is right from the beginning, if every row keeps its class: on the way into
// pools and targets, through frozen children, on held-out rows, in the evaluation.
TEST(Labels, TravelWithTheirRows) {
  const Conditioned s;
  for (const Strategy strategy : kStrategies) {
    for (const int kind : {0, 1, 2}) {
      for (const bool shared : {true, false}) {
        SCOPED_TRACE(::testing::Message() << ToString(strategy) << ", inputs " << kind);
        ExecutorOptions options;
        options.shared = shared;
        auto begun = s.Begin(*s.net, kind == 2 ? s.Data() : s.Rollouts(kind == 0 ? 0 : 70),
                             strategy, options);
        ASSERT_TRUE(begun.ok()) << begun.status();
        Executor& executor = **begun;
        ASSERT_TRUE(executor.TrainAll().ok());
        for (const StudentRecord& record : executor.records()) {
          EXPECT_LT(record.initial_loss, 1e-15);
          for (const double loss : record.curve) EXPECT_LT(loss, 1e-15);
          EXPECT_LT(record.teacher.mean, 1e-15);
        }
        EXPECT_LT(executor.Evaluate()->back().error.mean, 1e-15);
      }
    }
  }
  // A pool's rows are drawn again with the class that they were made with.
  const auto pool = s.Rollouts(20);
  RowStream training{3, 1, 2, Lane::kTraining}, whole{9, 4, 4, Lane::kPool};
  const auto rows = pool->PoolRows(training, 5, 30);
  const std::vector<std::int64_t> of_pool = List(pool->Labels(whole, 0, 20));
  const std::vector<std::int64_t> found = List(pool->Labels(training, 5, 30));
  for (std::size_t k = 0; k < rows.size(); ++k) EXPECT_EQ(found[k], of_pool[rows[k]]);
  const at::Tensor x0 = pool->Draw(0, training, 5, 30).value();
  for (std::size_t k = 0; k < rows.size(); ++k) {
    EXPECT_NEAR(x0[static_cast<std::int64_t>(k)][0].item<double>() * s.schedule.data_scale,
                kNumbers[found[k]], 1e-9);
  }
  // Data has the class of the row that was chosen.
  const auto data = s.Data();
  const at::Tensor clean = data->Draw(0, training, 0, 40).value();
  const std::vector<std::int64_t> classes = List(data->Labels(training, 0, 40));
  for (std::size_t k = 0; k < 40; ++k) {
    EXPECT_NEAR(clean[static_cast<std::int64_t>(k)][0].item<double>() * s.schedule.data_scale,
                kNumbers[classes[k]], 1e-6);
  }
}

// One that knows nothing learns the number of every class, by the fit and by merges.
TEST(Labels, ClassesAreLearnt) {
  const Conditioned s;
  const auto nothing = TableOf({0, 0, 0});
  for (const bool fit : {false, true}) {
    ExecutorOptions options;
    options.lr = 0.05;
    options.iterations = fit ? 1 : 400;
    options.fit_updates = fit ? 400 : 0;
    auto begun = s.Begin(*nothing, s.Rollouts(0), Strategy::kVanilla, options);
    ASSERT_TRUE(begun.ok()) << begun.status();
    ASSERT_TRUE((*begun)->TrainAll().ok());
    const std::vector<double> found = Numbers(**(*begun)->Weights(0));
    for (int k = 0; k < kClasses; ++k) EXPECT_NEAR(found[k], kNumbers[k], fit ? 0.1 : 0.01);
  }
}

// Against a loop that is written down plainly: the rows and classes that their names give, the
// teacher's steps, the jump, the gradient, a step of SGD.
TEST(Labels, AMergeIsWhatAPlainLoopDoes) {
  const Schedule schedule = LoadSchedule("cosine", 3).value();
  const Signature signature =
      WithClasses(SmallSignature(2, Prediction::kSample, "float64"), kClasses);
  const char body[] =
      "return torch.tanh(z * self.w) * (1.0 + label.to(z.dtype).unsqueeze(1)) + time.unsqueeze(1)";
  const auto steps = NetworkSteps::Create(signature, schedule).value();
  const std::shared_ptr<Module> net = NetworkOf(signature, body);
  const std::shared_ptr<Teacher> teacher = MakeNetworkTeacher(net, steps);
  const std::shared_ptr<Inputs> inputs =
      MakeRolloutInputs(teacher, schedule, 5, 0, at::kDouble).value();
  ExecutorOptions options;
  options.recipe = Recipe::Parse({{"optimizer", "sgd"}}).value();
  options.lr = 0.01;
  options.iterations = 7;
  options.batch = 5;
  options.seed = 21;
  auto executor = Executor::Create(teacher, *net, steps, inputs,
                                   CanonicalPlan(Strategy::kVanilla, 3).value(), options);
  ASSERT_TRUE(executor.ok()) << executor.status();
  ASSERT_TRUE((*executor)->TrainAll().ok());

  at::Tensor w = at::full({2}, 0.5, at::kDouble).set_requires_grad(true);
  const at::Tensor fixed = w.detach().clone();
  const auto x0 = [&](const at::Tensor& weight, const at::Tensor& z, const at::Tensor& label,
                      int level) {
    return (at::tanh(z * schedule.level_scale[level] * weight) *
                (1.0 + label.to(at::kDouble).unsqueeze(1)) +
            level / 3.0) /
           schedule.data_scale;
  };
  const auto jump = [&](const at::Tensor& weight, const at::Tensor& z, const at::Tensor& label,
                        int from, int to) {
    const at::Tensor x = x0(weight, z, label, from);
    return schedule.alpha[to] * x +
           schedule.sigma[to] * (z - schedule.alpha[from] * x) / schedule.sigma[from];
  };
  const StreamName noise_name = StreamName::Of(21, 1, 3, 0),
                   label_name = StreamName::Of(21, 1, 3, 12);
  for (std::uint64_t update = 0; update < 7; ++update) {
    at::Tensor noise = at::empty({5, 2}, at::kFloat);
    NoiseStream(noise_name).FillAt(update * 10, noise.mutable_data_ptr<float>(), 10);
    std::vector<std::int64_t> classes;
    for (std::uint64_t row = update * 5; row < update * 5 + 5; ++row) {
      const double uniform = label_name.Words(row).w[0] * 0x1p-32;
      classes.push_back(static_cast<std::int64_t>(uniform * kClasses));
    }
    const at::Tensor label = at::tensor(classes, at::kLong);
    const at::Tensor z = noise.to(at::kDouble) * std::hypot(schedule.alpha[3], schedule.sigma[3]);
    at::Tensor target = z;
    for (int t = 3; t > 0; --t) target = jump(fixed, target, label, t, t - 1);
    const at::Tensor loss = (jump(w, z, label, 3, 0) - target).square().sum(1).mean();
    loss.backward();
    const c10::NoGradGuard no_gradients;
    w.sub_(w.grad() * 0.01);
    w.mutable_grad().reset();
  }
  const std::vector<double> found = Numbers(**(*executor)->Weights(0));
  for (int k = 0; k < 2; ++k) EXPECT_NEAR(found[k], w[k].item<double>(), 1e-12);
  EXPECT_GT(std::abs(found[0] - 0.5), 1e-4);
}

TEST(Labels, AStoppedRunGoesOnBitByBit) {
  const Conditioned s;
  const auto student = TableOf({0.1, 0.2, 0.3});
  for (const int kind : {0, 1, 2}) {
    const auto inputs = [&] { return kind == 2 ? s.Data() : s.Rollouts(kind == 0 ? 0 : 70); };
    ExecutorOptions options;
    options.lr = 0.05;
    auto whole = s.Begin(*student, inputs(), Strategy::kBoot, options);
    ASSERT_TRUE((*whole)->TrainAll().ok());
    for (const int stop : {3, 9, 14}) {
      TemporaryFolder folder;
      options.folder = folder.File("snapshots");
      int asked = 0;
      options.stop = [&] { return asked++ == stop; };
      options.checkpoint = [&](Executor& executor, bool forced) {
        return forced ? executor.WriteState(folder.File("state"), "run") : absl::OkStatus();
      };
      EXPECT_TRUE(
          absl::IsCancelled((*s.Begin(*student, inputs(), Strategy::kBoot, options))->TrainAll()));
      options.stop = nullptr;
      const auto second = s.Begin(*student, inputs(), Strategy::kBoot, options);
      ASSERT_TRUE((*second)->ReadState(folder.File("state"), "run").ok());
      ASSERT_TRUE((*second)->TrainAll().ok());
      EXPECT_EQ(Numbers(**(*second)->Weights(2)), Numbers(**(*whole)->Weights(2)));
      for (int merge = 0; merge < 3; ++merge) {
        EXPECT_EQ((*second)->records()[merge].curve, (*whole)->records()[merge].curve);
        EXPECT_EQ((*second)->records()[merge].own, (*whole)->records()[merge].own);
      }
    }
  }
}

TEST(Labels, WhatDoesNotFitIsSaid) {
  const Conditioned s;
  const at::Tensor z = at::zeros({2, kClasses}, at::kDouble);
  const auto message = [](const auto& out) { return std::string(out.status().message()); };
  EXPECT_THAT(message(s.steps.Jump(*s.net, z, 2, 1)), HasSubstr("got none, expected 2 whole"));
  EXPECT_THAT(message(s.steps.Jump(*s.net, z, 2, 1, at::zeros({3}, at::kLong))),
              HasSubstr("got labels of shape [3]"));
  const Signature plain = SmallSignature(kClasses, Prediction::kSample, "float64");
  const auto other = NetworkSteps::Create(plain, s.schedule).value();
  const auto student = testing::SmallNetwork(plain, 4, 1);
  EXPECT_THAT(message(other.Jump(*student, z, 2, 1, at::zeros({2}, at::kLong))),
              HasSubstr("its signature takes none"));
  EXPECT_THAT(message(Executor::Create(s.teacher, *student, other, s.Rollouts(0),
                                       CanonicalPlan(Strategy::kVanilla, 4).value(),
                                       [] {
                                         ExecutorOptions options;
                                         options.iterations = options.batch = 1;
                                         return options;
                                       }())),
              HasSubstr("the teacher has 3 classes, the student 0"));
  EXPECT_THAT(message(MakeDataInputs(at::zeros({4, kClasses}), s.schedule, at::kDouble,
                                     at::zeros({3}, at::kLong))),
              HasSubstr("there are 3 labels for 4 rows"));
}

}  // namespace
}  // namespace mergeplan::network
