// Pilots are what runs would do; distances and gains are what they are for known teachers.
#include "adapters/calibrate/pilots.h"

#include <gtest/gtest.h>

#include <cmath>

#include "adapters/calibrate/calibration.h"
#include "adapters/calibrate/fit.h"
#include "adapters/calibrate/linear.h"
#include "adapters/calibrate/probes.h"
#include "planner/measured/model.h"
#include "tests/adapters/network/setting.h"

namespace mergeplan::calibrate {
namespace {

using network::testing::Make;
using network::testing::Options;

// network::testing::Setting -> what pilots are told.
Setting From(const network::testing::Setting& s, const network::NetworkSteps& steps,
             network::ExecutorOptions options) {
  Setting out;
  out.teacher = s.teacher;
  out.student = s.student.get();
  out.steps = &steps;
  out.inputs = s.inputs;
  out.options = std::move(options);
  return out;
}

void ExpectLikeARun(network::ExecutorOptions options) {
  const int T = 6;
  const network::testing::Setting s = Make(T);
  const network::NetworkSteps steps = s.steps();
  const Pilot inner{{4, 6}, {}, 0, false};
  const Pilot outer{{2, 6}, {{4, 6}}, 0, true};
  const Plan plan = *PlanOf(outer, T);
  const std::unique_ptr<network::Executor> run = network::testing::Create(s, plan, options);
  ASSERT_TRUE(run->TrainAll().ok());
  const std::unique_ptr<Pilots> pilots = *Pilots::Create(From(s, steps, options));
  const std::vector<std::int64_t> checkpoints = {1, 7, options.iterations};
  // The outer one alone: it trains the inner one by itself.
  const PilotResult over = *pilots->Train(outer, checkpoints);
  const PilotResult single = *pilots->Train(inner, checkpoints);
  const auto same = [](const PilotResult& r, const network::StudentRecord& record) {
    EXPECT_EQ(r.start, record.initial_loss);
    EXPECT_EQ(r.error.back(), record.own.mean);
    EXPECT_EQ(r.standard_error.back(), record.own.standard_error);
    EXPECT_EQ(r.teacher, record.teacher.mean);
    EXPECT_EQ(r.teacher_calls, record.teacher_calls);
  };
  same(single, run->records()[0]);
  same(over, run->records()[1]);
}

TEST(Pilots, AreMergesOfRunsBitByBit) { ExpectLikeARun(Options()); }

TEST(Pilots, AlsoWithAveragesAndRatesThatChange) {
  network::ExecutorOptions options = Options();
  options.recipe =
      Recipe::Parse(
          {{"optimizer", "adamw"}, {"ema", "0.9"}, {"lr-schedule", "cosine"}, {"warmup", "5"}})
          .value();
  ExpectLikeARun(options);
}

TEST(Pilots, AlsoFromOtherStarts) {
  for (const Init init : {Init::kTeacher, Init::kChild, Init::kJump}) {
    network::ExecutorOptions options = Options();
    options.init = init;
    options.iterations = 10;
    options.fit_updates = 10;
    ExpectLikeARun(options);
  }
}

TEST(Pilots, OtherSeedsAreOtherTrainings) {
  const network::testing::Setting s = Make(4);
  const network::NetworkSteps steps = s.steps();
  const std::unique_ptr<Pilots> pilots = *Pilots::Create(From(s, steps, Options()));
  const PilotResult a = *pilots->Train({{1, 4}, {}, 0, false}, {30});
  const PilotResult b = *pilots->Train({{1, 4}, {}, 1, false}, {30});
  EXPECT_EQ(a.start, b.start);
  EXPECT_NE(a.error, b.error);
}

// One dimension, a Gaussian teacher, and a student that is it: every number is known.
struct Linear {
  explicit Linear(Init init, int T = 6, double lambda = 0.4) : T(T), lambda(lambda) {
    schedule = LoadSchedule("cosine", T).value();
    signature = network::testing::SmallSignature(1, network::Prediction::kSample, "float64");
    teacher = network::MakeGaussianTeacher({lambda}, schedule, {1}).value();
    inputs = network::MakeGaussianInputs({lambda}, schedule, {1}, at::kDouble).value();
    steps = std::make_unique<network::NetworkSteps>(
        network::NetworkSteps::Create(signature, schedule).value());
    // The optimal x0 estimate needs the level: one that is right at the noisiest.
    student = network::testing::NetworkOf(signature, "return z * self.w");
    options.init = init;
    options.recipe = Recipe::Parse({{"optimizer", "sgd"}}).value();
    options.lr = 0.02;
    options.iterations = 40;
    options.batch = 512;
    options.held_out_rows = 20000;
    options.block = 20000;
    options.seed = 3;
  }
  Setting setting() const {
    Setting out;
    out.teacher = teacher;
    out.student = student.get();
    out.steps = steps.get();
    out.inputs = inputs;
    out.options = options;
    return out;
  }
  double n(int t) const {
    return schedule.alpha[t] * schedule.alpha[t] * lambda + schedule.sigma[t] * schedule.sigma[t];
  }
  double A(int to, int t) const {
    return (schedule.alpha[to] * schedule.alpha[t] * lambda +
            schedule.sigma[to] * schedule.sigma[t]) /
           n(t);
  }
  double Product(int i, int j) const {
    double out = 1;
    for (int t = i; t <= j; ++t) out *= A(t - 1, t);
    return out;
  }
  double D(int a, int b) const { return SignalNoiseDeterminant(schedule, a, b); }
  // Of the student's network, which says x0 = z / 2 everywhere, from j to the level `to`.
  double Student(int to, int j) const {
    return (schedule.sigma[to] + 0.5 * D(to, j)) / schedule.sigma[j];
  }

