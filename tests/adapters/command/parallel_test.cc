// `mpirun mergeplan-torch distill`: several processes train as one does.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "adapters/network/script.h"
#include "planner/mixture/mixture.h"
#include "planner/mixture/mixture_io.h"
#include "planner/runs/result_file.h"
#include "planner/runs/run_info.h"
#include "tests/adapters/command/distill_program.h"
#include "tests/adapters/network/support.h"

namespace mergeplan {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kMpirun[] = "/usr/bin/mpirun";

class Parallel : public Distill {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(kMpirun)) {
      GTEST_SKIP() << kMpirun << " is missing (Debian: openmpi-bin)";
    }
    if (!std::filesystem::exists(std::filesystem::path(Program()).parent_path() /
                                 "mergeplan-mpi.so")) {
      GTEST_SKIP() << "built without MPI (Debian: libopenmpi-dev)";
    }
    setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 1);
    setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 1);
    Distill::SetUp();
    ASSERT_TRUE(WriteMixture(*CircleMixture(3, 2.0, 0.3), File("mixture.toml")).ok());
  }
  static std::vector<std::string> Mpirun(int ranks, std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(),
                     {kMpirun, "--oversubscribe", "-n", std::to_string(ranks), Program()});
    return arguments;
  }
  Outcome RunRanks(int ranks, const std::vector<std::string>& arguments) {
    Child child(folder_, Mpirun(ranks, arguments), Child::AsIs());
    const int code = child.Wait();
    return {code, child.out(), child.err()};
  }
  std::vector<std::string> Experts(const std::string& run) const {
    return {"distill",
            "--strategy",
            "progressive",
            "--teacher-steps",
            "4",
            "--schedule",
            "cosine",
            "--iterations",
            "40",
            "--fit-iterations",
            "60",
            "--batch",
            "1000",
            "--hidden",
            "16",
            "--experts",
            "3",
            "--dtype",
            "float64",
            "--teacher",
            "mixture:" + File("mixture.toml"),
            "--quiet",
            "-o",
            File(run)};
  }
  void ExpectClose(const std::string& a, const std::string& b, const std::string& name) const {
    const std::vector<double> x = Array(a, name), y = Array(b, name);
    ASSERT_EQ(x.size(), y.size()) << name;
    ASSERT_FALSE(x.empty()) << name;
    double largest = 0, off = 0;
    for (size_t i = 0; i < x.size(); ++i) {
      largest = std::max(largest, std::abs(x[i]));
      off = std::max(off, std::abs(x[i] - y[i]));
    }
    EXPECT_LE(off, 1e-12 * largest) << name;
  }
};

TEST_F(Parallel, LinearStudentsAgreeWithOneProcess) {
  // Batches that ranks share evenly, unevenly, and so that a rank has nothing; every way of
  // drawing.
  const std::vector<std::vector<std::string>> recipes = {
      {"--batch", "64"},
      {"--batch", "2561"},
      {"--batch", "1000"},
      {"--batch", "2"},
      {"--batch", "100", "--optimizer", "adamw", "--ema", "0.9", "--accumulate", "3"},
      {"--batch", "64", "--draws", "fixed"},
      {"--batch", "64", "--draws", "chi2"}};
  int number = 0;
  for (const std::vector<std::string>& recipe : recipes) {
    const std::string run = "run" + std::to_string(number++);
    ASSERT_EQ(Run(Small("progressive", run, recipe)).code, 0) << recipe[1];
    const int ranks = 2 + number % 2;
    const std::string shared = run + "-" + std::to_string(ranks);
    const Outcome outcome = RunRanks(ranks, Small("progressive", shared, recipe));
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    for (const char* name : {"value", "merge_value", "loss"}) ExpectClose(run, shared, name);
    // One of them printed.
    EXPECT_EQ(outcome.out.find("strategy"), outcome.out.rfind("strategy"));
  }
}

TEST_F(Parallel, MixturesOfExpertsAgreeWithOneProcess) {
  ASSERT_EQ(Run(Experts("alone")).code, 0);
  for (const int ranks : {2, 3}) {
    const std::string shared = "shared-" + std::to_string(ranks);
    const Outcome outcome = RunRanks(ranks, Experts(shared));
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    for (const char* name : {"parameters", "loss", "fit_loss", "samples"}) {
      ExpectClose("alone", shared, name);
    }
  }
}

