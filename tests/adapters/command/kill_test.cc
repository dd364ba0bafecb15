// Runs killed anywhere, at 50 random points, end as if they had not been.
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "adapters/network/script.h"
#include "planner/mixture/mixture.h"
#include "planner/mixture/mixture_io.h"
#include "tests/adapters/command/distill_program.h"
#include "tests/adapters/network/support.h"

namespace mergeplan {
namespace {

using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

class Killed : public Distill {
 protected:
  // Kills runs of these arguments (without -o) at random points until that has succeeded `kills`
  // times, each time goes on to the end, and compares the result's arrays.
  void ExpectUnmoved(std::vector<std::string> arguments, const std::vector<std::string>& arrays,
                     int kills, unsigned seed) {
    arguments.insert(arguments.end(), {"--quiet", "--checkpoint-seconds", "0", "-o", ""});
    const auto start = [&](const std::string& run) {
      arguments.back() = File(run);
      return Child(folder_, arguments);
    };
    const auto begun = [&](const Child& child, const std::string& run) {
      const auto deadline = Clock::now() + std::chrono::seconds(60);
      while (child.Running() && Clock::now() < deadline &&
             !std::filesystem::exists(File(run) + "/run.toml")) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
    };
    Child whole = start("whole");
    begun(whole, "whole");
    const auto from = Clock::now();
    ASSERT_EQ(whole.Wait(), 0) << whole.err();
    const double length = Seconds(Clock::now() - from).count();

    std::mt19937 random(seed);
    std::uniform_real_distribution<double> points(0, length);
    int killed = 0;
    for (int attempt = 0; killed < kills && attempt < 5 * kills; ++attempt) {
      const std::string run = "run" + std::to_string(attempt);
      Child child = start(run);
      begun(child, run);
      std::this_thread::sleep_for(Seconds(points(random)));
      child.Signal(SIGKILL);
      const int code = child.Wait();
      if (code == 0) continue;  // it was over
      ASSERT_EQ(code, -SIGKILL) << child.err();
      ++killed;
      const Outcome end = Run({"distill", "--resume", "-o", File(run), "--quiet"});
      ASSERT_EQ(end.code, 0) << end.err;
      for (const std::string& name : arrays) {
        ASSERT_EQ(Array(run, name), Array("whole", name)) << name << ", attempt " << attempt;
        ASSERT_FALSE(Array(run, name).empty()) << name;
      }
      std::filesystem::remove_all(File(run));
    }
    EXPECT_EQ(killed, kills);
  }
};

TEST_F(Killed, LinearStudentsAreNotMoved) {
  ASSERT_TRUE(
      WriteSpectrum(testing::MakeSpectrum(testing::LogSpaced(0.1, 4.0, 100)), File("wide.toml"))
          .ok());
  ExpectUnmoved({"distill", "--strategy", "boot", "--teacher-steps", "5", "--schedule", "cosine",
                 "--lr", "0.02", "--iterations", "6000", "--teacher",
                 "analytic:" + File("wide.toml"), "--optimizer", "adamw", "--ema", "0.99"},
                {"value", "merge_value", "loss", "samples"}, 20, 1);
}

TEST_F(Killed, MixturesOfExpertsAreNotMoved) {
  ASSERT_TRUE(WriteMixture(*CircleMixture(3, 2.0, 0.3), File("mixture.toml")).ok());
  ExpectUnmoved(
      {"distill", "--strategy", "progressive", "--teacher-steps", "4", "--schedule", "cosine",
       "--iterations", "300", "--fit-iterations", "400", "--batch", "256", "--hidden", "16",
       "--experts", "3", "--teacher", "mixture:" + File("mixture.toml")},
      {"parameters", "loss", "fit_loss", "samples"}, 20, 2);
}

// A small network, in TorchScript.
TEST_F(Killed, NetworksAreNotMoved) {
  ASSERT_TRUE(WriteMixture(*CircleMixture(3, 1.0, 0.3), File("mixture.toml")).ok());
  const network::Signature signature = network::testing::SmallSignature(2);
  ASSERT_TRUE(
      network::SaveScript(*network::testing::SmallNetwork(signature, 16, 5), signature, File("net"))
          .ok());
  ExpectUnmoved({"distill",
                 "--strategy",
                 "progressive",
                 "--teacher-steps",
                 "4",
                 "--schedule",
                 "cosine",
                 "--iterations",
                 "60",
                 "--fit-iterations",
                 "100",
                 "--batch",
                 "64",
                 "--lr",
                 "0.01",
                 "--ema",
                 "0.9",
                 "--threads",
                 "1",
                 "--student-network",
                 "script:" + File("net") + "/model.toml",
                 "--teacher",
                 "mixture:" + File("mixture.toml")},
                {"loss", "block_error", "samples"}, 10, 3);
}

}  // namespace
}  // namespace mergeplan
