// The program mergeplan-torch as `mergeplan distill` runs it.
#include <dlfcn.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "adapters/cases/gaussian_result.h"
#include "adapters/command/program.h"
#include "adapters/runtime/run_folder.h"
#include "planner/base/file.h"
#include "planner/data/npz.h"
#include "planner/plan/io/document.h"
#include "planner/spectrum/spectrum.h"
#include "tests/adapters/command/distill_program.h"
#include "tests/adapters/support.h"

namespace mergeplan {
namespace {

using ::mergeplan::testing::LogSpaced;
using ::mergeplan::testing::MakeSpectrum;
using ::mergeplan::testing::TemporaryFolder;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using Clock = std::chrono::steady_clock;

TEST_F(Distill, SpeaksAsMergeplan) {
  const Outcome help = Run({"distill", "--help"});
  EXPECT_EQ(help.code, 0);
  EXPECT_THAT(help.out, AllOf(HasSubstr("Usage: mergeplan distill"), HasSubstr("Example:"),
                              HasSubstr("--resume"), Not(HasSubstr("mergeplan-torch"))));
  Child version(folder_, {"--version"});
  EXPECT_EQ(version.Wait(), 0);
  EXPECT_THAT(version.out(), HasSubstr("mergeplan-torch"));
  EXPECT_EQ(Run({"distil"}).code, 2);
  const Outcome unknown = Run(Small("boot", "run", {"--speed", "9"}));
  EXPECT_EQ(unknown.code, 2);
  EXPECT_THAT(unknown.err, HasSubstr("--speed"));
}

TEST_F(Distill, HelpGoesOnWithTheParametersOfAStrategy) {
  const Outcome help = Run({"distill", "--strategy", "progressive", "--help"});
  EXPECT_EQ(help.code, 0);
  EXPECT_THAT(help.out, AllOf(HasSubstr("Usage: mergeplan distill"),
                              HasSubstr("--set factor (an integer from 2 to 1000000, default")));
  EXPECT_THAT(Run({"distill", "--help", "--strategy", "vanilla"}).out,
              HasSubstr("has no parameters of its own"));
  const Outcome unknown = Run({"distill", "--strategy", "nope", "--help"});
  EXPECT_EQ(unknown.code, 2);
  EXPECT_THAT(unknown.err, HasSubstr("--strategy: plugin nope: not found"));
}

// Said from the manifest: there is not even a library.
TEST_F(Distill, APluginThatNeedsAnotherTeacherIsRefused) {
  ASSERT_TRUE(std::filesystem::create_directory(File("plugins")));
  std::ofstream(File("plugins/needy.toml"))
      << "format = 1\nname = \"needy\"\nversion = \"1\"\ndescription = \"d\"\n"
         "library = \"needy.so\"\nabi_major = 1\nabi_minor = 0\n"
         "teacher_needs = [\"gives-gradients\", \"has-spectrum\"]\n";
  const Outcome outcome = Run(Small("needy", "run", {"--plugin-dir", File("plugins")}));
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.err, HasSubstr("plugin needy needs a teacher with gives-gradients, "
                                     "has-spectrum; this one has predicts-x0, data-free, "
                                     "has-spectrum and lacks gives-gradients"));
  EXPECT_FALSE(std::filesystem::exists(File("run/run.toml")));
}

TEST_F(Distill, RunsEveryStrategy) {
  for (const std::string strategy : {"vanilla", "progressive", "boot", "consistency", "greedy"}) {
    const Outcome outcome = Run(Small(strategy, strategy));
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_THAT(outcome.out, AllOf(HasSubstr("predicted error"), HasSubstr(strategy)));
    EXPECT_EQ(outcome.err, "");
    const auto info = ReadRunInfo(File(strategy) + "/run.toml");
    ASSERT_TRUE(info.ok()) << info.status();
    EXPECT_EQ(info->status, RunStatus::kFinished);
    EXPECT_EQ(info->strategy, strategy);
    EXPECT_EQ(info->basis, "pca");
    const auto plan = ReadPlan(File(strategy) + "/plan.toml");
    ASSERT_TRUE(plan.ok()) << plan.status();
    EXPECT_EQ(plan->plan.size(), strategy == "vanilla" ? 1 : 5);
    EXPECT_EQ(Array(strategy, "value").size(), 6u);
    EXPECT_EQ(Array(strategy, "merge_value").size(), 6u * plan->plan.size());
    EXPECT_EQ(Array(strategy, "samples").size(), 16u * 6u);
    const auto result = ReadRunResult(File(strategy));
    ASSERT_TRUE(result.ok()) << result.status();
    const RunSummary* summary = &result->summary;
    EXPECT_EQ(result->merges.size(), static_cast<size_t>(plan->plan.size()));
    EXPECT_EQ(summary->merges, plan->plan.size());
    EXPECT_EQ(summary->updates, 40 * plan->plan.size());
    // The two figures are of one size: what separates them is the noise of 40 batches.
    EXPECT_NEAR(summary->achieved, summary->predicted, 0.5 * summary->predicted);
    EXPECT_NE(summary->achieved, summary->predicted);
    // The achieved error is that of the operators in the file.
    const std::vector<double> value = Array(strategy, "value"), tau = Array(strategy, "tau");
    double error = 0;
    for (size_t k = 0; k < value.size(); ++k) error += (tau[k] - value[k]) * (tau[k] - value[k]);
    EXPECT_NEAR(error, summary->achieved, 1e-12);
  }
}

TEST_F(Distill, PrintsJson) {
  const Outcome outcome = Run(Small("progressive", "run", {"--json", "--student-steps", "2"}));
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const auto object = nlohmann::json::parse(outcome.out);
  EXPECT_EQ(object["status"], "finished");
  EXPECT_EQ(object["strategy"], "progressive");
  EXPECT_EQ(object["merges_trained"], 4);
  EXPECT_GT(object["predicted_error"].get<double>(), 0);
  EXPECT_GT(object["achieved_error"].get<double>(), 0);
}

TEST_F(Distill, ADamagedResultIsMadeAgain) {
  ASSERT_EQ(Run(Small("boot", "run")).code, 0);
  ASSERT_EQ(Run(Small("boot", "twin")).code, 0);
  for (const char* lost : {"result.npz", "result.toml"}) {
    ASSERT_TRUE(std::filesystem::remove(File("run") + "/" + lost));
    const Outcome again = Run({"distill", "--resume", "--quiet", "-o", File("run")});
    ASSERT_EQ(again.code, 0) << again.err;
    EXPECT_THAT(again.err, HasSubstr(std::string(lost)));
    ExpectSameResult("run", "twin");
  }
  ASSERT_TRUE(WriteFileAtomically(File("run") + "/result.npz", "half").ok());
  ASSERT_EQ(Run({"distill", "--resume", "--quiet", "-o", File("run")}).code, 0);
  ExpectSameResult("run", "twin");
}

TEST_F(Distill, HalfWrittenFilesDoNotBlockAFolder) {
  std::filesystem::create_directory(File("run"));
  ASSERT_TRUE(WriteFileAtomically(File("run") + "/run.toml.tmp-12-0", "half").ok());
  const Outcome outcome = Run(Small("boot", "run"));
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_FALSE(std::filesystem::exists(File("run") + "/run.toml.tmp-12-0"));
}

TEST_F(Distill, NumbersThatDoNotFitAreRefusedNotClamped) {
  for (const std::vector<std::string>& more :
       {std::vector<std::string>{"--seed", "18446744073709551616"},
        std::vector<std::string>{"--threads", "1000"}, std::vector<std::string>{"--batch", "0"},
        std::vector<std::string>{"--batch", "2147483648"},
        std::vector<std::string>{"--student-steps", "-1"}}) {
    const Outcome outcome = Run(Small("boot", "run", more));
    EXPECT_EQ(outcome.code, 2);
    EXPECT_THAT(outcome.err, AllOf(HasSubstr(more[0]), HasSubstr("not in range")));
  }
}

TEST_F(Distill, HandlesASingleStepAndFloat32) {
  ASSERT_EQ(Run({"distill", "--strategy", "boot", "--teacher-steps", "1", "--schedule", "cosine",
                 "--lr", "0.05", "--iterations", "10", "--teacher", Teacher(), "-o", File("one")})
                .code,
            0);
  EXPECT_TRUE(Array("one", "merge_value").empty());
  ASSERT_EQ(Run(Small("boot", "double")).code, 0);
  ASSERT_EQ(Run(Small("boot", "float", {"--dtype", "float32"})).code, 0);
  const std::vector<double> a = Array("double", "value"), b = Array("float", "value");
  for (size_t k = 0; k < a.size(); ++k) EXPECT_NEAR(a[k], b[k], 1e-5);
  EXPECT_NE(a, b);
}

TEST_F(Distill, TheSeedDecidesAndTheThreadsDoNot) {
  ASSERT_EQ(Run(Small("boot", "a")).code, 0);
  ASSERT_EQ(Run(Small("boot", "b", {"--threads", "1"})).code, 0);
  ASSERT_EQ(Run(Small("boot", "c", {"--seed", "1"})).code, 0);
  ExpectSameResult("a", "b");
  EXPECT_NE(Array("a", "value"), Array("c", "value"));
}

TEST_F(Distill, APlanIsExecutedByTheCustomPlugin) {
  ASSERT_EQ(Run(Small("progressive", "made")).code, 0);
  const std::string plan = File("made") + "/plan.toml";
  const auto with_plan = [&](const std::string& run, const std::vector<std::string>& more) {
    std::vector<std::string> a = {"distill", "--plan",  plan, "--teacher",
                                  Teacher(), "--quiet", "-o", File(run)};
    a.insert(a.end(), more.begin(), more.end());
    return Run(a);
  };
  const Outcome outcome = with_plan("planned", {"--lr", "0.05", "--init", "child"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("dp_custom"));
  ExpectSameResult("made", "planned");

  for (const std::vector<std::string>& more : {std::vector<std::string>{"--lr", "0.06"},
                                               {"--iterations", "41"},
                                               {"--init", "jump"},
                                               {"--schedule", "sigmoid"},
                                               {"--teacher-steps", "7"},
                                               {"--set", "plan=x"},
                                               {"--strategy", "boot"}}) {
    const Outcome refused = with_plan("refused", more);
    EXPECT_EQ(refused.code, 2) << more[0];
    EXPECT_THAT(refused.err, HasSubstr(more[0]));
    EXPECT_FALSE(std::filesystem::exists(File("refused")));
  }

  ASSERT_TRUE(WriteSpectrum(MakeSpectrum(LogSpaced(0.1, 4.1, 6)), File("spectrum.toml")).ok());
  const Outcome other = with_plan("refused", {});
  EXPECT_EQ(other.code, 1);
  EXPECT_THAT(other.err, AllOf(HasSubstr("other variances"), HasSubstr("spectrum.toml")));
  ASSERT_TRUE(WriteSpectrum(MakeSpectrum(LogSpaced(0.1, 4.0, 5)), File("spectrum.toml")).ok());
  const Outcome smaller = with_plan("refused", {});
  EXPECT_EQ(smaller.code, 1);
  EXPECT_THAT(smaller.err, HasSubstr("6 dimensions"));
}

TEST_F(Distill, RefusesWhatMakesNoSense) {
  const auto expect = [&](const std::vector<std::string>& more, int code, const std::string& text) {
    const Outcome outcome = Run(Small("boot", "refused", more));
    EXPECT_EQ(outcome.code, code) << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr(text));
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
    EXPECT_FALSE(std::filesystem::exists(File("refused")));
  };
  // Options that Small sets itself; none may be given twice.
  const auto full = [&](const std::string& lr, const std::string& teacher,
                        const std::string& strategy, const std::string& schedule) {
    return Run({"distill", "--strategy", strategy, "--teacher-steps", "6", "--schedule", schedule,
                "--lr", lr, "--iterations", "40", "--teacher", teacher, "-o", File("refused")});
  };
  const Outcome rate = full("0.2", Teacher(), "boot", "cosine");
  EXPECT_EQ(rate.code, 2);
  EXPECT_THAT(rate.err, HasSubstr("largest usable rate"));
  const Outcome kind = full("0.05", "vae:model", "boot", "cosine");
  EXPECT_EQ(kind.code, 2);
  EXPECT_THAT(kind.err, HasSubstr("this version has: analytic"));
  EXPECT_EQ(full("0.05", "analytic:" + File("none.toml"), "boot", "cosine").code, 1);
  const Outcome plugin = full("0.05", Teacher(), "boots", "cosine");
  for (const char* lr : {"0", "nan", "-1", "1e999", "fast"}) {
    const Outcome wrong = full(lr, Teacher(), "boot", "cosine");
    EXPECT_EQ(wrong.code, 2);
    EXPECT_THAT(wrong.err, AllOf(HasSubstr("--lr: \"" + std::string(lr) + "\" is "),
                                 HasSubstr("expected a positive, finite number")));
  }
  EXPECT_EQ(plugin.code, 2);
  EXPECT_THAT(plugin.err, HasSubstr("--strategy: plugin boots: not found; expected one of boot"));
  EXPECT_EQ(full("0.05", Teacher(), File("none.so"), "cosine").code, 1);
  const Outcome nameless = full("0.05", Teacher(), "", "cosine");
  EXPECT_EQ(nameless.code, 2);
  EXPECT_THAT(nameless.err, HasSubstr("--strategy: is empty"));
  const Outcome file = Run(Small("boot", "spectrum.toml"));
  EXPECT_EQ(file.code, 2);
  EXPECT_THAT(file.err, HasSubstr("is a file, expected the folder of a run"));
  std::filesystem::copy_file(File("spectrum.toml"), File("caf\xE9.toml"));
  const Outcome odd = full("0.05", "analytic:" + File("caf\xE9.toml"), "boot", "cosine");
  EXPECT_EQ(odd.code, 2);
  EXPECT_THAT(odd.err, AllOf(HasSubstr("--teacher"), HasSubstr("not UTF-8")));
  expect({"--set", "speed=2"}, 2, "--set: plugin boot: unknown parameter \"speed\"");
  expect({"--set", "speed"}, 2, "--set speed: expected NAME=VALUE");
  const Outcome factor = Run(Small("progressive", "refused", {"--set", "factor=1"}));
  EXPECT_EQ(factor.code, 2);
  EXPECT_THAT(factor.err, HasSubstr("--set: plugin progressive: parameter factor: found \"1\""));
  EXPECT_EQ(full("0.05", Teacher(), "boot", "cosin").code, 2);
  expect({"--dtype", "float16"}, 2, "float16");
  expect({"--optimizer", "lion"}, 2, "--optimizer lion: expected one of sgd, adam, adamw");
  expect({"--beta1", "0.9"}, 2, "--beta1 0.9: expected --optimizer adam or adamw");
  expect({"--ema", ""}, 2, "--ema: is empty");
  expect({"--warmup", "41"}, 2, "--warmup 41: expected at most the number of updates, 40");
  expect({"--student", "embedding", "--feature-norm", "1"}, 2, "--feature-norm 1: expected 32");
  expect({"--device", "tpu"}, 2, "tpu");
  expect({"--init", "chidl"}, 2, "chidl");
  expect({"--student-steps", "7"}, 2, "--student-steps 7");
}

TEST_F(Distill, AFolderWhoseNameIsNoUtf8) {
  const Outcome outcome = Run(Small("boot", "caf\xE9", {"--json"}));
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(nlohmann::json::parse(outcome.out)["run"].get<std::string>(),
              HasSubstr("caf\xEF\xBF\xBD"));
  EXPECT_TRUE(ReadRunResult(File("caf\xE9")).ok());
}

// A recipe is in the run's files, and what the linear model does not predict is not printed.
TEST_F(Distill, TrainsByARecipe) {
  const Outcome adam =
      Run(Small("boot", "adam",
                {"--optimizer", "adamw", "--ema", "0.9", "--warmup", "4", "--draws", "chi2"}));
  ASSERT_EQ(adam.code, 0) << adam.err;
  EXPECT_THAT(adam.out, HasSubstr(" - "));
  const auto info = ReadRunInfo(File("adam") + "/run.toml");
  ASSERT_TRUE(info.ok()) << info.status();
  EXPECT_EQ(info->prediction, "none");
  EXPECT_EQ(info->training.at("optimizer"), "adamw");
  EXPECT_EQ(info->training.at("ema"), "0.9");
  EXPECT_EQ(info->training.at("weight-decay"), "0.01");
  const auto result = ReadRunResult(File("adam"));
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->training, info->training);
  EXPECT_EQ(result->training.at("draws"), "chi2");
  EXPECT_TRUE(std::isnan(result->summary.predicted));
  EXPECT_TRUE(std::isnan(result->merges[0].predicted_error));
  EXPECT_GT(result->summary.achieved, 0);
  const Outcome again = Run({"distill", "--resume", "-o", File("adam"), "--json"});
  ASSERT_EQ(again.code, 0) << again.err;
  EXPECT_TRUE(nlohmann::json::parse(again.out)["predicted_error"].is_null());

