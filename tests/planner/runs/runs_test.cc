#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <string>

#include "planner/base/file.h"
#include "planner/runs/result_file.h"
#include "planner/runs/run_info.h"
#include "tests/planner/runs/some_info.h"

namespace mergeplan {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

RunResult SomeResult() {
  RunResult result;
  result.summary = {"boot", "surrogate", 0.1, 1.0 / 3, 12.5, 2, 80, 5120};
  result.predicted_surrogate = 0.1;
  result.achieved_surrogate = 1.0 / 3;
  result.predicted_teacher = 5e-324;
  result.achieved_teacher = 1e300;
  result.dimensions = 6;
  result.peak_memory_bytes = std::int64_t{1} << 40;
  MergeRecord merge;
  merge.first = 1;
  merge.last = 2;
  merge.round = 1;
  merge.initial_loss = 3;
  merge.final_loss = 0.1;
  merge.updates = 40;
  merge.teacher_calls = 2560;
  merge.seconds = 0.25;
  merge.predicted_error = 1e-3;
  merge.achieved_error = 2e-3;
  merge.effective_time = 0.7;
  result.training = {{"draws", "chi2"}};
  result.merges = {merge, merge};
  result.merges[1].last = 3;
  return result;
}

class Runs : public ::testing::Test {
 protected:
  Runs() : folder_(::testing::TempDir() + "runs XXXXXX") {
    EXPECT_NE(mkdtemp(folder_.data()), nullptr);
  }
  ~Runs() override { std::filesystem::remove_all(folder_); }
  std::string File(const std::string& name) const { return folder_ + "/" + name; }
  // The message of `read` after one change to the file, which is put back.
  template <typename Read>
  std::string With(const std::string& name, const std::string& from, const std::string& to,
                   Read read) const {
    const std::string text = *ReadFile(File(name));
    std::string changed = text;
    EXPECT_NE(changed.find(from), std::string::npos) << from;
    changed.replace(changed.find(from), from.size(), to);
    EXPECT_TRUE(WriteFileAtomically(File(name), changed).ok());
    const std::string message(read().status().message());
    EXPECT_TRUE(WriteFileAtomically(File(name), text).ok());
    return message;
  }

