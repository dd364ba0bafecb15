// mergeplan model
#include "adapters/model/model_command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "planner/data/npz.h"
#include "tests/adapters/support.h"
#include "tests/adapters/unet/support.h"

namespace mergeplan {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::MakeUNet;
using testing::SmallConfig;
using testing::TemporaryFolder;

struct Outcome {
  int code;
  std::string out, err;
};
Outcome Call(const ModelArguments& arguments) {
  ::testing::internal::CaptureStdout();
  ::testing::internal::CaptureStderr();
  const int code = RunModelCommand(arguments);
  Outcome outcome{code, ::testing::internal::GetCapturedStdout(), ""};
  outcome.err = ::testing::internal::GetCapturedStderr();
  return outcome;
}

class ModelCommand : public ::testing::Test {
 protected:
  void SetUp() override {
    net_ = MakeUNet(SmallConfig(), 3);
    arguments_.folder = temporary_.File("pipe/unet");
    ASSERT_TRUE(net_->Save(arguments_.folder).ok());
  }
  // A reference made by the network itself, off by `error` of its largest value.
  void WriteReference(double error) {
    std::vector<double> sample(2 * 2 * 8 * 8);
    for (size_t k = 0; k < sample.size(); ++k) sample[k] = static_cast<float>(std::sin(0.3 * k));
    const at::Tensor z = at::tensor(sample, at::kFloat).view({2, 2, 8, 8});
    at::Tensor out = net_->Forward(z, at::tensor({5, 700}, at::kLong), {}).value().detach();
    out = out.to(at::kDouble);
    const double largest = out.abs().max().item<double>();
    out.view(-1)[7] += error * largest;
    NpzWriter writer;
    writer.Add("sample", {2, 2, 8, 8}, sample, NpzWriter::Type::kFloat32);
    writer.Add("timesteps", {2}, std::vector<double>{5, 700}, NpzWriter::Type::kInt64);
    writer.Add("output", {2, 2, 8, 8},
               std::vector<double>(out.data_ptr<double>(), out.data_ptr<double>() + out.numel()));
    arguments_.compare = temporary_.File("io.npz");
    ASSERT_TRUE(writer.Write(*arguments_.compare).ok());
  }

  TemporaryFolder temporary_;
  ModelArguments arguments_;
  std::unique_ptr<unet::UNet2d> net_;
};

TEST_F(ModelCommand, SaysWhatAModelIs) {
  std::filesystem::create_directories(temporary_.File("pipe/scheduler"));
  ASSERT_TRUE(WriteFileAtomically(temporary_.File("pipe/scheduler/scheduler_config.json"),
                                  R"({"_class_name": "DDIMScheduler", "num_train_timesteps": 500,
                                      "prediction_type": "v_prediction"})")
                  .ok());
  std::int64_t count = 0;
  for (const auto& [name, tensor] : net_->Parameters()) count += tensor.numel();
  arguments_.json = true;
  const Outcome outcome = Call(arguments_);
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  const nlohmann::json model = nlohmann::json::parse(outcome.out);
  EXPECT_EQ(model["class"], "UNet2DModel");
  EXPECT_EQ(model["parameters"], count);
  EXPECT_EQ(model["stored_dtypes"], nlohmann::json({"F32"}));
  EXPECT_EQ(model["scheduler"]["prediction_type"], "v_prediction");
  EXPECT_EQ(model["scheduler"]["num_train_timesteps"], 500);
  std::int64_t in_blocks = 0;
  for (const nlohmann::json& block : model["blocks"]) {
    in_blocks += block["parameters"].get<std::int64_t>();
  }
  EXPECT_GT(in_blocks, count * 8 / 10);
  const nlohmann::json& down = model["blocks"][2];
  EXPECT_EQ(down["name"], "down_blocks.1");
  EXPECT_EQ(down["type"], "AttnDownBlock2D");
  EXPECT_EQ(down["heads"], 3);
  EXPECT_EQ(down["resolution"], nlohmann::json({4, 4}));
  arguments_.json = false;
  arguments_.folder = temporary_.File("pipe");  // finds unet/
  const Outcome text = Call(arguments_);
  EXPECT_EQ(text.code, 0);
  EXPECT_THAT(text.out, AllOf(HasSubstr("predicts v_prediction (DDIMScheduler, 500 steps)"),
                              HasSubstr("AttnDownBlock2D"), HasSubstr("4x4 x2")));
}

TEST_F(ModelCommand, ComparesAndExitsAccordingly) {
  WriteReference(0);
  Outcome outcome = Call(arguments_);
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("all within 1e-05"));
  WriteReference(1e-4);
  outcome = Call(arguments_);
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.out,
              AllOf(HasSubstr("1.00e-04  output  <- beyond"), HasSubstr("not within")));
  arguments_.tolerance = 2e-4;
  EXPECT_EQ(Call(arguments_).code, 0);
  WriteReference(NAN);
  EXPECT_EQ(Call(arguments_).code, 1);
}

TEST_F(ModelCommand, WhatCannotBeComparedIsAnError) {
  const auto error_of = [&](const NpzWriter& writer) {
    arguments_.compare = temporary_.File("io.npz");
    EXPECT_TRUE(writer.Write(*arguments_.compare).ok());
    const Outcome outcome = Call(arguments_);
    EXPECT_EQ(outcome.code, 1);
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
    return outcome.err;
  };
  NpzWriter writer;
  EXPECT_THAT(error_of(writer), HasSubstr("io.npz"));
  writer.Add("output", {1}, std::vector<double>{1});
  EXPECT_THAT(error_of(writer), HasSubstr("sample"));
  writer.Add("sample", {1, 3, 8, 8}, std::vector<double>(192));
  writer.Add("timesteps", {1}, std::vector<double>{1});
  EXPECT_THAT(error_of(writer), HasSubstr("z has shape [1, 3, 8, 8]"));
  arguments_.compare = temporary_.File("none.npz");
  EXPECT_EQ(Call(arguments_).code, 1);
  arguments_.folder = temporary_.File("none");
  EXPECT_THAT(Call(arguments_).err, HasSubstr("mergeplan model: "));
}

}  // namespace
}  // namespace mergeplan