  const Outcome cosine =
      Run(Small("boot", "cosine", {"--lr-schedule", "cosine", "--batch", "5000"}));
  ASSERT_EQ(cosine.code, 0) << cosine.err;
  EXPECT_EQ(ReadRunInfo(File("cosine") + "/run.toml")->prediction, "mean");
  const auto scheduled = ReadRunResult(File("cosine"));
  ASSERT_TRUE(scheduled.ok());
  EXPECT_NEAR(scheduled->summary.achieved, scheduled->summary.predicted,
              0.1 * scheduled->summary.predicted);
  EXPECT_GT(scheduled->merges[0].effective_time.value_or(0), 0);

  // Sums from their law are another draw of the same law; the plan and the paper's student alike.
  ASSERT_EQ(Run(Small("boot", "samples")).code, 0);
  ASSERT_EQ(Run(Small("boot", "sums", {"--draws", "chi2"})).code, 0);
  EXPECT_EQ(ReadRunInfo(File("sums") + "/run.toml")->prediction, "law");
  EXPECT_NE(Array("sums", "value"), Array("samples", "value"));
  EXPECT_EQ(Array("sums", "predicted"), Array("samples", "predicted"));
  std::vector<std::string> paper = Small("boot", "paper", {"--student", "embedding"});
  *std::find(paper.begin(), paper.end(), "0.05") = "0.0015625";  // 0.05 / 32
  ASSERT_EQ(Run(paper).code, 0);
  const std::vector<double> step = Array("samples", "value"), embedded = Array("paper", "value");
  for (size_t k = 0; k < step.size(); ++k) EXPECT_NEAR(embedded[k], step[k], 1e-12);
}

