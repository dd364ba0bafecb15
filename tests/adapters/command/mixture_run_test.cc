// `mergeplan distill --teacher mixture:...`: its folder, its figures, going on.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "adapters/experts/operators.h"
#include "planner/mixture/mixture.h"
#include "planner/mixture/mixture_io.h"
#include "planner/plan/io/document.h"
#include "planner/runs/result_file.h"
#include "planner/runs/run_info.h"
#include "tests/adapters/command/distill_program.h"

namespace mergeplan {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using Json = nlohmann::json;

class MixtureRun : public Distill {
 protected:
  void SetUp() override {
    const auto circle = CircleMixture(3, 2.0, 0.3);
    ASSERT_TRUE(circle.ok()) << circle.status();
    ASSERT_TRUE(WriteMixture(*circle, File("a mixture.toml")).ok());
  }
  std::vector<std::string> Modes(const std::string& run,
                                 const std::vector<std::string>& more = {}) const {
    std::vector<std::string> a = {"distill",
                                  "--teacher",
                                  "mixture:" + File("a mixture.toml"),
                                  "--batch",
                                  "256",
                                  "--iterations",
                                  "60",
                                  "--fit-iterations",
                                  "200",
                                  "--hidden",
                                  "16",
                                  "--experts",
                                  "3",
                                  "--lr",
                                  "0.01",
                                  "--quiet",
                                  "-o",
                                  File(run)};
    a.insert(a.end(), more.begin(), more.end());
    return a;
  }
  static std::vector<std::string> Boot(int steps) {
    return {"--strategy", "boot", "--schedule", "cosine", "--teacher-steps", std::to_string(steps)};
  }
};

TEST_F(MixtureRun, LeavesAFolderThatSaysAllOfIt) {
  std::vector<std::string> more = Boot(4);
  more.insert(more.end(), {"--json", "--student-steps", "2"});
  const Outcome outcome = Run(Modes("run", more));
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Json json = Json::parse(outcome.out);
  EXPECT_EQ(json["status"], "finished");
  EXPECT_EQ(json["reference"], "teacher");
  EXPECT_GT(json["achieved_standard_error"], 0);

  const auto info = ReadRunInfo(File("run") + "/run.toml");
  ASSERT_TRUE(info.ok()) << info.status();
  EXPECT_EQ(info->teacher, "mixture");
  EXPECT_EQ(info->teacher_file, File("a mixture.toml"));
  EXPECT_EQ(info->prediction, "moments");
  EXPECT_EQ(info->training.at("hidden"), "16");
  const auto result = ReadRunResult(File("run"));
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->summary.achieved, json["achieved_error"]);
  EXPECT_TRUE(std::isnan(result->achieved_surrogate));
  EXPECT_EQ(result->summary.updates, 200 + 2 * 60);
  ASSERT_EQ(result->merges.size(), 2u);
  for (const MergeRecord& merge : result->merges) {
    EXPECT_LT(merge.final_loss, merge.initial_loss);
    EXPECT_GT(merge.standard_error.value_or(0), 0);
  }
  EXPECT_EQ(Array("run", "block_range"), (std::vector<double>{1, 2, 3, 4}));
  EXPECT_EQ(Array("run", "block_trained"), (std::vector<double>{1, 1}));

  // What the arrays hold is the student that was measured: its samples come out again.
  const std::vector<double> shape = Array("run", "student_shape");
  experts::NetworkShape net;
  net.dimensions = static_cast<int>(shape[0]);
  net.experts = static_cast<int>(shape[1]);
  net.hidden = static_cast<int>(shape[2]);
  net.embedding = static_cast<int>(shape[3]);
  const std::vector<double> all = Array("run", "parameters");
  const auto n = static_cast<std::ptrdiff_t>(net.parameters());
  ASSERT_EQ(static_cast<std::ptrdiff_t>(all.size()), 2 * n);
  std::vector<experts::OperatorPointer> parts;
  for (const int block : {1, 0}) {
    const double level = block == 1 ? 4 : 2;
    parts.push_back(experts::MakeStudent(
        net, level / 4, std::vector<double>(all.begin() + block * n, all.begin() + (block + 1) * n),
        experts::Precision::kFloat32));
  }
  const std::vector<double> samples = Array("run", "samples");
  const std::vector<double> teacher = Array("run", "teacher_samples");
  ASSERT_EQ(samples.size(), 2048u);
  ASSERT_EQ(teacher.size(), 2048u);
  const experts::ErrorEstimate error = experts::SquaredDistance(samples, teacher, 2);
  EXPECT_NEAR(error.mean, result->summary.achieved,
              6 * (error.standard_error + *result->summary.standard_error));
  EXPECT_EQ(experts::MakeComposition(parts)->teacher_steps(), 0);
}

TEST_F(MixtureRun, BenchAndDistillTrainTheSameStudent) {
  ASSERT_EQ(Run(Modes("run", Boot(4))).code, 0);
  std::vector<std::string> bench = {
      "bench",  "--strategies", "boot",   "--trials",        "1", "--budget", "per-merge",
      "--json", "--schedule",   "cosine", "--teacher-steps", "4"};
  std::vector<std::string> common = Modes("run");
  common.erase(common.begin());
  common.resize(common.size() - 2);  // -o RUN
  bench.insert(bench.end(), common.begin(), common.end());
  const Outcome outcome = Run(bench);
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(Json::parse(outcome.out)["rows"][0]["achieved_error"]["mean"],
            ReadRunResult(File("run"))->summary.achieved);
}

