// Students trained by the kernels of a device, run as loops here and on a device where there is
// one, against the processor's trainer and against the plain student of the oracle.
#include "adapters/experts/cuda/device_trainer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <barrier>
#include <cmath>
#include <filesystem>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "adapters/experts/state_file.h"
#include "planner/operators/canonical.h"
#include "tests/adapters/experts/support.h"
#include "tests/oracle/experts_net.h"
#include "tests/planner/mixture/random_mixture.h"

namespace mergeplan::experts {
namespace {

using ::mergeplan::testing::kKinds;
using ::mergeplan::testing::Normal;
using ::mergeplan::testing::RandomInt;
using ::mergeplan::testing::RandomMixtureSpec;
using ::testing::AllOf;
using ::testing::HasSubstr;

// A training of random sizes: a merge whose target holds a frozen student, one of teacher's steps
// alone, and a student of all levels.
struct DeviceCase {
  std::shared_ptr<const MixtureTrajectory> teacher;
  std::vector<TrainTask> tasks;
  std::vector<double> data;  // empty: the mixture's law
  TrainerOptions options;

  Inputs inputs() const {
    return data.empty() ? Inputs(teacher) : Inputs::FromData(teacher, data).value();
  }
  std::string Name() const {
    ::testing::Message text;
    text << "d = " << options.shape.dimensions << ", E = " << options.shape.experts
         << ", H = " << options.shape.hidden << ", batch " << options.batch
         << ", T = " << teacher->steps() << ", " << ToString(teacher->mixture().kind()) << ", "
         << ToString(options.inputs) << ", " << ToString(options.precision) << ", "
         << ToString(options.optimizer.kind);
    return text.GetString();
  }
};

DeviceCase RandomCase(std::mt19937_64& rng, int number) {
  static constexpr int kBatches[] = {1, 31, 32, 33, 100, 255, 257, 300, 513, 700};
  DeviceCase c;
  const int d = number % 4 == 0 ? 1 : RandomInt(rng, 2, 5), T = RandomInt(rng, 2, 5);
  const auto mixture =
      GaussianMixture::Create(RandomMixtureSpec(rng, kKinds[number % 3], RandomInt(rng, 1, 6), d));
  c.teacher = std::make_shared<const MixtureTrajectory>(
      MixtureTrajectory::Create(*mixture, CosineSchedule(T)).value());
  TrainerOptions& o = c.options;
  o.shape = {d, RandomInt(rng, 1, 11), RandomInt(rng, 1, 20), 2 * RandomInt(rng, 1, 4)};
  o.precision = number % 2 == 0 ? Precision::kFloat64 : Precision::kFloat32;
  o.optimizer.kind = RandomInt(rng, 0, 2) == 0 ? OptimizerKind::kSgd : OptimizerKind::kAdam;
  o.optimizer.lr = o.optimizer.kind == OptimizerKind::kSgd ? 0.003 : 0.01;
  o.optimizer.epsilon = 1e-3;  // so that Adam does not make large steps of small derivatives
  o.updates = RandomInt(rng, 1, 6);
  o.batch = kBatches[number % 10];
  o.pool_rows = RandomInt(rng, 1, 900);
  o.inputs = InputKind{number / 3 % 3};
  if (o.inputs == InputKind::kData) {
    c.data.resize(static_cast<std::size_t>(RandomInt(rng, 1, 40)) * d);
    for (double& x : c.data) x = Normal(rng);
  }
  const auto start = [&] { return InitialParameters(o.shape, rng()); };
  const int first = RandomInt(rng, 1, T - 1), middle = RandomInt(rng, first, T - 1);
  const OperatorPointer frozen =
      MakeStudent(o.shape, static_cast<double>(T) / T, start(), o.precision);
  c.tasks.push_back({"merge with a student",
                     start(),
                     T,
                     {MakeComposition({frozen, MakeTeacher(c.teacher, first, middle)})},
                     rng()});
  c.tasks.push_back({"merge of steps", start(), T, {MakeTeacher(c.teacher, first, T)}, rng()});
  c.tasks.push_back({"fit", start(), 1, {}, rng()});
  for (int t = 1; t <= T; ++t) c.tasks.back().targets.push_back(MakeTeacher(c.teacher, t, t));
  return c;
}

std::vector<TaskState> TrainToEnd(const DeviceCase& c, const MakeTrainer& elsewhere) {
  TrainerOptions options = c.options;
  options.elsewhere = elsewhere;
  auto trainer = Trainer::Create(c.tasks, c.inputs(), options).value();
  while (!trainer->done()) EXPECT_TRUE(trainer->Advance(0.001).ok());
  EXPECT_EQ(trainer->updates_made(), options.updates * static_cast<int>(c.tasks.size()));
  std::vector<TaskState> out;
  for (std::size_t i = 0; i < c.tasks.size(); ++i)
    out.push_back(trainer->Save(static_cast<int>(i)));
  return out;
}

void ExpectNear(const std::vector<double>& a, const std::vector<double>& b, double tolerance) {
  ASSERT_EQ(a.size(), b.size());
  double largest = 0;
  for (const double x : b) largest = std::max(largest, std::abs(x));
  for (std::size_t i = 0; i < a.size(); ++i) ASSERT_NEAR(a[i], b[i], tolerance * largest) << i;
}

// Rows drawn on a device differ from the processor's by the rounding of log, sine and cosine.
void ExpectNear(const TaskState& a, const TaskState& b, Precision precision,
                bool same_rows = true) {
  const double tolerance =
      (precision == Precision::kFloat64 ? 1e-13 : 1e-5) * (same_rows ? 1 : 100);
  EXPECT_EQ(a.updates, b.updates);
  ExpectNear(a.parameters, b.parameters, tolerance);
  ExpectNear(a.first_moment, b.first_moment, tolerance);
  ExpectNear(a.second_moment, b.second_moment, tolerance);
  ExpectNear(a.curve, b.curve, tolerance);
}

// Whatever memory the work is cut for.
void ExpectSameTrainings(int cases, const std::vector<MakeTrainer>& others, bool same_rows) {
  std::mt19937_64 rng(21);
  for (int number = 0; number < cases; ++number) {
    const DeviceCase c = RandomCase(rng, number);
    SCOPED_TRACE(c.Name());
    const std::vector<TaskState> here = TrainToEnd(c, nullptr);
    for (const MakeTrainer& other : others) {
      const std::vector<TaskState> there = TrainToEnd(c, other);
      for (std::size_t i = 0; i < here.size(); ++i) {
        SCOPED_TRACE(c.tasks[i].name);
        ExpectNear(there[i], here[i], c.options.precision, same_rows);
      }
    }
    if (::testing::Test::HasFailure()) return;
  }
}

TEST(DeviceTraining, IsThatOfTheProcessor) {
  ExpectSameTrainings(60, {TrainOnEmulation(), TrainOnEmulation(0, 20000)}, true);
}

TEST(DeviceTraining, OnCudaIsThatOfTheProcessor) {
  std::mt19937_64 rng(1);
  const DeviceCase c = RandomCase(rng, 0);
  const auto trainer = TrainOnCuda(0)(c.tasks, c.inputs(), c.options);
  if (!trainer.ok()) {
    ASSERT_FALSE(std::filesystem::exists("/dev/nvidia0")) << trainer.status();
    EXPECT_EQ(trainer.status().code(), absl::StatusCode::kUnavailable);
    GTEST_SKIP() << trainer.status().message();
  }
  ExpectSameTrainings(60, {TrainOnCuda(0)}, false);
}

// Updates of SGD move every parameter by the derivative that the plain student has.
TEST(DeviceTraining, AnUpdateIsThePlainGradient) {
  std::mt19937_64 rng(22);
  for (const NetworkShape& shape :
       {NetworkShape{1, 1, 1, 2}, NetworkShape{2, 3, 4, 2}, NetworkShape{3, 9, 5, 4}}) {
    for (const int batch : {1, 37, 270}) {
      const auto mixture = GaussianMixture::Create(
          RandomMixtureSpec(rng, CovarianceKind::kFull, 3, shape.dimensions));
      const auto teacher = std::make_shared<const MixtureTrajectory>(
          MixtureTrajectory::Create(*mixture, CosineSchedule(5)).value());
      DeviceCase c{teacher, {}, {}, {}};
      c.options.shape = shape;
      c.options.precision = Precision::kFloat64;
      c.options.optimizer.kind = OptimizerKind::kSgd;
      c.options.optimizer.lr = 0.5;
      c.options.updates = 1;
      c.options.batch = batch;
      c.tasks = {{"merge", InitialParameters(shape, 5), 4, {MakeTeacher(teacher, 2, 4)}, 17}};
      const TaskState found = TrainToEnd(c, TrainOnEmulation()).front();

      const std::vector<double>& start = c.tasks[0].start;
      oracle::ExpertsNet net{shape.dimensions,
                             shape.experts,
                             shape.hidden,
                             shape.embedding,
                             {start.begin(), start.end()}};
      std::vector<int> all(start.size());
      for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<int>(i);
      std::vector<double> z(static_cast<std::size_t>(batch) * shape.dimensions), target(z.size());
      Inputs(teacher).Draw(4, 17, Stream::kTraining, 0, batch, z.data());
      Workspace work;
      c.tasks[0].targets[0]->Apply(z.data(), batch, target.data(), work);
      const double loss = static_cast<double>(net.Loss(z, target, 4.0 / 5));
      EXPECT_NEAR(found.curve[0], loss, 1e-12 * loss);
      const auto gradient = net.Gradient(z, target, 4.0 / 5, all, 1e-7L);
      for (std::size_t i = 0; i < all.size(); ++i) {
        EXPECT_NEAR(found.parameters[i], start[i] - 0.5 * static_cast<double>(gradient[i]), 1e-8)
            << i;
      }
    }
  }
}

// Where the memory suffices for it, what trains beside a task changes no bit of it.
TEST(DeviceTraining, CompanyDoesNotMatter) {
  std::mt19937_64 rng(23);
  for (int number = 0; number < 6; ++number) {
    DeviceCase c = RandomCase(rng, number);
    const std::vector<TaskState> together = TrainToEnd(c, TrainOnEmulation());
    const std::vector<TrainTask> tasks = c.tasks;
    for (std::size_t i = 0; i < tasks.size(); ++i) {
      c.tasks = {tasks[i]};
      ExpectSameTask(TrainToEnd(c, TrainOnEmulation(0)).front(), together[i]);
    }
  }
}

TEST(DeviceTraining, GoesOnBitByBit) {
  std::mt19937_64 rng(24);
  for (int number = 0; number < 6; ++number) {
    DeviceCase c = RandomCase(rng, number);
    c.options.updates = 9;
    c.options.elsewhere = TrainOnEmulation();
    const std::vector<TaskState> expected = TrainToEnd(c, c.options.elsewhere);
    auto trainer = Trainer::Create(c.tasks, c.inputs(), c.options).value();
    while (!trainer->done()) {
      ASSERT_TRUE(trainer->Advance(0).ok());
      auto next = Trainer::Create(c.tasks, c.inputs(), c.options).value();
      for (int i = 0; i < 3; ++i) ASSERT_TRUE(next->Restore(i, trainer->Save(i)).ok());
      trainer = std::move(next);
    }
    for (int i = 0; i < 3; ++i) ExpectSameTask(trainer->Save(i), expected[i]);
  }
}

// Tasks of one group may have been stopped at different updates.
TEST(DeviceTraining, TasksNeedNotBeAtTheSameUpdate) {
  std::mt19937_64 rng(25);
  DeviceCase c = RandomCase(rng, 4);
  c.options.updates = 7;
  c.options.elsewhere = TrainOnEmulation();
  const std::vector<TaskState> expected = TrainToEnd(c, c.options.elsewhere);
  auto ahead = Trainer::Create(c.tasks, c.inputs(), c.options).value();
  for (int u = 0; u < 3; ++u) ASSERT_TRUE(ahead->Advance(0).ok());
  ASSERT_LT(ahead->Save(1).updates, 7);
  auto trainer = Trainer::Create(c.tasks, c.inputs(), c.options).value();
  ASSERT_TRUE(trainer->Restore(1, ahead->Save(1)).ok());
  while (!trainer->done()) ASSERT_TRUE(trainer->Advance(1).ok());
  for (int i = 0; i < 3; ++i) ExpectSameTask(trainer->Save(i), expected[i]);
}

TEST(DeviceTraining, ALossThatIsNotFiniteIsNamed) {
  for (const Precision precision : {Precision::kFloat32, Precision::kFloat64}) {
    std::mt19937_64 rng(26);
    DeviceCase c = RandomCase(rng, 4);
    c.options.precision = precision;
    c.tasks.erase(c.tasks.begin());  // its frozen student has other numbers
    c.options.updates = 200;
    c.options.inputs = InputKind::kFresh;
    c.data.clear();
    c.options.optimizer.kind = OptimizerKind::kSgd;
    c.options.optimizer.lr = precision == Precision::kFloat32 ? 1e18 : 1e150;
    c.options.elsewhere = TrainOnEmulation();
    auto trainer = Trainer::Create(c.tasks, c.inputs(), c.options).value();
    absl::Status status;
    while (status.ok() && !trainer->done()) status = trainer->Advance(1);
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
    const TaskState state = trainer->Save(0);
    EXPECT_THAT(status.message(),
                AllOf(HasSubstr("merge of steps: the loss is"),
                      HasSubstr("at update " + std::to_string(state.updates + 1) + " of 200"),
                      HasSubstr("smaller learning rate")));
    for (const double p : state.parameters) ASSERT_TRUE(std::isfinite(p));
    // It stays where it is.
    EXPECT_EQ(trainer->Advance(0).message(), status.message());
    ExpectSameTask(trainer->Save(0), state);
  }
}

TEST(DeviceTraining, WhatDoesNotFitIsRefused) {
  std::mt19937_64 rng(27);
  DeviceCase c = RandomCase(rng, 4);
  c.options.elsewhere = TrainOnEmulation();
  auto trainer = Trainer::Create(c.tasks, c.inputs(), c.options).value();
  TaskState state = trainer->Save(0);
  state.parameters.pop_back();
  EXPECT_EQ(trainer->Restore(0, state).code(), absl::StatusCode::kDataLoss);
  c.options.precision =
      c.options.precision == Precision::kFloat32 ? Precision::kFloat64 : Precision::kFloat32;
  EXPECT_THAT(Trainer::Create(c.tasks, c.inputs(), c.options).status().message(),
              HasSubstr("expected one precision"));
  c.options.batch = 0;
  EXPECT_THAT(Trainer::Create(c.tasks, c.inputs(), c.options).status().message(),
              HasSubstr("the batch is 0"));
}

// Two processes, as threads here.
class Pair {
 public:
  class Rank : public Communicator {
   public:
    Rank(Pair& pair, int rank) : pair_(pair), rank_(rank) {}
    int rank() const override { return rank_; }
    int ranks() const override { return 2; }
    absl::Status Sum(double* numbers, std::int64_t n) const override { return Add(numbers, n); }
    absl::Status Sum(float* numbers, std::int64_t n) const override { return Add(numbers, n); }
    absl::Status Broadcast(void* bytes, std::int64_t n) const override {
      if (rank_ == 0) pair_.bytes_ = bytes;
      pair_.meeting_.arrive_and_wait();
      if (rank_ == 1) std::copy_n(static_cast<char*>(pair_.bytes_), n, static_cast<char*>(bytes));
      return Barrier();
    }
    absl::Status Barrier() const override {
      pair_.meeting_.arrive_and_wait();
      return absl::OkStatus();
    }
    void Finish() const override {}