TEST_F(Distill, ARunWithoutAPartSaysWhatToDo) {
  ASSERT_EQ(Run(Small("progressive", "run", {"--set", "factor=2"})).code, 0);
  const auto resume = [&](const std::vector<std::string>& more) {
    std::vector<std::string> a = {"distill", "--resume", "-o", File("run")};
    a.insert(a.end(), more.begin(), more.end());
    return Run(a);
  };
  EXPECT_EQ(resume({"--set", "factor=2"}).code, 0);
  const Outcome factor = resume({"--set", "factor=3"});
  EXPECT_EQ(factor.code, 2);
  EXPECT_THAT(factor.err, AllOf(HasSubstr("--set factor=3"), HasSubstr("has factor=2")));
  const Outcome speed = resume({"--set", "speed=3"});
  EXPECT_EQ(speed.code, 2);
  EXPECT_THAT(speed.err, AllOf(HasSubstr("--set speed=3"), HasSubstr("no such parameter")));

  std::filesystem::rename(File("run") + "/plan.toml", File("plan.toml"));
  const Outcome plan = resume({});
  EXPECT_EQ(plan.code, 1);
  EXPECT_THAT(plan.err, AllOf(HasSubstr("run/plan.toml"), HasSubstr("bring the file back")));
  std::filesystem::rename(File("plan.toml"), File("run") + "/plan.toml");

  std::filesystem::rename(File("spectrum.toml"), File("moved.toml"));
  const Outcome spectrum = resume({});
  EXPECT_EQ(spectrum.code, 1);
  EXPECT_THAT(spectrum.err,
              AllOf(HasSubstr("spectrum.toml"), HasSubstr("where it is now by --teacher")));
  EXPECT_EQ(resume({"--teacher", "analytic:" + File("moved.toml")}).code, 0);

  std::filesystem::remove(File("run") + "/lock");
  std::filesystem::create_directory(File("run") + "/lock");
  const Outcome lock = resume({});
  EXPECT_EQ(lock.code, 1);
  EXPECT_THAT(lock.err, AllOf(HasSubstr("run/lock"), HasSubstr("remove the folder of that name")));
  std::filesystem::remove(File("run") + "/lock");
  std::filesystem::rename(File("moved.toml"), File("spectrum.toml"));

  // With and without --resume the same is said.
  std::filesystem::remove(File("run") + "/run.toml");
  for (const Outcome& lost : {resume({}), Run(Small("progressive", "run"))}) {
    EXPECT_EQ(lost.code, 2);
    EXPECT_THAT(lost.err, AllOf(HasSubstr("of a run but not its run.toml"),
                                HasSubstr("bring run.toml back, or give another folder")));
  }
}

