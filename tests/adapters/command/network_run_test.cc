// `mergeplan distill` and `bench` with networks: folders, students, going on.
#include <ATen/ops/allclose.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "adapters/network/script.h"
#include "adapters/unet/unet.h"
#include "planner/base/file.h"
#include "planner/mixture/mixture.h"
#include "planner/mixture/mixture_io.h"
#include "planner/runs/result_file.h"
#include "planner/runs/run_info.h"
#include "tests/adapters/command/distill_program.h"
#include "tests/adapters/network/support.h"
#include "tests/adapters/unet/support.h"

namespace mergeplan {
namespace {

using network::testing::Numbers;
using network::testing::SmallNetwork;
using network::testing::SmallSignature;
using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::Not;
using Json = nlohmann::json;

class NetworkRun : public Distill {
 protected:
  void SetUp() override {
    Distill::SetUp();
    ASSERT_TRUE(WriteMixture(*CircleMixture(3, 1.0, 0.3), File("mixture.toml")).ok());
    const network::Signature signature = SmallSignature(2);
    ASSERT_TRUE(
        network::SaveScript(*SmallNetwork(signature, 16, 5), signature, File("a net")).ok());
  }
  std::string Network() const { return "script:" + File("a net") + "/model.toml"; }
  std::vector<std::string> Small(const std::string& run, const std::string& teacher,
                                 const std::vector<std::string>& more = {}) const {
    std::vector<std::string> a = {"distill",   "--strategy",
                                  "boot",      "--teacher-steps",
                                  "4",         "--schedule",
                                  "cosine",    "--batch",
                                  "32",        "--lr",
                                  "0.01",      "--iterations",
                                  "30",        "--held-out-rows",
                                  "64",        "--quiet",
                                  "--teacher", teacher,
                                  "-o",        File(run)};
    a.insert(a.end(), more.begin(), more.end());
    return a;
  }
  std::string Mixture() const { return "mixture:" + File("mixture.toml"); }
};

TEST_F(NetworkRun, ATeacherThatIsANetworkIsDistilledIntoACopy) {
  const Outcome outcome = Run(Small("run", Network(), {"--student-steps", "2", "--json"}));
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Json json = Json::parse(outcome.out);
  EXPECT_EQ(json["status"], "finished");
  EXPECT_TRUE(json["predicted_error"].is_null());
  const auto info = ReadRunInfo(File("run") + "/run.toml");
  ASSERT_TRUE(info.ok()) << info.status();
  EXPECT_EQ(info->student, "network");
  EXPECT_EQ(info->teacher, "script");
  EXPECT_EQ(info->prediction, "none");
  EXPECT_EQ(info->training.at("inputs"), "rollout");
  EXPECT_EQ(info->training.at("fit-iterations"), "0");
  const auto result = ReadRunResult(File("run"));
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->summary.updates, 60);
  EXPECT_GT(result->summary.standard_error.value_or(0), 0);
  EXPECT_EQ(Array("run", "block_range"), (std::vector<double>{1, 2, 3, 4}));
  // child-jump, the default: the wrapper lands where the block does.
  EXPECT_EQ(Array("run", "block_landing"), (std::vector<double>{0, 2}));
  EXPECT_EQ(Array("run", "block_error").back(), *result->summary.standard_error);
  // The students load as what they came from, and have learnt something else.
  const std::vector<double> before =
      Numbers(*network::LoadScript(File("a net") + "/model.toml")->module);
  for (const char* block : {"1-2", "3-4"}) {
    const auto student = network::LoadScript(File("run") + "/student/" + block + "/model.toml");
    ASSERT_TRUE(student.ok()) << student.status();
    EXPECT_EQ(student->signature.shape, (std::vector<std::int64_t>{2}));
    EXPECT_NE(Numbers(*student->module), before);
  }
  // A student of a student.
  EXPECT_EQ(Run(Small("next", "script:" + File("run") + "/student/1-2/model.toml")).code, 0);
  EXPECT_EQ(Run({"distill", "--resume", "-o", File("run"), "--quiet"}).code, 0);
}

TEST_F(NetworkRun, AnalyticTeachersTakeANetworkAsTheirStudent) {
  const std::vector<std::string> fit = {"--student-network", Network(), "--fit-iterations", "200"};
  for (const std::string& teacher : {Mixture(), std::string("analytic:") + File("two.toml")}) {
    ASSERT_TRUE(WriteSpectrum(testing::MakeSpectrum({0.3, 1.7}), File("two.toml")).ok());
    const std::string run = teacher.substr(0, 7);
    const Outcome outcome = Run(Small(run, teacher, fit));
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    const auto info = ReadRunInfo(File(run) + "/run.toml");
    EXPECT_EQ(info->prediction, "moments");
    EXPECT_EQ(info->training.at("inputs"), "analytic");
    EXPECT_EQ(info->training.at("student-network"), Network());
    EXPECT_GT(ReadRunResult(File(run))->summary.predicted, 0);
  }
  const Outcome wrong = Run(Small("wrong", Teacher(), fit));  // six dimensions
  EXPECT_EQ(wrong.code, 1);
  EXPECT_THAT(wrong.err, HasSubstr("has 6 dimensions, the student"));
}

TEST_F(NetworkRun, DataAreTheInputsWhereTheyAreGiven) {
  NpzWriter npz;
  std::vector<double> rows;
  for (int i = 0; i < 40; ++i) rows.push_back(0.01 * i);
  npz.Add("latents", {20, 2}, rows);
  ASSERT_TRUE(npz.Write(File("data.npz")).ok());
  const std::vector<std::string> data = {"--data", File("data.npz"), "--data-rows", "10"};
  ASSERT_EQ(Run(Small("run", Network(), data)).code, 0);
  const auto info = ReadRunInfo(File("run") + "/run.toml");
  EXPECT_EQ(info->training.at("inputs"), "data");
  EXPECT_EQ(info->training.at("data"), File("data.npz"));
  EXPECT_EQ(info->training.at("data-rows"), "10");
  // Other numbers in the file's place.
  rows[0] = 7;
  NpzWriter changed;
  changed.Add("latents", {20, 2}, rows);
  ASSERT_TRUE(changed.Write(File("data.npz")).ok());
  const Outcome resumed = Run({"distill", "--resume", "-o", File("run"), "--quiet"});
  EXPECT_EQ(resumed.code, 1);
  EXPECT_THAT(resumed.err, AllOf(HasSubstr("is not the data"), HasSubstr("--data")));
}

TEST_F(NetworkRun, OptionsAreChecked) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases = {
      {{"--loss", "w"}, "--loss w: expected one of z, x0, epsilon, v"},
      {{"--weighting", "cubic"}, "--weighting cubic: expected one of uniform"},
      {{"--precision", "int8"}, "--precision int8"},
      {{"--layout", "rows"}, "--layout rows: expected one of contiguous, channels_last, auto"},
      {{"--weights", "many"}, "--weights many: expected shared or separate"},
      {{"--gain-bound", "1"}, "--gain-bound 1: expected a number from 0, below 1"},
      {{"--gain-bound", "nan"}, "--gain-bound nan"},
      {{"--gamma", "0"}, "--gamma 0: expected a number above 0"},
      {{"--gamma", "3"}, "--gamma 3: is of --weighting min-snr-gamma"},
      {{"--pool-rows", "8", "--data", File("six.npz")}, "--pool-rows 8: is of --inputs rollout"},
      {{"--pool-rows", "-1"}, "--pool-rows -1: expected an integer from 0 on"},
      {{"--inputs", "data"}, "--data is missing"},
      {{"--inputs", "analytic"}, "is not known; use data or rollout"},
      {{"--data", "x.npy", "--inputs", "rollout"}, "--data: is not used with --inputs rollout"},
      {{"--data-rows", "5"}, "--data-rows: is of --data"},
      {{"--gradient-checkpointing", "yes"}, "networks of script: have none, unet: has"},
      {{"--draws", "chi2"}, "--draws: network students have no such option"},
      {{"--hidden", "5"}, "--hidden: is of affine mixtures of experts"},
      {{"--dtype", "float16"}, "--precision bf16 or fp16"},
      {{"--dtype", "float64", "--precision", "bf16"},
       "--precision bf16: is for networks of float32"},
      {{"--total-updates", "9"}, "--total-updates 9 and --iterations 30: give one of them"},
      {{"--basis", "pca"}, "--basis: is of --spectrum"},
      {{"--memory", "0"}, "--memory 0: expected a number above 0"},
      {{"--reference", "data"}, "only the teacher can be the reference"},
  };
  for (const auto& [more, message] : cases) {
    const Outcome outcome = Run(Small("run", Network(), more));
    EXPECT_EQ(outcome.code, 2) << message;
    EXPECT_THAT(outcome.err, AllOf(HasSubstr("mergeplan distill: "), HasSubstr(message)));
    EXPECT_FALSE(std::filesystem::exists(File("run")));
  }
  // Linear students know none of this.
  for (const std::vector<std::string>& more :
       {std::vector<std::string>{"--loss", "x0"}, {"--data", "x.npy"}, {"--memory", "3"}}) {
    const Outcome outcome = Run(Distill::Small("boot", "run", more));
    EXPECT_EQ(outcome.code, 2);
    EXPECT_THAT(outcome.err, HasSubstr(more[0] + ": is of network students"));
  }
  const Outcome missing = Run(Small("run", "script:" + File("none.toml")));
  EXPECT_EQ(missing.code, 1);
  EXPECT_THAT(missing.err, HasSubstr("none.toml"));
  EXPECT_EQ(Run(Small("run", "unet:" + File("a net"))).code, 1);
}

