// mergeplan train-vae: a folder that can be used and gone on with; what it says of wrong inputs.
#include "adapters/autoencoding/run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <filesystem>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "adapters/vae_latent/vae.h"
#include "planner/data/npz.h"
#include "planner/data/samples.h"
#include "tests/adapters/autoencoding/support.h"
#include "tests/adapters/command/distill_program.h"
#include "tests/adapters/denoising/training_folder.h"

namespace mergeplan {
namespace {

using ::testing::HasSubstr;
using testing::TemporaryFolder;

class TrainVae : public testing::TrainingFolder<TrainVaeArguments> {
 protected:
  TrainVae() : TrainingFolder(&RunTrainVae, "vae") {}
  void SetUp() override {
    ASSERT_TRUE(
        WriteFileAtomically(File("config.json"), autoencoding::SmallVaeConfig().dump()).ok());
    // Blots of several sizes.
    std::vector<double> pixels(12 * 16 * 16);
    for (int n = 0; n < 12; ++n) {
      for (int i = 0; i < 256; ++i) {
        const double x = i % 16 - 3.0 - n % 4 * 3, y = i / 16 - 4.0 - n / 4 * 3;
        pixels[static_cast<std::size_t>(n * 256 + i)] =
            std::round(255 * std::exp(-(x * x + y * y) / (4 + n)));
      }
    }
    WriteArray("data.npz", {12, 16, 16}, pixels, NpzWriter::Type::kUint8);
    arguments_.model = File("config.json");
    arguments_.data = File("data.npz");
    arguments_.training = {{"iterations", "8"}, {"batch", "4"},  {"seed", "3"},
                           {"samples", "4"},    {"flip", "yes"}, {"log-every", "3"}};
  }
  void WriteArray(const std::string& name, const std::vector<std::int64_t>& shape,
                  const std::vector<double>& values,
                  NpzWriter::Type type = NpzWriter::Type::kFloat64) const {
    NpzWriter writer;
    writer.Add("x", shape, values, type);
    ASSERT_TRUE(writer.Write(File(name)).ok());
  }
  // log.csv by columns.
  std::map<std::string, std::vector<std::string>> Log(const std::string& name) const {
    std::istringstream in(ReadFile(File(name) + "/log.csv").value_or("missing"));
    std::vector<std::string> names;
    std::map<std::string, std::vector<std::string>> out;
    for (std::string line; std::getline(in, line);) {
      std::istringstream row(line);
      std::size_t k = 0;
      for (std::string cell; std::getline(row, cell, ','); ++k) {
        if (k >= names.size()) {
          names.push_back(cell);
        } else {
          out[names[k]].push_back(cell);
        }
      }
    }
    out.erase("seconds");
    return out;
  }
};

TEST_F(TrainVae, LeavesAnAutoencoder) {
  arguments_.json = true;
  const Outcome outcome = Run("vae", arguments_);
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(nlohmann::json::parse(outcome.out)["status"], "finished");
  const auto vae = vae::OpenVae(File("vae"));
  ASSERT_TRUE(vae.ok()) << vae.status();
  EXPECT_EQ((*vae)->description().kind, "AutoencoderKL");
  EXPECT_EQ((*vae)->description().reduction, 2);
  EXPECT_EQ(Log("vae")["reconstruction"].size(), 3U);
  EXPECT_EQ(Log("vae")["kl"].size(), 3U);
  // Four pairs of 16 x 32, three in a row: 3 * 16 + 2 by 2 * 32 + 1.
  std::filesystem::create_directory(File("grid"));
  std::filesystem::copy(File("vae") + "/samples.png", File("grid"));
  const auto grid = OpenSamples(File("grid"), {});
  ASSERT_TRUE(grid.ok()) << grid.status();
  EXPECT_EQ((*grid)->shape(), (std::vector<std::int64_t>{65, 50}));
  // Further from there.
  TrainVaeArguments further = arguments_;
  further.model = File("vae");
  ASSERT_EQ(Run("further", further).code, 0);
  EXPECT_NE(Weights("further"), Weights("vae"));
  EXPECT_EQ(Run("vae", Resume()).code, 0);  // nothing left to do
  EXPECT_EQ(Run("vae", arguments_).code, 2);
}

TEST_F(TrainVae, LowersTheLoss) {
  arguments_.training["iterations"] = "60";
  arguments_.training["lr"] = "0.01";
  arguments_.training["log-every"] = "10";
  ASSERT_EQ(Run("vae", arguments_).code, 0);
  const auto losses = Log("vae")["loss"];
  ASSERT_EQ(losses.size(), 6U);
  EXPECT_LT(std::stod(losses.back()), 0.6 * std::stod(losses.front()));
}

TEST_F(TrainVae, StoppedAnywhereEndsBitEqual) {
  ASSERT_EQ(Run("whole", arguments_).code, 0);
  TrainVaeArguments part = arguments_;
  part.time_limit = "0";
  Outcome outcome = Run("parts", part);
  EXPECT_EQ(outcome.code, 3);
  EXPECT_THAT(outcome.err, HasSubstr("mergeplan train-vae: stopped after 0 updates"));
  EXPECT_TRUE(vae::OpenVae(File("parts")).ok());
  TrainVaeArguments resume = Resume();
  resume.time_limit = "0.005";
  int stops = 0;
  while ((outcome = Run("parts", resume)).code == 3 && stops < 50) ++stops;
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_GE(stops, 1);
  EXPECT_EQ(Weights("parts"), Weights("whole"));
  EXPECT_EQ(Log("parts"), Log("whole"));
  EXPECT_EQ(ReadFile(File("parts") + "/samples.png").value(),
            ReadFile(File("whole") + "/samples.png").value());
}

TEST_F(TrainVae, KilledEndsBitEqual) {
  arguments_.training["iterations"] = "40";
  ASSERT_EQ(Run("whole", arguments_).code, 0);
  std::vector<std::string> begin = {"train-vae", "--model", *arguments_.model, "--data",
                                    *arguments_.data};
  for (const auto& [name, text] : arguments_.training) {
    begin.push_back("--" + name);
    begin.push_back(text);
  }
  const std::vector<std::string> rest = {"--threads", "1",  "--checkpoint-seconds",
                                         "0",         "-o", File("killed")};
  std::vector<std::string> resume = {"train-vae", "--resume"};
  begin.insert(begin.end(), rest.begin(), rest.end());
  resume.insert(resume.end(), rest.begin(), rest.end());
  for (const int milliseconds : {20, 70}) {
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
  EXPECT_EQ(Log("killed"), Log("whole"));
}

TEST_F(TrainVae, SaysWhatIsWrong) {
  const auto fault = [&](const TrainVaeArguments& arguments, int code) {
    const Outcome outcome = Run("none", arguments);
    EXPECT_EQ(outcome.code, code) << outcome.err;
    EXPECT_FALSE(std::filesystem::exists(File("none")));
    return outcome.err;
  };
  TrainVaeArguments a = arguments_;
  a.data.reset();
  EXPECT_THAT(fault(a, 2), HasSubstr("--data: is missing, expected pictures"));
  a = arguments_;
  a.model.reset();
  EXPECT_THAT(fault(a, 2), HasSubstr("--model: is missing"));
  a = arguments_;
  a.data = File("nowhere");
  EXPECT_THAT(fault(a, 1), HasSubstr("nowhere"));
  std::filesystem::create_directory(File("empty"));
  a.data = File("empty");
  EXPECT_THAT(fault(a, 1), HasSubstr("empty"));
  a = arguments_;
  a.size = "15x16";
  EXPECT_THAT(fault(a, 1), HasSubstr("takes multiples of 2; --size 16x16"));
  a.size = "4";
  EXPECT_THAT(fault(a, 1), HasSubstr("window"));
  a.size = "big";
  EXPECT_THAT(fault(a, 2), HasSubstr("--size big"));
  WriteArray("three.npz", {5, 3, 16, 16}, std::vector<double>(5 * 3 * 256, 0.5));
  a = arguments_;
  a.data = File("three.npz");
  EXPECT_THAT(fault(a, 1), HasSubstr("channels"));
  std::vector<double> values(5 * 256, 0.5);
  values[300] = std::numeric_limits<double>::quiet_NaN();
  WriteArray("nan.npz", {5, 16, 16}, values);
  a.data = File("nan.npz");
  EXPECT_THAT(fault(a, 1), HasSubstr("sample 1"));
  values[300] = 7;
  WriteArray("large.npz", {5, 16, 16}, values);
  a.data = File("large.npz");
  EXPECT_THAT(fault(a, 1), HasSubstr("0.5 to 7, expected -1 to 1"));
  a = arguments_;
  nlohmann::json tiny = {{"_class_name", "AutoencoderTiny"}};
  ASSERT_TRUE(WriteFileAtomically(File("tiny.json"), tiny.dump()).ok());
  a.model = File("tiny.json");
  EXPECT_THAT(fault(a, 1), HasSubstr("expected an AutoencoderKL"));
  a = arguments_;
  a.training["kl-weight"] = "much";
  EXPECT_THAT(fault(a, 2), HasSubstr("--kl-weight much"));
}

TEST_F(TrainVae, ResumingAsksForTheSame) {
  arguments_.time_limit = "0";
  ASSERT_EQ(Run("run", arguments_).code, 3);
  TrainVaeArguments more = Resume();
  more.training = {{"kl-weight", "0.5"}};
  Outcome outcome = Run("run", more);
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("--kl-weight 0.5: the training in"));
  more = Resume();
  more.size = "32";
  EXPECT_THAT(Run("run", more).err, HasSubstr("--size 32"));
  WriteArray("data.npz", {5, 16, 16}, std::vector<double>(5 * 256, 7), NpzWriter::Type::kUint8);
  outcome = Run("run", Resume());
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.err, HasSubstr("not those that the training began with"));
  // A teacher's training is not an autoencoder's.
  std::string toml = ReadFile(File("run") + "/train.toml").value();
  toml.replace(toml.find("'autoencoder'"), 13, "'unet'");
  ASSERT_TRUE(WriteFileAtomically(File("run") + "/train.toml", toml).ok());
  outcome = Run("run", Resume());
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("another kind of network (unet)"));
}

}  // namespace
}  // namespace mergeplan