TEST_F(Distill, SaysThatThereIsNoCudaDevice) {
  if (std::filesystem::exists("/dev/nvidia0")) GTEST_SKIP() << "this machine has a CUDA device";
  Child child(folder_, Small("boot", "run", {"--device", "cuda"}));
  EXPECT_EQ(child.Wait(), 1);
  EXPECT_THAT(child.err(), AllOf(HasSubstr("--device 'cuda'"), HasSubstr("--device cpu")));
}

TEST_F(Distill, AFinishedRunIsNotTouched) {
  ASSERT_EQ(Run(Small("boot", "run")).code, 0);
  const auto before = Contents("run");
  const Outcome again = Run(Small("boot", "run"));
  EXPECT_EQ(again.code, 2);
  EXPECT_THAT(again.err,
              AllOf(HasSubstr("finished run of boot"), HasSubstr("nothing was changed")));
  EXPECT_EQ(Contents("run"), before);
  // --resume has nothing left to do and prints the figures.
  const Outcome resumed = Run({"distill", "--resume", "-o", File("run")});
  EXPECT_EQ(resumed.code, 0) << resumed.err;
  EXPECT_THAT(resumed.out, HasSubstr("boot"));
  EXPECT_EQ(Contents("run"), before);
  EXPECT_EQ(Run({"distill", "--resume", "-o", File("nowhere")}).code, 2);
}

