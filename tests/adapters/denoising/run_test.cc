// mergeplan train-teacher: a folder that can be used, gone on with, and is left alone when it
// should be.
#include "adapters/denoising/run.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <thread>

#include "adapters/cases/network_files.h"
#include "adapters/denoising/pictures.h"
#include "adapters/unet/unet.h"
#include "planner/data/npz.h"
#include "planner/data/samples.h"
#include "planner/runs/run_info.h"
#include "planner/schedule/schedule.h"
#include "tests/adapters/command/distill_program.h"
#include "tests/adapters/denoising/train_teacher.h"
#include "tests/adapters/network/support.h"
#include "tests/adapters/unet/support.h"

namespace mergeplan {
namespace {

using ::testing::HasSubstr;
using testing::SmallConfig;
using testing::TemporaryFolder;

TEST_F(TrainTeacher, LeavesAPipeline) {
  arguments_.json = true;
  const Outcome outcome = Run("a teacher", arguments_);
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const auto said = nlohmann::json::parse(outcome.out);
  EXPECT_EQ(said["status"], "finished");
  EXPECT_EQ(said["updates"], 8);

  const auto network = LoadNetwork({kUnetTeacher, File("a teacher")});
  ASSERT_TRUE(network.ok()) << network.status();
  EXPECT_EQ(network->signature.prediction, network::Prediction::kVPrediction);
  EXPECT_EQ(network->signature.table->alpha.size(), 1000U);
  const auto index =
      nlohmann::json::parse(ReadFile(File("a teacher") + "/model_index.json").value());
  EXPECT_EQ(index["_class_name"], "DDIMPipeline");
  EXPECT_EQ(index["scheduler"][1], "DDIMScheduler");
  EXPECT_TRUE(LoadSchedule(File("a teacher"), 8).ok());
  EXPECT_EQ(Losses("a teacher").substr(0, 40), "update,loss,gradient_norm,lr,skipped,\n3,");
  EXPECT_FALSE(std::filesystem::exists(File("a teacher") + "/checkpoint.safetensors"));
  // Six pictures of 8 x 8, three in a row.
  std::filesystem::create_directory(File("grid"));
  std::filesystem::copy(File("a teacher") + "/samples.png", File("grid"));
  const auto grid = OpenSamples(File("grid"), {});
  ASSERT_TRUE(grid.ok()) << grid.status();
  EXPECT_EQ((*grid)->shape(), (std::vector<std::int64_t>{17, 26}));

  // Again, and further from there.
  ASSERT_EQ(Run("twin", arguments_).code, 0);
  EXPECT_EQ(Weights("twin"), Weights("a teacher"));
  TrainTeacherArguments further = arguments_;
  further.model = File("a teacher");
  further.schedule.reset();
  ASSERT_EQ(Run("further", further).code, 0);
  EXPECT_NE(Weights("further"), Weights("a teacher"));
  EXPECT_EQ(ReadFile(File("further") + "/scheduler/scheduler_config.json").value(),
            ReadFile(File("a teacher") + "/scheduler/scheduler_config.json").value());
  // Of a finished one the figures again.
  const Outcome again = Run("a teacher", Resume());
  EXPECT_EQ(again.code, 0);
  EXPECT_THAT(again.out, HasSubstr("8"));
}

TEST_F(TrainTeacher, StoppedAnywhereEndsBitEqual) {
  arguments_.training["sample-every"] = "4";
  ASSERT_EQ(Run("whole", arguments_).code, 0);
  EXPECT_TRUE(std::filesystem::exists(File("whole") + "/samples-4.png"));
  TrainTeacherArguments part = arguments_;
  part.time_limit = "0";
  Outcome outcome = Run("parts", part);
  EXPECT_EQ(outcome.code, 3);
  EXPECT_THAT(outcome.err, HasSubstr("--resume"));
  // What was left can be used.
  EXPECT_TRUE(LoadNetwork({kUnetTeacher, File("parts")}).ok());
  TrainTeacherArguments resume = Resume();
  resume.time_limit = "0.01";
  int stops = 0;
  while ((outcome = Run("parts", resume)).code == 3 && stops < 50) ++stops;
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_GE(stops, 1);
  EXPECT_EQ(Weights("parts"), Weights("whole"));
  EXPECT_EQ(Losses("parts"), Losses("whole"));
  for (const char* name : {"/samples.png", "/samples-4.png"}) {
    EXPECT_EQ(ReadFile(File("parts") + name).value(), ReadFile(File("whole") + name).value());
  }
}

// Last bits depend on the number of threads, so that of the beginning counts.
TEST_F(TrainTeacher, GoesOnWithAsManyThreads) {
  arguments_.threads = 3;
  arguments_.time_limit = "0";
  ASSERT_EQ(Run("three", arguments_).code, 3);
  at::set_num_threads(1);
  TrainTeacherArguments resume = Resume();
  resume.threads = 0;
  const Outcome outcome = Run("three", resume);
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(at::get_num_threads(), 3);
  at::set_num_threads(1);
}

TEST_F(TrainTeacher, CtrlCStops) {
  const std::vector<std::string> command = {"train-teacher",
                                            "--model",
                                            *arguments_.model,
                                            "--data",
                                            *arguments_.data,
                                            "--schedule",
                                            "ddpm-linear",
                                            "--iterations",
                                            "1000000",
                                            "--batch",
                                            "4",
                                            "--samples",
                                            "0",
                                            "--threads",
                                            "1",
                                            "-o",
                                            File("stopped")};
  Child child(folder_, command);
  while (child.Running() && !std::filesystem::exists(File("stopped") + "/train.toml")) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  child.Signal(SIGINT);
  EXPECT_EQ(child.Wait(), 3) << child.err();
  EXPECT_TRUE(LoadNetwork({kUnetTeacher, File("stopped")}).ok());
  EXPECT_THAT(child.err(), HasSubstr("go on with --resume"));
  TrainTeacherArguments resume = Resume();
  resume.time_limit = "0";
  EXPECT_EQ(Run("stopped", resume).code, 3);
}

// Killed at any moment: what lies in the folder is a training that goes on, or none at all.
TEST_F(TrainTeacher, KilledAnywhereEndsBitEqual) {
  arguments_.training["iterations"] = "60";
  ASSERT_EQ(Run("whole", arguments_).code, 0);
  std::vector<std::string> begin = {"train-teacher",  "--model",    *arguments_.model,   "--data",
                                    *arguments_.data, "--schedule", *arguments_.schedule};
  for (const auto& [name, text] : arguments_.training) {
    begin.push_back("--" + name);
    begin.push_back(text);
  }
  const std::vector<std::string> rest = {"--threads", "1",  "--checkpoint-seconds",
                                         "0",         "-o", File("killed")};
  std::vector<std::string> resume = {"train-teacher", "--resume"};
  begin.insert(begin.end(), rest.begin(), rest.end());
  resume.insert(resume.end(), rest.begin(), rest.end());
  for (const int milliseconds : {20, 70, 150}) {
    Child child(folder_, std::filesystem::exists(File("killed") + "/train.toml") ? resume : begin);
    while (child.Running() && !std::filesystem::exists(File("killed") + "/train.toml")) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
    child.Signal(SIGKILL);
    child.Wait();
  }
  const Outcome outcome = Run("killed", Resume());
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(Weights("killed"), Weights("whole"));
  EXPECT_EQ(Losses("killed"), Losses("whole"));
  for (const auto& entry : std::filesystem::directory_iterator(File("killed"))) {
    EXPECT_EQ(entry.path().string().find(".tmp-"), std::string::npos) << entry.path();
  }
}

TEST_F(TrainTeacher, ResumingAsksForTheSame) {
  arguments_.time_limit = "0";
  ASSERT_EQ(Run("run", arguments_).code, 3);
  const auto refused = [&](TrainTeacherArguments more, const std::string& expected) {
    more.resume = more.quiet = true;
    const Outcome outcome = Run("run", more);
    EXPECT_EQ(outcome.code, 2) << expected;
    EXPECT_THAT(outcome.err, HasSubstr(expected));
  };
  TrainTeacherArguments more;
  more.training = {{"lr", "0.5"}};
  refused(more, "--lr 0.5: the training in");
  more = {};
  more.data = File("other.npz");
  refused(more, "--data");
  more = {};
  more.schedule = "ddpm-linear";
  refused(more, "has ddpm-cosine");
  more = arguments_;
  more.resume = true;
  EXPECT_EQ(Run("run", more).code, 3);  // the same said again

  // Data that changed, a checkpoint that is damaged or gone.
  const std::string data = ReadFile(File("data.npz")).value();
  NpzWriter writer;
  writer.Add("x", {10, 8, 8}, std::vector<double>(640, 7), NpzWriter::Type::kUint8);
  ASSERT_TRUE(writer.Write(File("data.npz")).ok());
  Outcome outcome = Run("run", Resume());
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.err, HasSubstr("not those that the training began with"));
  ASSERT_TRUE(WriteFileAtomically(File("data.npz"), data).ok());
  const std::string toml = ReadFile(File("run") + "/train.toml").value();
  std::string changed = toml;
  changed.replace(changed.find("seed = '3'"), 10, "seed = '4'");
  ASSERT_TRUE(WriteFileAtomically(File("run") + "/train.toml", changed).ok());
  outcome = Run("run", Resume());
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.err, HasSubstr("train.toml"));
  ASSERT_TRUE(WriteFileAtomically(File("run") + "/train.toml", toml).ok());
  const std::string checkpoint = File("run") + "/checkpoint.safetensors";
  std::filesystem::resize_file(checkpoint, 500);
  EXPECT_EQ(Run("run", Resume()).code, 1);
  std::filesystem::remove(checkpoint);
  outcome = Run("run", Resume());
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.err, HasSubstr("checkpoint.safetensors"));
}

