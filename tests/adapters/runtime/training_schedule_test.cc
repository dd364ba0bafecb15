#include "adapters/runtime/training_schedule.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <random>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>

#include "planner/operators/canonical.h"
#include "tests/planner/cli/command_line.h"
#include "tests/planner/plan/random_plan.h"

namespace mergeplan {
namespace {

using testing::HasSubstr;

TrainingSchedule Made(Plan plan) {
  const int steps = plan.teacher_steps();
  return *TrainingSchedule::Create(std::move(plan), CosineSchedule(steps));
}

Plan RandomPlan(std::mt19937_64& random, int steps) {
  const RandomSpecs specs = RandomPlanSpecs(steps, random);
  return *Plan::Create(steps, specs.merges, specs.blocks);
}

at::Generator Chance(uint64_t seed) { return at::detail::createCPUGenerator(seed); }

// The x0 estimate of data N(0, lambda) in one coordinate.
double Estimate(const Schedule& s, double lambda, int t) {
  const double a = s.alpha[static_cast<size_t>(t)], e = s.sigma[static_cast<size_t>(t)];
  return a * lambda / (a * a * lambda + e * e);
}
// What a single step multiplies with.
double Step(const Schedule& s, double lambda, int t) {
  const auto j = static_cast<size_t>(t);
  const double n = s.alpha[j] * s.alpha[j] * lambda + s.sigma[j] * s.sigma[j];
  return (s.alpha[j - 1] * s.alpha[j] * lambda + s.sigma[j - 1] * s.sigma[j]) / n;
}

TEST(TrainingSchedule, RoundsHoldEveryMergeOnceAfterItsChildren) {
  std::mt19937_64 random(7);
  for (int trial = 0; trial < 50; ++trial) {
    const Plan plan = RandomPlan(random, 1 + trial % 12);
    const TrainingSchedule schedule = Made(plan);
    std::set<std::pair<int, int>> done;
    int expected = 1, merges = 0;
    for (const Round& round : schedule) {
      EXPECT_EQ(round.number, expected++);
      std::set<std::pair<int, int>> now;
      for (const TrainingMerge& merge : round.merges) {
        for (const Range child : merge.children) {
          EXPECT_TRUE(child.single() || done.count({child.first, child.last}) == 1);
        }
        now.insert({merge.range.first, merge.range.last});
        ++merges;
      }
      done.insert(now.begin(), now.end());
    }
    EXPECT_EQ(merges, plan.size());
    EXPECT_EQ(schedule.levels().front(), plan.teacher_steps());
    EXPECT_EQ(schedule.levels().back(), 0);
    EXPECT_EQ(static_cast<int>(schedule.levels().size()), plan.student_steps() + 1);
  }
}

TEST(TrainingSchedule, SamplesAreNoisedToWhereTheirMergeStarts) {
  const TrainingSchedule schedule = Made(*CanonicalPlan(Strategy::kProgressive, 8));
  const Round& round = schedule.rounds().front();
  ASSERT_EQ(round.merges.size(), 4u);
  constexpr int kRows = 20000;
  const TrainingBatch batch = *schedule.Sample(round, at::ones({kRows, 3}, at::kDouble), Chance(1));
  for (size_t k = 0; k < 4; ++k) {
    const at::Tensor rows = batch.merge.eq(static_cast<int64_t>(k)).nonzero().view({-1});
    EXPECT_NEAR(static_cast<double>(rows.size(0)), kRows / 4.0, 5 * std::sqrt(kRows * 3 / 16.0));
    const TrainingMerge& merge = round.merges[k];
    const at::Tensor z = batch.z.index_select(0, rows);
    EXPECT_TRUE(batch.from.index_select(0, rows).eq(merge.from()).all().item<bool>());
    EXPECT_TRUE(batch.to.index_select(0, rows).eq(merge.to()).all().item<bool>());
    const auto j = static_cast<size_t>(merge.from());
    const double sigma = schedule.schedule().sigma[j];
    const double count = 3.0 * static_cast<double>(rows.size(0));
    EXPECT_NEAR(z.mean().item<double>(), schedule.schedule().alpha[j],
                5 * sigma / std::sqrt(count) + 1e-12);
    EXPECT_NEAR(z.var().item<double>(), sigma * sigma,
                5 * sigma * sigma * std::sqrt(2 / count) + 1e-12);
  }
  EXPECT_FALSE(batch.times.defined());
  // The same generator gives the same batch.
  const TrainingBatch again = *schedule.Sample(round, at::ones({kRows, 3}, at::kDouble), Chance(1));
  EXPECT_TRUE(again.z.equal(batch.z));
}

TEST(TrainingSchedule, TargetsAreTheComposedChildren) {
  // A linear teacher: a merge's target is the product of its steps, whatever the plan.
  std::mt19937_64 random(3);
  const double lambda = 1.7;
  for (int trial = 0; trial < 20; ++trial) {
    const TrainingSchedule schedule = Made(RandomPlan(random, 2 + trial % 9));
    const Schedule& s = schedule.schedule();
    // A frozen student that has learnt every merge exactly: the x0 whose jump is the product.
    const auto product = [&](int first, int last) {
      double out = 1;
      for (int t = first; t <= last; ++t) out *= Step(s, lambda, t);
      return out;
    };
    for (const Round& round : schedule) {
      const Denoiser teacher = [&](const at::Tensor& z, int level) {
        return z * Estimate(s, lambda, level);
      };
      const Denoiser frozen = [&](const at::Tensor& z, int level) {
        // Merges of one round have no step in common, so one child at most ends at this level.
        for (const TrainingMerge& merge : round.merges) {
          for (const Range child : merge.children) {
            if (child.single() || child.last != level) continue;
            const auto j = static_cast<size_t>(level), i = static_cast<size_t>(child.first - 1);
            const double x0 = (s.sigma[j] * product(child.first, level) - s.sigma[i]) /
                              SignalNoiseDeterminant(s, child.first - 1, level);
            return z * x0;
          }
        }
        throw std::logic_error("no such child");
      };
      const TrainingBatch batch =
          *schedule.Sample(round, at::randn({64, 2}, at::kDouble), Chance(trial));
      const at::Tensor target = *schedule.Target(round, batch, teacher, frozen);
      for (int64_t row = 0; row < 64; ++row) {
        const TrainingMerge& merge =
            round.merges[static_cast<size_t>(batch.merge[row].item<int64_t>())];
        EXPECT_TRUE(at::allclose(target[row],
                                 batch.z[row] * product(merge.range.first, merge.range.last), 1e-10,
                                 1e-12));
      }
    }
  }
}

TEST(TrainingSchedule, JumpsOfABatchAreTheJumpsOfItsRows) {
  const TrainingSchedule schedule = Made(*CanonicalPlan(Strategy::kProgressive, 6));
  const Round& round = schedule.rounds().front();
  const TrainingBatch batch = *schedule.Sample(round, at::randn({16, 2, 3}), Chance(5));
  const at::Tensor x0 = at::randn({16, 2, 3});
  const at::Tensor all = *schedule.Jump(batch, x0);
  for (int64_t row = 0; row < 16; ++row) {
    const at::Tensor one =
        *schedule.Jump(batch.z[row], x0[row], static_cast<int>(batch.from[row].item<int64_t>()),
                       static_cast<int>(batch.to[row].item<int64_t>()));
    EXPECT_TRUE(at::allclose(all[row], one, 1e-4, 1e-5));
  }
}

TEST(TrainingSchedule, WrongUseIsAnError) {
  EXPECT_THAT(
      std::string(TrainingSchedule::Create(*CanonicalPlan(Strategy::kBoot, 4), CosineSchedule(5))
                      .status()
                      .message()),
      HasSubstr("expected the same number"));
  const TrainingSchedule schedule = Made(*CanonicalPlan(Strategy::kVanilla, 4));
  const Round& round = schedule.rounds().front();
  EXPECT_FALSE(schedule.Sample(round, at::ones({2, 2}, at::kLong), Chance(1)).ok());
  EXPECT_FALSE(schedule.Sample(round, at::ones({0, 2}), Chance(1)).ok());
  EXPECT_FALSE(schedule.Sample(Round{}, at::ones({2, 2}), Chance(1)).ok());
  EXPECT_FALSE(schedule.Jump(at::ones({1}), at::ones({1}), 1, 1).ok());
  EXPECT_FALSE(schedule.Jump(at::ones({1}), at::ones({1}), 5, 0).ok());
  const TrainingBatch batch = *schedule.Sample(round, at::ones({2, 2}), Chance(1));
  const Denoiser bad = [](const at::Tensor&, int) -> at::Tensor {
    throw std::runtime_error("out of order\nand more");
  };
  EXPECT_THAT(std::string(schedule.Target(round, batch, bad, bad).status().message()),
              testing::EndsWith("out of order"));
  const Denoiser odd = [](const at::Tensor&, int) { return at::ones({7, 9}); };
  EXPECT_FALSE(schedule.Target(round, batch, odd, odd).ok());
  // A plan of single steps has no round.
  EXPECT_TRUE(Made(*CanonicalPlan(Strategy::kBoot, 1)).rounds().empty());
}

TEST(TrainingLoopExample, TrainsAlongAPlanFile) {
  const std::string folder = TestFolder();
  const std::string plan = "'" + folder + "/plan.toml'";
  ASSERT_EQ(RunMergeplan("plan --variances 0.3,0.8,1.4 -T 6 --schedule cosine --lr 0.05 "
                         "--iterations 50 --init child-jump -o " +
                         plan)
                .code,
            0);
  const std::string out = folder + "/out.txt";
  const std::string program =
      std::string(std::getenv("MERGEPLAN_BINARY_DIR")) + "/bin/training_loop";
  ASSERT_EQ(std::system(("'" + program + "' " + plan + " 200 > '" + out + "'").c_str()), 0);
  std::ifstream in(out);
  std::string line;
  double difference = 1, size = 0;
  int rounds = 0;
  while (std::getline(in, line)) {
    rounds += line.rfind("round ", 0) == 0 ? 1 : 0;
    const size_t at = line.find("difference ");
    if (at != std::string::npos) {
      ASSERT_EQ(std::sscanf(line.c_str() + at, "difference %lf of %lf", &difference, &size), 2);
    }
  }
  EXPECT_GT(rounds, 0);
  EXPECT_LT(difference, 0.02 * size);
}

}  // namespace
}  // namespace mergeplan