// A BLAS that is loaded before LibTorch would take over its sgemm_ (and break complex vdot).
TEST(Libraries, LibTorchsBlasIsItsOwn) {
  void* sgemm = dlsym(RTLD_DEFAULT, "sgemm_");
  ASSERT_NE(sgemm, nullptr);
  Dl_info info{};
  ASSERT_NE(dladdr(sgemm, &info), 0);
  EXPECT_THAT(info.dli_fname, HasSubstr("libtorch_cpu.so"));
}

TEST(Libraries, TheProgramLoadsNoBlas) {
  // The loader prints what it would load, in order, and stops.
  const TemporaryFolder folder;
  setenv("LD_TRACE_LOADED_OBJECTS", "1", 1);
  Child child(folder, {"--version"});
  unsetenv("LD_TRACE_LOADED_OBJECTS");
  ASSERT_EQ(child.Wait(), 0);
  EXPECT_THAT(child.out(), HasSubstr("libtorch_cpu.so"));
  EXPECT_THAT(child.out(), Not(HasSubstr("not found")));
  for (const char* blas : {"blas", "lapack", "atlas", "libmkl", "libtorch_cuda"}) {
    EXPECT_THAT(child.out(), Not(HasSubstr(blas)));
  }
}

}  // namespace
}  // namespace mergeplan
