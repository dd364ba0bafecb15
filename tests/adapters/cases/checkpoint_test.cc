#include "adapters/cases/checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "planner/base/file.h"
#include "planner/data/npz.h"
#include "planner/operators/canonical.h"
#include "tests/adapters/support.h"

namespace mergeplan {
namespace {

using ::mergeplan::testing::LogSpaced;
using ::mergeplan::testing::MakeModel;
using ::mergeplan::testing::TemporaryFolder;
using ::testing::HasSubstr;

const std::string kPrint(64, 'a');

// A state with trained merges and two in training.
ExecutorState SomeState() {
  const Model model = MakeModel(8, LogSpaced(0.1, 4.0, 300), Budget::Sgd(0.05, 30, 256));
  const absl::StatusOr<Plan> plan = CanonicalPlan(Strategy::kProgressive, 8);
  int questions = 0;
  ExecutorOptions options;
  options.recipe = *Recipe::Parse({{"optimizer", "adam"}, {"ema", "0.9"}});
  options.stop = [&] { return questions++ >= 12; };
  absl::StatusOr<Executor> executor = Executor::Create(model, *plan, options);
  EXPECT_TRUE(executor.ok());
  absl::Status status;
  for (const std::vector<int>& round : plan->MergesByRound()) {
    if (status.ok()) status = executor->Train(round);
  }
  EXPECT_EQ(status.code(), absl::StatusCode::kCancelled) << status;
  ExecutorState state = executor->Save();
  EXPECT_GE(executor->merges_trained(), 1);
  EXPECT_EQ(state.active.merges.size(), 2u);
  return state;
}

TEST(Checkpoint, GivesBackTheSameState) {
  const TemporaryFolder folder;
  const std::string path = folder.File("checkpoint.npz");
  const ExecutorState state = SomeState();
  ASSERT_TRUE(WriteCheckpoint(state, kPrint, path).ok());
  const absl::StatusOr<ExecutorState> read = ReadCheckpoint(kPrint, path);
  ASSERT_TRUE(read.ok()) << read.status();
  ASSERT_EQ(read->merges.size(), state.merges.size());
  for (size_t m = 0; m < state.merges.size(); ++m) {
    const TrainedMerge &a = read->merges[m], &b = state.merges[m];
    EXPECT_EQ(a.trained, b.trained);
    EXPECT_EQ(a.value, b.value);
    EXPECT_EQ(a.curve, b.curve);
    EXPECT_EQ(a.initial_loss, b.initial_loss);
    EXPECT_EQ(a.final_loss, b.final_loss);
    EXPECT_EQ(a.updates, b.updates);
    EXPECT_EQ(a.teacher_calls, b.teacher_calls);
    EXPECT_EQ(a.seconds, b.seconds);
  }
  EXPECT_EQ(read->active.merges, state.active.merges);
  EXPECT_EQ(read->active.seconds, state.active.seconds);
  EXPECT_EQ(read->active.state.updates, state.active.state.updates);
  EXPECT_EQ(read->active.state.parameters, state.active.state.parameters);
  EXPECT_EQ(read->active.state.first, state.active.state.first);
  EXPECT_EQ(read->active.state.second, state.active.state.second);
  EXPECT_EQ(read->active.state.average, state.active.state.average);
  EXPECT_EQ(read->active.state.curve, state.active.state.curve);
}

TEST(Checkpoint, OfAnOlderVersionIsRefusedInWords) {
  const TemporaryFolder folder;
  const std::string path = folder.File("checkpoint.npz");
  for (const auto& [format, text] :
       {std::pair{1.0, "which drew other noise"}, std::pair{3.0, "a newer version of mergeplan"}}) {
    NpzWriter npz;
    npz.Add("format", {1}, {format}, NpzWriter::Type::kInt64);
    ASSERT_TRUE(npz.Write(path).ok());
    const absl::Status status = ReadCheckpoint(kPrint, path).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(status.message(),
                ::testing::AllOf(HasSubstr("this version reads 2"), HasSubstr(text)));
  }
}

TEST(Checkpoint, OfARunThatHasNotTrainedAnythingYet) {
  const TemporaryFolder folder;
  const std::string path = folder.File("checkpoint.npz");
  ExecutorState state;
  state.merges.resize(3);
  ASSERT_TRUE(WriteCheckpoint(state, kPrint, path).ok());
  const absl::StatusOr<ExecutorState> read = ReadCheckpoint(kPrint, path);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->merges.size(), 3u);
  EXPECT_FALSE(read->merges[0].trained);
  EXPECT_TRUE(read->active.merges.empty());
}

TEST(Checkpoint, RefusesWhatIsNotItsRunsOrIsDamaged) {
  const TemporaryFolder folder;
  const std::string path = folder.File("checkpoint.npz");
  EXPECT_EQ(ReadCheckpoint(kPrint, path).status().code(), absl::StatusCode::kNotFound);
  ASSERT_TRUE(WriteCheckpoint(SomeState(), kPrint, path).ok());
  const absl::Status other = ReadCheckpoint(std::string(64, 'b'), path).status();
  EXPECT_EQ(other.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(other.message(), HasSubstr("another plan"));

  const absl::StatusOr<std::string> bytes = ReadFile(path);
  ASSERT_TRUE(bytes.ok());
  for (const double share : {0.0, 0.1, 0.5, 0.9}) {
    const auto length = static_cast<size_t>(share * static_cast<double>(bytes->size()));
    ASSERT_TRUE(WriteFileAtomically(path, bytes->substr(0, length)).ok());
    const absl::Status cut = ReadCheckpoint(kPrint, path).status();
    EXPECT_EQ(cut.code(), absl::StatusCode::kDataLoss) << cut;
    EXPECT_THAT(cut.message(), HasSubstr("checkpoint.npz"));
  }
}

}  // namespace
}  // namespace mergeplan