TEST_F(NetworkRun, ARunThatGoesOnIsTheSame) {
  ASSERT_EQ(Run(Small("run", Network(), {"--loss", "v", "--ema", "0.5"})).code, 0);
  const auto resume = [&](const std::vector<std::string>& more) {
    std::vector<std::string> a = {"distill", "--resume", "-o", File("run"), "--quiet"};
    a.insert(a.end(), more.begin(), more.end());
    return Run(a);
  };
  EXPECT_EQ(resume({"--loss", "v", "--ema", "0.50"}).code, 0);
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases = {
      {{"--loss", "x0"}, "--loss x0: the run in"},
      {{"--lr", "0.02"}, "--lr 0.02: the run in"},
      {{"--student-network", Network()}, "has a copy of the teacher's network"},
      {{"--data", "x.npy"}, "has no data"},
      {{"--teacher", Mixture()}, "has script:"},
  };
  for (const auto& [more, message] : cases) {
    const Outcome outcome = resume(more);
    EXPECT_EQ(outcome.code, 2) << message;
    EXPECT_THAT(outcome.err, HasSubstr(message));
  }
  const network::Signature signature = SmallSignature(2);
  ASSERT_TRUE(network::SaveScript(*SmallNetwork(signature, 16, 6), signature, File("a net")).ok());
  const Outcome other = resume({});
  EXPECT_EQ(other.code, 1);
  EXPECT_THAT(other.err, AllOf(HasSubstr("is not the teacher"), HasSubstr("--teacher")));
}

