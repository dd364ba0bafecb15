#include "adapters/network/executor.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "adapters/linear/merge_task.h"
#include "adapters/linear/trainer.h"
#include "adapters/network/tensor_file.h"
#include "adapters/network/wrapper.h"
#include "planner/operators/model.h"
#include "tests/adapters/network/setting.h"
#include "tests/adapters/network/support.h"
#include "tests/adapters/support.h"

namespace mergeplan::network {
namespace {

using mergeplan::testing::TemporaryFolder;
using ::testing::AllOf;
using ::testing::HasSubstr;

using testing::Canonical;
using testing::Create;
using testing::DiagonalNetwork;
using testing::Make;
using testing::NetworkOf;
using testing::Numbers;
using testing::Options;
using testing::Setting;
using testing::SmallNetwork;
using testing::SmallSignature;

constexpr Init kInits[] = {Init::kChild, Init::kTeacher, Init::kJump, Init::kChildJump};

double MeanDistance(const at::Tensor& a, const at::Tensor& b) {
  return (a - b).to(at::kDouble).square().sum(1).mean().item<double>();
}

TEST(NetworkExecutor, EveryStrategyLearns) {
  for (const Strategy strategy : kStrategies) {
    for (const bool shared : {true, false}) {
      SCOPED_TRACE(::testing::Message() << ToString(strategy) << ", shared " << shared);
      const Setting s = Make(4);
      ExecutorOptions options = Options();
      options.shared = shared;
      options.iterations = 120;
      options.fit_updates = 400;
      const auto executor = Create(s, Canonical(strategy, 4), options);
      const double before = executor->Evaluate()->back().error.mean;
      EXPECT_EQ(before, 0);  // nothing is merged: the teacher itself
      ASSERT_TRUE(executor->TrainAll().ok());
      EXPECT_LT(executor->fit().final_loss, 0.5 * executor->fit().initial_loss);
      EXPECT_EQ(executor->merges_trained(), executor->plan().size());
      for (const StudentRecord& merge : executor->records()) {
        EXPECT_LT(merge.final_loss, merge.initial_loss);
        EXPECT_EQ(merge.updates, 120);
        EXPECT_EQ(merge.own.mean, merge.final_loss);
        EXPECT_GT(merge.own.standard_error, 0);
        EXPECT_LT(merge.own.low(), merge.own.mean);
        EXPECT_GT(merge.peak_memory, 1 << 20);
        EXPECT_GT(merge.seconds, 0);
      }
      const LevelError whole = executor->Evaluate()->back();
      EXPECT_EQ(whole.level, 0);
      EXPECT_GT(whole.error.mean, 0);
      EXPECT_LT(whole.error.mean, 1.0);
      // Only the block's weights are left.
      EXPECT_EQ(executor->snapshots().count(), 1);
    }
  }
}

// Boot over three steps: [2, 3], then [1, 3] of 1 and [2, 3]. What every merge starts from and is
// measured by, worked out here from the weights that the executor holds.
TEST(NetworkExecutor, TheFourStartsAreWhatTheDesignSays) {
  for (const char* name : {"cosine", "edm", "flow"}) {
    for (const Init init : kInits) {
      SCOPED_TRACE(::testing::Message() << name << ", " << ToString(init));
      const Setting s = Make(3, name, "float64");
      const Schedule& schedule = s.schedule;
      ExecutorOptions options = Options();
      options.init = init;
      const auto executor = Create(s, Canonical(Strategy::kBoot, 3), options);
      ASSERT_TRUE(executor->Fit().ok());
      const auto fit = executor->snapshots().Get(executor->fit().snapshot).value()->Clone().value();
      executor->Hold(0);
      ASSERT_TRUE(executor->Train({0}).ok());
      const auto child = executor->Weights(0).value();
      ASSERT_TRUE(executor->Train({1}).ok());
      const auto end = executor->Weights(1).value();

      RowStream stream{options.held_out_seed, 0, 3, Lane::kHeldOut};
      const at::Tensor z = s.inputs->Draw(3, stream, 0, options.held_out_rows).value();
      const c10::NoGradGuard no_gradients;
      // x0 prediction in native units: what the state becomes where the wrapper lands.
      const auto wrapped = [&](Module& module, int to) {
        const at::Tensor time = at::full({z.size(0)}, 1.0, at::kDouble);
        const at::Tensor x0 =
            module.Forward(z * schedule.level_scale[3], time, {}).value() / schedule.data_scale;
        const at::Tensor eps = (z - schedule.alpha[3] * x0) / schedule.sigma[3];
        return schedule.alpha[to] * x0 + schedule.sigma[to] * eps;
      };
      const bool whole = init == Init::kJump || init == Init::kChildJump;
      const bool of_child = init == Init::kChild || init == Init::kChildJump;
      const at::Tensor two = s.teacher->Jump(s.teacher->Jump(z, 3, 2).value(), 2, 1).value();
      const at::Tensor target = s.teacher->Jump(wrapped(*child, whole ? 1 : 2), 1, 0).value();
      const auto& merges = executor->records();
      EXPECT_EQ(merges[0].landing, whole ? 1 : 2);
      EXPECT_EQ(merges[1].landing, whole ? 0 : 2);
      EXPECT_NEAR(merges[0].initial_loss, MeanDistance(wrapped(*fit, whole ? 1 : 2), two), 1e-12);
      EXPECT_NEAR(merges[0].final_loss, MeanDistance(wrapped(*child, whole ? 1 : 2), two), 1e-12);
      EXPECT_NEAR(merges[1].initial_loss,
                  MeanDistance(wrapped(of_child ? *child : *fit, whole ? 0 : 2), target), 1e-12);
      EXPECT_NEAR(merges[1].final_loss, MeanDistance(wrapped(*end, whole ? 0 : 2), target), 1e-12);
      const double native = schedule.data_scale * schedule.data_scale;
      const double error =
          native * MeanDistance(wrapped(*end, whole ? 0 : 2), s.teacher->Jump(two, 1, 0).value());
      EXPECT_NEAR(merges[1].teacher.mean, error, 1e-12);
      const auto errors = executor->Evaluate().value();
      ASSERT_EQ(errors.size(), 1U);
      EXPECT_NEAR(errors[0].error.mean, error, 1e-12);
      EXPECT_EQ(errors[0].error.rows, options.held_out_rows);
    }
  }
}

TEST(NetworkExecutor, MergesOfARoundShareTheirNetwork) {
  const Setting s = Make(8);
  const Plan plan = Canonical(Strategy::kProgressive, 8);
  for (const bool shared : {true, false}) {
    ExecutorOptions options = Options();
    options.shared = shared;
    options.iterations = 5;
    const auto executor = Create(s, plan, options);
    const auto rounds = plan.MergesByRound();
    ASSERT_TRUE(executor->Train(rounds[1]).ok());
    const auto& records = executor->records();
    for (const int merge : rounds[1]) {
      EXPECT_EQ(records[merge].snapshot == records[rounds[1][0]].snapshot,
                shared || merge == rounds[1][0]);
    }
    EXPECT_EQ(executor->snapshots().count(), shared ? 1 : 4);
    ASSERT_TRUE(executor->TrainAll().ok());
    EXPECT_EQ(executor->snapshots().count(), 1);
  }
}

// A merge's rows do not depend on its company; its network does only where they share one.
TEST(NetworkExecutor, SeparateMergesDoNotSeeEachOther) {
  const Setting s = Make(4);
  const Plan plan = Canonical(Strategy::kProgressive, 4);
  ExecutorOptions options = Options();
  options.shared = false;
  const auto together = Create(s, plan, options);
  ASSERT_TRUE(together->Train(plan.MergesByRound()[1]).ok());
  const auto alone = Create(s, plan, options);
  ASSERT_TRUE(alone->Train({plan.MergesByRound()[1][1]}).ok());
  const int merge = plan.MergesByRound()[1][1];
  EXPECT_EQ(Numbers(**together->Weights(merge)), Numbers(**alone->Weights(merge)));
  EXPECT_EQ(together->records()[merge].curve, alone->records()[merge].curve);
}

// A student w * z behind the wrapper is the operator a = state + output * w, and its gradient that
// of a times `output`: adapters/linear with the feature norm output^2, on the same noise.
TEST(NetworkExecutor, ADiagonalStudentAgreesWithTheLinearTrainer) {
  const int T = 6;
  const std::vector<double> variances = {0.3, 1.0, 2.5};
  for (const char* recipe_name : {"plain", "momentum", "cosine"}) {
    SCOPED_TRACE(recipe_name);
    const Schedule schedule = LoadSchedule("ddpm-cosine", T).value();
    Signature signature = SmallSignature(3, Prediction::kSample, "float64");
    std::map<std::string, std::string> recipe;
    if (recipe_name == std::string("momentum")) recipe = {{"momentum", "0.8"}, {"ema", "0.9"}};
    if (recipe_name == std::string("cosine")) {
      recipe = {{"lr-schedule", "cosine"},
                {"warmup", "3"},
                {"accumulate", "2"},
                {"weight-decay", "0"},
                {"clip-norm", "0.5"}};
    }
    const Plan plan = Canonical(Strategy::kVanilla, T);
    const double output = LandingAt(signature, schedule, T, 0)->output;
    const double state = LandingAt(signature, schedule, T, 0)->state;
    const double feature = output * output;
    const Budget budget = Budget::Sgd(0.02, 20, 32, feature);
    const Model model = Model::Create({.schedule = schedule,
                                       .variances = variances,
                                       .weights = {},
                                       .budget = budget,
                                       .init = Init::kJump,
                                       .reference = Reference::kTeacher})
                            .value();
    mergeplan::TrainerOptions linear;
    linear.lr = 0.02;
    linear.feature_norm = feature;
    linear.updates = 20;
    linear.batch = 32;
    linear.recipe = Recipe::Parse(recipe).value();
    MergeTask task = MakeMergeTask(model, plan, 0, [&](int node) {
      std::vector<double> value;
      for (int k = 0; k < 3; ++k) value.push_back(model.A(node + 1)[k]);
      return value;
    });
    task.seed = 77;
    auto trainer = MakeLinearTrainer({task}, linear).value();
    while (!trainer->done()) ASSERT_TRUE(trainer->Advance().ok());
    const std::vector<double> expected = trainer->Save().Frozen();

    std::vector<double> weight;  // the teacher's x0 estimate at level T
    for (const double lambda : variances) {
      weight.push_back(
          schedule.alpha[T] * lambda /
          (schedule.alpha[T] * schedule.alpha[T] * lambda + schedule.sigma[T] * schedule.sigma[T]));
    }
    ExecutorOptions options;
    options.init = Init::kJump;
    options.recipe = linear.recipe;
    options.lr = 0.02;
    options.iterations = 20;
    options.batch = 32;
    options.seed = 77;
    const std::shared_ptr<Teacher> teacher = MakeGaussianTeacher(variances, schedule, {3}).value();
    const std::shared_ptr<Inputs> inputs =
        MakeGaussianInputs(variances, schedule, {3}, at::kDouble).value();
    const auto executor =
        Executor::Create(teacher, *DiagonalNetwork(signature, weight),
                         NetworkSteps::Create(signature, schedule).value(), inputs, plan, options)
            .value();
    ASSERT_TRUE(executor->TrainAll().ok());
    const std::vector<double> found = Numbers(**executor->Weights(0));
    for (int k = 0; k < 3; ++k) {
      EXPECT_NEAR(state + output * found[k], expected[k], 1e-10) << k;
      EXPECT_GT(std::abs(expected[k] - task.start[k]), 1e-3);  // it did train
    }
    const std::vector<double> curve = trainer->Save().curve;
    ASSERT_EQ(executor->records()[0].curve.size(), curve.size());
    for (std::size_t u = 0; u < curve.size(); ++u) {
      EXPECT_NEAR(executor->records()[0].curve[u], curve[u], 1e-9 * curve[u]);
    }
  }
}

TEST(NetworkExecutor, ALossThatIsNotFiniteIsNamedAndLosesNothing) {
  Setting s = Make(4);
  // NaN as soon as the weights have left their start.
  s.student = NetworkOf(s.signature,
                        "return z * self.w / torch.where((self.w - 0.5).abs() > 0.02, "
                        "torch.zeros_like(self.w), torch.ones_like(self.w))"
                        " * torch.where((self.w - 0.5).abs() > 0.02, torch.zeros_like(self.w), "
                        "torch.ones_like(self.w))");
  ExecutorOptions options = Options();
  options.fit_updates = 0;
  TemporaryFolder folder;
  options.folder = folder.path();
  const auto executor = Create(s, Canonical(Strategy::kVanilla, 4), options);
  const absl::Status status = executor->TrainAll();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("merge [1, 4]"), HasSubstr("the loss is"),
                    HasSubstr("update 4 of 30"), HasSubstr("learning rate")));
  ASSERT_TRUE(executor->WriteState(folder.File("state"), "").ok());
  const TensorFile state = ReadTensorFile(folder.File("state")).value();
  const at::Tensor* w = state.Find("active.0.parameter.0");
  ASSERT_NE(w, nullptr);
  EXPECT_TRUE(at::isfinite(*w).all().item<bool>());
  EXPECT_EQ(state.Find("active.0.counts")->const_data_ptr<double>()[0], 3);
}

