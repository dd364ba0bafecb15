// Training steps as graphs, with an engine that does again on the processor what it was shown.
#include "adapters/network/step_graphs.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "adapters/network/tensor_list.h"
#include "adapters/network/trainable.h"
#include "adapters/network/trainer.h"
#include "adapters/network/try.h"
#include "planner/schedule/schedule.h"
#include "tests/adapters/network/support.h"

namespace mergeplan::network {
namespace {

using ::testing::HasSubstr;
using testing::Numbers;
using testing::SmallNetwork;
using testing::SmallSignature;

// What a device does: while work is taken down nothing is computed, so what it adds to gradients is
// taken back.
class FakeEngine : public GraphEngine {
 public:
  std::vector<at::Tensor> parameters;
  int captures = 0, replays = 0;
  bool refuses = false;
  double off_by = 0;  // what replays add to every gradient

  absl::StatusOr<std::unique_ptr<Graph>> Capture(
      const std::function<absl::Status()>& work) override {
    ++captures;
    std::vector<at::Tensor> gradients;
    for (const at::Tensor& parameter : parameters) gradients.push_back(parameter.grad());
    const std::vector<at::Tensor> before = Copies(gradients);
    const absl::Status status = Try("the capture", work);
    {
      const c10::NoGradGuard no_gradients;
      CopyInto(before, gradients);
    }
    if (!status.ok()) return status;
    if (refuses) return absl::UnavailableError("operation not permitted when stream is capturing");
    return std::make_unique<Again>(*this, work);
  }

 private:
  class Again : public Graph {
   public:
    Again(FakeEngine& engine, std::function<absl::Status()> work)
        : engine_(engine), work_(std::move(work)) {}
    absl::Status Replay() override {
      ++engine_.replays;
      const absl::Status status = work_();
      const c10::NoGradGuard no_gradients;
      for (const at::Tensor& parameter : engine_.parameters) {
        if (engine_.off_by != 0) parameter.grad().add_(engine_.off_by);
      }
      return status;
    }

