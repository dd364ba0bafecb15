// Runs that are stopped, spilled, damaged and taken up again.
#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_replace.h"
#include "adapters/network/executor.h"
#include "adapters/network/levels.h"
#include "adapters/network/script.h"
#include "planner/base/file.h"
#include "planner/operators/canonical.h"
#include "tests/adapters/network/setting.h"
#include "tests/adapters/network/support.h"
#include "tests/adapters/support.h"

namespace mergeplan::network {
namespace {

using mergeplan::testing::TemporaryFolder;
using ::testing::HasSubstr;

using testing::Canonical;
using testing::Create;
using testing::Make;
using testing::NetworkOf;
using testing::Numbers;
using testing::Options;
using testing::Setting;
using testing::SmallNetwork;
using testing::WritePlain;

// Stopped at any update, written, read by another executor and finished: the same bits as never
// stopped. Progressive and shared has both rounds of several merges and one of one.
TEST(NetworkExecutor, StoppedAnywhereItGoesOnBitByBit) {
  const Setting s = Make(4);
  const Plan plan = Canonical(Strategy::kProgressive, 4);
  for (const bool shared : {true, false}) {
    ExecutorOptions options = Options();
    options.recipe = Recipe::Parse({{"optimizer", "adamw"},
                                    {"ema", "0.9"},
                                    {"clip-norm", "1"},
                                    {"lr-schedule", "cosine"},
                                    {"accumulate", "2"}})
                         .value();
    options.shared = shared;
    options.iterations = 4;
    options.fit_updates = 3;
    options.batch = 8;
    const auto whole = Create(s, plan, options);
    ASSERT_TRUE(whole->TrainAll().ok());
    const std::vector<double> expected = Numbers(**whole->Weights(plan.size() - 1));

    // Between updates, and while errors are measured before and after.
    const int updates = 3 + 4 * (shared ? 2 : 3);
    bool stopped = true;
    for (int stop = 0; stopped; ++stop) {
      SCOPED_TRACE(::testing::Message() << "shared " << shared << ", stopped after " << stop);
      TemporaryFolder folder;
      options.folder = folder.File("snap shots");
      int asked = 0;
      options.stop = [&] { return asked++ == stop; };
      options.checkpoint = [&](Executor& executor, bool forced) {
        return forced ? executor.WriteState(folder.File("state"), "run") : absl::OkStatus();
      };
      auto first = Create(s, plan, options);
      const absl::Status ended = first->TrainAll();
      stopped = absl::IsCancelled(ended);
      if (!stopped) {
        EXPECT_TRUE(ended.ok()) << ended;
        EXPECT_GT(stop, updates + 2 * plan.size());
        break;
      }
      first.reset();
      options.stop = nullptr;
      const auto second = Create(s, plan, options);
      ASSERT_TRUE(second->ReadState(folder.File("state"), "run").ok());
      ASSERT_TRUE(second->TrainAll().ok());
      EXPECT_EQ(Numbers(**second->Weights(plan.size() - 1)), expected);
      for (int merge = 0; merge < plan.size(); ++merge) {
        StudentRecord found = second->records()[merge], wanted = whole->records()[merge];
        found.seconds = wanted.seconds;
        found.peak_memory = wanted.peak_memory;
        found.snapshot = wanted.snapshot;
        EXPECT_TRUE(found == wanted);
      }
    }
  }
}

TEST(NetworkExecutor, SpilledSnapshotsChangeNothing) {
  const Setting s = Make(8);
  const Plan plan = Canonical(Strategy::kProgressive, 8);
  ExecutorOptions options = Options();
  options.shared = false;
  options.iterations = 5;
  const auto in_memory = Create(s, plan, options);
  ASSERT_TRUE(in_memory->TrainAll().ok());
  TemporaryFolder folder;
  options.folder = folder.File("spilled");
  options.memory = BytesOf(*s.student);  // one
  int most = 0;
  options.checkpoint = [&](Executor& executor, bool) {
    most = std::max(most, executor.snapshots().spilled());
    EXPECT_LE(executor.snapshots().bytes_in_memory(), 2 * options.memory);
    executor.snapshots().Sweep();
    return absl::OkStatus();
  };
  const auto spilled = Create(s, plan, options);
  ASSERT_TRUE(spilled->TrainAll().ok());
  EXPECT_GE(most, 3);
  EXPECT_EQ(Numbers(**spilled->Weights(plan.size() - 1)),
            Numbers(**in_memory->Weights(plan.size() - 1)));
  // What was dropped has left no file behind.
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(options.folder)) {
    files += entry.is_regular_file() ? 1 : 0;
  }
  EXPECT_LE(files, 1);
}

// In fp16 a gradient that overflows is left out and the scale falls; the run goes on, is stopped
// and taken up with the same scale.
TEST(NetworkExecutor, UpdatesThatOverflowAreSkipped) {
  Setting s = Make(4);
  // 65536 times the gradient of this is beyond fp16's 65504 inside the product.
  s.student = NetworkOf(s.signature, "return torch.matmul(z * 4.0, torch.diag(self.w))");
  ExecutorOptions options = Options();
  options.precision = Precision::kFloat16;
  options.fit_updates = 0;
  options.iterations = 24;
  options.loss = {LossSpace::kX0, Weighting::kUniform, 5};
  TemporaryFolder folder;
  options.folder = folder.path();
  const Plan plan = Canonical(Strategy::kVanilla, 4);
  const auto whole = Create(s, plan, options);
  const absl::Status status = whole->TrainAll();
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_GT(whole->records()[0].skipped, 0);
  EXPECT_LT(whole->records()[0].skipped, 20);
  EXPECT_LT(whole->records()[0].final_loss, whole->records()[0].initial_loss);
  int asked = 0;
  options.stop = [&] { return asked++ == 10; };
  options.checkpoint = [&](Executor& executor, bool forced) {
    return forced ? executor.WriteState(folder.File("state"), "run") : absl::OkStatus();
  };
  EXPECT_FALSE(Create(s, plan, options)->TrainAll().ok());
  options.stop = nullptr;
  const auto second = Create(s, plan, options);
  ASSERT_TRUE(second->ReadState(folder.File("state"), "run").ok());
  ASSERT_TRUE(second->TrainAll().ok());
  EXPECT_EQ(Numbers(**second->Weights(0)), Numbers(**whole->Weights(0)));
  EXPECT_EQ(second->records()[0].skipped, whole->records()[0].skipped);
}

TEST(NetworkExecutor, FingerprintsTellRunsApart) {
  const Setting s = Make(4);
  const Plan plan = Canonical(Strategy::kBoot, 4);
  const std::string print = Create(s, plan, Options())->fingerprint();
  EXPECT_EQ(Create(s, plan, Options())->fingerprint(), print);
  std::set<std::string> all = {print};
  const auto differs = [&](const auto& change) {
    ExecutorOptions options = Options();
    change(options);
    EXPECT_TRUE(all.insert(Create(s, plan, options)->fingerprint()).second);
  };
  differs([](ExecutorOptions& o) { o.lr = 0.02; });
  differs([](ExecutorOptions& o) { o.seed = 10; });
  differs([](ExecutorOptions& o) { o.batch = 65; });
  differs([](ExecutorOptions& o) { o.init = Init::kJump; });
  differs([](ExecutorOptions& o) { o.shared = false; });
  differs([](ExecutorOptions& o) { o.recipe.ema = 0.5; });
  differs([](ExecutorOptions& o) { o.precision = Precision::kBfloat16; });
  differs([](ExecutorOptions& o) { o.loss.space = LossSpace::kV; });
  Setting other = Make(4);
  other.student = SmallNetwork(other.signature, 16, 6);
  EXPECT_NE(Create(other, plan, Options())->fingerprint(), print);
  EXPECT_NE(Create(s, Canonical(Strategy::kConsistency, 4), Options())->fingerprint(), print);
}

// What is held is there after its parent has been trained.
TEST(NetworkExecutor, HoldsKeepWeights) {
  const Setting s = Make(3);
  ExecutorOptions options = Options();
  options.iterations = 2;
  options.shared = false;
  const auto executor = Create(s, Canonical(Strategy::kBoot, 3), options);
  executor->Hold(0);
  ASSERT_TRUE(executor->TrainAll().ok());
  EXPECT_TRUE(executor->Weights(0).ok());
  EXPECT_TRUE(executor->Node(3).ok());
  executor->Release(0);
  EXPECT_EQ(executor->Weights(0).status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(executor->Node(3).status().message()), HasSubstr("[2, 3]"));
  EXPECT_TRUE(executor->Student().ok());
}

// lin.ts, a real network: distilled without data, stopped in the middle and taken up, with its own
// convolutions on as many threads as there are.
TEST(NetworkExecutor, ThePretrainedMnistNetworkIsDistilled) {
  const std::string shared = testing::SharedFolder();
  if (shared.empty()) GTEST_SKIP() << "MERGEPLAN_SHARED names no folder of reference data";
  TemporaryFolder folder;
  const std::string source =
      std::string(std::getenv("MERGEPLAN_SOURCE_DIR")) + "/tests/adapters/network/data/lin.toml";
  ASSERT_TRUE(WriteFileAtomically(
                  folder.File("lin.toml"),
                  absl::StrReplaceAll(ReadFile(source).value(), {{"@MERGEPLAN_SHARED@", shared}}))
                  .ok());
  ScriptNetwork network = LoadScript(folder.File("lin.toml")).value();
  const Schedule schedule = LoadSchedule("ddpm-linear", 4).value();
  const NetworkSteps steps = NetworkSteps::Create(network.signature, schedule).value();
  const std::shared_ptr<Module> module(std::move(network.module));
  const std::shared_ptr<Teacher> teacher = MakeNetworkTeacher(module, steps);
  const std::shared_ptr<Inputs> inputs =
      MakeRolloutInputs(teacher, schedule, 1, 16, at::kFloat).value();
  ExecutorOptions options;
  options.recipe = Recipe::Parse({{"optimizer", "adamw"}, {"ema", "0.5"}}).value();
  options.lr = 1e-5;  // at level 4 the wrapper multiplies the network by 157
  options.iterations = 6;
  options.batch = 8;
  options.held_out_rows = 8;
  options.folder = folder.File("snapshots");
  const Plan plan = Canonical(Strategy::kBoot, 4);
  const auto make = [&](const ExecutorOptions& o) {
    return Executor::Create(teacher, *module, steps, inputs, plan, o).value();
  };
  const auto whole = make(options);
  ASSERT_TRUE(whole->TrainAll().ok());
  for (const StudentRecord& merge : whole->records()) {
    EXPECT_LT(merge.final_loss, merge.initial_loss);
  }
  int asked = 0;
  options.stop = [&] { return asked++ == 9; };
  options.checkpoint = [&](Executor& executor, bool forced) {
    return forced ? executor.WriteState(folder.File("state"), executor.fingerprint())
                  : absl::OkStatus();
  };
  EXPECT_FALSE(make(options)->TrainAll().ok());
  options.stop = nullptr;
  const auto second = make(options);
  ASSERT_TRUE(second->ReadState(folder.File("state"), second->fingerprint()).ok());
  ASSERT_TRUE(second->TrainAll().ok());
  EXPECT_EQ(Numbers(**second->Weights(2)), Numbers(**whole->Weights(2)));
  // The student is a network of the same kind as the teacher's.
  ASSERT_TRUE(SaveScript(**second->Weights(2), network.signature, folder.File("student")).ok());
  const ScriptNetwork back = LoadScript(folder.File("student/model.toml")).value();
  EXPECT_EQ(Numbers(*back.module), Numbers(**second->Weights(2)));
  const auto again = LevelInputs(back.signature, schedule).value();
  for (int t = 1; t <= 4; ++t) EXPECT_EQ(again[t].time, steps.input(t).time);
}

TEST(NetworkExecutor, StatesOfOtherRunsAndDamagedOnesAreRefused) {
  const Setting s = Make(4);
  TemporaryFolder folder;
  ExecutorOptions options = Options();
  options.iterations = 2;
  options.fit_updates = 2;
  options.folder = folder.File("snapshots");
  const Plan plan = Canonical(Strategy::kBoot, 4);
  const auto executor = Create(s, plan, options);
  ASSERT_TRUE(executor->Train({0}).ok());
  const std::string path = folder.File("state");
  EXPECT_EQ(executor->ReadState(path, "a").code(), absl::StatusCode::kNotFound);
  ASSERT_TRUE(executor->WriteState(path, "a").ok());
  EXPECT_EQ(Create(s, plan, options)->ReadState(path, "b").code(),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(Create(s, Canonical(Strategy::kVanilla, 4), options)->ReadState(path, "a").code(),
            absl::StatusCode::kDataLoss);
  const std::string good = ReadFile(path).value();
  for (std::size_t at = 0; at < good.size(); at += 1 + good.size() / 97) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ 0x41);
    WritePlain(path, bad);
    EXPECT_FALSE(Create(s, plan, options)->ReadState(path, "a").ok()) << at;
    WritePlain(path, good.substr(0, at));
    EXPECT_FALSE(Create(s, plan, options)->ReadState(path, "a").ok()) << at;
  }
  ASSERT_TRUE(WriteFileAtomically(path, good).ok());
  EXPECT_TRUE(Create(s, plan, options)->ReadState(path, "a").ok());
  // A snapshot that is gone, or is another.
  const std::string snapshot = executor->snapshots().Path(executor->records()[0].snapshot);
  ASSERT_TRUE(WriteFileAtomically(snapshot, "no").ok());
  EXPECT_EQ(Create(s, plan, options)->ReadState(path, "a").code(), absl::StatusCode::kDataLoss);
  std::filesystem::remove(snapshot);
  EXPECT_FALSE(Create(s, plan, options)->ReadState(path, "a").ok());
}

}  // namespace
}  // namespace mergeplan::network