TEST(NetworkExecutor, PrecisionsTrain) {
  for (const Precision precision : {Precision::kBfloat16, Precision::kFloat16}) {
    SCOPED_TRACE(ToString(precision));
    const Setting s = Make(4);
    ExecutorOptions options = Options();
    options.precision = precision;
    options.fit_updates = 200;
    options.iterations = 60;
    const auto executor = Create(s, Canonical(Strategy::kBoot, 4), options);
    const absl::Status status = executor->TrainAll();
    ASSERT_TRUE(status.ok()) << status;
    EXPECT_LT(executor->fit().final_loss, executor->fit().initial_loss);
    const auto weights = executor->Weights(2).value();
    for (const auto& [name, tensor] : weights->Parameters()) {
      EXPECT_EQ(tensor.scalar_type(), at::kFloat);
    }
    // It is another arithmetic.
    options.precision = Precision::kFull;
    const auto full = Create(s, Canonical(Strategy::kBoot, 4), options);
    ASSERT_TRUE(full->TrainAll().ok());
    EXPECT_NE(Numbers(**full->Weights(2)), Numbers(**executor->Weights(2)));
    EXPECT_NEAR(full->fit().final_loss, executor->fit().final_loss,
                0.2 * executor->fit().final_loss);
  }
}

// Two blocks: the error after each, both walks from the same noise.
TEST(NetworkExecutor, ErrorsByLevel) {
  const Setting s = Make(6, "edm");
  ExecutorOptions options = Options();
  options.held_out_inputs = MakeRolloutInputs(s.teacher, s.schedule, 1, 0, at::kFloat).value();
  const Plan plan = Canonical(Strategy::kVanilla, 6, 2);
  const auto executor = Create(s, plan, options);
  ASSERT_TRUE(executor->TrainAll().ok());
  const auto errors = executor->Evaluate().value();
  ASSERT_EQ(errors.size(), 2U);
  EXPECT_EQ(errors[0].level, 3);
  EXPECT_EQ(errors[1].level, 0);
  at::Tensor truth =
      options.held_out_inputs
          ->Draw(6, {options.held_out_seed, 0, 6, Lane::kHeldOut}, 0, options.held_out_rows)
          .value();
  at::Tensor student = truth;
  const std::vector<Link> links = executor->Student().value();
  ASSERT_EQ(links.size(), 2U);
  for (int block = 0; block < 2; ++block) {
    for (int t = 6 - 3 * block; t > 3 - 3 * block; --t) {
      truth = s.teacher->Jump(truth, t, t - 1).value();
    }
    student = executor->Run({links[block]}, student).value();
    const double expected = 0.25 * MeanDistance(student, truth);  // data_scale is 1/2
    EXPECT_NEAR(errors[block].error.mean, expected, 1e-6 * expected);
    EXPECT_GT(errors[block].error.low(), 0);
  }
}

