#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rapidcheck.h>
#include <chrono>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <limits>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "planner/plan/io/document.h"
#include "tests/planner/plan/io/documents.h"

namespace mergeplan {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// What a document becomes by writing and reading; the empty document where that fails.
PlanDocument Through(const TempFolder& folder, const std::string& name, const PlanDocument& d) {
  const absl::Status written = WritePlan(d, folder.At(name));
  EXPECT_TRUE(written.ok()) << written;
  const auto read = ReadPlan(folder.At(name));
  EXPECT_TRUE(read.ok()) << read.status();
  return read.ok() ? *read : PlanDocument();
}

TEST(RoundTripTest, SmallPlanIsOneFile) {
  const TempFolder folder;
  const PlanDocument d = SmallDocument();
  EXPECT_EQ(Difference(d, Through(folder, "plan.toml", d)), "");
  EXPECT_THAT(folder.Names(), ElementsAre("plan.toml"));
  EXPECT_EQ(Difference(d, Through(folder, "plan.json", d)), "");
  EXPECT_EQ(Difference(d, Through(folder, "other.JSON", d)), "");
  EXPECT_EQ(ReadFile(folder.At("other.JSON"))->front(), '{');
}

TEST(RoundTripTest, OneStepAndNoMerges) {
  const TempFolder folder;
  const auto one = Plan::Create(1, {}, std::vector<Range>{{1, 1}});
  const auto none = Plan::Create(3, {}, std::vector<Range>{{1, 1}, {2, 2}, {3, 3}});
  for (const auto& plan : {one, none}) {
    ASSERT_TRUE(plan.ok());
    const PlanDocument d = Document(*plan, {0.5}, Budget::Flow(1));
    EXPECT_EQ(Difference(d, Through(folder, "plan.toml", d)), "");
    EXPECT_EQ(Difference(d, Through(folder, "plan.json", d)), "");
  }
}

TEST(RoundTripTest, LongArraysStandBesideTheToml) {
  const TempFolder folder;
  const PlanDocument d = LargeDocument(100, 70);
  EXPECT_EQ(Difference(d, Through(folder, "plan.toml", d)), "");
  ASSERT_EQ(folder.Names().size(), 2U);
  const std::string npz = folder.Names()[0];
  EXPECT_THAT(npz, ::testing::MatchesRegex("plan-[0-9a-f]+\\.npz"));
  const std::string text = *ReadFile(folder.At("plan.toml"));
  EXPECT_THAT(text, HasSubstr("file = \"" + npz + "\""));
  EXPECT_THAT(text, HasSubstr("sha256 = \"" + *Sha256OfFile(folder.At(npz)) + "\""));
  EXPECT_THAT(text, HasSubstr("names = [\"variances\", \"alpha\", \"sigma\", \"value\", \"tau\"]"));
  EXPECT_EQ(Difference(d, Through(folder, "plan.json", d)), "");
}

// 64 numbers stand in the TOML, 65 beside it.
TEST(RoundTripTest, TheBorderBetweenInlineAndStored) {
  const TempFolder folder;
  const PlanDocument inside = LargeDocument(63, 64);
  EXPECT_EQ(Difference(inside, Through(folder, "a.toml", inside)), "");
  EXPECT_EQ(folder.Names().size(), 1U);
  const PlanDocument outside = LargeDocument(63, 65);
  EXPECT_EQ(Difference(outside, Through(folder, "b.toml", outside)), "");
  EXPECT_EQ(folder.Names().size(), 3U);
}

TEST(RoundTripTest, ReplacingAPlanLeavesOneNpz) {
  const TempFolder folder;
  const PlanDocument large = LargeDocument(100, 70);
  const PlanDocument other = LargeDocument(90, 80);
  for (const PlanDocument* d : {&large, &other, &other, &large}) {
    EXPECT_EQ(Difference(*d, Through(folder, "plan.toml", *d)), "");
    EXPECT_EQ(folder.Names().size(), 2U);
  }
  // Somebody else's file of a like name stays.
  folder.Write("plan-0123456789ab.npz", "not ours");
  Through(folder, "plan.toml", SmallDocument());
  EXPECT_THAT(folder.Names(), ElementsAre("plan-0123456789ab.npz", "plan.toml"));
}

TEST(RoundTripTest, BootOverAThousandSteps) {
  const TempFolder folder;
  const PlanDocument d = LargeDocument(1000, 3);
  EXPECT_EQ(d.plan.size(), 999);
  EXPECT_EQ(Difference(d, Through(folder, "plan.toml", d)), "");
  EXPECT_EQ(Difference(d, Through(folder, "plan.json", d)), "");
}

TEST(RoundTripTest, ManyDimensions) {
  const TempFolder folder;
  for (const int dimensions : {4096, 4097}) {
    const PlanDocument d = LargeDocument(3, dimensions);
    EXPECT_EQ(Difference(d, Through(folder, "plan.toml", d)), "");
    // Above 4096 JSON leaves out value and tau; the model gives the same ones.
    EXPECT_EQ(Difference(d, Through(folder, "plan.json", d)), "");
  }
}

TEST(RoundTripTest, TheOldPlanMayBeOverwrittenByAnything) {
  const TempFolder folder;
  folder.Write("plan.toml", "no plan at all [");
  const PlanDocument d = SmallDocument();
  EXPECT_EQ(Difference(d, Through(folder, "plan.toml", d)), "");
}

TEST(RoundTripTest, AwkwardNumbers) {
  const TempFolder folder;
  PlanDocument d = SmallDocument();
  const double awkward[] = {1e-320,
                            5e-324,
                            std::numeric_limits<double>::min(),
                            0.1,
                            1.0 / 3,
                            std::nextafter(1.0, 2.0),
                            1e22,
                            123456789012345678.0,
                            0.0,
                            1.7976931348623157e308};
  for (const double number : awkward) {
    for (const char* name : {"plan.toml", "plan.json"}) {
      d.objective_surrogate = d.objective_teacher = d.seconds = number;
      d.value = {number, 1};
      d.tau = {0, number};
      d.weights = {number, 1};
      d.strategies[1].objective = number;
      EXPECT_EQ(Difference(d, Through(folder, name, d)), "") << number << " in " << name;
    }
  }
}

TEST(RoundTripTest, AwkwardTexts) {
  const TempFolder folder;
  PlanDocument d = SmallDocument();
  const std::string awkward =
      std::string("a \"b\" \\c\\ 'd'\n\t\r\x01\x7F é 日本 😀 # = [x]") + '\0' + "y";
  d.schedule_spec = d.input = d.basis = d.guarantee = awkward;
  d.strategies[0].name = awkward;
  d.strategies[1].name = "my.plugin";
  for (const char* name : {"plan.toml", "plan.json"}) {
    EXPECT_EQ(Difference(d, Through(folder, name, d)), "") << name;
  }
}

TEST(RoundTripTest, BytesThatAreNoUtf8AreReplaced) {
  const TempFolder folder;
  PlanDocument d = SmallDocument();
  d.input = "caf\xE9/\xC0\x80/\xED\xA0\x80/\xF5/\xF0\x9F\x98";
  for (const char* name : {"plan.toml", "plan.json"}) {
    const PlanDocument read = Through(folder, name, d);
    EXPECT_THAT(read.input, ::testing::StartsWith("caf\xEF\xBF\xBD/\xEF\xBF\xBD"));
    EXPECT_EQ(read.status, d.status) << "the certificate still holds";
  }
}

TEST(RoundTripTest, WhatTheBudgetDoesNotUseIsCleared) {
  const TempFolder folder;
  PlanDocument d = SmallDocument();
  d.budget.lr = 3;
  d.budget.batch = 17;
  d.input_sha256.clear();
  const PlanDocument read = Through(folder, "plan.toml", d);
  EXPECT_EQ(read.budget.lr, 0);
  EXPECT_EQ(read.budget.batch, 17);
  EXPECT_EQ(read.input_sha256, VariancesHash(d.variances));
  EXPECT_EQ(read.status, "within_gap");
}

TEST(RoundTripTest, NumbersThatAreNotFiniteAreNotWritten) {
  const TempFolder folder;
  const double nan = std::nan("");
  const double inf = std::numeric_limits<double>::infinity();
  const auto refused = [&](const char* key, auto change) {
    for (const char* name : {"plan.toml", "plan.json"}) {
      for (const double number : {nan, inf, -inf}) {
        PlanDocument d = SmallDocument();
        change(d, number);
        const absl::Status status = WritePlan(d, folder.At(name));
        EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << key;
        EXPECT_THAT(std::string(status.message()), HasSubstr(folder.At(name)));
        EXPECT_THAT(std::string(status.message()), HasSubstr(key));
      }
    }
  };
  refused("alpha", [](PlanDocument& d, double x) { d.alpha[2] = x; });
  refused("alpha", [](PlanDocument& d, double x) { d.sigma[2] = x; });
  refused("data_scale", [](PlanDocument& d, double x) { d.data_scale = x; });
  refused("variances", [](PlanDocument& d, double x) {
    d.variances[0] = x;
    d.input_sha256.clear();
  });
  refused("weights", [](PlanDocument& d, double x) { d.weights = {1, x}; });
  refused("train_time", [](PlanDocument& d, double x) { d.budget.train_time = x; });
  refused("lr", [](PlanDocument& d, double x) { d.budget = Budget::Sgd(x, 3); });
  refused("feature_norm", [](PlanDocument& d, double x) { d.budget.feature_norm = x; });
  refused("objective", [](PlanDocument& d, double x) { d.objective = x; });
  refused("objective_surrogate", [](PlanDocument& d, double x) { d.objective_surrogate = x; });
  refused("objective_teacher", [](PlanDocument& d, double x) { d.objective_teacher = x; });
  refused("objective_equal_total_time",
          [](PlanDocument& d, double x) { d.objective_equal_total_time = x; });
  refused("lower_bound", [](PlanDocument& d, double x) { d.lower_bound = x; });
  refused("tolerance", [](PlanDocument& d, double x) { d.tolerance = x; });
  refused("seconds", [](PlanDocument& d, double x) { d.seconds = x; });
  refused("value", [](PlanDocument& d, double x) { d.value[1] = x; });
  refused("tau", [](PlanDocument& d, double x) { d.tau[1] = x; });
  refused("strategies.boot", [](PlanDocument& d, double x) { d.strategies[2].objective = x; });
  refused("strategies.boot",
          [](PlanDocument& d, double x) { d.strategies[2].objective_equal_total_time = x; });
  EXPECT_TRUE(folder.Names().empty());
}

TEST(RoundTripTest, ThePlanIsNotWrittenWhereTheFolderIsMissing) {
  const TempFolder folder;
  for (const char* name : {"no/plan.toml", "no/plan.json"}) {
    const absl::Status status = WritePlan(SmallDocument(), folder.At(name));
    EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
    EXPECT_THAT(std::string(status.message()), HasSubstr(folder.At(name)));
  }
  EXPECT_EQ(ReadPlan(folder.At("none.toml")).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(ReadPlan(folder.At("none.json")).status().code(), absl::StatusCode::kNotFound);
}

// A document with every field drawn at random, as far as the rules of a document allow.
PlanDocument RandomDocument(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  // Any bits that are a finite number >= 0, among them subnormal ones, or a short decimal.
  const auto number = [&]() -> double {
    switch (below(4)) {
      case 0:
        return below(1000) / 100.0;
      case 1:
        return static_cast<double>(random()) * 0x1p-64;
      case 2:
        return static_cast<double>(random() & 0xFFFFFF) * 5e-324;
      default: {
        const std::uint64_t bits = random() & 0x7FEFFFFFFFFFFFFF;
        double out;
        static_assert(sizeof bits == sizeof out);
        std::memcpy(&out, &bits, sizeof out);
        return std::isfinite(out) ? out : 1.5;
      }
    }
  };
  const auto positive = [&] { return std::max(number(), 5e-324); };
  const auto numbers = [&](int n) {
    std::vector<double> out;
    for (int k = 0; k < n; ++k) out.push_back(number());
    return out;
  };
  const auto text = [&] {
    static const std::string kPieces[] = {"a", "Z", "0", "\"", "\\", "\n", "é", "\x01", "#",
                                          "'", "😀", " ", "=",  "]",  "{",  ".", "-",    "/"};
    std::string out;
    for (int k = below(12); k > 0; --k) out += kPieces[below(std::size(kPieces))];
    return out;
  };

  PlanDocument d;
  const int T = 1 + below(below(4) == 0 ? 150 : 20);
  const RandomSpecs specs = RandomPlanSpecs(T, random);
  d.plan = *Plan::Create(T, specs.merges, specs.blocks);
  d.schedule_spec = text();
  d.alpha.push_back(1);
  d.sigma.push_back(0);
  double ratio = 1e3;
  for (int t = 1; t <= T; ++t) {
    ratio *= 0.5 + 0.45 * static_cast<double>(random()) * 0x1p-64;
    d.sigma.push_back(1 / std::hypot(1.0, ratio));
    d.alpha.push_back(ratio / std::hypot(1.0, ratio));
  }
  d.data_scale = positive();
  d.input = text();
  const int dimensions = 1 + below(below(4) == 0 ? 150 : 5);
  d.variances = numbers(dimensions);
  d.input_sha256 = VariancesHash(d.variances);
  d.basis = text();
  if (below(2) == 0) d.weights = numbers(dimensions);
  d.budget = below(2) == 0 ? Budget::Flow(positive())
                           : Budget::Sgd(positive(), 1 + below(1'000'000), 1 + below(500));
  d.budget.feature_norm = positive();
  d.init = static_cast<Init>(below(4));
  d.reference = static_cast<Reference>(below(3));
  d.space = static_cast<Space>(below(2));
  if (below(2) == 0) d.max_merges = d.plan.size() + below(3);
  if (below(2) == 0) d.max_rounds = d.plan.rounds() + below(3);
  d.objective = number();
  d.objective_surrogate = number();
  d.objective_teacher = number();
  d.objective_equal_total_time = number();
  d.tolerance = below(2) == 0 ? 0.0 : number();
  static const char* kStatus[] = {"within_gap", "time_limit", "interrupted", "optimal",
                                  "unchecked"};
  d.status = kStatus[below(5)];
  d.lower_bound = d.status == "optimal"     ? d.objective
                  : d.status == "unchecked" ? 0.0
                                            : d.objective * (below(5) / 4.0);
  d.guarantee = text();
  for (int k = below(5); k > 0; --k) {
    d.strategies.push_back({std::to_string(k) + text(), number(), number(), below(1000)});
    if (below(2) == 0) d.strategies.back().costs = {below(9), below(1000), below(1000)};
  }
  d.value = numbers(dimensions);
  d.tau = numbers(dimensions);
  d.seconds = number();
  return d;
}

TEST(RoundTripTest, RandomDocuments) {
  const TempFolder folder;
  const bool held = rc::check("a document reads back as it was written, in both forms", [&] {
    const PlanDocument d = RandomDocument(*rc::gen::arbitrary<std::uint64_t>());
    for (const char* name : {"plan.toml", "plan.json"}) {
      const absl::Status written = WritePlan(d, folder.At(name));
      if (!written.ok()) RC_FAIL(std::string(written.message()));
      const auto read = ReadPlan(folder.At(name));
      if (!read.ok()) RC_FAIL(std::string(read.status().message()));
      const std::string difference = Difference(d, *read);
      if (!difference.empty()) RC_FAIL(std::string(name) + ": " + difference);
      // Writing what was read gives the same bytes.
      const std::string before = *ReadFile(folder.At(name));
      RC_ASSERT(WritePlan(*read, folder.At(name)).ok());
      RC_ASSERT(*ReadFile(folder.At(name)) == before);
    }
    return true;
  });
  EXPECT_TRUE(held);
}

// A child replaces a plan with its .npz over and over and is killed at a random moment: what is
// there is one of the two plans, whole.
TEST(RoundTripTest, KilledAtAnyMomentThePlanIsWhole) {
  const TempFolder folder;
  const PlanDocument plans[2] = {LargeDocument(100, 5000), LargeDocument(90, 6000)};
  const std::string path = folder.At("plan.toml");
  ASSERT_TRUE(WritePlan(plans[0], path).ok());
  std::mt19937 random(11);
  for (int round = 0; round < 25; ++round) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      for (unsigned k = 1;; ++k) {
        if (!WritePlan(plans[k % 2], path).ok()) ::_exit(1);
      }
    }
    std::this_thread::sleep_for(std::chrono::microseconds(1000 + random() % 30'000));
    ::kill(child, SIGKILL);
    int result = 0;
    ASSERT_EQ(::waitpid(child, &result, 0), child);
    ASSERT_TRUE(WIFSIGNALED(result)) << "the child could not write";
    const auto read = ReadPlan(path);
    ASSERT_TRUE(read.ok()) << read.status();
    const PlanDocument& which = plans[read->plan.teacher_steps() == 100 ? 0 : 1];
    ASSERT_EQ(Difference(which, *read), "");
  }
}

// A reader beside a writer always sees one of the two plans, whole.
TEST(RoundTripTest, ReadingWhileThePlanIsReplaced) {
  const TempFolder folder;
  const PlanDocument plans[2] = {LargeDocument(100, 200), LargeDocument(90, 300)};
  const std::string path = folder.At("plan.toml");
  ASSERT_TRUE(WritePlan(plans[0], path).ok());
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    for (unsigned k = 1;; ++k) {
      if (!WritePlan(plans[k % 2], path).ok()) ::_exit(1);
    }
  }
  for (int k = 0; k < 100; ++k) {
    const auto read = ReadPlan(path);
    EXPECT_TRUE(read.ok()) << read.status();
    if (!read.ok()) break;
    EXPECT_EQ(Difference(plans[read->plan.teacher_steps() == 100 ? 0 : 1], *read), "");
  }
  ::kill(child, SIGKILL);
  int result = 0;
  ASSERT_EQ(::waitpid(child, &result, 0), child);
  EXPECT_TRUE(WIFSIGNALED(result));
}

}  // namespace
}  // namespace mergeplan