TEST_F(TrainTeacher, RefusesWhatItCannotDo) {
  const auto refused = [&](const TrainTeacherArguments& arguments, int code,
                           const std::string& expected) {
    const Outcome outcome = Run("new", arguments);
    EXPECT_EQ(outcome.code, code) << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr(expected));
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
    EXPECT_FALSE(std::filesystem::exists(File("new")));
  };
  TrainTeacherArguments a = arguments_;
  a.model.reset();
  refused(a, 2, "--model: is missing");
  a = arguments_;
  a.data.reset();
  refused(a, 2, "--data: is missing");
  a = arguments_;
  a.schedule.reset();
  refused(a, 2, "--schedule: is missing");
  a = arguments_;
  a.prediction = "flow";
  refused(a, 2, "--prediction flow");
  a = arguments_;
  a.training["lr"] = "fast";
  refused(a, 2, "--lr fast");
  a = arguments_;
  a.time_limit = "later";
  refused(a, 2, "--time-limit later");
  a = arguments_;
  a.model = File("nothing.json");
  refused(a, 1, "nothing.json");
  a = arguments_;
  a.data = File("nothing.npz");
  refused(a, 1, "nothing.npz");
  a = arguments_;
  a.device = "tpu";
  refused(a, 1, "tpu");
  NpzWriter writer;
  writer.Add("x", {3, 8, 9}, std::vector<double>(216, 1), NpzWriter::Type::kUint8);
  ASSERT_TRUE(writer.Write(File("wide.npz")).ok());
  a = arguments_;
  a.data = File("wide.npz");
  refused(a, 1, "expected the network's, [1, 8, 8]");
  a = arguments_;
  a.labels = File("labels.npy");
  refused(a, 2, "the network is told no classes");
  nlohmann::json config = SmallConfig();
  config["in_channels"] = config["out_channels"] = 1;
  config["class_embed_type"] = "timestep";
  ASSERT_TRUE(WriteFileAtomically(File("labels.json"), config.dump()).ok());
  a = arguments_;
  a.model = File("labels.json");
  refused(a, 1, "num_class_embeds is not given");
  config["class_embed_type"] = "identity";
  ASSERT_TRUE(WriteFileAtomically(File("labels.json"), config.dump()).ok());
  refused(a, 1, "class_embed_type identity");
  config["num_class_embeds"] = 3;
  config["class_embed_type"] = nullptr;
  ASSERT_TRUE(WriteFileAtomically(File("labels.json"), config.dump()).ok());
  refused(a, 2, "--labels: is missing, the network is told one of 3 classes");
  const auto labels = [&](const std::vector<double>& numbers) {
    NpzWriter file;
    file.Add("any", {static_cast<std::int64_t>(numbers.size())}, numbers, NpzWriter::Type::kInt64);
    EXPECT_TRUE(file.Write(File("labels.npz")).ok());
  };
  a.labels = File("labels.npz");
  labels({0, 1, 2, 0, 1, 2, 0, 1, 3, 0});
  refused(a, 1, "the label of sample 8 is 3, expected a whole number from 0 to 2");
  labels({0, 1, 2});
  refused(a, 1, "holds 3 labels, expected one for each of the 10 samples");
  a = arguments_;
  a.resume = true;
  refused(a, 2, "no training to resume");

  std::filesystem::create_directory(File("full"));
  ASSERT_TRUE(WriteFileAtomically(File("full") + "/thesis.tex", "x").ok());
  EXPECT_EQ(Run("full", arguments_).code, 2);
  ASSERT_EQ(Run("taken", arguments_).code, 0);
  EXPECT_EQ(Run("taken", arguments_).code, 2);
}