TEST(NetworkExecutor, StudentsThatCannotLearnAreNamed) {
  const Setting s = Make(4);
  const Plan plan = Canonical(Strategy::kVanilla, 4);
  ExecutorOptions options = Options();
  options.fit_updates = 0;
  // Parameters that share their memory.
  EXPECT_THAT(std::string(Executor::Create(s.teacher, *testing::TiedNetwork(s.signature), s.steps(),
                                           s.inputs, plan, options)
                              .status()
                              .message()),
              AllOf(HasSubstr("u"), HasSubstr("w"), HasSubstr("share their memory")));
  // None at all.
  EXPECT_THAT(std::string(Executor::Create(s.teacher, *testing::FixedNetwork(s.signature),
                                           s.steps(), s.inputs, plan, options)
                              .status()
                              .message()),
              HasSubstr("no parameter"));
  // One that does not use its parameters has no gradient: it stays as it is, or says so.
  Setting unused = Make(4);
  unused.student = NetworkOf(unused.signature, "return z * 0.5");
  const absl::Status status = Create(unused, plan, options)->TrainAll();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("merge [1, 4]"));
  // A teacher that says NaN.
  Setting bad = Make(4, "ddpm-linear");
  bad.teacher = MakeNetworkTeacher(NetworkOf(bad.signature, "return z / (z - z)"), bad.steps());
  const absl::Status nan = Create(bad, plan, options)->TrainAll();
  EXPECT_EQ(nan.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(nan.message()), AllOf(HasSubstr("merge [1, 4]"), HasSubstr("update 1")));
}

