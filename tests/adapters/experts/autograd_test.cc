// The student against LibTorch: autograd for its gradient, torch::optim::Adam for whole trainings.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <memory>
#include <vector>

#include "adapters/experts/cuda/device_trainer.h"
#include "adapters/experts/kernel.h"
#include "adapters/experts/level.h"
#include "adapters/experts/trainer.h"
#include "tests/adapters/experts/support.h"

namespace mergeplan::experts {
namespace {

// The student as a user of torch would write it.
struct TorchStudent {
  NetworkShape shape;
  torch::nn::Sequential gate, expert;

  TorchStudent(const NetworkShape& shape_in, const std::vector<double>& numbers) : shape(shape_in) {
    using torch::nn::Linear, torch::nn::ReLU;
    gate = torch::nn::Sequential(Linear(shape.inputs(), shape.hidden), ReLU(),
                                 Linear(shape.hidden, shape.experts));
    expert = torch::nn::Sequential(Linear(shape.embedding, shape.hidden), ReLU(),
                                   Linear(shape.hidden, shape.outputs()));
    gate->to(torch::kFloat64);
    expert->to(torch::kFloat64);
    // Torch's order of the parameters is ours.
    const torch::NoGradGuard no_grad;
    std::size_t at = 0;
    for (torch::Tensor& p : parameters()) {
      const std::vector<double> part(numbers.begin() + at, numbers.begin() + at + p.numel());
      p.copy_(torch::tensor(part, torch::kFloat64).view(p.sizes()));
      at += p.numel();
    }
    EXPECT_EQ(at, numbers.size());
  }

  std::vector<torch::Tensor> parameters() const {
    std::vector<torch::Tensor> all = gate->parameters();
    for (const torch::Tensor& p : expert->parameters()) all.push_back(p);
    return all;
  }

  torch::Tensor Forward(const torch::Tensor& z, double time) {
    const torch::Tensor emb =
        torch::tensor(Embedding(shape.embedding, time), torch::kFloat64).expand({z.size(0), -1});
    const torch::Tensor w = torch::softmax(gate->forward(torch::cat({z, emb}, 1)), 1);
    const std::int64_t d = shape.dimensions, E = shape.experts;
    const torch::Tensor out = expert->forward(emb).view({-1, E, d * d + d});
    const torch::Tensor A =
        out.slice(2, 0, d * d).view({-1, E, d, d}) + torch::eye(d, torch::kFloat64);
    const torch::Tensor led = torch::einsum("beij,bj->bei", {A, z}) + out.slice(2, d * d);
    return torch::einsum("be,bei->bi", {w, led});
  }

  std::vector<double> Flat(bool gradient) const {
    std::vector<double> out;
    for (const torch::Tensor& p : parameters()) {
      const torch::Tensor flat = (gradient ? p.grad() : p.detach()).contiguous();
      out.insert(out.end(), flat.data_ptr<double>(), flat.data_ptr<double>() + flat.numel());
    }
    return out;
  }
};

torch::Tensor Rows(const std::vector<double>& values, std::int64_t d) {
  return torch::tensor(values, torch::kFloat64).view({-1, d});
}

TEST(ExpertsAutograd, TheGradientOfAllParametersIsTheSame) {
  torch::manual_seed(3);
  for (const NetworkShape& shape :
       {NetworkShape{}, NetworkShape{3, 9, 16, 6}, NetworkShape{5, 17, 20, 8}}) {
    const std::int64_t d = shape.dimensions;
    for (const int rows : {1, 130, 400}) {
      const std::vector<double> parameters = InitialParameters(shape, rows);
      const torch::Tensor z = 2 * torch::randn({rows, d}, torch::kFloat64);
      const torch::Tensor target = torch::randn({rows, d}, torch::kFloat64);
      TorchStudent student(shape, parameters);
      const torch::Tensor loss = (student.Forward(z, 0.4) - target).square().sum(1).mean();
      loss.backward();
      const std::vector<double> expected = student.Flat(/*gradient=*/true);

      LevelNetwork<double> level(shape, 0.4);
      level.Prepare(parameters.data());
      const SumLayout at = SumLayout::Of(shape.dimensions, shape.experts, shape.hidden);
      AlignedVector<double> scratch(KernelScratch(shape.dimensions, shape.experts, shape.hidden));
      AlignedVector<double> lanes(at.count * kTile), sums(at.count);
      AccumulateRows(level.tables(), z.data_ptr<double>(), target.data_ptr<double>(), rows,
                     lanes.data(), scratch.data());
      SumLanes(lanes.data(), at.count, sums.data());
      std::vector<double> gradient(parameters.size());
      level.AddGradient(parameters.data(), sums.data(), 2.0 / rows, gradient.data());
      EXPECT_NEAR(sums[at.loss] / rows, loss.item<double>(), 1e-12 * loss.item<double>());
      double largest = 0;
      for (const double g : expected) largest = std::max(largest, std::abs(g));
      for (std::size_t i = 0; i < expected.size(); ++i) {
        ASSERT_NEAR(gradient[i], expected[i], 1e-12 * largest) << "parameter " << i;
      }
    }
  }
}

// 40 updates of Adam on the same rows stay together.
void ExpectTheSameTraining(const MakeTrainer& elsewhere) {
  const auto teacher = SmallTeacher(6);
  const Inputs inputs(teacher);
  TrainerOptions options;
  options.precision = Precision::kFloat64;
  options.batch = 300;
  options.updates = 40;
  options.optimizer.lr = 0.01;
  options.elsewhere = elsewhere;
  const TrainTask task{
      "merge [2, 4]", InitialParameters(options.shape, 5), 4, {MakeTeacher(teacher, 2, 4)}, 9};
  auto trainer = Trainer::Create({task}, inputs, options).value();
  while (!trainer->done()) ASSERT_TRUE(trainer->Advance(0.1).ok());
  const TaskState found = trainer->Save(0);

  TorchStudent student(options.shape, task.start);
  torch::optim::Adam adam(student.parameters(), torch::optim::AdamOptions(0.01));
  Workspace work;
  for (int u = 0; u < options.updates; ++u) {
    std::vector<double> z(600), target(600);
    inputs.Draw(4, task.seed, Stream::kTraining, u * 300, 300, z.data());
    task.targets.front()->Apply(z.data(), 300, target.data(), work);
    const torch::Tensor loss =
        (student.Forward(Rows(z, 2), 4.0 / 6) - Rows(target, 2)).square().sum(1).mean();
    EXPECT_NEAR(found.curve[u], loss.item<double>(), 1e-9);
    adam.zero_grad();
    loss.backward();
    adam.step();
  }
  const std::vector<double> expected = student.Flat(/*gradient=*/false);
  for (std::size_t i = 0; i < expected.size(); ++i) {
    ASSERT_NEAR(found.parameters[i], expected[i], 1e-8) << "parameter " << i;
  }
}
TEST(ExpertsAutograd, ATrainingWithAdamIsTheSame) { ExpectTheSameTraining(nullptr); }
TEST(ExpertsAutograd, ATrainingByADevicesKernelsIsTheSame) {
  ExpectTheSameTraining(TrainOnEmulation());
}

}  // namespace
}  // namespace mergeplan::experts
