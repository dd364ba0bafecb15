#include "adapters/runtime/arguments.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "planner/operators/canonical.h"
#include "planner/schedule/schedule.h"

namespace mergeplan {
namespace {

using ::testing::HasSubstr;

DistillArguments Strategy4() {
  DistillArguments a;
  a.strategy = "boot";
  a.schedule = "cosine";
  a.teacher_steps = 4;
  a.lr = 0.05;
  a.iterations = 10;
  a.teacher = "analytic:spectrum.toml";
  a.output = "run";
  return a;
}

PlanDocument Document() {
  PlanDocument d;
  const Schedule schedule = CosineSchedule(4);
  d.schedule_spec = "cosine";
  d.alpha = schedule.alpha;
  d.sigma = schedule.sigma;
  d.basis = "pca";
  d.variances = {0.5, 2.0};
  d.budget = Budget::Sgd(0.05, 10, 64);
  d.plan = *CanonicalPlan(Strategy::kBoot, 4);
  return d;
}

void ExpectMisuse(const absl::Status& status, const std::string& text) {
  EXPECT_TRUE(IsMisuse(status)) << status;
  EXPECT_THAT(status.message(), HasSubstr(text));
}

TEST(CheckArguments, NamesWhatIsMissingOrContradicts) {
  EXPECT_TRUE(CheckArguments(Strategy4()).ok());
  const auto without = [](const std::function<void(DistillArguments&)>& change) {
    DistillArguments a = Strategy4();
    change(a);
    return CheckArguments(a);
  };
  ExpectMisuse(without([](auto& a) { a.output.clear(); }), "-o");
  ExpectMisuse(without([](auto& a) { a.plan = "plan.toml"; }), "give one of them");
  ExpectMisuse(without([](auto& a) { a.strategy.reset(); }), "--plan or --strategy");
  ExpectMisuse(without([](auto& a) { a.teacher.reset(); }), "--teacher");
  ExpectMisuse(without([](auto& a) { a.schedule.reset(); }), "--schedule");
  ExpectMisuse(without([](auto& a) { a.lr.reset(); }), "--lr");
  ExpectMisuse(without([](auto& a) { a.iterations.reset(); }), "--iterations");
  ExpectMisuse(without([](auto& a) { a.batch = 0; }), "--batch 0");
  ExpectMisuse(without([](auto& a) { a.seed = -1; }), "--seed -1");
  ExpectMisuse(without([](auto& a) { a.threads = -2; }), "--threads -2");
  ExpectMisuse(without([](auto& a) { a.parameters = {"x"}; }), "NAME=VALUE");
  ExpectMisuse(without([](auto& a) { a.parameters = {"x=1", "x=2"}; }), "twice");
  // A run that is resumed knows all of it.
  DistillArguments resume;
  resume.resume = true;
  resume.output = "run";
  EXPECT_TRUE(CheckArguments(resume).ok());
}

TEST(ParseTeacher, SaysWhichKindsThereAre) {
  EXPECT_EQ(ParseTeacher("analytic:a:b.toml")->path, "a:b.toml");
  EXPECT_EQ(ParseTeacher("mixture:b.toml")->kind, "mixture");
  EXPECT_TRUE(IsNetwork(*ParseTeacher("unet:folder")));
  EXPECT_FALSE(IsNetwork(*ParseTeacher("analytic:s.toml")));
  for (const char* teacher : {"vae:dir", "network:m.ts", "s.toml"}) {
    ExpectMisuse(ParseTeacher(teacher).status(), "this version has: analytic");
    ExpectMisuse(ParseTeacher(teacher).status(), teacher);
  }
  ExpectMisuse(ParseTeacher("analytic:").status(), "no path");
}

TEST(CheckAgainstPlan, TakesTheSameAndRefusesTheRest) {
  const PlanDocument document = Document();
  DistillArguments none;
  EXPECT_TRUE(CheckAgainstPlan(none, document, "plan.toml").ok());
  DistillArguments same = Strategy4();
  same.init = "child";
  same.reference = "surrogate";
  same.student_steps = 1;
  same.basis = "pca";
  same.feature_norm = 1;
  EXPECT_TRUE(CheckAgainstPlan(same, document, "plan.toml").ok());

  const auto with = [&](const std::function<void(DistillArguments&)>& change) {
    DistillArguments a;
    change(a);
    return CheckAgainstPlan(a, document, "plan.toml");
  };
  ExpectMisuse(with([](auto& a) { a.lr = 0.051; }), "--lr 0.051");
  ExpectMisuse(with([](auto& a) { a.iterations = 11; }), "--iterations 11");
  ExpectMisuse(with([](auto& a) { a.init = "jump"; }), "--init jump");
  ExpectMisuse(with([](auto& a) { a.init = "jmup"; }), "jmup");
  ExpectMisuse(with([](auto& a) { a.teacher_steps = 5; }), "--teacher-steps 5");
  ExpectMisuse(with([](auto& a) { a.student_steps = 2; }), "--student-steps 2");
  ExpectMisuse(with([](auto& a) { a.schedule = "sigmoid"; }), "--schedule sigmoid");
  ExpectMisuse(with([](auto& a) { a.reference = "data"; }), "--reference data");
  ExpectMisuse(with([](auto& a) { a.basis = "diagonal"; }), "--basis diagonal");
  ExpectMisuse(with([](auto& a) { a.feature_norm = 32; }), "--feature-norm 32");
  // Another batch moves the spread only.
  EXPECT_TRUE(with([](auto& a) { a.batch = 128; }).ok());

  PlanDocument flow = document;
  flow.budget = Budget::Flow(1.6);
  ExpectMisuse(CheckAgainstPlan(none, flow, "plan.toml"), "--train-time 1.6");
}

}  // namespace
}  // namespace mergeplan