// Snapshots beyond the limit lie in files, of a run in its folder and of a bench or a calibration
// in one of their own: the numbers are the same.
TEST_F(NetworkRun, ALimitOfMemoryChangesNothing) {
  const std::vector<std::string> little = {"--memory", "0.000001"};
  ASSERT_EQ(Run(Small("free", Network())).code, 0);
  const Outcome limited = Run(Small("limited", Network(), little));
  ASSERT_EQ(limited.code, 0) << limited.err;
  EXPECT_EQ(Array("free", "loss"), Array("limited", "loss"));
  for (const char* command : {"bench", "calibrate"}) {
    std::vector<std::string> a = Small("m.toml", Network(), little);
    a.erase(a.begin(), a.begin() + 3);
    a.insert(a.begin(), command);
    if (a[0] == "bench") {
      a.erase(a.end() - 4, a.end() - 2);  // -o
      a.insert(a.end(), {"--strategies", "boot,progressive", "--trials", "1"});
    }
    const Outcome outcome = Run(a);
    EXPECT_EQ(outcome.code, 0) << command << ": " << outcome.err;
  }
}

// Timesteps are not in a plan's file: they come from the schedule, also where a run goes on and
// where a plan is executed.
TEST_F(NetworkRun, NetworksThatAreToldTimestepsGoOn) {
  network::Signature signature = SmallSignature(2);
  signature.time = network::TimeKind::kTimestep;
  ASSERT_TRUE(network::SaveScript(*SmallNetwork(signature, 16, 5), signature, File("a net")).ok());
  std::vector<std::string> a = Small("run", Network());
  for (size_t i = 0; i + 1 < a.size(); ++i) {
    if (a[i] == "--schedule") a[i + 1] = "ddpm-linear";
  }
  const Outcome first = Run(a);
  ASSERT_EQ(first.code, 0) << first.err;
  const Outcome resumed = Run({"distill", "--resume", "-o", File("run"), "--quiet"});
  EXPECT_EQ(resumed.code, 0) << resumed.err;
  std::vector<std::string> planned = Small("planned", Network());
  planned.erase(planned.begin() + 1, planned.begin() + 7);  // strategy, steps, schedule
  planned.insert(planned.end(), {"--plan", File("run") + "/plan.toml"});
  const Outcome second = Run(planned);
  ASSERT_EQ(second.code, 0) << second.err;
  EXPECT_EQ(Array("run", "loss"), Array("planned", "loss"));
}

