#include "adapters/network/signature.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "adapters/network/levels.h"
#include "planner/base/file.h"
#include "planner/data/npz.h"
#include "tests/adapters/support.h"

namespace mergeplan::network {
namespace {

using mergeplan::testing::TemporaryFolder;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr char kSidecar[] = R"(format = 1
file = "net.ts"
prediction = "v_prediction"
shape = [3, 8, 8]
dtype = "float16"
arguments = ["time", "z"]
input = "normalized"
sigma_data = 0.5
scaling = "-1:1"

[time]
kind = "sigma"
scale = 1000
offset = 1
dtype = "int64"
)";

absl::StatusOr<Sidecar> Read(const std::string& text) {
  const TemporaryFolder folder;
  const std::string path = folder.File("a model.toml");
  EXPECT_TRUE(WriteFileAtomically(path, text).ok());
  return ReadSidecar(path);
}

std::string Without(const std::string& text, const std::string& line) {
  std::string out = text;
  const std::size_t at = out.find(line);
  EXPECT_NE(at, std::string::npos) << line;
  return out.erase(at, line.size());
}

TEST(NetworkSignature, EveryKeyIsRead) {
  const absl::StatusOr<Sidecar> read = Read(kSidecar);
  ASSERT_TRUE(read.ok()) << read.status();
  const Signature& s = read->signature;
  EXPECT_TRUE(read->file.ends_with("/net.ts"));
  EXPECT_EQ(s.prediction, Prediction::kVPrediction);
  EXPECT_EQ(s.shape, (std::vector<std::int64_t>{3, 8, 8}));
  EXPECT_EQ(s.dimensions(), 192);
  EXPECT_EQ(s.dtype, "float16");
  EXPECT_EQ(s.arguments, (std::vector<std::string>{"time", "z"}));
  EXPECT_TRUE(s.normalized_input);
  EXPECT_EQ(s.sigma_data, 0.5);
  EXPECT_EQ(s.scaling, "-1:1");
  EXPECT_EQ(s.time, TimeKind::kSigma);
  EXPECT_EQ(s.time_scale, 1000);
  EXPECT_EQ(s.time_offset, 1);
  EXPECT_TRUE(s.integer_time);
  EXPECT_FALSE(s.table.has_value());
  EXPECT_TRUE(Read(Without(kSidecar, "file = \"net.ts\"\n"))->file.ends_with("/a model.ts"));
}

TEST(NetworkSignature, WhatIsWrittenReadsBack) {
  Signature s = Read(kSidecar)->signature;
  s.time = TimeKind::kTable;
  s.table = TrainingTable{{0.9, 0.5, 0}, {0.1, 0.5, 1}, {0, 10, 40}, {1, 0.25, 7}, 40};
  const TemporaryFolder folder;
  const std::string path = folder.File("it's a \"model\".toml");
  ASSERT_TRUE(WriteSidecar(s, "net.ts", path).ok());
  const absl::StatusOr<Sidecar> read = ReadSidecar(path);
  ASSERT_TRUE(read.ok()) << read.status();
  const Signature& r = read->signature;
  EXPECT_EQ(r.prediction, s.prediction);
  EXPECT_EQ(r.shape, s.shape);
  EXPECT_EQ(r.dtype, s.dtype);
  EXPECT_EQ(r.arguments, s.arguments);
  EXPECT_EQ(r.normalized_input, s.normalized_input);
  EXPECT_EQ(r.sigma_data, s.sigma_data);
  EXPECT_EQ(r.time, s.time);
  EXPECT_EQ(r.time_scale, s.time_scale);
  EXPECT_EQ(r.time_offset, s.time_offset);
  EXPECT_EQ(r.integer_time, s.integer_time);
  EXPECT_EQ(r.scaling, s.scaling);
  ASSERT_TRUE(r.table.has_value());
  EXPECT_EQ(r.table->alpha, s.table->alpha);
  EXPECT_EQ(r.table->sigma, s.table->sigma);
  EXPECT_EQ(r.table->timestep, s.table->timestep);
  EXPECT_EQ(r.table->time, s.table->time);
  EXPECT_EQ(r.table->steps, s.table->steps);
}

TEST(NetworkSignature, ClassesReadBack) {
  TemporaryFolder folder;
  Signature s;
  s.shape = {2};
  s.classes = 10;
  s.arguments = {"z", "label", "time"};
  s.time = TimeKind::kFraction;
  ASSERT_TRUE(WriteSidecar(s, "model.ts", folder.File("model.toml")).ok());
  const auto read = ReadSidecar(folder.File("model.toml"));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->signature.classes, 10);
  EXPECT_EQ(read->signature.arguments, s.arguments);
}