  int T;
  double lambda;
  Schedule schedule;
  network::Signature signature;
  std::shared_ptr<network::Teacher> teacher;
  std::shared_ptr<network::Inputs> inputs;
  std::unique_ptr<network::NetworkSteps> steps;
  std::unique_ptr<network::Module> student;
  network::ExecutorOptions options;
};

Design DesignOf(int T, bool from_child) {
  DesignQuestion q;
  q.teacher_steps = T;
  q.iterations = 40;
  q.rows = 512;
  q.held_out_rows = 20000;
  q.starts_from_child = from_child;
  q.replicates = 1;
  return MakeDesign(q, {}).value();
}

TEST(Probes, DistancesAreThoseOfTheLinearTheory) {
  for (const Init init : {Init::kChildJump, Init::kChild, Init::kTeacher, Init::kJump}) {
    const Linear l(init);
    const bool from_child = init == Init::kChildJump || init == Init::kChild;
    const std::unique_ptr<Pilots> pilots = *Pilots::Create(l.setting());
    Measurements m;
    m.teacher_steps = l.T;
    ASSERT_TRUE(MeasureDistances(*pilots, DesignOf(l.T, from_child), &m).ok());
    int seen = 0;
    for (const Distance& d : m.distances) {
      const int i = d.first, j = d.last, a = d.start == 0 ? j : d.start;
      double start = 0;
      switch (init) {
        case Init::kTeacher:
          start = l.Student(j - 1, j);
          break;
        case Init::kJump:
          start = l.Student(i - 1, j);
          break;
        case Init::kChild:
          start = a == j ? l.Student(j - 1, j) : l.Product(a, j);
          break;
        case Init::kChildJump:
          start = a == j ? l.Student(i - 1, j)
                         : l.D(i - 1, j) / l.D(a - 1, j) * l.Product(a, j) -
                               l.D(i - 1, a - 1) / l.D(a - 1, j);
          break;
      }
      const double expected = std::pow(start - l.Product(i, j), 2) * l.n(j);
      EXPECT_NEAR(d.mean, expected, 5 * d.standard_error + 1e-12)
          << std::string(ToString(init)) << " [" << i << ", " << a << ", " << j << "]";
      EXPECT_NEAR(d.mean, expected, 0.05 * expected + 1e-12);
      ++seen;
    }
    EXPECT_EQ(seen, from_child ? 35 : 15);
  }
}

TEST(Probes, GainsAreProductsOfSteps) {
  const Linear l(Init::kChildJump);
  const std::unique_ptr<Pilots> pilots = *Pilots::Create(l.setting());
  Measurements m;
  m.teacher_steps = l.T;
  ASSERT_TRUE(MeasureGains(*pilots, DesignOf(l.T, true), &m).ok());
  const PilotResult r = *pilots->Train({{4, 6}, {}, 0, false}, {5});
  ASSERT_TRUE(MeasureTrainedGain(*pilots, {4, 6}, pilots->last(), &m).ok());
  EXPECT_TRUE(m.gains.back().trained);
  EXPECT_EQ(m.gains.back().level, 3);
  for (const GainProbe& g : m.gains) {
    for (int i = 1; i <= g.level; ++i) {
      const double expected = l.Product(i, g.level);
      EXPECT_NEAR(std::sqrt(g.squared[i - 1]), expected, 1e-6 * expected);
    }
  }
  EXPECT_GT(m.probe_calls, 0);
}

// SGD multiplies the distance by 1 - 2 lr phi^2 n for every update, phi being what the wrapper
// makes of the network's output: r is known. There is no floor.
TEST(Calibrate, RecoversSgdOnALinearStudent) {
  Linear l(Init::kChildJump);
  CalibrateOptions options;
  options.question.teacher_steps = l.T;
  options.question.iterations = 40;
  options.question.rows = 512;
  options.question.held_out_rows = l.options.held_out_rows = 2000;
  options.question.replicates = 1;
  options.fingerprint = "x";
  const absl::StatusOr<Calibration> found = Calibrate(l.setting(), options);
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_FALSE(found->stopped);
  EXPECT_EQ(found->measured.pilots.size(), found->design.pilots.size());
  for (const PilotResult& r : found->measured.pilots) {
    if (!r.pilot.trained.empty()) continue;
    const int i = r.pilot.range.first, j = r.pilot.range.last;
    const double phi = l.D(i - 1, j) / l.schedule.sigma[j];
    for (std::size_t k = 0; k < r.updates.size(); ++k) {
      const double gamma =
          std::pow(1 - 2 * l.options.lr * phi * phi * l.n(j), static_cast<double>(r.updates[k]));
      // The batches' own variances make it differ a little.
      EXPECT_NEAR(std::sqrt(r.error[k] / r.start), gamma, 0.05 * gamma + 1e-9)
          << r.pilot.ToString() << " after " << r.updates[k];
    }
  }
  FitOptions fit_options;
  fit_options.iterations = 40;
  const Fit fit = *FitTables(found->measured, Combine::kRms, fit_options);
  const MeasuredModel model = *MeasuredModel::Create(fit.tables);
  const double phi = l.D(0, l.T) / l.schedule.sigma[l.T];
  const double gamma = std::pow(1 - 2 * l.options.lr * phi * phi * l.n(l.T), 40);
  const double start = model.Distance(1, l.T, l.T).At(model.values());
  EXPECT_NEAR(model.Residual(1, l.T, 40).At(model.values()) * start +
                  model.Floor(1, l.T).At(model.values()),
              gamma * start, 0.3 * gamma * start);
}

TEST(Calibrate, StopsWithWhatThereIsAndGoesOn) {
  const network::testing::Setting s = Make(4);
  const network::NetworkSteps steps = s.steps();
  CalibrateOptions options;
  options.question.teacher_steps = 4;
  options.question.iterations = 20;
  options.question.rows = 64;
  options.question.held_out_rows = 64;
  options.question.replicates = 2;
  options.fingerprint = "x";
  network::ExecutorOptions train = Options();
  train.iterations = 20;
  train.fit_updates = 20;
  train.held_out_rows = 64;
  const Calibration whole = *Calibrate(From(s, steps, train), options);
  EXPECT_FALSE(whole.stopped);
  // Stopped again and again, wherever it is.
  Measurements m;
  int parts = 0;
  for (int budget = 30; parts < 200; ++parts) {
    options.before = m;
    int asked = 0;
    options.stop = [&asked, budget] { return ++asked > budget; };
    const absl::StatusOr<Calibration> part = Calibrate(From(s, steps, train), options);
    ASSERT_TRUE(part.ok()) << part.status();
    const bool moved = part->measured.pilots.size() > m.pilots.size() ||
                       part->measured.distances.size() > m.distances.size();
    m = part->measured;
    if (!part->stopped) break;
    if (!moved) budget += 30;
  }
  EXPECT_GT(parts, 2);
  ASSERT_EQ(m.pilots.size(), whole.measured.pilots.size());
  for (std::size_t k = 0; k < m.pilots.size(); ++k) {
    const PilotResult &a = m.pilots[k], &b = whole.measured.pilots[k];
    EXPECT_EQ(a.pilot, b.pilot);
    EXPECT_EQ(a.start, b.start);
    EXPECT_EQ(a.error, b.error) << a.pilot.ToString();
    EXPECT_EQ(a.teacher, b.teacher);
  }
  EXPECT_EQ(m.distances, whole.measured.distances);
  EXPECT_EQ(m.gains, whole.measured.gains);
}

TEST(Calibrate, ARateThatDivergesIsSaid) {
  const network::testing::Setting s = Make(4);
  const network::NetworkSteps steps = s.steps();
  CalibrateOptions options;
  options.question.teacher_steps = 4;
  options.question.iterations = 60;
  options.question.rows = 64;
  options.question.held_out_rows = 64;
  network::ExecutorOptions train = Options();
  train.recipe = Recipe::Parse({{"optimizer", "sgd"}}).value();
  train.lr = 1e6;
  train.fit_updates = 0;
  train.iterations = 60;
  const absl::StatusOr<Calibration> found = Calibrate(From(s, steps, train), options);
  // Already the updates that measure the speed may show it.
  if (found.ok()) {
    EXPECT_TRUE(found->stopped);
    EXPECT_NE(found->why.find("learning rate"), std::string::npos) << found->why;
  } else {
    EXPECT_NE(std::string(found.status().message()).find("learning rate"), std::string::npos);
  }
}

}  // namespace
}  // namespace mergeplan::calibrate