   private:
    FakeEngine& engine_;
    std::function<absl::Status()> work_;
  };
};

struct Case {
  std::map<std::string, std::string> recipe;
  Precision precision = Precision::kFull;
  std::string dtype = "float32";
  int updates = 12;
  double lr = 1e-2;
};

struct Trained {
  std::vector<std::vector<double>> losses;
  std::vector<double> numbers;
  std::int64_t skipped = 0;
  absl::Status status;
  std::vector<std::string> notes;
};

// Two merges that share a network. With an engine from update `from` on by a trainer of its own.
Trained Train(const Case& c, const std::shared_ptr<FakeEngine>& engine, int from = 0) {
  const Schedule schedule = LoadSchedule("cosine", 6).value();
  const Signature signature = SmallSignature(2, Prediction::kSample, c.dtype);
  const NetworkSteps steps = NetworkSteps::Create(signature, schedule, c.precision).value();
  Frozen frozen;
  frozen.teacher = MakeGaussianTeacher({0.4, 1.7}, schedule, {2}).value();
  frozen.student = &steps;
  const std::shared_ptr<Inputs> inputs =
      MakeGaussianInputs({0.4, 1.7}, schedule, {2}, steps.state_type()).value();
  std::vector<TrainTask> tasks(2);
  tasks[0].name = "merge [1, 2]", tasks[0].range = {1, 2}, tasks[0].target = {{2, 0, -1, 0}};
  tasks[1].name = "merge [4, 6]", tasks[1].range = {4, 6}, tasks[1].target = {{6, 3, -1, 0}};
  tasks[1].landing = 3;
  tasks[1].factor = 2.3;
  TrainerOptions options;
  options.recipe = Recipe::Parse(c.recipe).value();
  options.lr = c.lr;
  options.updates = c.updates;
  options.batch = 8;
  options.precision = c.precision;
  Trained out;
  options.note = [&](const std::string& text) { out.notes.push_back(text); };
  const auto make = [&](bool with) {
    std::unique_ptr<Module> module = SmallNetwork(signature, 6, 3);
    options.graphs = nullptr;
    if (with && engine != nullptr) {
      engine->parameters = TrainableParameters(*module).value();
      options.graphs = engine;
    }
    return Trainer::Create(std::move(module), tasks, frozen, inputs, options).value();
  };
  std::unique_ptr<Trainer> trainer = make(from == 0);
  while (!trainer->done()) {
    if (from > 0 && trainer->updates() == from) {
      const TrainerState state = trainer->Save();
      trainer = make(true);
      EXPECT_TRUE(trainer->Restore(state).ok());
      from = 0;
    }
    out.status = trainer->Update();
    if (!out.status.ok()) break;
  }
  out.losses = trainer->losses();
  out.skipped = trainer->skipped();
  out.numbers = Numbers(**trainer->Finish());
  return out;
}

TEST(StepGraphs, MakeTheUpdatesThatOperationsMakeBitByBit) {
  const std::vector<Case> cases = {
      {{{"optimizer", "adamw"}, {"ema", "0.9"}, {"lr-schedule", "cosine"}, {"warmup", "3"}}},
      {{{"optimizer", "sgd"}, {"accumulate", "3"}, {"clip-norm", "0.5"}}},
      {{{"optimizer", "adam"}, {"accumulate", "2"}}, Precision::kFull, "float64"},
      {{{"optimizer", "adam"}}, Precision::kBfloat16},
      {{{"optimizer", "adam"}}, Precision::kFloat16}};
  for (const Case& c : cases) {
    SCOPED_TRACE(c.recipe.at("optimizer") + " " + std::string(ToString(c.precision)) + c.dtype);
    const auto engine = std::make_shared<FakeEngine>();
    const Trained plain = Train(c, nullptr), graphs = Train(c, engine);
    ASSERT_TRUE(plain.status.ok()) << plain.status;
    EXPECT_EQ(graphs.losses, plain.losses);
    EXPECT_EQ(graphs.numbers, plain.numbers);
    EXPECT_EQ(graphs.skipped, plain.skipped);
    EXPECT_TRUE(graphs.notes.empty()) << graphs.notes.front();
    EXPECT_EQ(engine->captures, 2);
    const int batches = c.updates * static_cast<int>(Recipe::Parse(c.recipe)->accumulate);
    EXPECT_EQ(engine->replays, 2 * (batches - StepGraphs::kWarmUp));
    // Taken up in the middle.
    const Trained later = Train(c, std::make_shared<FakeEngine>(), 5);
    EXPECT_EQ(later.losses, plain.losses);
    EXPECT_EQ(later.numbers, plain.numbers);
  }
}

TEST(StepGraphs, AreGivenUpWithWordsWhereTheyCannotBeMade) {
  const Case c = {{{"optimizer", "adamw"}}};
  const Trained plain = Train(c, nullptr);
  const auto engine = std::make_shared<FakeEngine>();
  engine->refuses = true;
  const Trained refused = Train(c, engine);
  EXPECT_EQ(refused.numbers, plain.numbers);
  EXPECT_EQ(refused.losses, plain.losses);
  EXPECT_EQ(engine->captures, 1);
  ASSERT_EQ(refused.notes.size(), 1U);
  EXPECT_THAT(refused.notes[0], HasSubstr("without a CUDA graph of its step: operation not perm"));
}

TEST(StepGraphs, AreGivenUpWhereTheFirstReplayIsNotWhatTheOperationsGive) {
  const Case c = {{{"optimizer", "adamw"}}};
  const Trained plain = Train(c, nullptr);
  const auto engine = std::make_shared<FakeEngine>();
  engine->off_by = 10;
  const Trained wrong = Train(c, engine);
  EXPECT_EQ(wrong.numbers, plain.numbers);
  EXPECT_EQ(wrong.losses, plain.losses);
  EXPECT_EQ(engine->replays, 1);
  ASSERT_EQ(wrong.notes.size(), 1U);
  EXPECT_THAT(wrong.notes[0], HasSubstr("its first replay gave the loss"));
}

TEST(StepGraphs, LeaveTheParametersOfBeforeALossThatIsNotFinite) {
  Case c = {{{"optimizer", "sgd"}}};
  c.lr = 50;  // too large, but the loss survives some updates
  c.updates = 200;
  const Trained plain = Train(c, nullptr);
  ASSERT_FALSE(plain.status.ok());
  ASSERT_GT(plain.losses[0].size(), 5U);
  const Trained graphs = Train(c, std::make_shared<FakeEngine>());
  EXPECT_EQ(graphs.status, plain.status);
  EXPECT_EQ(graphs.losses, plain.losses);
  EXPECT_EQ(graphs.numbers, plain.numbers);
}

TEST(StepGraphs, BeginAnewWithInputsOfAnotherShape) {
  at::manual_seed(5);
  const at::Tensor w = at::randn({3}).set_requires_grad(true);
  const auto engine = std::make_shared<FakeEngine>();
  engine->parameters = {w};
  StepGraphs graphs(engine, {w}, 1, nullptr);
  const StepGraphs::Loss loss =
      [&](const std::vector<at::Tensor>& x) -> absl::StatusOr<at::Tensor> {
    const at::Tensor all = x[0] * w;
    return (x[1].defined() ? all + x[1] : all).square().sum();
  };
  const auto expect = [&](std::int64_t rows, bool second, int captures, int replays) {
    const at::Tensor x = at::randn({rows, 3}), y = second ? at::randn({rows, 3}) : at::Tensor();
    const double weight = at::rand({}).item<double>();
    graphs.Begin();
    const auto found = graphs.Run(0, {x, y}, weight, loss);
    ASSERT_TRUE(found.ok());
    const at::Tensor plain = w.detach().clone().set_requires_grad(true);
    const at::Tensor value = (second ? x * plain + y : x * plain).square().sum();
    (value * weight).backward();
    EXPECT_EQ(*found, value.item<double>());
    EXPECT_TRUE(at::equal(w.grad(), plain.grad()));
    EXPECT_EQ(engine->captures, captures);
    EXPECT_EQ(engine->replays, replays);
  };
  for (int k = 0; k < StepGraphs::kWarmUp; ++k) expect(4, true, 0, 0);
  expect(4, true, 1, 1);
  expect(4, true, 1, 2);
  for (int k = 0; k < StepGraphs::kWarmUp; ++k) expect(5, true, 1, 2);
  expect(5, true, 2, 3);
  for (int k = 0; k < StepGraphs::kWarmUp; ++k) expect(5, false, 2, 3);
  expect(5, false, 3, 4);
  expect(5, false, 3, 5);
  EXPECT_TRUE(graphs.on());
}

TEST(StepGraphs, SaveTheirVerdictForABatchThatHasOne) {
  const at::Tensor w = at::ones({2}).set_requires_grad(true);
  const auto engine = std::make_shared<FakeEngine>();
  engine->parameters = {w};
  engine->off_by = 1;
  StepGraphs graphs(engine, {w}, 1, nullptr);
  const StepGraphs::Loss loss =
      [&](const std::vector<at::Tensor>& x) -> absl::StatusOr<at::Tensor> {
    return (x[0] * w).sum();
  };
  const auto run = [&](double value) {
    graphs.Begin();
    return graphs.Run(0, {at::full({2}, value)}, 1, loss).value();
  };
  for (int k = 0; k < StepGraphs::kWarmUp; ++k) run(1);
  run(std::numeric_limits<double>::infinity());
  EXPECT_TRUE(graphs.on());
  EXPECT_EQ(run(3), 6);
  EXPECT_FALSE(graphs.on());
  EXPECT_TRUE(at::equal(w.grad(), at::full({2}, 3.0)));
}

}  // namespace
}  // namespace mergeplan::network
