// What a training of a teacher keeps when it goes on: classes, layout, precision.
#include <ATen/ATen.h>
#include <gmock/gmock.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "adapters/cases/network_files.h"
#include "adapters/denoising/pictures.h"
#include "planner/data/samples.h"
#include "planner/schedule/schedule.h"
#include "tests/adapters/denoising/train_teacher.h"

namespace mergeplan {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using testing::SmallConfig;

// What the machine chose is the training's from then on, and it goes on bit by bit.
TEST_F(TrainTeacher, LayoutsAreKept) {
  ASSERT_EQ(Run("plain", arguments_).code, 0);
  TrainTeacherArguments part = arguments_;
  part.training["layout"] = "channels_last";
  ASSERT_EQ(Run("whole", part).code, 0);
  EXPECT_NE(Weights("whole"), Weights("plain"));  // but for rounding
  part.time_limit = "0";
  ASSERT_EQ(Run("parts", part).code, 3);
  Outcome outcome = GoOn("parts", "0.01");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(Weights("parts"), Weights("whole"));

  TrainTeacherArguments any = arguments_;
  any.training["layout"] = any.training["precision"] = "auto";
  any.time_limit = "0";
  any.quiet = false;
  outcome = Run("auto", any);
  ASSERT_EQ(outcome.code, 3) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("layout and precision: "));
  const std::string toml = ReadFile(File("auto") + "/train.toml").value();
  EXPECT_THAT(toml, HasSubstr("probed = 'contiguous full "));
  EXPECT_THAT(toml, Not(HasSubstr("'auto'")));
  TrainTeacherArguments again = Resume();
  again.training["layout"] = "auto";
  outcome = Run("auto", again);
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(ReadFile(File("auto") + "/train.toml").value(),
              HasSubstr("probed = 'contiguous full "));
}

// Classes come with the data or in a file of their own; a training that goes on has the same.
TEST_F(TrainTeacher, TellsTheNetworkItsClass) {
  nlohmann::json config = SmallConfig();
  config["in_channels"] = config["out_channels"] = 1;
  config["num_class_embeds"] = 3;
  ASSERT_TRUE(WriteFileAtomically(File("classes.json"), config.dump()).ok());
  // Black, grey and white pictures: what tells them apart at the noisiest level is the class alone.
  std::vector<double> pixels, classes;
  for (int k = 0; k < 12; ++k) {
    pixels.insert(pixels.end(), 64, 100.0 * (k % 3));
    classes.push_back(k % 3);
  }
  NpzWriter whole, list;
  whole.Add("x", {12, 8, 8}, pixels, NpzWriter::Type::kUint8);
  whole.Add("labels", {12}, classes, NpzWriter::Type::kInt64);
  list.Add("classes", {12}, classes, NpzWriter::Type::kInt64);
  ASSERT_TRUE(whole.Write(File("both.npz")).ok());
  ASSERT_TRUE(list.Write(File("list.npz")).ok());
  TrainTeacherArguments own = arguments_;
  own.model = File("classes.json");
  own.data = File("both.npz");
  own.array = "x";
  own.training["iterations"] = "150";
  own.training["lr"] = "0.01";
  own.training["sample-steps"] = "4";
  ASSERT_EQ(Run("own", own).code, 0);
  // No pipeline of diffusers could tell it a class.
  EXPECT_FALSE(std::filesystem::exists(File("own") + "/model_index.json"));
  TrainTeacherArguments beside = own;
  beside.labels = File("list.npz");
  ASSERT_EQ(Run("beside", beside).code, 0);
  EXPECT_EQ(Weights("beside"), Weights("own"));
  // Two of each of three classes, a row for each.
  std::filesystem::create_directory(File("grid"));
  std::filesystem::copy(File("own") + "/samples.png", File("grid"));
  EXPECT_EQ((*OpenSamples(File("grid"), {}))->shape(), (std::vector<std::int64_t>{26, 17}));

  const auto network = LoadNetwork({kUnetTeacher, File("own")});
  ASSERT_TRUE(network.ok()) << network.status();
  EXPECT_EQ(network->signature.classes, 3);
  std::vector<double> means;
  for (int k = 0; k < 3; ++k) {
    const at::Tensor drawn = denoising::DrawSamples(*network->module, network->signature,
                                                    LoadSchedule(File("own"), 4).value(), 4, 1,
                                                    at::kCPU, at::full({4}, k, at::kLong))
                                 .value();
    means.push_back(drawn.mean().item<double>());
  }
  EXPECT_LT(means[0], means[1] - 0.2);
  EXPECT_LT(means[1], means[2] - 0.2);

  // Stopped and taken up; with other labels it is another training.
  TrainTeacherArguments part = beside;
  part.time_limit = "0";
  ASSERT_EQ(Run("parts", part).code, 3);
  Outcome outcome = GoOn("parts", "0.05");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(Weights("parts"), Weights("own"));
  ASSERT_EQ(Run("other", part).code, 3);
  classes[0] = 1;
  NpzWriter changed;
  changed.Add("classes", {12}, classes, NpzWriter::Type::kInt64);
  ASSERT_TRUE(changed.Write(File("list.npz")).ok());
  outcome = Run("other", Resume());
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.err, HasSubstr("not those that the training began with"));
}

}  // namespace
}  // namespace mergeplan