   private:
    template <typename T>
    absl::Status Add(T* numbers, std::int64_t n) const {
      pair_.lists_[rank_].assign(numbers, numbers + n);
      pair_.meeting_.arrive_and_wait();
      for (std::int64_t i = 0; i < n; ++i) {
        numbers[i] = static_cast<T>(pair_.lists_[0][i] + pair_.lists_[1][i]);
      }
      return Barrier();
    }
    Pair& pair_;
    int rank_;
  };

 private:
  std::barrier<> meeting_{2};
  std::vector<double> lists_[2];
  void* bytes_ = nullptr;
};

TEST(DeviceTraining, ProcessesShareABatch) {
  std::mt19937_64 rng(28);
  for (const int number : {6, 8, 2}) {  // 513, 700 and 32 rows: the last is too few for two
    const DeviceCase c = RandomCase(rng, number);
    SCOPED_TRACE(c.Name());
    const std::vector<TaskState> alone = TrainToEnd(c, TrainOnEmulation());
    Pair pair;
    std::vector<TaskState> found[2];
    const auto train = [&](int rank) {
      DeviceCase mine = c;
      mine.options.communicator = std::make_shared<Pair::Rank>(pair, rank);
      found[rank] = TrainToEnd(mine, TrainOnEmulation());
    };
    std::thread other(train, 1);
    train(0);
    other.join();
    for (std::size_t i = 0; i < alone.size(); ++i) {
      ExpectSameTask(found[0][i], found[1][i]);
      ExpectNear(found[0][i], alone[i], c.options.precision);
    }
  }
}

// A whole plan: the same figures as on the processor, and stopped and taken up from its state file
// the same bits.
TEST(DeviceTraining, APlanTrainsAndGoesOn) {
  const Plan plan = CanonicalPlan(Strategy::kBoot, 4, 1).value();
  ExecutorOptions options = SmallOptions();
  options.precision = Precision::kFloat64;
  options.seeds = {3, 4};
  const auto make = [&](const MakeTrainer& elsewhere, std::function<bool()> stop) {
    ExecutorOptions mine = options;
    mine.elsewhere = elsewhere;
    mine.stop = std::move(stop);
    return Executor::Create(SmallMixture(), CosineSchedule(4), plan, mine).value();
  };
  Executor here = make(nullptr, nullptr), there = make(TrainOnEmulation(), nullptr);
  ASSERT_TRUE(here.TrainAll().ok());
  ASSERT_TRUE(there.TrainAll().ok());
  for (int trial = 0; trial < 2; ++trial) {
    const double expected = here.Evaluate(trial)->mean;
    EXPECT_NEAR(there.Evaluate(trial)->mean, expected, 1e-8 * expected);
    for (int m = 0; m < plan.size(); ++m) {
      const StudentRecord& a = here.records(trial).merges[m];
      const StudentRecord& b = there.records(trial).merges[m];
      EXPECT_NEAR(a.final_loss, b.final_loss, 1e-8 * a.final_loss);
      EXPECT_EQ(a.teacher_calls, b.teacher_calls);
      ExpectNear(a.curve, b.curve, 1e-8);
    }
  }

  const std::string path = ::testing::TempDir() + "/device_state.npz";
  std::filesystem::remove(path);
  int pieces = 0;
  while (true) {
    int asked = 0;
    Executor piece = make(TrainOnEmulation(), [&] { return ++asked > 2; });
    const auto state = ReadState("print", path);
    if (state.ok()) {
      ASSERT_TRUE(piece.Restore(*state).ok());
    }
    const absl::Status trained = piece.TrainAll();
    ASSERT_TRUE(WriteState(piece.Save(), "print", path).ok());
    ASSERT_LT(++pieces, 200);
    if (!trained.ok()) {
      ASSERT_EQ(trained.code(), absl::StatusCode::kCancelled) << trained;
      continue;
    }
    for (int trial = 0; trial < 2; ++trial) {
      ExpectSameTrial(piece.records(trial), there.records(trial));
    }
    break;
  }
  EXPECT_GT(pieces, 2);
}

}  // namespace
}  // namespace mergeplan::experts