TEST_F(TrainTeacher, DivergedTrainingsFailInOneLine) {
  arguments_.training["lr"] = "1e30";
  arguments_.training["optimizer"] = "sgd";
  arguments_.training["warmup"] = "0";
  const Outcome outcome = Run("wild", arguments_);
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.err, HasSubstr("at update"));
  // The network from before it is still there.
  EXPECT_TRUE(LoadNetwork({kUnetTeacher, File("wild")}).ok());
}

TEST_F(TrainTeacher, OneSampleOneRowOneUpdate) {
  arguments_.rows = 1;
  arguments_.training["batch"] = arguments_.training["iterations"] = "1";
  arguments_.training["samples"] = arguments_.training["sample-steps"] = "1";
  EXPECT_EQ(Run("one", arguments_).code, 0);
  arguments_.schedule = "flow";
  EXPECT_EQ(Run("flow", arguments_).code, 0);
  EXPECT_FALSE(std::filesystem::exists(File("flow") + "/model_index.json"));
  EXPECT_TRUE(std::filesystem::exists(File("flow") + "/samples.png"));
}

TEST_F(TrainTeacher, TrainsTorchScript) {
  network::Signature signature = network::testing::SmallSignature(6);
  signature.prediction = network::Prediction::kEpsilon;
  const auto net = network::testing::SmallNetwork(signature, 5, 1);
  ASSERT_TRUE(network::SaveScript(*net, signature, File("script")).ok());
  NpzWriter writer;
  std::vector<double> values(20 * 6);
  for (std::size_t k = 0; k < values.size(); ++k) values[k] = std::sin(static_cast<double>(k));
  writer.Add("x", {20, 6}, values);
  ASSERT_TRUE(writer.Write(File("vectors.npz")).ok());
  TrainTeacherArguments a = arguments_;
  a.model = File("script") + "/model.toml";
  a.data = File("vectors.npz");
  a.schedule = "cosine";
  EXPECT_EQ(Run("no", a).code, 1);  // epsilon where there is no signal
  a.schedule = "ddpm-linear";
  ASSERT_EQ(Run("trained", a).code, 0);
  const auto trained = network::LoadScript(File("trained") + "/network/model.toml");
  ASSERT_TRUE(trained.ok()) << trained.status();
  ASSERT_TRUE(trained->signature.table.has_value());
  EXPECT_EQ(trained->signature.table->alpha.size(), 1000U);
  EXPECT_NE(network::testing::Numbers(*trained->module), network::testing::Numbers(*net));

  a.time_limit = "0";
  ASSERT_EQ(Run("parts", a).code, 3);
  ASSERT_EQ(Run("parts", Resume()).code, 0);
  EXPECT_EQ(network::testing::Numbers(
                *network::LoadScript(File("parts") + "/network/model.toml")->module),
            network::testing::Numbers(*trained->module));
  a.training["flip"] = "yes";
  EXPECT_EQ(Run("flipped", a).code, 2);
}

}  // namespace
}  // namespace mergeplan
