// Runs that are stopped by a signal, killed or damaged, and go on.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "adapters/runtime/run_folder.h"
#include "planner/base/file.h"
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

// A plan that a stopped search has found is no plan to train by.
TEST_F(Distill, ASignalBeforeTheTrainingLeavesNothing) {
  // A plan that takes half a minute.
  std::vector<std::string> arguments = Small("greedy", "run");
  std::replace(arguments.begin(), arguments.end(), std::string("6"), std::string("1000"));
  Child child(folder_, arguments);
  const auto deadline = Clock::now() + std::chrono::seconds(60);
  while (!child.Catches(SIGINT) && child.Running() && Clock::now() < deadline) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  ASSERT_TRUE(child.Running()) << child.err();
  child.Signal(SIGINT);
  EXPECT_EQ(child.Wait(), 1);
  EXPECT_THAT(child.err(), AllOf(HasSubstr("before the training began; nothing was written"),
                                 Not(HasSubstr("--resume"))));
  EXPECT_FALSE(std::filesystem::exists(File("run")));
}

// A run of about a second of computing, so that it can be caught in the middle.
class Interrupted : public Distill {
 protected:
  static void SetUpTestSuite() {
    shared_ = new TemporaryFolder;
    ASSERT_TRUE(WriteSpectrum(MakeSpectrum(LogSpaced(0.1, 4.0, 300)), Spectrum()).ok());
    const Outcome outcome = Run(Arguments(shared_->File("whole")));
    ASSERT_EQ(outcome.code, 0) << outcome.err;
  }
  static void TearDownTestSuite() { delete shared_; }

  void SetUp() override { std::filesystem::copy(shared_->File("whole"), File("whole")); }
  static std::string Spectrum() { return shared_->File("spectrum.toml"); }
  static std::vector<std::string> Arguments(const std::string& run) {
    return {"distill", "--strategy", "boot", "--teacher-steps", "5", "--schedule", "cosine", "--lr",
            "0.02", "--iterations", "15000", "--teacher", "analytic:" + Spectrum(), "-o", run,
            "--quiet",
            // Everything that has a state.
            "--optimizer", "adamw", "--lr-schedule", "cosine", "--warmup", "100", "--ema", "0.99",
            "--checkpoint-seconds", "0.02"};
  }
  // Waits until the run has made `count` new checkpoints, or is over.
  void WaitForCheckpoints(const Child& child, const std::string& run, int count) const {
    const std::string path = File(run) + "/checkpoint.npz";
    std::error_code error;
    auto last = std::filesystem::last_write_time(path, error);
    const auto deadline = Clock::now() + std::chrono::seconds(60);
    while (count > 0 && child.Running() && Clock::now() < deadline) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      const auto now = std::filesystem::last_write_time(path, error);
      if (!error && now != last) {
        last = now;
        --count;
      }
    }
  }

  static TemporaryFolder* shared_;
};

TemporaryFolder* Interrupted::shared_ = nullptr;

TEST_F(Interrupted, BySignalsItStopsWithARunThatGoesOnBitByBit) {
  std::vector<std::string> arguments = Arguments(File("run"));
  arguments.insert(arguments.end(), {"--threads", "3"});
  int stops = 0;
  for (const int signal : {SIGINT, SIGTERM, SIGINT}) {
    Child child(folder_, arguments);
    WaitForCheckpoints(child, "run", 3);
    child.Signal(signal);
    const int code = child.Wait();
    if (code == 0) break;  // it was faster
    ASSERT_EQ(code, 3) << child.err();
    EXPECT_THAT(child.err(), HasSubstr("mergeplan distill --resume -o"));
    const auto info = ReadRunInfo(File("run") + "/run.toml");
    ASSERT_TRUE(info.ok()) << info.status();
    EXPECT_EQ(info->status, RunStatus::kStopped);
    EXPECT_EQ(info->threads, 3);  // also where it went on without being told
    // Without --resume nothing is lost.
    EXPECT_EQ(Run(Arguments(File("run"))).code, 2);
    arguments = {"distill", "--resume", "-o", File("run"), "--quiet", "--checkpoint-seconds",
                 "0.02"};
    ++stops;
  }
  EXPECT_GE(stops, 1);
  const Outcome differing = Run({"distill", "--resume", "-o", File("run"), "--lr", "0.03"});
  EXPECT_EQ(differing.code, 2);
  EXPECT_THAT(differing.err, HasSubstr("--lr 0.03"));
  EXPECT_EQ(Run({"distill", "--resume", "-o", File("run"), "--seed", "3"}).code, 2);
  const Outcome optimizer = Run({"distill", "--resume", "-o", File("run"), "--ema", "0.9"});
  EXPECT_EQ(optimizer.code, 2);
  EXPECT_THAT(optimizer.err, AllOf(HasSubstr("--ema 0.9: the run in"), HasSubstr("has 0.99")));
  const Outcome end = Run({"distill", "--resume", "-o", File("run"), "--quiet"});
  ASSERT_EQ(end.code, 0) << end.err;
  ExpectSameResult("run", "whole");
}

TEST_F(Interrupted, ByKillingItGoesOnFromTheLastCheckpoint) {
  std::vector<std::string> arguments = Arguments(File("run"));
  int kills = 0;
  for (int wait = 1; wait <= 40; wait += 1 + wait / 3) {
    Child child(folder_, arguments);
    WaitForCheckpoints(child, "run", wait);
    child.Signal(SIGKILL);
    const int code = child.Wait();
    if (code == 0) break;
    ASSERT_EQ(code, -SIGKILL) << child.err();
    arguments = {"distill", "--resume", "-o", File("run"), "--quiet", "--checkpoint-seconds",
                 "0.02"};
    ++kills;
  }
  EXPECT_GE(kills, 2);
  const Outcome end = Run({"distill", "--resume", "-o", File("run"), "--quiet"});
  ASSERT_EQ(end.code, 0) << end.err;
  ExpectSameResult("run", "whole");
}

TEST_F(Interrupted, ADamagedRunIsNotContinued) {
  Child child(folder_, Arguments(File("run")));
  WaitForCheckpoints(child, "run", 2);
  child.Signal(SIGKILL);
  if (child.Wait() == 0) GTEST_SKIP() << "the run was over before it could be killed";
  const std::string checkpoint = File("run") + "/checkpoint.npz";
  const std::string plan = File("run") + "/plan.toml";
  const std::string good = *ReadFile(checkpoint), good_plan = *ReadFile(plan);
  ASSERT_TRUE(WriteFileAtomically(checkpoint, good.substr(0, good.size() / 2)).ok());
  const Outcome cut = Run({"distill", "--resume", "-o", File("run"), "--quiet"});
  EXPECT_EQ(cut.code, 1);
  EXPECT_THAT(cut.err, HasSubstr("checkpoint.npz"));
  ASSERT_TRUE(WriteFileAtomically(checkpoint, good).ok());
  ASSERT_TRUE(WriteFileAtomically(plan, good_plan + "\n").ok());
  const Outcome changed = Run({"distill", "--resume", "-o", File("run"), "--quiet"});
  EXPECT_EQ(changed.code, 1);
  EXPECT_THAT(changed.err, HasSubstr("plan.toml: was changed"));
}

}  // namespace
}  // namespace mergeplan