// What cannot run at all leaves no folder.
TEST_F(NetworkRun, NetworksThatCannotRunAreSaidBeforeAnythingIsWritten) {
  const network::Signature signature = SmallSignature(2);
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"return z * float('nan')", "gives numbers that are not finite"},
      {"return z[:, :1]", "tried on zeros at level 4"},
      {"return z @ z", "tried on zeros at level 4"}};
  for (const auto& [body, message] : cases) {
    ASSERT_TRUE(network::SaveScript(*network::testing::NetworkOf(signature, body), signature,
                                    File("broken"))
                    .ok());
    const Outcome outcome = Run(Small("run", "script:" + File("broken") + "/model.toml"));
    EXPECT_EQ(outcome.code, 1) << body;
    EXPECT_THAT(outcome.err, HasSubstr(message));
    EXPECT_FALSE(std::filesystem::exists(File("run")));
  }
  ASSERT_TRUE(WriteSpectrum(testing::MakeSpectrum({1, 2, 3}), File("three.toml")).ok());
  const Outcome wrong = Run(Small("run", Network(), {"--spectrum", File("three.toml")}));
  EXPECT_EQ(wrong.code, 1);
  EXPECT_THAT(wrong.err, HasSubstr("has 3 dimensions, the network's samples 2"));
}

TEST_F(NetworkRun, BenchComparesStrategiesUnderBothBudgets) {
  std::vector<std::string> a = Small("run", Network());
  a.resize(a.size() - 2);  // -o RUN
  a.erase(a.begin(), a.begin() + 3);
  const std::vector<std::string> bench = {"bench", "--strategies", "vanilla,boot", "--trials",
                                          "2",     "--json"};
  a.insert(a.begin(), bench.begin(), bench.end());
  const Outcome outcome = Run(a);
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Json json = Json::parse(outcome.out);
  ASSERT_EQ(json["rows"].size(), 4u);
  EXPECT_TRUE(json["basis"].is_null() && json["dimensions"].is_null());  // nothing is known of data
  for (const Json& row : json["rows"]) {
    EXPECT_GT(row["achieved_error"]["mean"], 0);
    EXPECT_GT(row["seconds"], 0);
  }
  EXPECT_EQ(json["rows"][2]["updates_per_merge"], 90);  // vanilla, with what BOOT spends
  EXPECT_EQ(json["rows"][3]["achieved_error"], json["rows"][1]["achieved_error"]);
  // The same as a run.
  ASSERT_EQ(Run(Small("boot", Network())).code, 0);
  EXPECT_LT(std::abs(ReadRunResult(File("boot"))->summary.achieved -
                     json["rows"][1]["achieved_error"]["mean"].get<double>()),
            10 * json["rows"][1]["achieved_error"]["standard_deviation"].get<double>());
}

