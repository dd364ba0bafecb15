// Options of a teacher's training, its log, its train.toml.
#include "adapters/denoising/options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "adapters/denoising/folder.h"
#include "adapters/denoising/job.h"
#include "adapters/denoising/log.h"
#include "planner/base/file.h"
#include "tests/adapters/support.h"

namespace mergeplan::denoising {
namespace {

using mergeplan::testing::TemporaryFolder;
using ::testing::HasSubstr;

TEST(TeacherOptions, HaveDefaults) {
  const auto options = Options::Parse({});
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_EQ(options->recipe.optimizer, OptimizerKind::kAdamW);
  EXPECT_EQ(options->recipe.rate_schedule, RateSchedule::kCosine);
  EXPECT_EQ(options->recipe.warmup, 500);
  EXPECT_EQ(options->recipe.clip_norm, 1);
  EXPECT_EQ(options->recipe.ema, 0);
  EXPECT_TRUE(options->own_loss);
  EXPECT_EQ(Options::Parse({{"iterations", "30"}})->recipe.warmup, 3);
}

TEST(TeacherOptions, AreReadBack) {
  const std::map<std::string, std::string> texts = {{"iterations", "123"},
                                                    {"batch", "7"},
                                                    {"lr", "0.003"},
                                                    {"ema", "0.9"},
                                                    {"weighting", "min-snr-gamma"},
                                                    {"gamma", "3"},
                                                    {"flip", "yes"},
                                                    {"precision", "bf16"},
                                                    {"seed", "5"},
                                                    {"scaling", "0:1"},
                                                    {"warmup", "11"},
                                                    {"accumulate", "2"},
                                                    {"optimizer", "sgd"},
                                                    {"momentum", "0.5"},
                                                    {"log-every", "3"},
                                                    {"samples", "0"},
                                                    {"lr-schedule", "linear"},
                                                    {"clip-norm", "2"},
                                                    {"sample-every", "9"}};
  const auto options = Options::Parse(texts);
  ASSERT_TRUE(options.ok()) << options.status();
  std::map<std::string, std::string> all = options->Texts();
  for (const auto& [name, text] : texts) EXPECT_EQ(all[name], text) << name;
  const auto again = Options::Parse(all);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->Texts(), all);
  EXPECT_EQ(again->recipe, options->recipe);
  EXPECT_EQ(options->DecidingTexts().count("log-every"), 0U);
}

TEST(TeacherOptions, NameWhatIsWrong) {
  const std::pair<std::map<std::string, std::string>, const char*> wrong[] = {
      {{{"iterations", "0"}}, "--iterations 0: expected a whole number, 1 or more"},
      {{{"batch", "two"}}, "--batch two"},
      {{{"lr", "nan"}}, "--lr nan: expected a positive"},
      {{{"lr", "-1"}}, "--lr -1"},
      {{{"ema", "1"}}, "--ema 1: expected 0"},
      {{{"flip", "maybe"}}, "--flip maybe: expected yes or no"},
      {{{"precision", "int8"}}, "full, bf16, fp16 or auto"},
      {{{"loss", "z"}}, "one of output, x0, epsilon, v"},
      {{{"weighting", "none"}}, "--weighting none"},
      {{{"gamma", "5"}}, "--gamma 5: expected --weighting min-snr-gamma"},
      {{{"scaling", "1:-1"}}, "--scaling 1:-1"},
      {{{"optimizer", "lion"}}, "--optimizer lion"},
      {{{"momentum", "0.9"}}, "--momentum 0.9"},
      {{{"warmup", "11"}, {"iterations", "10"}}, "--warmup 11"},
      {{{"draws", "chi2"}}, "--draws: is no option of a teacher's training"},
      {{{"depth", "3"}}, "--depth: is no option"},
      {{{"sample-steps", "0"}}, "--sample-steps 0"},
      {{{"log-every", "0"}}, "--log-every 0"}};
  for (const auto& [texts, expected] : wrong) {
    const auto options = Options::Parse(texts);
    ASSERT_FALSE(options.ok()) << expected;
    EXPECT_THAT(std::string(options.status().message()), HasSubstr(expected));
  }
}

TEST(TeacherOptions, TheAverageBeginsWithLittle) {
  EXPECT_DOUBLE_EQ(KeptByAverage(0.999, 0), 0.1);
  EXPECT_DOUBLE_EQ(KeptByAverage(0.999, 90), 0.91);
  EXPECT_EQ(KeptByAverage(0.999, 100000), 0.999);
  EXPECT_EQ(KeptByAverage(0.05, 0), 0.05);
}

TEST(TeacherOptions, TimeLimits) {
  EXPECT_EQ(*ParseTimeLimit("90"), 90);
  EXPECT_EQ(*ParseTimeLimit("90s"), 90);
  EXPECT_EQ(*ParseTimeLimit("1.5m"), 90);
  EXPECT_EQ(*ParseTimeLimit("2h"), 7200);
  EXPECT_TRUE(std::isinf(*ParseTimeLimit("")));
  for (const char* wrong : {"m", "soon", "-1", "inf", "nan", "1d"}) {
    EXPECT_FALSE(ParseTimeLimit(wrong).ok()) << wrong;
  }
}

TEST(TeacherLog, RowsAreMeansOverTheirUpdates) {
  Log log;
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  log.Add(1, 4, 1, 0.1, 1, 3);
  log.Add(2, 2, kNone, 0.2, 2, 3);
  log.Add(3, 3, 3, 0.3, 3, 3);
  log.Add(4, 7, 5, 0.4, 4, 3);
  ASSERT_EQ(log.rows().size(), 1U);
  EXPECT_EQ(log.rows()[0].loss, 3);
  EXPECT_EQ(log.rows()[0].norm, 2);
  EXPECT_EQ(log.rows()[0].lr, 0.3);
  EXPECT_EQ(log.rows()[0].skipped, 1);
  EXPECT_EQ(log.seconds(), 4);

  Log again;
  ASSERT_TRUE(again.FromNumbers(log.Numbers()));
  for (Log* each : {&log, &again}) {
    each->Close();
    EXPECT_EQ(each->Csv(),
              "update,loss,gradient_norm,lr,seconds,skipped\n3,3,2,0.3,3.00,1\n"
              "4,7,5,0.4,4.00,0\n");
    EXPECT_DOUBLE_EQ(each->RecentLoss(1), 7);
    EXPECT_DOUBLE_EQ(each->RecentLoss(100), 4);
  }
  EXPECT_TRUE(std::isnan(Log().RecentLoss(5)));
  for (const std::vector<double>& wrong : {std::vector<double>{},
                                           {1, 1, 1, 1},
                                           std::vector<double>(9, 1.0),
                                           {0.5, 0, 1, 1, 1, 1, 1, 1},
                                           {0, 0, kNone, 1, 1, 1, 1, 1}}) {
    EXPECT_FALSE(Log().FromNumbers(wrong));
  }
}

TEST(TrainInfo, IsReadBackAndChecked) {
  const TemporaryFolder folder;
  const std::string path = folder.File("train.toml");
  TrainInfo info;
  info.status = RunStatus::kStopped;
  info.kind = kUnetTeacher;
  info.options = {{"lr", "0.1"}, {"data", "a \"quoted\" name"}};
  info.model_sha256 = "m";
  info.data_sha256 = "d";
  info.fingerprint = "f";
  info.mergeplan_version = "1";
  info.torch_version = "2";
  info.parameters = 12;
  info.updates = 3;
  info.loss = 0.25;
  info.seconds = 1.5;
  ASSERT_TRUE(WriteTrainInfo(info, path).ok());
  EXPECT_EQ(*ReadTrainInfo(path), info);
  const std::string text = ReadFile(path).value();
  const auto damaged = [&](const std::string& from, const std::string& to) {
    std::string changed = text;
    const std::size_t at = changed.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    changed.replace(at, from.size(), to);
    EXPECT_TRUE(WriteFileAtomically(path, changed).ok());
    const auto read = ReadTrainInfo(path);
    EXPECT_FALSE(read.ok()) << to;
    return std::string(read.status().message());
  };
  EXPECT_THAT(damaged("format = 1", "format = 2"), HasSubstr("this version reads 1"));
  EXPECT_THAT(damaged("stopped", "paused"), HasSubstr("'status'"));
  EXPECT_THAT(damaged("kind = 'unet'", "kind = 'gan'"), HasSubstr("'kind'"));
  EXPECT_THAT(damaged("updates = 3", "updates = -3"), HasSubstr("'updates'"));
  EXPECT_THAT(damaged("format = 1", "format = 1\nmore = 1"), HasSubstr("unknown key 'more'"));
  EXPECT_THAT(damaged("seconds = 1.5", "seconds = nan"), HasSubstr("'seconds'"));
  info.options["data"] = "\xff";
  EXPECT_FALSE(WriteTrainInfo(info, path).ok());
}

}  // namespace
}  // namespace mergeplan::denoising
