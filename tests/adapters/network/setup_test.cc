#include "adapters/network/setup.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "adapters/network/executor.h"
#include "adapters/network/script.h"
#include "planner/data/npz.h"
#include "planner/mixture/mixture_io.h"
#include "planner/operators/canonical.h"
#include "planner/spectrum/spectrum.h"
#include "tests/adapters/network/support.h"
#include "tests/adapters/support.h"

namespace mergeplan::network {
namespace {

using mergeplan::testing::MakeSpectrum;
using mergeplan::testing::TemporaryFolder;
using ::testing::AllOf;
using ::testing::HasSubstr;

using testing::SmallNetwork;
using testing::SmallSignature;

class NetworkSetup : public ::testing::Test {
 protected:
  void SetUp() override {
    signature_ = SmallSignature(2, Prediction::kVPrediction);
    ASSERT_TRUE(SaveScript(*SmallNetwork(signature_, 8, 1), signature_, folder_.File("net")).ok());
    ASSERT_TRUE(
        SaveScript(*SmallNetwork(signature_, 4, 2), signature_, folder_.File("other")).ok());
    ASSERT_TRUE(WriteMixture(CircleMixture(3, 1, 0.3).value(), folder_.File("m.toml")).ok());
    ASSERT_TRUE(WriteSpectrum(MakeSpectrum({0.5, 2}), folder_.File("s.toml")).ok());
    NpzWriter npz;
    npz.Add("x", {5, 2}, std::vector<double>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9});
    ASSERT_TRUE(npz.Write(folder_.File("x.npz")).ok());
    network_ = "script:" + folder_.File("net/model.toml");
    other_ = "script:" + folder_.File("other/model.ts");
  }
  std::string Error(const SetupOptions& options) {
    return std::string(MakeSetup(options, schedule_).status().message());
  }

  TemporaryFolder folder_;
  Signature signature_;
  Schedule schedule_ = LoadSchedule("ddpm-linear", 4).value();
  std::string network_, other_;
};

// Every kind of teacher, student and inputs that can be asked for trains.
TEST_F(NetworkSetup, EveryCombinationTrains) {
  const struct {
    std::string teacher, student, inputs, data;
    std::int64_t pool;
    bool fit;
    const char* words;
  } cases[] = {
      {network_, "", "", "", 0, false, "rollout"},
      {network_, network_, "", "", 16, false, "rollout"},
      {network_, other_, "rollout", "", 0, true, "rollout"},
      {network_, "", "", folder_.File("x.npz"), 0, false, "data"},
      {"mixture:" + folder_.File("m.toml"), network_, "", "", 0, true, "analytic"},
      {"mixture:" + folder_.File("m.toml"), other_, "data", folder_.File("x.npz"), 0, true, "data"},
      {"analytic:" + folder_.File("s.toml"), network_, "", "", 0, true, "analytic"},
      {"analytic:" + folder_.File("s.toml"), network_, "rollout", "", 8, true, "rollout"},
  };
  std::vector<std::string> identities;
  for (const auto& c : cases) {
    SCOPED_TRACE(c.teacher + " " + c.student + " " + c.inputs);
    SetupOptions options;
    options.teacher = c.teacher;
    options.student = c.student;
    options.inputs = c.inputs;
    options.data = c.data;
    options.pool_rows = c.pool;
    absl::StatusOr<network::Setup> setup = MakeSetup(options, schedule_);
    ASSERT_TRUE(setup.ok()) << setup.status();
    EXPECT_EQ(setup->needs_fit, c.fit);
    EXPECT_EQ(setup->words, c.words);
    identities.push_back(setup->identity);
    ExecutorOptions training;
    training.iterations = 2;
    training.fit_updates = setup->needs_fit ? 2 : 0;
    training.batch = 4;
    training.held_out_rows = 4;
    const auto executor =
        Executor::Create(setup->teacher, *setup->student, setup->steps, setup->inputs,
                         CanonicalPlan(Strategy::kBoot, 4).value(), training);
    ASSERT_TRUE(executor.ok()) << executor.status();
    const absl::Status status = (*executor)->TrainAll();
    EXPECT_TRUE(status.ok()) << status;
  }
  std::sort(identities.begin(), identities.end());
  EXPECT_EQ(std::unique(identities.begin(), identities.end()), identities.end());
}

TEST_F(NetworkSetup, HalfPrecisionStudentsBecomeFloat32) {
  Signature half = signature_;
  half.dtype = "bfloat16";
  auto network = SmallNetwork(signature_, 8, 1);
  ASSERT_TRUE(network->To(at::kCPU, at::kBFloat16).ok());
  ASSERT_TRUE(SaveScript(*network, half, folder_.File("half")).ok());
  SetupOptions options;
  options.teacher = "script:" + folder_.File("half/model.toml");
  const network::Setup setup = MakeSetup(options, schedule_).value();
  EXPECT_EQ(setup.student->Parameters()[0].second.scalar_type(), at::kFloat);
  EXPECT_EQ(setup.teacher->network()->Parameters()[0].second.scalar_type(), at::kBFloat16);
  const at::Tensor z = at::ones({3, 2});
  const at::Tensor out = setup.teacher->Jump(z, 4, 3).value();
  EXPECT_EQ(out.scalar_type(), at::kFloat);
}

TEST_F(NetworkSetup, WhatDoesNotFitIsSaid) {
  SetupOptions options;
  EXPECT_THAT(Error(options), AllOf(HasSubstr("--teacher"), HasSubstr("KIND:PATH")));
  options.teacher = "vae:" + folder_.path();
  EXPECT_THAT(Error(options), AllOf(HasSubstr("vae:"), HasSubstr("analytic, mixture, script")));
  options.teacher = "script:";
  EXPECT_THAT(Error(options), HasSubstr("KIND:PATH"));
  options.teacher = "mixture:" + folder_.File("m.toml");
  EXPECT_THAT(Error(options), HasSubstr("--student"));
  options.student = options.teacher;
  EXPECT_THAT(Error(options), AllOf(HasSubstr("--student mixture:"), HasSubstr("one of script")));
  options.student = network_;
  options.inputs = "data";
  EXPECT_THAT(Error(options), HasSubstr("--data"));
  options.inputs = "analytic";
  options.data = folder_.File("x.npz");
  EXPECT_THAT(Error(options), HasSubstr("--inputs data"));
  options.data = "";
  options.pool_rows = 5;
  EXPECT_THAT(Error(options), HasSubstr("rollout"));
  options.pool_rows = 0;
  options.inputs = "noise";
  EXPECT_THAT(Error(options), HasSubstr("analytic, data or rollout"));
  options.inputs = "";
  options.teacher = network_;
  options.inputs = "analytic";
  EXPECT_THAT(Error(options), HasSubstr("law is not known"));
  options.inputs = "";
  Signature wide = SmallSignature(3);
  ASSERT_TRUE(SaveScript(*SmallNetwork(wide, 4, 1), wide, folder_.File("wide")).ok());
  options.student = "script:" + folder_.File("wide/model.toml");
  EXPECT_THAT(Error(options), AllOf(HasSubstr("[3]"), HasSubstr("[2]")));
  options.teacher = "analytic:" + folder_.File("s.toml");
  EXPECT_THAT(Error(options), AllOf(HasSubstr("2 dimensions"), HasSubstr("[3]")));
  options.teacher = "script:" + folder_.File("none.toml");
  EXPECT_THAT(Error(options), HasSubstr("none.toml"));
}

}  // namespace
}  // namespace mergeplan::network