TEST_F(Parallel, NetworksAgreeWithOneProcess) {
  network::Signature signature = network::testing::SmallSignature(2);
  signature.dtype = "float64";
  ASSERT_TRUE(
      network::SaveScript(*network::testing::SmallNetwork(signature, 16, 5), signature, File("net"))
          .ok());
  const auto run = [&](const std::string& name) {
    return std::vector<std::string>{"distill",
                                    "--strategy",
                                    "progressive",
                                    "--teacher-steps",
                                    "4",
                                    "--schedule",
                                    "cosine",
                                    "--iterations",
                                    "20",
                                    "--fit-iterations",
                                    "30",
                                    "--batch",
                                    "31",
                                    "--optimizer",
                                    "sgd",
                                    "--lr",
                                    "0.01",
                                    "--dtype",
                                    "float64",
                                    "--threads",
                                    "1",
                                    "--held-out-rows",
                                    "32",
                                    "--student-network",
                                    "script:" + File("net") + "/model.toml",
                                    "--teacher",
                                    "mixture:" + File("mixture.toml"),
                                    "--quiet",
                                    "-o",
                                    File(name)};
  };
  ASSERT_EQ(Run(run("alone")).code, 0);
  for (const int ranks : {2, 3}) {
    const std::string shared = "shared-" + std::to_string(ranks);
    const Outcome outcome = RunRanks(ranks, run(shared));
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    for (const char* name : {"loss", "block_error", "samples"}) {
      ExpectClose("alone", shared, name);
    }
    const auto calls = [&](const std::string& name) {
      return ReadRunResult(File(name))->summary.teacher_calls;
    };
    EXPECT_EQ(calls("alone"), calls(shared));
  }
}

TEST_F(Parallel, AStoppedRunGoesOnAmongOtherNumbersOfProcesses) {
  std::vector<std::string> whole =
      Small("boot", "whole", {"--batch", "2560", "--checkpoint-seconds", "0"});
  whole[8] = "0.01";
  whole[10] = "12000";
  ASSERT_EQ(Run(whole).code, 0);
  std::vector<std::string> parts = whole;
  parts[14] = File("parts");
  Child child(folder_, Mpirun(2, parts), Child::AsIs());
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (child.Running() && !std::filesystem::exists(File("parts") + "/checkpoint.npz") &&
         std::chrono::steady_clock::now() < deadline) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  child.Signal(SIGTERM);
  child.Wait();
  ASSERT_NE(ReadRunInfo(File("parts") + "/run.toml")->status, RunStatus::kFinished);
  const Outcome end = RunRanks(3, {"distill", "--resume", "-o", File("parts"), "--quiet"});
  ASSERT_EQ(end.code, 0) << end.err;
  ExpectClose("whole", "parts", "value");
  const Outcome again = RunRanks(2, {"distill", "--resume", "-o", File("parts"), "--quiet"});
  EXPECT_EQ(again.code, 0) << again.err;
  EXPECT_THAT(again.out, HasSubstr("boot"));
}

TEST_F(Parallel, ErrorsAreToldOnce) {
  const Outcome misuse = RunRanks(2, Small("boot", "run", {"--lr", "nonsense"}));
  EXPECT_EQ(misuse.code, 2) << misuse.err;
  const Outcome refused = RunRanks(2, Small("none", "run"));
  EXPECT_EQ(refused.code, 2) << refused.err;
  const std::string line = "mergeplan distill: --strategy: plugin none: not found";
  EXPECT_THAT(refused.err, HasSubstr(line));
  EXPECT_EQ(refused.err.find(line), refused.err.rfind(line));
  EXPECT_FALSE(std::filesystem::exists(File("run")));
  std::vector<std::string> bench = {"bench", "--teacher", Teacher()};
  const Outcome outcome = RunRanks(2, bench);
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("bench runs in one process"));
}

// Without a device for it NCCL cannot start; each process training by itself is not what was asked
// for.
TEST_F(Distill, TorchrunWithoutADeviceForEveryRankIsRefused) {
  ASSERT_TRUE(WriteMixture(*CircleMixture(3, 2.0, 0.3), File("mixture.toml")).ok());
  const std::pair<const char*, const char*> variables[] = {{"RANK", "0"},
                                                           {"WORLD_SIZE", "2"},
                                                           {"LOCAL_RANK", "99"},
                                                           {"MASTER_ADDR", "127.0.0.1"},
                                                           {"MASTER_PORT", "29400"}};
  for (const auto& [name, value] : variables) setenv(name, value, 1);
  const Outcome run =
      Run({"distill", "--strategy", "boot", "--teacher-steps", "4", "--schedule", "cosine",
           "--iterations", "2", "--teacher", "mixture:" + File("mixture.toml"), "-o", File("run")});
  for (const auto& [name, value] : variables) unsetenv(name);
  EXPECT_EQ(run.code, 1);
  EXPECT_THAT(run.err, HasSubstr("started by torchrun as one of 2 ranks, but"));
  EXPECT_THAT(run.err, HasSubstr("mpirun"));
  EXPECT_FALSE(std::filesystem::exists(File("run")));
}

}  // namespace
}  // namespace mergeplan
