// `mergeplan bench` on networks: budgets, forecast, what samples are like.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "adapters/judge/classifier.h"
#include "adapters/network/script.h"
#include "planner/base/file.h"
#include "planner/data/npz.h"
#include "planner/mixture/mixture.h"
#include "planner/mixture/mixture_io.h"
#include "tests/adapters/command/distill_program.h"
#include "tests/adapters/network/support.h"

namespace mergeplan {
namespace {

using network::testing::NetworkOf;
using network::testing::SmallSignature;
using ::testing::AllOf;
using ::testing::HasSubstr;
using Json = nlohmann::json;

class JudgedBench : public Distill {
 protected:
  void SetUp() override {
    Distill::SetUp();
    network::Signature signature = SmallSignature(64);
    signature.shape = {1, 8, 8};
    signature.scaling = "-1:1";
    ASSERT_TRUE(network::SaveScript(
                    *NetworkOf(signature, "return torch.tanh(z * self.w.reshape(8, 8) * 2)"),
                    signature, File("a net"))
                    .ok());
    judge::ClassifierConfig config;
    config.name = "untrained classifier";
    config.shape = {1, 8, 8};
    config.channels = {4, 4, 4, 5};
    config.deviation = 1;
    ASSERT_TRUE(judge::Classifier::Create(config, 1)->Save(File("features")).ok());
  }
  Outcome Bench(const std::vector<std::string>& more) const {
    std::vector<std::string> a = {"bench",
                                  "--teacher",
                                  "script:" + File("a net") + "/model.toml",
                                  "--teacher-steps",
                                  "3",
                                  "--schedule",
                                  "cosine",
                                  "--batch",
                                  "8",
                                  "--lr",
                                  "0.01",
                                  "--held-out-rows",
                                  "16",
                                  "--strategies",
                                  "vanilla,boot",
                                  "--trials",
                                  "1",
                                  "--threads",
                                  "1"};
    a.insert(a.end(), more.begin(), more.end());
    return Run(a);
  }
};

TEST_F(JudgedBench, SamplesAreComparedAndDrawn) {
  const Outcome outcome = Bench({"--budget", "both,updates=5", "--judge", "teacher",
                                 "--judge-samples", "40", "--features", File("features"),
                                 "--judge-cache", "none", "-o", File("a bench"), "--json"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.err, AllOf(HasSubstr("3 runs: "), HasSubstr("minutes by a probe"),
                                 HasSubstr("MB of frozen networks")));
  const Json json = Json::parse(outcome.out);
  EXPECT_EQ(json["judged"]["features"], "untrained classifier (5 features; not Inception)");
  EXPECT_GE(json["teacher_samples"]["frechet_distance"]["mean"], 0);
  // Both budgets give BOOT the same: it is trained once.
  EXPECT_EQ(json["forecast"]["updates"], 5 + 10 + 10);
  Json total = json["rows"][3];
  EXPECT_NE(total["budget"], json["rows"][1]["budget"]);
  total["budget"] = json["rows"][1]["budget"];
  EXPECT_EQ(total, json["rows"][1]);
  EXPECT_GT(json["forecast"]["minutes"], 0);
  EXPECT_GT(json["forecast"]["snapshot_bytes"], 0);
  ASSERT_EQ(json["rows"].size(), 4u);
  for (const Json& row : json["rows"]) {
    EXPECT_EQ(row["samples"]["samples"], 40);
    EXPECT_GE(row["samples"]["frechet_distance"]["mean"], 0);
    for (const char* share : {"precision", "recall"}) {
      EXPECT_GE(row["samples"][share]["mean"], 0);
      EXPECT_LE(row["samples"][share]["mean"], 1);
    }
    EXPECT_TRUE(
        std::filesystem::exists(File("a bench") + "/" + row["samples"]["grid"].get<std::string>()));
    EXPECT_GT(row["peak_memory_bytes"], 0);
  }
  EXPECT_EQ(json["rows"][0]["error_by_level"].size(), 1u);
  EXPECT_EQ(json["rows"][1]["error_by_level"].size(), 2u);
  EXPECT_EQ(json["rows"][1]["error_by_level"][1]["from"], 3);
  EXPECT_EQ(json["rows"][1]["error_by_level"][1]["to"], 0);
  EXPECT_NE(*ReadFile(File("a bench/boot-per-merge.png")), *ReadFile(File("a bench/teacher.png")));
  const std::string page = *ReadFile(File("a bench/bench.html"));
  EXPECT_THAT(page, AllOf(HasSubstr("data:image/png;base64,"), HasSubstr("not Inception"),
                          HasSubstr("Samples from the same noise")));
  EXPECT_EQ(page.find("FID"), std::string::npos);
  EXPECT_EQ(Json::parse(*ReadFile(File("a bench/bench.json")))["rows"], json["rows"]);
  const std::string csv = *ReadFile(File("a bench/bench.csv"));
  // Every line has as many fields as the first.
  std::size_t fields = 0, commas = 0;
  for (const char c : csv) {
    commas += c == ',' ? 1 : 0;
    if (c != '\n') continue;
    if (fields == 0) fields = commas;
    EXPECT_EQ(commas, fields);
    commas = 0;
  }
  // The text says it too; again into the same folder.
  const Outcome text = Bench({"--budget", "per-merge,updates=2", "--judge", "teacher",
                              "--judge-samples", "8", "--features", File("features"),
                              "--judge-cache", "none", "-o", File("a bench"), "--quiet"});
  ASSERT_EQ(text.code, 0) << text.err;
  EXPECT_EQ(text.err, "");
  EXPECT_THAT(text.out, AllOf(HasSubstr("Frechet distance of 8 samples"),
                              HasSubstr("untrained classifier (5 features; not Inception)")));
}

TEST_F(JudgedBench, LimitsAreHeldAgainstTheForecast) {
  const Outcome outcome = Bench({"--budget", "per-merge,updates=2,calls=3,minutes=1e-9"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.err,
              AllOf(HasSubstr("above the limit calls=3"),
                    HasSubstr("above the limit minutes=1e-09"), HasSubstr("it goes on")));
  const Outcome below = Bench({"--budget", "total,updates=2,calls=1e9,minutes=1e6", "--json"});
  ASSERT_EQ(below.code, 0) << below.err;
  EXPECT_EQ(below.err.find("above"), std::string::npos);
  EXPECT_TRUE(Json::parse(below.out)["forecast"]["above_limits"].empty());
  EXPECT_EQ(Json::parse(below.out)["rows"].size(), 2u);
}

TEST_F(JudgedBench, OptionsAreChecked) {
  network::testing::WritePlain(File("a file"), "x");
  std::filesystem::create_directory(File("full"));
  network::testing::WritePlain(File("full/of something"), "x");
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases = {
      {{"--budget", "much"}, "--budget much: 'much'"},
      {{"--budget", "total,per-merge"}, "two budgets"},
      {{"--budget", "updates=0"}, "'updates=0'"},
      {{"--budget", "updates=1.5"}, "'updates=1.5'"},
      {{"--budget", "calls=nan"}, "'calls=nan'"},
      {{"--budget", "minutes=-1"}, "'minutes=-1'"},
      {{"--budget", "calls=1,calls=2"}, "calls twice"},
      {{"--budget", "updates=3", "--iterations", "4"}, "updates=3 and --iterations 4 differ"},
      {{"--features", File("features")}, "--features: is of --judge"},
      {{"--judge-array", "x"}, "--judge-array: is of --judge"},
      {{"-o", File("a file")}, "expected a name that ends in .csv or .json, or a folder"},
      {{"-o", File("full")}, "holds something else"},
  };
  for (const auto& [more, message] : cases) {
    const Outcome outcome = Bench(more);
    EXPECT_EQ(outcome.code, 2) << message << outcome.err;
    EXPECT_THAT(outcome.err, AllOf(HasSubstr("mergeplan bench: "), HasSubstr(message)));
  }
  // The classifier that comes with mergeplan knows 28 x 28 only.
  const Outcome shape = Bench({"--iterations", "2", "--judge", "teacher", "--judge-cache", "none"});
  EXPECT_EQ(shape.code, 1);
  EXPECT_THAT(shape.err, HasSubstr("--features"));
  // So it does for the samples of linear students; those of mixtures of experts are not judged.
  const auto judged = [&](const std::string& teacher) {
    return Run({"bench", "--teacher", teacher, "--teacher-steps", "4", "--schedule", "cosine",
                "--lr", "0.05", "--iterations", "10", "--strategies", "boot", "--judge", "teacher",
                "--threads", "1"});
  };
  const Outcome linear = judged(Teacher());
  EXPECT_EQ(linear.code, 1);
  EXPECT_THAT(linear.err, HasSubstr("features"));
  ASSERT_TRUE(WriteMixture(*CircleMixture(3, 1.0, 0.3), File("mixture.toml")).ok());
  const Outcome mixture = judged("mixture:" + File("mixture.toml"));
  EXPECT_EQ(mixture.code, 2);
  EXPECT_THAT(mixture.err, HasSubstr("--judge: is of linear or network students"));
}

// The folder of a classifier is a new one: whatever it holds already is somebody's.
TEST_F(JudgedBench, FeaturesAreNeverWrittenOverAnythingElse) {
  NpzWriter npz;
  std::vector<double> pixels;
  for (int i = 0; i < 6 * 64; ++i) pixels.push_back((i * 37) % 256);
  npz.Add("x", {6, 8, 8}, pixels);
  ASSERT_TRUE(npz.Write(File("p.npz")).ok());
  NpzWriter labels;
  labels.Add("x", {6}, {0, 1, 0, 1, 0, 1});
  ASSERT_TRUE(labels.Write(File("l.npz")).ok());
  const std::string before = *ReadFile(File("features/config.json"));
  const auto train = [&](const std::string& folder) {
    return Run({"features", File(folder), "--data", File("p.npz"), "--labels", File("l.npz"),
                "--epochs", "1", "--threads", "1"});
  };
  const Outcome over = train("features");
  EXPECT_EQ(over.code, 2);
  EXPECT_THAT(over.err, AllOf(HasSubstr("holds '"), HasSubstr("nothing was changed")));
  EXPECT_EQ(*ReadFile(File("features/config.json")), before);
  EXPECT_EQ(train("new ones").code, 0);
}

}  // namespace
}  // namespace mergeplan