// Trials are runs with the seeds that follow, pools of rollouts too, and their calls are those that
// were made.
TEST_F(NetworkRun, TrialsOfBenchAreRuns) {
  for (const char* pool : {"0", "20"}) {
    const std::vector<std::string> rollouts = {"--pool-rows", pool};
    std::vector<std::string> a = Small("run", Network(), rollouts);
    a.erase(a.end() - 4, a.end() - 2);  // -o RUN
    a.erase(a.begin(), a.begin() + 3);
    const std::vector<std::string> bench = {"bench",    "--strategies", "vanilla,progressive,boot",
                                            "--budget", "per-merge",    "--trials",
                                            "2",        "--json"};
    a.insert(a.begin(), bench.begin(), bench.end());
    const Outcome outcome = Run(a);
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    const Json json = Json::parse(outcome.out);
    ASSERT_EQ(json["rows"].size(), 3u);
    std::int64_t all = 0;
    for (const Json& row : json["rows"]) {
      double mean = 0;
      for (const char* seed : {"0", "1"}) {
        const std::string strategy = row["strategy"], run = absl::StrCat(pool, strategy, seed);
        std::vector<std::string> b = Small(run, Network(), rollouts);
        b[2] = strategy;
        b.insert(b.end(), {"--seed", seed});
        ASSERT_EQ(Run(b).code, 0);
        const RunSummary summary = ReadRunResult(File(run))->summary;
        EXPECT_EQ(summary.teacher_calls, row["teacher_calls"]) << run;
        EXPECT_EQ(summary.updates, row["updates"]) << run;
        all += summary.teacher_calls;
        mean += summary.achieved / 2;
      }
      EXPECT_NEAR(row["achieved_error"]["mean"], mean, 1e-12 * mean) << pool;
    }
    EXPECT_EQ(json["forecast"]["teacher_calls"], all) << pool;
  }
}