TEST(NetworkExecutor, BudgetsAndEarlyStops) {
  const Setting s = Make(4);
  ExecutorOptions options = Options();
  options.total_updates = 60;
  const auto vanilla = Create(s, Canonical(Strategy::kVanilla, 4), options);
  EXPECT_EQ(vanilla->updates_per_merge(), 60);
  EXPECT_EQ(Create(s, Canonical(Strategy::kBoot, 4), options)->updates_per_merge(), 20);
  // Something so easy that it is learnt at once.
  options.total_updates = 0;
  options.iterations = 4000;
  options.fit_updates = 0;
  options.gain_bound = 0.2;
  Setting easy = Make(4);
  easy.student = DiagonalNetwork(easy.signature, {0.9, 0.9});
  options.recipe = Recipe::Parse({{"optimizer", "sgd"}}).value();
  options.lr = 0.05;
  const auto executor = Create(easy, Canonical(Strategy::kVanilla, 4), options);
  ASSERT_TRUE(executor->TrainAll().ok());
  EXPECT_TRUE(executor->records()[0].stopped_early);
  EXPECT_LT(executor->records()[0].updates, 2000);
  EXPECT_GE(executor->records()[0].updates, 64);
  options.gain_bound = 0;
  options.iterations = executor->records()[0].updates;
  const auto same = Create(easy, Canonical(Strategy::kVanilla, 4), options);
  ASSERT_TRUE(same->TrainAll().ok());
  EXPECT_EQ(Numbers(**same->Weights(0)), Numbers(**executor->Weights(0)));
}

