// Whole searches with a device against the same searches without.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "planner/search/cuda/backend.h"
#include "planner/search/search.h"
#include "tests/planner/search/cuda/backends.h"
#include "tests/planner/search/problems.h"

namespace mergeplan {
namespace {

class SolveTest : public testing::TestWithParam<std::string> {
 protected:
  SearchDevice device() const {
    return GetParam() == "cuda" ? SearchDevice::kCuda : SearchDevice::kEmulation;
  }
};
INSTANTIATE_TEST_SUITE_P(On, SolveTest, testing::Values("emulation", "cuda"),
                         [](const auto& info) { return info.param; });

// Time decides nothing here: it would make results differ from run to run.
constexpr double kNoTimeLimit = 1e9;

// Runs both and says whether the device did anything.
bool Equal(const Model& model, SearchOptions options, SearchDevice device, double least_work,
           bool print = true) {
  options.time_limit_seconds = kNoTimeLimit;
  options.device = SearchDevice::kCpu;
  const absl::StatusOr<SearchResult> expected = Solve(model, options);
  options.device = device;
  options.device_least_work = least_work;
  const absl::StatusOr<SearchResult> got = Solve(model, options);
  EXPECT_TRUE(expected.ok()) << expected.status();
  EXPECT_TRUE(got.ok()) << got.status();
  if (!expected.ok() || !got.ok()) return false;
  EXPECT_EQ(got->plan, expected->plan);
  EXPECT_EQ(got->objective, expected->objective);
  EXPECT_EQ(got->lower_bound, expected->lower_bound);
  EXPECT_EQ(got->status, expected->status);
  EXPECT_EQ(got->guarantee, expected->guarantee);
  EXPECT_EQ(expected->device, "cpu");
  EXPECT_EQ(got->device.find("given up"), std::string::npos) << got->device;
  if (!print) return got->device != "cpu";
  std::printf(
      "  T %d, d %d, N %d, gap %g: objective %.12e, lower bound %.12e, %.3f s on the cpu, "
      "%.3f s with %s\n",
      model.steps(), model.dimensions(), options.student_steps, options.gap, got->objective,
      got->lower_bound, expected->seconds, got->seconds, got->device.c_str());
  return got->device != "cpu";
}

TEST_P(SolveTest, RandomProblems) {
  MERGEPLAN_OPEN_BACKEND(backend);
  std::mt19937_64 random(31);
  int used = 0;
  for (int trial = 0; trial < 60; ++trial) {
    RandomProblem problem = MakeRandomProblem(random, {2, 8, 6, 3});
    SCOPED_TRACE(problem.text);
    absl::StatusOr<Model> model = Model::Create(problem.model);
    ASSERT_TRUE(model.ok()) << model.status();
    SearchOptions options;
    options.student_steps = std::min(problem.blocks, model->steps());
    options.space = random() % 3 == 0 ? Space::kBinary : Space::kNary;
    options.gap = random() % 2 == 0 ? 0 : 1e-3;
    if (random() % 4 == 0) options.max_merges = model->steps();
    used += Equal(*model, options, device(), 0, false);
  }
  EXPECT_GT(used, 20);
}

Model LogSpaced(int dimensions, double low, double high, int steps,
                Reference reference = Reference::kSurrogate) {
  ModelSpec spec;
  spec.schedule = CosineSchedule(steps);
  for (int k = 0; k < dimensions; ++k) {
    spec.variances.push_back(low * std::pow(high / low, k / (dimensions - 1.0)));
  }
  spec.budget = Budget::Flow(1.6);
  spec.reference = reference;
  return *Model::Create(std::move(spec));
}

// From here on an interval goes to the device: most of those that matter do, and there are not so
// many that a test takes long.
constexpr double kLeastWork = 2e4;

TEST_P(SolveTest, HundredTwentyEightDimensions) {
  MERGEPLAN_OPEN_BACKEND(backend);
  for (const int blocks : {1, 4}) {
    SearchOptions options;
    options.student_steps = blocks;
    options.gap = 1e-2;
    EXPECT_TRUE(Equal(LogSpaced(128, 0.5, 2, 32), options, device(), kLeastWork));
    options.gap = blocks == 1 ? 0 : 1e-2;
    // The exact pass of one block has no interval that is work enough for a device.
    EXPECT_EQ(Equal(LogSpaced(128, 0.2, 5, 64), options, device(), kLeastWork), blocks > 1);
  }
}

TEST_P(SolveTest, ManyDimensions) {
  MERGEPLAN_OPEN_BACKEND(backend);
  for (const int blocks : {1, 4}) {
    SearchOptions options;
    options.student_steps = blocks;
    options.gap = 2e-3;
    EXPECT_TRUE(Equal(LogSpaced(784, 0.3, 3, 32), options, device(), kLeastWork));
  }
}

// The teacher's product lies between what plans reach, for variances a little above 1: these are
// two columns each.
TEST_P(SolveTest, TwoSidedColumns) {
  MERGEPLAN_OPEN_BACKEND(backend);
  for (const int blocks : {1, 4}) {
    SearchOptions options;
    options.student_steps = blocks;
    options.gap = 2e-3;
    EXPECT_TRUE(
        Equal(LogSpaced(48, 0.7, 1.6, 20, Reference::kTeacher), options, device(), kLeastWork));
  }
}

TEST(SolveDevice, CudaIsAnErrorWhereThereIsNone) {
  if (search::device::OpenCuda().ok()) GTEST_SKIP() << "there is a CUDA device";
  SearchOptions options;
  options.device = SearchDevice::kCuda;
  const absl::StatusOr<SearchResult> result = Solve(LogSpaced(4, 0.5, 2, 6), options);
  ASSERT_EQ(result.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_NE(std::string(result.status().message()).find("use the device auto or cpu"),
            std::string::npos)
      << result.status();
}

TEST(SolveDevice, AutoGoesOnWhereThereIsNone) {
  if (search::device::OpenCuda().ok()) GTEST_SKIP() << "there is a CUDA device";
  SearchOptions options;
  options.device_least_work = 0;
  const absl::StatusOr<SearchResult> result = Solve(LogSpaced(4, 0.5, 2, 6), options);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->device, "cpu");
}

}  // namespace
}  // namespace mergeplan