// A diffusers pipeline's folder, with the scheduler beside the network.
// A network that is told classes: rollouts have one at random, data has its own.
TEST_F(NetworkRun, ClassesComeWithTheRows) {
  const network::Signature signature =
      network::testing::WithClasses(SmallSignature(3, network::Prediction::kSample), 3);
  const auto net = network::testing::NetworkOf(
      signature, "return self.w[label].unsqueeze(1).expand_as(z) + 0.1 * z");
  ASSERT_TRUE(network::SaveScript(*net, signature, File("told")).ok());
  const std::string told = "script:" + File("told") + "/model.toml";
  const Outcome rollouts = Run(Small("rollouts", told));
  ASSERT_EQ(rollouts.code, 0) << rollouts.err;
  EXPECT_THAT(*ReadFile(File("rollouts") + "/student/1-4/model.toml"), HasSubstr("classes = 3"));

  std::vector<double> rows, classes;
  for (int i = 0; i < 20; ++i) {
    rows.insert(rows.end(), 3, 0.01 * i);
    classes.push_back(i % 3);
  }
  const auto write = [&](const std::string& name, bool with_rows, const char* labels) {
    NpzWriter npz;
    if (with_rows) npz.Add("x", {20, 3}, rows);
    if (labels != nullptr) npz.Add(labels, {20}, classes, NpzWriter::Type::kInt64);
    ASSERT_TRUE(npz.Write(File(name)).ok());
  };
  write("rows.npz", true, nullptr);
  write("both.npz", true, "labels");
  write("list.npz", false, "c");
  ASSERT_EQ(Run(Small("own", told, {"--data", File("both.npz"), "--array", "x"})).code, 0);
  ASSERT_EQ(
      Run(Small("beside", told, {"--data", File("rows.npz"), "--labels", File("list.npz")})).code,
      0);
  EXPECT_EQ(Array("own", "loss"), Array("beside", "loss"));
  EXPECT_NE(Array("own", "loss"), Array("rollouts", "loss"));
  const auto info = ReadRunInfo(File("own") + "/run.toml");
  EXPECT_EQ(info->training.at("labels"), File("both.npz"));
  EXPECT_EQ(info->training.at("label-array"), "labels");
  EXPECT_EQ(info->training.at("labels-sha256"),
            ReadRunInfo(File("beside") + "/run.toml")->training.at("labels-sha256"));
  for (const char* run : {"own", "beside", "rollouts"}) {
    EXPECT_EQ(Run({"distill", "--resume", "-o", File(run), "--quiet"}).code, 0) << run;
  }
  // Moved together.
  std::filesystem::rename(File("both.npz"), File("moved.npz"));
  const Outcome moved =
      Run({"distill", "--resume", "-o", File("own"), "--quiet", "--data", File("moved.npz")});
  EXPECT_EQ(moved.code, 0) << moved.err;
  // Others are another run.
  classes[3] = 2;
  write("list.npz", false, "c");
  const Outcome changed = Run({"distill", "--resume", "-o", File("beside"), "--quiet"});
  EXPECT_EQ(changed.code, 1);
  EXPECT_THAT(changed.err, AllOf(HasSubstr("is not the labels"), HasSubstr("--labels")));

  const auto refused = [&](const std::string& teacher, const std::vector<std::string>& more,
                           int code, const std::string& words) {
    const Outcome outcome = Run(Small("wrong", teacher, more));
    EXPECT_EQ(outcome.code, code) << words;
    EXPECT_THAT(outcome.err, HasSubstr(words));
    EXPECT_FALSE(std::filesystem::exists(File("wrong")));
  };
  refused(told, {"--data", File("rows.npz")}, 2, "give that of every sample by --labels FILE");
  refused(told, {"--labels", File("list.npz")}, 2, "is of --inputs data");
  refused(Network(), {"--data", File("rows.npz"), "--labels", File("list.npz")}, 2,
          "the network is told no classes");
  refused(Mixture(), {"--student-network", told}, 1, "has 3 classes, the teacher mixture:");
  refused(told, {"--label-array", "c"}, 2, "--label-array: is of --labels");
  NpzWriter two;
  two.Add("p", {20}, classes, NpzWriter::Type::kInt64);
  two.Add("q", {20}, classes, NpzWriter::Type::kInt64);
  ASSERT_TRUE(two.Write(File("two.npz")).ok());
  refused(told, {"--data", File("rows.npz"), "--labels", File("two.npz")}, 1, "give --label-array");
  const std::string sidecar = absl::StrReplaceAll(*ReadFile(File("told") + "/model.toml"),
                                                  {{"classes = 3", "classes = 50"}});
  ASSERT_TRUE(WriteFileAtomically(File("told") + "/many.toml", sidecar).ok());
  refused("script:" + File("told") + "/many.toml", {}, 1, "many.toml: classes is 50, but");
  // bench and calibrate take it, too.
  std::vector<std::string> bench = Small("x", told);
  bench.erase(bench.begin(), bench.begin() + 3);
  bench.erase(bench.end() - 2, bench.end());
  bench.insert(bench.begin(), {"bench", "--strategies", "vanilla,boot", "--trials", "1", "--budget",
                               "per-merge", "--json"});
  const Outcome compared = Run(bench);
  EXPECT_EQ(compared.code, 0) << compared.err;
  std::vector<std::string> pilots = Small("x", told);
  pilots.erase(pilots.begin(), pilots.begin() + 3);
  pilots.back() = File("m.toml");
  pilots.insert(pilots.begin(), "calibrate");
  const Outcome calibrated = Run(pilots);
  EXPECT_EQ(calibrated.code, 0) << calibrated.err;
}