TEST_F(MixtureRun, OneStepIsTheFit) {
  ASSERT_EQ(Run(Modes("run", Boot(1))).code, 0);
  const auto result = ReadRunResult(File("run"));
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_GT(result->summary.achieved, 0);
  EXPECT_LT(result->summary.achieved, 0.1);
  EXPECT_EQ(Array("run", "block_trained"), std::vector<double>{1});
}

TEST_F(MixtureRun, PlanFilesAreExecuted) {
  ASSERT_EQ(Run(Modes("first", Boot(4))).code, 0);
  const std::string plan = File("first") + "/plan.toml";
  const Outcome same = Run(Modes("second", {"--plan", plan}));
  ASSERT_EQ(same.code, 0) << same.err;
  EXPECT_EQ(Array("first", "parameters"), Array("second", "parameters"));
  EXPECT_EQ(ReadRunInfo(File("second") + "/run.toml")->strategy, "dp_custom");
  for (const auto& [option, value] :
       {std::pair{"--init", "teacher"}, {"--train-time", "1.5"}, {"--schedule", "ddpm-linear"}}) {
    const Outcome other = Run(Modes("third", {"--plan", plan, option, value}));
    EXPECT_EQ(other.code, 2);
    EXPECT_THAT(other.err, HasSubstr(std::string(option) + " " + value));
    EXPECT_FALSE(std::filesystem::exists(File("third")));
  }
}

TEST_F(MixtureRun, SaysThatThereIsNoCudaDevice) {
  if (std::filesystem::exists("/dev/nvidia0")) GTEST_SKIP() << "this machine has a CUDA device";
  std::vector<std::string> more = Boot(4);
  more.insert(more.end(), {"--device", "cuda"});
  const Outcome outcome = Run(Modes("run", more));
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.err, AllOf(HasSubstr("--device 'cuda'"), HasSubstr("--device cpu")));
  EXPECT_FALSE(std::filesystem::exists(File("run")));
}

TEST_F(MixtureRun, WrongOptionsAreMisuse) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases = {
      {{"--reference", "data"}, "only the teacher can be the reference"},
      {{"--device", "gpu"}, "--device 'gpu': expected cpu, cuda or cuda:N"},
      {{"--feature-norm", "2"}, "--feature-norm: means nothing for a mixture"},
      {{"--student", "step"}, "--student: the students of a mixture have no such option"},
      {{"--beta1", "1.5"}, "--optimizer: "},
      {{"--eps", "nan"}, "--eps nan: expected a finite number"},
      {{"--dtype", "float16"}, "--dtype"},
  };
  for (const auto& [options, message] : cases) {
    std::vector<std::string> more = Boot(4);
    more.insert(more.end(), options.begin(), options.end());
    const Outcome outcome = Run(Modes("run", more));
    EXPECT_EQ(outcome.code, 2) << message;
    EXPECT_THAT(outcome.err, AllOf(HasSubstr("mergeplan distill: "), HasSubstr(message)));
    EXPECT_FALSE(std::filesystem::exists(File("run")));
  }
  std::vector<std::string> none = Modes("run", Boot(4));
  none[2] = "mixture:" + File("none.toml");
  EXPECT_EQ(Run(none).code, 1);
}

TEST_F(MixtureRun, WhatIsResumedMustBeTheSame) {
  ASSERT_EQ(Run(Modes("run", Boot(4))).code, 0);
  const auto resume = [&](const std::vector<std::string>& more) {
    std::vector<std::string> a = {"distill", "--resume", "-o", File("run"), "--quiet"};
    a.insert(a.end(), more.begin(), more.end());
    return Run(a);
  };
  EXPECT_EQ(resume({}).code, 0);
  EXPECT_EQ(resume({"--hidden", "16", "--lr", "1e-2", "--seed", "0"}).code, 0);
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases = {
      {{"--hidden", "17"}, "--hidden 17: the run in"},
      {{"--lr", "0.02"}, "--lr 0.02: the run in"},
      {{"--iterations", "61"}, "--iterations 61"},
      {{"--optimizer", "sgd"}, "--optimizer sgd: the run in"},
      {{"--batch", "255"}, "--batch 255"},
      {{"--train-time", "2"}, "--train-time 2"},
      {{"--teacher", "analytic:" + File("a mixture.toml")}, "has mixture:"},
  };
  for (const auto& [more, message] : cases) {
    const Outcome outcome = resume(more);
    EXPECT_EQ(outcome.code, 2) << message;
    EXPECT_THAT(outcome.err, HasSubstr(message));
  }
  // Another mixture in the old one's place.
  ASSERT_TRUE(WriteMixture(*CircleMixture(3, 2.0, 0.31), File("a mixture.toml")).ok());
  const Outcome other = resume({});
  EXPECT_EQ(other.code, 1);
  EXPECT_THAT(other.err, AllOf(HasSubstr("is another mixture"), HasSubstr("by --teacher")));
}

}  // namespace
}  // namespace mergeplan