TEST(NetworkSignature, WrongKeysAreNamed) {
  const struct {
    const char* line;
    const char* instead;
    const char* key;
  } cases[] = {
      {"format = 1", "format = 2", "'format'"},
      {"prediction = \"v_prediction\"", "prediction = \"velocity\"", "'prediction'"},
      {"prediction = \"v_prediction\"\n", "", "'prediction'"},
      {"shape = [3, 8, 8]", "shape = [3, 0, 8]", "'shape'"},
      {"shape = [3, 8, 8]", "shape = [3, 1e9, 8]", "'shape'"},
      {"shape = [3, 8, 8]\n", "", "'shape'"},
      {"shape = [3, 8, 8]", "shape = \"3\"", "'shape'"},
      {"shape = [3, 8, 8]", "shape = [999999999, 999999999, 999999999]", "'shape'"},
      {"dtype = \"float16\"", "dtype = \"int8\"", "'dtype'"},
      {"arguments = [\"time\", \"z\"]", "arguments = [\"z\"]", "'arguments'"},
      {"arguments = [\"time\", \"z\"]", "arguments = [\"z\", \"z\"]", "'arguments'"},
      {"arguments = [\"time\", \"z\"]", "arguments = [\"time\", \"z\", \"label\"]",
       "'arguments': is [time, z, label], expected z and time in the order of forward; a network "
       "that is told a label has classes = HOW MANY"},
      {"arguments = [\"time\", \"z\"]", "classes = 3\narguments = [\"time\", \"z\"]",
       "expected z, time and label"},
      {"arguments = [\"time\", \"z\"]", "classes = 2.5", "'classes': is 2.5"},
      {"arguments = [\"time\", \"z\"]", "classes = -2", "'classes': is -2"},
      {"input = \"normalized\"", "input = \"c_in\"", "'input'"},
      {"sigma_data = 0.5", "sigma_data = 0", "'sigma_data'"},
      {"sigma_data = 0.5", "sigma_data = nan", "'sigma_data'"},
      {"scaling = \"-1:1\"", "scaling = \"1:-1\"", "'scaling'"},
      {"kind = \"sigma\"", "kind = \"t\"", "'time.kind'"},
      {"kind = \"sigma\"", "kind = \"table\"", "'time.kind'"},
      {"scale = 1000", "scale = 0", "'time.scale'"},
      {"scale = 1000", "scale = \"a\"", "'time.scale'"},
      {"dtype = \"int64\"", "dtype = \"long\"", "'time.dtype'"},
      {"format = 1", "format = 1\ncolour = 3", "unknown key 'colour'"},
      {"offset = 1", "shift = 1", "unknown key 'time.shift'"},
      {"dtype = \"int64\"", "dtype = \"int64\"\n[schedule]\nname = \"nonsense\"", "nonsense"},
      {"dtype = \"int64\"", "dtype = \"int64\"\n[schedule]\nsteps = 3", "'schedule'"},
      {"dtype = \"int64\"", "dtype = \"int64\"\n[schedule]\nname = \"cosine\"\nsteps = 0.5",
       "'schedule.steps'"},
      {"dtype = \"int64\"", "dtype = \"int64\"\n[schedule]\narrays = \"none.npz\"", "none.npz"},
      {"dtype = \"int64\"", "dtype = \"int64\"\n[schedule]\nname = \"cosine\"\nlevels = 3",
       "unknown key 'schedule.levels'"},
      {"format = 1", "format = ", "a model.toml"},
  };
  for (const auto& c : cases) {
    std::string text = kSidecar;
    const std::size_t at = text.find(c.line);
    ASSERT_NE(at, std::string::npos) << c.line;
    text.replace(at, std::string(c.line).size(), c.instead);
    const absl::StatusOr<Sidecar> read = Read(text);
    EXPECT_FALSE(read.ok()) << c.instead;
    EXPECT_THAT(std::string(read.status().message()), HasSubstr(c.key)) << c.instead;
  }
}