TEST(NetworkExecutor, ATeacherThatIsTheStudentsNetworkNeedsNoFit) {
  const Setting s = Make(4, "ddpm-linear", "float32", Prediction::kEpsilon);
  const std::shared_ptr<Module> network(SmallNetwork(s.signature, 16, 3));
  const std::shared_ptr<Teacher> teacher = MakeNetworkTeacher(network, s.steps());
  ExecutorOptions options = Options();
  options.fit_updates = 0;
  options.init = Init::kTeacher;
  for (const std::int64_t pool : {0, 64}) {
    const std::shared_ptr<Inputs> inputs =
        MakeRolloutInputs(teacher, s.schedule, 4, pool, at::kFloat).value();
    const Plan plan = Canonical(Strategy::kConsistency, 4);
    const auto executor =
        Executor::Create(teacher, *network, s.steps(), inputs, plan, options).value();
    ASSERT_TRUE(executor->TrainAll().ok());
    std::int64_t calls = 0;
    for (const StudentRecord& merge : executor->records()) {
      EXPECT_LT(merge.final_loss, merge.initial_loss);
      calls += merge.teacher_calls;
    }
    // Consistency: [1, 2], [1, 3], [1, 4]. Rollouts to levels 2, 3, 4 take 2, 1, 0 steps, targets
    // 2, 1, 1; a pool makes 4 levels once (level 4 costs nothing), [1, 2] needs all of them.
    EXPECT_EQ(calls, pool == 0 ? 30 * 64 * (2 + 1 + 0 + 2 + 1 + 1) : pool * 4);
  }
}

