#include "adapters/experts/trainer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "tests/adapters/experts/support.h"
#include "tests/oracle/experts_net.h"

namespace mergeplan::experts {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr int kSteps = 6;

// Two merges and a student of all levels.
std::vector<TrainTask> Tasks(const std::shared_ptr<const MixtureTrajectory>& teacher) {
  std::vector<TrainTask> tasks(3);
  tasks[0] = {
      "merge [1, 6]", InitialParameters(SmallShape(), 1), 6, {MakeTeacher(teacher, 1, 6)}, 11};
  tasks[1] = {
      "merge [2, 4]", InitialParameters(SmallShape(), 2), 4, {MakeTeacher(teacher, 2, 4)}, 12};
  tasks[2] = {"the fit", InitialParameters(SmallShape(), 3), 1, {}, 13};
  for (int t = 1; t <= kSteps; ++t) tasks[2].targets.push_back(MakeTeacher(teacher, t, t));
  return tasks;
}

TrainerOptions Options() {
  TrainerOptions options;
  options.shape = SmallShape();
  options.updates = 25;
  options.batch = 700;  // three slices, the last one smaller
  options.optimizer.lr = 0.01;
  return options;
}

std::vector<TaskState> TrainToEnd(const std::vector<TrainTask>& tasks, const Inputs& inputs,
                                  const TrainerOptions& options) {
  auto trainer = Trainer::Create(tasks, inputs, options).value();
  while (!trainer->done()) EXPECT_TRUE(trainer->Advance(0.001).ok());
  std::vector<TaskState> out;
  for (std::size_t i = 0; i < tasks.size(); ++i) out.push_back(trainer->Save(static_cast<int>(i)));
  return out;
}

std::vector<double> SomeData() {
  std::mt19937 random(4);
  std::normal_distribution<double> normal;
  std::vector<double> data(2 * 50);
  for (double& x : data) x = normal(random);
  return data;
}

TEST(ExpertsTrainer, NeitherThreadsNorCompanyMatter) {
  const auto teacher = SmallTeacher(kSteps);
  const std::vector<TrainTask> tasks = Tasks(teacher);
  for (const InputKind kind : {InputKind::kFresh, InputKind::kPool, InputKind::kData}) {
    for (const Precision precision : {Precision::kFloat32, Precision::kFloat64}) {
      SCOPED_TRACE(::testing::Message() << ToString(kind) << ", " << ToString(precision));
      const Inputs inputs = kind == InputKind::kData ? Inputs::FromData(teacher, SomeData()).value()
                                                     : Inputs(teacher);
      TrainerOptions options = Options();
      options.inputs = kind;
      options.pool_rows = 900;
      options.precision = precision;
      const std::vector<TaskState> expected = TrainToEnd(tasks, inputs, options);
      for (const int threads : {2, 3, 5}) {
        options.threads = threads;
        const std::vector<TaskState> together = TrainToEnd(tasks, inputs, options);
        for (std::size_t i = 0; i < tasks.size(); ++i) {
          ExpectSameTask(expected[i], together[i]);
          ExpectSameTask(expected[i], TrainToEnd({tasks[i]}, inputs, options).front());
        }
      }
    }
  }
}

// Updates of SGD move every parameter by the derivative that the plain student has.
TEST(ExpertsTrainer, AnUpdateIsThePlainGradient) {
  const auto teacher = SmallTeacher(kSteps);
  const Inputs inputs(teacher);
  constexpr int kBatch = 270;  // two slices
  TrainerOptions options = Options();
  options.shape = {2, 2, 3, 2};
  options.precision = Precision::kFloat64;
  options.optimizer.kind = OptimizerKind::kSgd;
  options.optimizer.lr = 0.5;
  options.updates = 2;
  options.batch = kBatch;
  TrainTask task = Tasks(teacher)[1];
  task.start = InitialParameters(options.shape, 2);
  const TaskState found = TrainToEnd({task}, inputs, options).front();

  oracle::ExpertsNet net{2, 2, 3, 2, {task.start.begin(), task.start.end()}};
  std::vector<int> all(net.parameters.size());
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<int>(i);
  Workspace work;
  for (int u = 0; u < 2; ++u) {
    std::vector<double> z(kBatch * 2), target(kBatch * 2);
    inputs.Draw(4, task.seed, Stream::kTraining, u * kBatch, kBatch, z.data());
    task.targets.front()->Apply(z.data(), kBatch, target.data(), work);
    EXPECT_NEAR(found.curve[u], static_cast<double>(net.Loss(z, target, 4.0 / kSteps)), 1e-12);
    const auto gradient = net.Gradient(z, target, 4.0 / kSteps, all, 1e-7L);
    for (std::size_t i = 0; i < all.size(); ++i) net.parameters[i] -= 0.5L * gradient[i];
  }
  for (std::size_t i = 0; i < all.size(); ++i) {
    EXPECT_NEAR(found.parameters[i], static_cast<double>(net.parameters[i]), 1e-9) << i;
  }
}

// The student of all levels: every slice has the level that PickLevel says.
TEST(ExpertsTrainer, TheFitSeesALevelPerSlice) {
  const auto teacher = SmallTeacher(kSteps);
  const Inputs inputs(teacher);
  const TrainTask task = Tasks(teacher)[2];
  TrainerOptions options = Options();
  options.precision = Precision::kFloat64;
  options.updates = 1;
  const TaskState found = TrainToEnd({task}, inputs, options).front();
  const oracle::ExpertsNet net{2, 3, 10, 6, {task.start.begin(), task.start.end()}};
  Workspace work;
  long double loss = 0;
  for (int s = 0; s < 3; ++s) {
    const int level = PickLevel(kSteps, task.seed, 0, s, 3);
    EXPECT_GE(level, 1 + 2 * s);
    EXPECT_LE(level, 2 + 2 * s);
    const std::size_t rows = s < 2 ? kSliceRows : 700 - 2 * kSliceRows;
    std::vector<double> z(rows * 2), target(rows * 2);
    inputs.Draw(level, task.seed, Stream::kTraining, s * kSliceRows, rows, z.data());
    task.targets[level - 1]->Apply(z.data(), rows, target.data(), work);
    loss += net.Loss(z, target, static_cast<double>(level) / kSteps) * rows / 700;
  }
  EXPECT_NEAR(found.curve[0], static_cast<double>(loss), 1e-12);
}

TEST(ExpertsTrainer, APoolIsTakenInTurn) {
  const auto teacher = SmallTeacher(kSteps);
  TrainerOptions options = Options();
  options.inputs = InputKind::kPool;
  options.optimizer.kind = OptimizerKind::kSgd;
  options.optimizer.lr = 1e-30;  // nothing moves: losses tell the rows apart
  options.precision = Precision::kFloat64;
  options.pool_rows = options.batch;
  const TrainTask task = Tasks(teacher)[0];
  const auto same = TrainToEnd({task}, Inputs(teacher), options).front().curve;
  EXPECT_EQ(same, std::vector<double>(same.size(), same.front()));
  options.pool_rows = 2 * options.batch;
  const auto two = TrainToEnd({task}, Inputs(teacher), options).front().curve;
  EXPECT_EQ(two[0], same[0]);
  EXPECT_NE(two[1], two[0]);
  EXPECT_EQ(two[2], two[0]);
  EXPECT_EQ(two[3], two[1]);
  options.pool_rows = 100;  // less than a slice
  const auto small = TrainToEnd({task}, Inputs(teacher), options).front().curve;
  EXPECT_NEAR(small[0], small[1], 1e-12 * small[0]);
}

TEST(ExpertsTrainer, GoesOnBitByBit) {
  const auto teacher = SmallTeacher(kSteps);
  const std::vector<TrainTask> tasks = Tasks(teacher);
  const Inputs inputs(teacher);
  for (const OptimizerKind kind : {OptimizerKind::kAdam, OptimizerKind::kSgd}) {
    TrainerOptions options = Options();
    options.optimizer.kind = kind;
    const std::vector<TaskState> expected = TrainToEnd(tasks, inputs, options);
    auto trainer = Trainer::Create(tasks, inputs, options).value();
    while (!trainer->done()) {
      ASSERT_TRUE(trainer->Advance(0).ok());
      auto next = Trainer::Create(tasks, inputs, options).value();
      for (int i = 0; i < 3; ++i) ASSERT_TRUE(next->Restore(i, trainer->Save(i)).ok());
      trainer = std::move(next);
    }
    for (int i = 0; i < 3; ++i) ExpectSameTask(trainer->Save(i), expected[i]);
  }
}

TEST(ExpertsTrainer, LearnsASingleStep) {
  const auto teacher = SmallTeacher(kSteps);
  TrainerOptions options = Options();
  options.updates = 600;
  TrainTask task = Tasks(teacher)[1];
  task.targets = {MakeTeacher(teacher, 4, 4)};
  const TaskState end = TrainToEnd({task}, Inputs(teacher), options).front();
  EXPECT_LT(end.curve.back(), 0.05 * end.curve.front());
}

TEST(ExpertsTrainer, ALossThatIsNotFiniteIsNamed) {
  const auto teacher = SmallTeacher(kSteps);
  for (const int threads : {1, 3}) {
    TrainerOptions options = Options();
    options.threads = threads;
    options.optimizer.kind = OptimizerKind::kSgd;
    options.optimizer.lr = 1e18;
    auto trainer = Trainer::Create({Tasks(teacher)[1]}, Inputs(teacher), options).value();
    absl::Status status;
    while (status.ok() && !trainer->done()) status = trainer->Advance(0);
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
    const std::int64_t made = trainer->updates_made();
    EXPECT_THAT(status.message(),
                AllOf(HasSubstr("merge [2, 4]: the loss is"),
                      HasSubstr("at update " + std::to_string(made + 1) + " of 25"),
                      HasSubstr("smaller learning rate")));
    for (const double p : trainer->Save(0).parameters) ASSERT_TRUE(std::isfinite(p));
  }
}

TEST(ExpertsTrainer, BadOptionsAreNamed) {
  const auto teacher = SmallTeacher(kSteps);
  const auto message = [&](auto change) {
    TrainerOptions options = Options();
    std::vector<TrainTask> tasks = Tasks(teacher);
    change(options, tasks);
    return std::string(Trainer::Create(tasks, Inputs(teacher), options).status().message());
  };
  using O = TrainerOptions;
  using Ts = std::vector<TrainTask>;
  EXPECT_EQ(message([](O&, Ts&) {}), "");
  EXPECT_THAT(message([](O& o, Ts&) { o.batch = 0; }), HasSubstr("the batch is 0"));
  EXPECT_THAT(message([](O& o, Ts&) { o.updates = -1; }), HasSubstr("updates is -1"));
  EXPECT_THAT(message([](O& o, Ts&) { o.inputs = InputKind::kPool; }),
              HasSubstr("pool has 0 rows"));
  EXPECT_THAT(message([](O& o, Ts&) { o.optimizer.lr = -1; }), HasSubstr("learning rate is -1"));
  EXPECT_THAT(message([](O& o, Ts&) { o.shape.experts = 0; }), HasSubstr("experts is 0"));
  EXPECT_THAT(message([](O& o, Ts&) { o.shape.dimensions = 3; }),
              HasSubstr("the student has 3 dimensions, the teacher 2"));
  EXPECT_THAT(message([](O&, Ts& t) { t.clear(); }), HasSubstr("nothing to train"));
  EXPECT_THAT(message([](O&, Ts& t) { t[1].start.pop_back(); }), HasSubstr("merge [2, 4]: "));
  EXPECT_THAT(message([](O&, Ts& t) { t[0].first_level = 7; }), HasSubstr("the levels 7 to 7"));
  EXPECT_THAT(message([](O&, Ts& t) { t[0].targets.clear(); }),
              HasSubstr("merge [1, 6]: the levels"));
}

TEST(ExpertsTrainer, AStateThatDoesNotFitIsRefused) {
  const auto teacher = SmallTeacher(kSteps);
  auto trainer = Trainer::Create(Tasks(teacher), Inputs(teacher), Options()).value();
  const TaskState good = trainer->Save(0);
  const auto code = [&](auto change) {
    TaskState state = good;
    change(state);
    return trainer->Restore(0, state).code();
  };
  EXPECT_EQ(code([](TaskState&) {}), absl::StatusCode::kOk);
  EXPECT_EQ(code([](TaskState& s) { s.updates = 26; }), absl::StatusCode::kDataLoss);
  EXPECT_EQ(code([](TaskState& s) { s.updates = 1; }), absl::StatusCode::kDataLoss);  // no curve
  EXPECT_EQ(code([](TaskState& s) { s.parameters.pop_back(); }), absl::StatusCode::kDataLoss);
  EXPECT_EQ(code([](TaskState& s) { s.first_moment.clear(); }), absl::StatusCode::kDataLoss);
  EXPECT_EQ(code([](TaskState& s) { s.second_moment.clear(); }), absl::StatusCode::kDataLoss);
}

TEST(ExpertsInputs, DataRowsBecomeStates) {
  const auto teacher = SmallTeacher(kSteps);
  // One row: z - alpha x0 is sigma times standard normal noise.
  const Inputs inputs = Inputs::FromData(teacher, {3, -2}).value();
  constexpr int kRows = 20000;
  std::vector<double> z(2 * kRows);
  inputs.Draw(3, 5, Stream::kTraining, 0, kRows, z.data());
  const NoiseLevel at = teacher->level(3);
  double sum = 0, squares = 0;
  for (int r = 0; r < kRows; ++r) {
    for (int i = 0; i < 2; ++i) {
      const double noise = (z[2 * r + i] - at.alpha * (i == 0 ? 3 : -2)) / at.sigma;
      sum += noise;
      squares += noise * noise;
    }
  }
  EXPECT_NEAR(sum / (2 * kRows), 0, 5 / std::sqrt(2.0 * kRows));
  EXPECT_NEAR(squares / (2 * kRows), 1, 5 * std::sqrt(2 / (2.0 * kRows)));
  // A row is the same in any company.
  double one[2];
  inputs.Draw(3, 5, Stream::kTraining, 77, 1, one);
  EXPECT_EQ(one[0], z[154]);
  EXPECT_EQ(one[1], z[155]);
}

TEST(ExpertsInputs, BadDataAndWordsAreNamed) {
  const auto teacher = SmallTeacher(kSteps);
  EXPECT_THAT(Inputs::FromData(teacher, {1, 2, 3}).status().message(), HasSubstr("rows of 2"));
  EXPECT_THAT(Inputs::FromData(teacher, {}).status().message(), HasSubstr("0 numbers"));
  EXPECT_THAT(Inputs::FromData(teacher, {1, 2, std::nan(""), 4}).status().message(),
              HasSubstr("row 1 holds nan"));
  for (const InputKind kind : {InputKind::kFresh, InputKind::kPool, InputKind::kData}) {
    EXPECT_EQ(ParseInputKind(ToString(kind)).value(), kind);
  }
  EXPECT_THAT(ParseInputKind("rollout").status().message(), HasSubstr("'rollout'"));
  for (const Precision precision : {Precision::kFloat32, Precision::kFloat64}) {
    EXPECT_EQ(ParsePrecision(ToString(precision)).value(), precision);
  }
  EXPECT_THAT(ParsePrecision("half").status().message(), HasSubstr("'half'"));
}

TEST(ExpertsInputs, LevelsAreUniform) {
  constexpr int kLevels = 5, kUpdates = 4000;
  std::vector<int> counts(kLevels + 1);
  for (int u = 0; u < kUpdates; ++u) {
    for (int s = 0; s < 3; ++s) ++counts[PickLevel(kLevels, 9, u, s, 3)];
  }
  EXPECT_EQ(counts[0], 0);
  const double expected = 3.0 * kUpdates / kLevels;
  for (int t = 1; t <= kLevels; ++t) EXPECT_NEAR(counts[t], expected, 5 * std::sqrt(expected));
}

}  // namespace
}  // namespace mergeplan::experts