// Whatever a file says, it is a signature that is valid or an error in one line.
TEST(NetworkSignature, MutatedSidecarsAreReadOrRefused) {
  std::mt19937 random(5);
  const std::string good =
      std::string(kSidecar) + "[schedule]\nname = \"ddpm-linear\"\nsteps = 9\n";
  const TemporaryFolder folder;
  const std::string path = folder.File("m.toml");
  int read = 0;
  for (int round = 0; round < 1500; ++round) {
    std::string text = good;
    for (int change = random() % 4 == 0; change >= 0; --change) {
      const std::size_t at = random() % text.size();
      switch (random() % 4) {
        case 0:
          text[at] = static_cast<char>(random() % 128);
          break;
        case 1:
          text.erase(at, 1 + random() % 12);
          break;
        case 2:
          text.insert(at, good.substr(random() % good.size(), random() % 20));
          break;
        default:
          text.insert(at, std::vector<std::string>{"-", "0", "1e308", "nan", "[", "\"", "\n",
                                                   "="}[random() % 8]);
          break;
      }
      if (text.empty()) text = " ";
    }
    std::ofstream(path, std::ios::binary | std::ios::trunc) << text;
    const absl::StatusOr<Sidecar> sidecar = ReadSidecar(path);
    if (!sidecar.ok()) {
      EXPECT_THAT(std::string(sidecar.status().message()),
                  AllOf(HasSubstr("m.toml"), ::testing::Not(HasSubstr("\n"))))
          << text;
      continue;
    }
    ++read;
    EXPECT_TRUE(Validate(sidecar->signature, "x").ok());
    const auto levels = LevelInputs(sidecar->signature, LoadSchedule("ddpm-linear", 4).value());
    if (!levels.ok()) continue;
    for (int t = 1; t <= 4; ++t) {
      EXPECT_TRUE(std::isfinite((*levels)[t].time) && std::isfinite((*levels)[t].scale)) << text;
    }
  }
  EXPECT_GT(read, 10);
}

TEST(NetworkSignature, TablesThatAreNoScheduleAreRefused) {
  Signature s = Read(kSidecar)->signature;
  const auto error = [&](TrainingTable table, TimeKind time = TimeKind::kSigma) {
    s.table = std::move(table);
    s.time = time;
    return std::string(Validate(s, "x").message());
  };
  EXPECT_THAT(error({{1}, {0}, {0}, {}, 1}), HasSubstr("two or more"));
  EXPECT_THAT(error({{1, 0.5}, {0.1}, {0, 1}, {}, 1}), HasSubstr("two or more"));
  EXPECT_THAT(error({{0.5, 0.9}, {0.5, 0.1}, {0, 1}, {}, 1}), HasSubstr("does not fall"));
  EXPECT_THAT(error({{0.5, 0.5}, {0.5, 0.5}, {0, 1}, {}, 1}), HasSubstr("does not fall"));
  EXPECT_THAT(error({{0.5, NAN}, {0.5, 1}, {0, 1}, {}, 1}), HasSubstr("entry 1"));
  EXPECT_THAT(error({{0.9, 0.5}, {0.1, 0.5}, {0}, {}, 1}), HasSubstr("timesteps"));
  EXPECT_THAT(error({{0.9, 0.5}, {0.1, 0.5}, {0, 1}, {}, 0}, TimeKind::kFraction),
              HasSubstr("steps is 0"));
  EXPECT_THAT(error({{0.9, 0.5}, {0.1, 0.5}, {0, 1}, {}, 1}, TimeKind::kTable),
              HasSubstr("array of times"));
}

Signature Wants(TimeKind time) {
  Signature s;
  s.shape = {2};
  s.time = time;
  return s;
}

TEST(NetworkLevels, ATableGivesBackItsOwnTimesteps) {
  const Schedule run = LoadSchedule("ddpm-linear", 20).value();
  const auto of_run = LevelInputs(Wants(TimeKind::kTimestep), run).value();
  Signature with_table = Wants(TimeKind::kTimestep);
  with_table.table = TableOfSchedule("ddpm-linear", 1000).value();
  const auto of_table = LevelInputs(with_table, run).value();
  for (int t = 1; t <= 20; ++t) {
    EXPECT_EQ(of_run[t].time, run.timesteps[t]);
    EXPECT_EQ(of_table[t].time, run.timesteps[t]) << t;
    EXPECT_NEAR(of_table[t].scale, 1, 1e-12);
  }
  // Another schedule's levels lie between the entries, in order; its last one, without signal, is
  // 0.006 rad beyond the last entry.
  const auto flow = LevelInputs(with_table, LoadSchedule("flow", 8).value()).value();
  for (int t = 2; t <= 8; ++t) EXPECT_GT(flow[t].time, flow[t - 1].time);
  EXPECT_EQ(flow[8].time, 999);
}