TEST_F(NetworkRun, AUnetFolderBecomesAUnetFolder) {
  ASSERT_TRUE(MakeDirectories(File("pipe") + "/scheduler").ok());
  ASSERT_TRUE(testing::MakeUNet(testing::SmallConfig())->Save(File("pipe") + "/unet").ok());
  ASSERT_TRUE(WriteFileAtomically(File("pipe") + "/scheduler/scheduler_config.json",
                                  R"({"_class_name": "DDIMScheduler", "beta_start": 0.0001,
                                  "beta_end": 0.02, "beta_schedule": "linear", "clip_sample": false,
                                  "num_train_timesteps": 1000, "prediction_type": "sample",
                                  "set_alpha_to_one": true, "timestep_spacing": "trailing"})")
                  .ok());
  std::vector<std::string> a = Small("run", "unet:" + File("pipe") + "/unet");
  for (size_t i = 0; i + 1 < a.size(); ++i) {
    if (a[i] == "--schedule") a[i + 1] = File("pipe") + "/scheduler/scheduler_config.json";
    if (a[i] == "--iterations") a[i + 1] = "3";
    if (a[i] == "--batch" || a[i] == "--held-out-rows") a[i + 1] = "2";
    if (a[i] == "--teacher-steps") a[i + 1] = "2";
    if (a[i] == "--lr") a[i + 1] = "0.0001";
  }
  const Outcome outcome = Run(a);
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const auto before = unet::UNet2d::Load(File("pipe") + "/unet");
  const auto after = unet::UNet2d::Load(File("run") + "/student/1-2");
  ASSERT_TRUE(after.ok()) << after.status();
  EXPECT_EQ((*before)->config().source, (*after)->config().source);
  EXPECT_NE(Numbers(**before), Numbers(**after));

  // Computing blocks twice changes nothing but digits.
  a.back() = File("twice");
  a.insert(a.end(), {"--gradient-checkpointing", "yes"});
  ASSERT_EQ(Run(a).code, 0);
  const auto twice = unet::UNet2d::Load(File("twice") + "/student/1-2");
  ASSERT_TRUE(twice.ok()) << twice.status();
  const auto expected = (*after)->Parameters(), found = (*twice)->Parameters();
  ASSERT_EQ(expected.size(), found.size());
  for (size_t k = 0; k < found.size(); ++k) {
    EXPECT_TRUE(at::allclose(found[k].second, expected[k].second, 1e-3, 1e-5)) << found[k].first;
  }

  // So does another layout; one that the machine chose is the run's from then on.
  const auto last = [&](const std::string& run, const std::vector<std::string>& more) {
    std::vector<std::string> b(a.begin(), a.end() - 3);
    b.insert(b.end(), {File(run), "--threads", "1"});
    b.insert(b.end(), more.begin(), more.end());
    return b;
  };
  ASSERT_EQ(Run(last("last", {"--layout", "channels_last"})).code, 0);
  EXPECT_EQ(ReadRunInfo(File("last") + "/run.toml")->training.at("layout"), "channels_last");
  const auto laid = unet::UNet2d::Load(File("last") + "/student/1-2");
  ASSERT_TRUE(laid.ok()) << laid.status();
  const auto other = (*laid)->Parameters();
  for (size_t k = 0; k < other.size(); ++k) {
    // What has no gradient but rounding moves with it.
    if (absl::StrContains(other[k].first, "to_k.bias")) continue;
    EXPECT_TRUE(at::allclose(other[k].second, expected[k].second, 1e-3, 1e-5)) << other[k].first;
  }
  std::vector<std::string> loud = last("auto", {"--layout", "auto", "--precision", "auto"});
  std::erase(loud, "--quiet");
  const Outcome chosen = Run(loud);
  ASSERT_EQ(chosen.code, 0) << chosen.err;
  EXPECT_THAT(chosen.err,
              AllOf(HasSubstr("layout and precision: "), HasSubstr("channels_last bf16")));
  const std::string run_file = File("auto") + "/run.toml";
  const auto info = ReadRunInfo(run_file);
  EXPECT_THAT(info->training.at("layout"), AnyOf("contiguous", "channels_last"));
  EXPECT_THAT(info->training.at("precision"), AnyOf("full", "bf16"));
  EXPECT_THAT(info->training.at("probed"), HasSubstr("contiguous full "));
  // Its result is made again, and no probe with it.
  std::filesystem::remove(File("auto") + "/result.toml");
  const Outcome resumed = Run({"distill", "--resume", "-o", File("auto"), "--layout", "auto"});
  EXPECT_EQ(resumed.code, 0) << resumed.err;
  EXPECT_THAT(resumed.err, Not(HasSubstr("layout and precision: ")));
  EXPECT_EQ(ReadRunInfo(run_file)->training, info->training);
  const std::string not_it =
      info->training.at("layout") == "contiguous" ? "channels_last" : "contiguous";
  EXPECT_EQ(Run({"distill", "--resume", "-o", File("auto"), "--layout", not_it}).code, 2);

  std::filesystem::remove_all(File("pipe") + "/scheduler");
  const Outcome alone = Run(Small("alone", "unet:" + File("pipe") + "/unet"));
  EXPECT_EQ(alone.code, 1);
  EXPECT_THAT(alone.err, HasSubstr("found no scheduler_config.json"));
}

}  // namespace
}  // namespace mergeplan