  std::string folder_;
};

TEST_F(Runs, InfoReadsBackAsWritten) {
  ASSERT_TRUE(WriteRunInfo(SomeInfo(), File("run.toml")).ok());
  const auto read = ReadRunInfo(File("run.toml"));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(*read, SomeInfo());
}

TEST_F(Runs, HowManyThreadsMayBeLeftOut) {
  RunInfo info = SomeInfo();
  info.threads = 3;
  ASSERT_TRUE(WriteRunInfo(info, File("run.toml")).ok());
  EXPECT_EQ(ReadRunInfo(File("run.toml"))->threads, 3);
  const auto with = [&](const std::string& to) {
    return With("run.toml", "threads = 3", to, [&] { return ReadRunInfo(File("run.toml")); });
  };
  EXPECT_EQ(with(""), "");
  EXPECT_THAT(with("threads = 0"), HasSubstr("'threads'"));
}

TEST_F(Runs, InfoThatCouldNotBeReadBackIsNotWritten) {
  RunInfo info = SomeInfo();
  info.teacher_file = "caf\xE9.toml";
  EXPECT_THAT(WriteRunInfo(info, File("run.toml")).message(),
              HasSubstr("teacher_file is not UTF-8"));
  info = SomeInfo();
  info.parameters["x"] = "\xFF";
  EXPECT_FALSE(WriteRunInfo(info, File("run.toml")).ok());
  EXPECT_FALSE(std::filesystem::exists(File("run.toml")));
}

TEST_F(Runs, FaultsOfAnInfoNameTheKey) {
  ASSERT_TRUE(WriteRunInfo(SomeInfo(), File("run.toml")).ok());
  const auto with = [&](const std::string& from, const std::string& to) {
    return With("run.toml", from, to, [&] { return ReadRunInfo(File("run.toml")); });
  };
  EXPECT_EQ(with("format = 3", "format = 3"), "");
  EXPECT_THAT(with("format = 3", "format = 1"), HasSubstr("'format': is 1, this version reads 3"));
  EXPECT_THAT(with("format = 3", "format = 3\nspeed = 2"), HasSubstr("unknown key 'speed'"));
  EXPECT_THAT(with("'stopped'", "'asleep'"), HasSubstr("asleep"));
  EXPECT_THAT(with("batch = 2147483647", "batch = 0"), HasSubstr("'batch'"));
  EXPECT_THAT(with("batch = 2147483647", "batch = 2147483648"), HasSubstr("'batch'"));
  EXPECT_THAT(with("batch = 2147483647", "batch = '64'"), HasSubstr("'batch'"));
  EXPECT_THAT(with("batch = 2147483647", "batch 64"), HasSubstr("line "));
  EXPECT_THAT(with("prediction = 'mean'", "prediction = 'some'"),
              HasSubstr("'prediction': is 'some', expected law, mean, moments or none"));
  EXPECT_THAT(with("strategy =", "# strategy ="), HasSubstr("'strategy': is missing"));
}

TEST_F(Runs, ResultReadsBackAsWritten) {
  ASSERT_TRUE(WriteFileAtomically(File("result.npz"), "arrays").ok());
  RunResult result = SomeResult();
  result.arrays_sha256 = Sha256("arrays");
  ASSERT_TRUE(WriteRunResult(result, folder_).ok());
  const auto read = ReadRunResult(folder_);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(*read, result);
  EXPECT_DOUBLE_EQ(read->merges[0].residual(), 0.1 / 3);

  // Nothing is predicted, and training was not linear.
  const double nan = std::numeric_limits<double>::quiet_NaN();
  result.summary.predicted = result.predicted_surrogate = result.predicted_teacher = nan;
  result.achieved_surrogate = nan;
  result.summary.standard_error = 0.25;
  result.merges[0].standard_error = 0.125;
  for (MergeRecord& merge : result.merges) {
    merge.predicted_error = nan;
    merge.effective_time.reset();
  }
  ASSERT_TRUE(WriteRunResult(result, folder_).ok());
  EXPECT_THAT(*ReadFile(File("result.toml")), Not(HasSubstr("predicted")));
  const auto none = ReadRunResult(folder_);
  ASSERT_TRUE(none.ok()) << none.status();
  EXPECT_TRUE(std::isnan(none->summary.predicted));
  EXPECT_TRUE(std::isnan(none->predicted_surrogate));
  EXPECT_TRUE(std::isnan(none->achieved_surrogate));
  EXPECT_EQ(none->summary.standard_error, 0.25);
  EXPECT_EQ(none->merges[0].standard_error, 0.125);
  EXPECT_TRUE(std::isnan(none->predicted_teacher));
  EXPECT_TRUE(std::isnan(none->merges[0].predicted_error));
  EXPECT_FALSE(none->merges[0].effective_time.has_value());

  result = SomeResult();
  result.arrays_sha256 = Sha256("arrays");
  result.merges.clear();  // a teacher of one step
  ASSERT_TRUE(WriteRunResult(result, folder_).ok());
  EXPECT_EQ(*ReadRunResult(folder_), result);
}

TEST_F(Runs, FaultsOfAResultNameTheKey) {
  ASSERT_TRUE(WriteFileAtomically(File("result.npz"), "arrays").ok());
  RunResult result = SomeResult();
  result.arrays_sha256 = Sha256("arrays");
  ASSERT_TRUE(WriteRunResult(result, folder_).ok());
  const auto with = [&](const std::string& from, const std::string& to) {
    return With("result.toml", from, to, [&] { return ReadRunResult(folder_); });
  };
  EXPECT_EQ(with("dimensions = 6", "dimensions = 6"), "");
  EXPECT_THAT(with("dimensions = 6", "dimensions = 0"),
              AllOf(HasSubstr("result.toml: key 'dimensions'"), HasSubstr("is 0")));
  EXPECT_THAT(with("format = 3", "format = 2"), HasSubstr("this version reads 3"));
  EXPECT_THAT(with("seconds = 12.5", "seconds = nan"), HasSubstr("'seconds': is nan"));
  EXPECT_THAT(with("seconds = 12.5", "seconds = 'long'"),
              HasSubstr("'seconds': expected a number"));
  EXPECT_THAT(with("round = 1", "round = 1\nturn = 1"), HasSubstr("unknown key 'merge.turn'"));
  EXPECT_THAT(with("final_loss = ", "last_loss = "), HasSubstr("'merge.final_loss': is missing"));
  EXPECT_THAT(with("last = 2", "last = 0"), HasSubstr("'merge.last': is 0"));
  EXPECT_THAT(with("'result.npz'", "'other.npz'"), HasSubstr("'arrays.file'"));
  EXPECT_THAT(with("sha256 = '", "sha256 = 'f"), HasSubstr("does not match the hash"));
}

TEST_F(Runs, ArraysThatChangedOrAreGoneAreNamed) {
  RunResult result = SomeResult();
  result.arrays_sha256 = Sha256("arrays");
  ASSERT_TRUE(WriteRunResult(result, folder_).ok());
  EXPECT_THAT(ReadRunResult(folder_).status().message(), HasSubstr("result.npz"));
  ASSERT_TRUE(WriteFileAtomically(File("result.npz"), "others").ok());
  const absl::Status changed = ReadRunResult(folder_).status();
  EXPECT_EQ(changed.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(changed.message(), AllOf(HasSubstr("result.npz"), HasSubstr("--resume")));
}

TEST(MergeFigures, NothingToLearnLeavesNoResidual) {
  EXPECT_EQ(MergeFigures().residual(), 0);
  MergeFigures figures;
  figures.initial_loss = 4;
  figures.final_loss = 1;
  EXPECT_EQ(figures.residual(), 0.25);
}

}  // namespace
}  // namespace mergeplan