TEST(NetworkLevels, BetweenEntriesTheLogRatioIsInterpolated) {
  Signature s = Wants(TimeKind::kFraction);
  s.table = TrainingTable{
      {std::sqrt(0.9), std::sqrt(0.1)}, {std::sqrt(0.1), std::sqrt(0.9)}, {10, 30}, {}, 40};
  Schedule run;
  const double r = std::pow(9.0, 0.25);  // alpha/sigma, halfway between 3 and 1 in its log
  run.alpha = {1, r / std::hypot(1, r), 1 / std::sqrt(2.0)};
  run.sigma = {0, 1 / std::hypot(1, r), 1 / std::sqrt(2.0)};
  run.level_scale = {1, 1, 1};
  const auto levels = LevelInputs(s, run).value();
  EXPECT_NEAR(levels[1].time, 15.0 / 40, 1e-12);
  EXPECT_NEAR(levels[2].time, 20.0 / 40, 1e-12);
  // Beyond the table by more than a little.
  run.alpha[2] = 0.2;
  run.sigma[2] = std::sqrt(1 - 0.04);
  EXPECT_THAT(std::string(LevelInputs(s, run).status().message()),
              AllOf(HasSubstr("level 2"), HasSubstr("noisiest")));
  run.alpha[1] = 0.99;
  run.sigma[1] = std::sqrt(1 - 0.99 * 0.99);
  EXPECT_THAT(std::string(LevelInputs(s, run).status().message()),
              AllOf(HasSubstr("level 1"), HasSubstr("cleanest")));
}

TEST(NetworkLevels, EdmGetsItsPreconditioning) {
  const Schedule run = LoadSchedule("edm", 12).value();
  Signature s = Wants(TimeKind::kLogSnr);
  s.normalized_input = true;
  s.sigma_data = 0.5;
  s.time_scale = -0.125;  // log(sigma) / 4
  const auto levels = LevelInputs(s, run).value();
  Signature native = Wants(TimeKind::kSigma);
  const auto raw = LevelInputs(native, run).value();
  for (int t = 1; t <= 12; ++t) {
    const double sigma = run.level_scale[t] * run.sigma[t];
    EXPECT_NEAR(levels[t].time, std::log(sigma) / 4, 1e-12);
    // c_in x_native = scale z.
    EXPECT_NEAR(levels[t].scale, run.level_scale[t] / std::sqrt(sigma * sigma + 0.25), 1e-12);
    EXPECT_NEAR(raw[t].time, sigma, 1e-12 * sigma);
    EXPECT_NEAR(raw[t].scale, run.level_scale[t], 1e-12 * run.level_scale[t]);
  }
  EXPECT_NEAR(raw[12].time, 80, 1e-9);
}

TEST(NetworkLevels, AFlowNetworkOnAVariancePreservingSchedule) {
  const Schedule run = LoadSchedule("ddpm-cosine", 10).value();
  Signature s = Wants(TimeKind::kSigma);
  s.table = TableOfSchedule("flow", 1000).value();
  s.time_scale = 1000;
  const auto levels = LevelInputs(s, run).value();
  for (int t = 1; t <= 10; ++t) {
    // (1 - tau) x0 + tau eps has the run's ratio where tau = sigma / (alpha + sigma).
    const double tau = run.sigma[t] / (run.alpha[t] + run.sigma[t]);
    EXPECT_NEAR(levels[t].time, 1000 * tau, 1e-3) << t;
    EXPECT_NEAR(levels[t].scale, 1 / (run.alpha[t] + run.sigma[t]), 1e-6) << t;
  }
}

TEST(NetworkLevels, WhatCannotBeToldIsAnError) {
  EXPECT_THAT(std::string(LevelInputs(Wants(TimeKind::kTimestep), LoadSchedule("flow", 4).value())
                              .status()
                              .message()),
              AllOf(HasSubstr("timesteps"), HasSubstr("scheduler_config.json")));
  EXPECT_THAT(
      std::string(LevelInputs(Wants(TimeKind::kLogSnr), CosineSchedule(4)).status().message()),
      AllOf(HasSubstr("level 4"), HasSubstr("log-snr"), HasSubstr("alpha 0")));
  Signature whole = Wants(TimeKind::kFraction);
  whole.time_scale = 999;
  whole.integer_time = true;
  EXPECT_EQ(LevelInputs(whole, CosineSchedule(4)).value()[1].time, 250);
  EXPECT_EQ(LevelInputs(Wants(TimeKind::kFraction), CosineSchedule(1)).value()[1].time, 1);
}

}  // namespace
}  // namespace mergeplan::network