// BOOT's merges but for the first have targets over trained children: at the rows of a pool each of
// these is made once, and training is what it is with targets made again for every update.
TEST(NetworkExecutor, APoolMakesEveryTargetOnce) {
  const Setting s = Make(4, "ddpm-linear", "float32", Prediction::kEpsilon);
  const std::shared_ptr<Module> network(SmallNetwork(s.signature, 16, 3));
  const std::shared_ptr<Teacher> teacher = MakeNetworkTeacher(network, s.steps());
  ExecutorOptions options = Options();
  options.fit_updates = 0;
  const std::shared_ptr<Inputs> inputs =
      MakeRolloutInputs(teacher, s.schedule, 4, 100, at::kFloat).value();
  const auto executor =
      Executor::Create(teacher, *network, s.steps(), inputs, Canonical(Strategy::kBoot, 4), options)
          .value();
  ASSERT_TRUE(executor->TrainAll().ok());
  std::vector<std::int64_t> calls;
  for (const StudentRecord& merge : executor->records()) calls.push_back(merge.teacher_calls);
  // [3, 4] has the pool's levels 3 and 2; then one step after the child's jump, from 2 to 1, ...
  EXPECT_EQ(calls, (std::vector<std::int64_t>{200, 100, 100}));
}

TEST(NetworkExecutor, WhatDoesNotFitIsSaidBeforeTraining) {
  const Setting s = Make(4);
  const Plan plan = Canonical(Strategy::kVanilla, 4);
  const auto error = [&](const Setting& setting, const Plan& p, const ExecutorOptions& options) {
    return std::string(Executor::Create(setting.teacher, *setting.student, setting.steps(),
                                        setting.inputs, p, options)
                           .status()
                           .message());
  };
  ExecutorOptions options = Options();
  options.batch = 0;
  EXPECT_THAT(error(s, plan, options), HasSubstr("the batch is 0"));
  options = Options();
  options.iterations = 0;
  EXPECT_THAT(error(s, plan, options), HasSubstr("updates per merge is 0"));
  options = Options();
  options.lr = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THAT(error(s, plan, options), HasSubstr("learning rate is nan"));
  options = Options();
  options.memory = -1;
  EXPECT_THAT(error(s, plan, options), HasSubstr("the memory for snapshots is -1"));
  options = Options();
  options.gain_bound = 1;
  EXPECT_THAT(error(s, plan, options), HasSubstr("remaining gain is 1"));
  options = Options();
  options.recipe.warmup = 31;
  EXPECT_THAT(error(s, plan, options), HasSubstr("warmup"));
  options = Options();
  options.loss.weighting = Weighting::kSnr;
  EXPECT_THAT(error(s, plan, options), AllOf(HasSubstr("weighting snr"), HasSubstr("level 4")));
  EXPECT_THAT(error(s, Canonical(Strategy::kVanilla, 5), Options()), HasSubstr("5 teacher steps"));
  Setting epsilon = Make(4);
  epsilon.signature.prediction = Prediction::kEpsilon;
  EXPECT_THAT(error(epsilon, plan, Options()),
              AllOf(HasSubstr("zero terminal SNR"), HasSubstr("v_prediction")));
  const auto executor = Create(s, Canonical(Strategy::kBoot, 4), Options());
  EXPECT_EQ(executor->Train({2}).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(executor->Train({9}).code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(executor->Weights(0).status().code(), absl::StatusCode::kFailedPrecondition);
}

TEST(NetworkExecutor, OneSampleOneDimensionOneStep) {
  for (const int T : {1, 2, 1000}) {
    Setting s;
    s.schedule = LoadSchedule("ddpm-linear", T).value();
    s.signature = SmallSignature(1, Prediction::kEpsilon);
    s.teacher = MakeGaussianTeacher({0.5}, s.schedule, {1}).value();
    s.inputs = MakeGaussianInputs({0.5}, s.schedule, {1}, at::kFloat).value();
    s.student = SmallNetwork(s.signature, 4, 1);
    ExecutorOptions options = Options();
    options.batch = 1;
    options.iterations = 1;
    options.fit_updates = 2;
    options.held_out_rows = 2;
    options.block = 1;
    const Plan plan = Canonical(Strategy::kVanilla, T);
    const auto executor = Create(s, plan, options);
    ASSERT_TRUE(executor->TrainAll().ok());
    const auto errors = executor->Evaluate().value();
    ASSERT_EQ(errors.size(), 1U);
    EXPECT_TRUE(std::isfinite(errors[0].error.mean));
    EXPECT_EQ(plan.size(), T == 1 ? 0 : 1);
  }
}

}  // namespace
}  // namespace mergeplan::network
