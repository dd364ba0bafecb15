#include "planner/search/search.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "planner/operators/canonical.h"

namespace mergeplan {
namespace {

Model MakeModel(std::vector<double> variances, int steps, double time, Init init = Init::kChild,
                Reference reference = Reference::kSurrogate) {
  ModelSpec spec;
  spec.schedule = CosineSchedule(steps);
  spec.variances = std::move(variances);
  spec.budget = Budget::Flow(time);
  spec.init = init;
  spec.reference = reference;
  return *Model::Create(std::move(spec));
}

SearchResult Exact(const Model& model, int blocks = 1, Space space = Space::kNary) {
  SearchOptions options;
  options.gap = 0;
  options.student_steps = blocks;
  options.space = space;
  options.time_limit_seconds = 120;
  return *Solve(model, options);
}

// Two dimensions that cost Algorithm 1 as printed 86 million candidates.
TEST(Solve, TwoDimensionsAroundOne) {
  const SearchResult result = Exact(MakeModel({0.95, 1.05}, 32, 6.4));
  EXPECT_EQ(result.status, SearchStatus::kOptimal);
  EXPECT_NEAR(result.objective, 1.983715408656e-4, 1e-16);
  EXPECT_LE(result.objective - result.lower_bound, 2 * result.tolerance);
}

// Thousands of its plans are within 1e-12 of the best, which the general passes found as well.
TEST(Solve, ThousandsOfPlansNextToTheBest) {
  const SearchResult result = Exact(MakeModel({1.05, 1.50}, 32, 6.4));
  EXPECT_EQ(result.status, SearchStatus::kOptimal);
  EXPECT_NEAR(result.objective, 2.0198564817246e-4, 1e-16);
  EXPECT_LE(result.objective - result.lower_bound, 2 * result.tolerance);
}

// Long enough for beams along a grid: what is certified within a gap holds against the proven best.
TEST(Solve, ManyStepsInSeveralBlocks) {
  for (int blocks : {1, 2, 3}) {
    const Model model = MakeModel({0.3, 0.8, 1.3, 2.5, 4}, 96, 1.6);
    const SearchResult best = Exact(model, blocks);
    EXPECT_EQ(best.status, SearchStatus::kOptimal) << best.guarantee;
    SearchOptions options;
    options.gap = 0.02;
    options.student_steps = blocks;
    const SearchResult near = *Solve(model, options);
    EXPECT_LE(near.gap(), options.gap);
    EXPECT_LE(near.lower_bound, best.objective);
    EXPECT_LE(best.lower_bound, near.objective);
    EXPECT_LE(near.objective * (1 - options.gap), best.objective + best.tolerance);
  }
}

// Merges of three and more merged blocks are better than what Algorithm 1 tries.
TEST(Solve, NaryBeatsBinary) {
  const Model model = MakeModel({1.2}, 32, 1.6);
  EXPECT_NEAR(Exact(model).objective, 3.286923e-5, 1e-11);
  EXPECT_NEAR(Exact(model, 1, Space::kBinary).objective, 3.301690e-5, 1e-11);
}

TEST(Solve, ManyDimensionsExactly) {
  std::vector<double> variances;
  for (int k = 0; k < 128; ++k) variances.push_back(0.2 * std::pow(25.0, k / 127.0));
  const SearchResult result = Exact(MakeModel(variances, 64, 1.6));
  EXPECT_EQ(result.status, SearchStatus::kOptimal);
  EXPECT_NEAR(result.objective, 5.592472069686e-2, 1e-13);
}

TEST(Solve, OneStepNeedsNoMerge) {
  const SearchResult result = Exact(MakeModel({0.5, 2}, 1, 1));
  EXPECT_EQ(result.plan.size(), 0);
  EXPECT_EQ(result.status, SearchStatus::kOptimal);
  const SearchResult all = Exact(MakeModel({0.5, 2}, 5, 1), 5);
  EXPECT_EQ(all.plan.size(), 0);
  EXPECT_EQ(all.status, SearchStatus::kOptimal);
}

TEST(Solve, ThousandStepsOfOneDimension) {
  SearchOptions options;
  options.time_limit_seconds = 100;
  const SearchResult boot = *Solve(MakeModel({0.5}, 300, 1.0), options);
  EXPECT_EQ(boot.plan, *CanonicalPlan(Strategy::kBoot, 300));
  EXPECT_EQ(boot.status, SearchStatus::kOptimal);
}

// With the start `jump` one merge per block is best in every dimension, and the borders are what is
// left to search.
TEST(Solve, JumpMergesEachBlockAtOnce) {
  const Model model = MakeModel({0.1, 0.8, 1.3, 7}, 24, 0.8, Init::kJump);
  EXPECT_EQ(Exact(model).plan, *CanonicalPlan(Strategy::kVanilla, 24));
  for (int blocks : {2, 3, 4}) {
    const SearchResult result = Exact(model, blocks);
    EXPECT_EQ(result.status, SearchStatus::kOptimal);
    for (const Merge& merge : result.plan.merges()) EXPECT_EQ(merge.round, 1);
    EXPECT_LE(result.objective, model.Objective(*CanonicalPlan(Strategy::kVanilla, 24, blocks)));
  }
}

TEST(Solve, TeacherStartBelowVarianceOneMergesAtOnce) {
  for (Reference reference : {Reference::kSurrogate, Reference::kTeacher}) {
    const Model model = MakeModel({0.05, 0.4, 0.9}, 20, 0.8, Init::kTeacher, reference);
    EXPECT_EQ(Exact(model).plan, *CanonicalPlan(Strategy::kVanilla, 20));
    EXPECT_EQ(Exact(model, 3).status, SearchStatus::kOptimal);
  }
}

TEST(Solve, TimeLimitLeavesAPlanAndASoundBound) {
  std::vector<double> variances;
  for (int k = 0; k < 64; ++k) variances.push_back(0.5 * std::pow(4.0, k / 63.0));
  const Model model = MakeModel(variances, 48, 1.6);
  SearchOptions options;
  options.gap = 0;
  options.time_limit_seconds = 1e-9;
  const SearchResult hurried = *Solve(model, options);
  EXPECT_EQ(hurried.status, SearchStatus::kTimeLimit);
  EXPECT_LE(hurried.lower_bound, hurried.objective);
  EXPECT_GE(hurried.lower_bound, 0);
  options.gap = 0.02;
  options.time_limit_seconds = 100;
  const SearchResult calm = *Solve(model, options);
  EXPECT_THAT(calm.status, testing::AnyOf(SearchStatus::kWithinGap, SearchStatus::kOptimal));
  EXPECT_LE(calm.gap(), 0.02);
  EXPECT_LE(hurried.lower_bound, calm.objective);
  EXPECT_LE(calm.lower_bound, hurried.objective);
}

TEST(Solve, CanBeInterrupted) {
  const Model model = MakeModel({0.5, 1.1, 1.5, 2.5}, 32, 1.6);
  SearchOptions options;
  options.gap = 0;
  options.interrupted = [] { return true; };
  const SearchResult result = *Solve(model, options);
  EXPECT_EQ(result.status, SearchStatus::kInterrupted);
  EXPECT_GT(result.plan.size(), 0);
}

// Whatever it was doing: blocks, their borders and what they miss of each other are looked at in
// different places.
TEST(Solve, CanBeInterruptedAtAnyMoment) {
  const Model model = MakeModel({0.6, 1.1, 1.5, 2.2}, 40, 1.6);
  for (int blocks : {1, 3, 25}) {
    const SearchResult best = Exact(model, blocks);
    ASSERT_EQ(best.status, SearchStatus::kOptimal);
    int asked = 0, early = 0;
    for (int most = 0;; most += 1 + most / 8) {
      asked = 0;
      SearchOptions options;
      options.gap = 0;
      options.student_steps = blocks;
      options.threads = 1;
      options.interrupted = [&] { return ++asked > most; };
      const SearchResult result = *Solve(model, options);
      EXPECT_EQ(result.plan.student_steps(), blocks);
      EXPECT_LE(best.lower_bound, result.objective);
      EXPECT_LE(result.lower_bound, best.objective);
      if (result.status == SearchStatus::kOptimal) break;
      ASSERT_EQ(result.status, SearchStatus::kInterrupted);
      ++early;
    }
    EXPECT_GT(early, 10) << blocks << " blocks";
  }
}

// As many blocks as steps, which is one plan: known at once, whatever the time.
TEST(Solve, AThousandStepsOfAThousandNeedNoSearch) {
  SearchOptions options;
  options.student_steps = 1000;
  options.time_limit_seconds = 1e-9;
  const SearchResult result = *Solve(MakeModel({0.5, 0.9, 1.05, 1.5}, 1000, 6.4), options);
  EXPECT_EQ(result.status, SearchStatus::kOptimal);
  EXPECT_EQ(result.plan.size(), 0);
  EXPECT_EQ(result.plan.student_steps(), 1000);
}

TEST(Solve, TheAnswerDoesNotDependOnThreads) {
  std::vector<double> variances;
  for (int k = 0; k < 40; ++k) variances.push_back(0.3 * std::pow(10.0, k / 39.0));
  const Model model = MakeModel(variances, 24, 1.6);
  SearchOptions options;
  options.threads = 1;
  const SearchResult one = *Solve(model, options);
  options.threads = 3;
  const SearchResult three = *Solve(model, options);
  EXPECT_EQ(one.plan, three.plan);
  EXPECT_EQ(one.lower_bound, three.lower_bound);
  EXPECT_EQ(one.status, three.status);
}

TEST(Solve, WeightsOfZeroLeaveDimensionsOut) {
  ModelSpec spec;
  spec.schedule = CosineSchedule(8);
  spec.variances = {0.5, 2.5};
  spec.weights = {0, 0};
  spec.budget = Budget::Flow(1);
  const SearchResult nothing = Exact(*Model::Create(spec));
  EXPECT_EQ(nothing.objective, 0);
  EXPECT_EQ(nothing.lower_bound, 0);
  EXPECT_EQ(nothing.gap(), 0);
  EXPECT_EQ(nothing.status, SearchStatus::kOptimal);
}

TEST(Solve, RefusesOptionsWithoutMeaning) {
  const Model model = MakeModel({0.5}, 4, 1);
  SearchOptions options;
  options.student_steps = 5;
  EXPECT_THAT(Solve(model, options).status().message(),
              testing::HasSubstr("student steps is 5, expected 1..4"));
  options = {};
  options.gap = -1;
  EXPECT_THAT(Solve(model, options).status().message(), testing::HasSubstr("gap is -1"));
  options = {};
  options.gap = std::nan("");
  EXPECT_FALSE(Solve(model, options).ok());
  options = {};
  options.time_limit_seconds = 0;
  EXPECT_THAT(Solve(model, options).status().message(), testing::HasSubstr("time limit is 0"));
}

}  // namespace
}  // namespace mergeplan
