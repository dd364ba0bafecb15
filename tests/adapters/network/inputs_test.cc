#include "adapters/network/inputs.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "adapters/network/data.h"
#include "adapters/network/operators.h"
#include "planner/data/npz.h"
#include "tests/adapters/support.h"

namespace mergeplan::network {
namespace {

using mergeplan::testing::TemporaryFolder;
using ::testing::HasSubstr;

struct Maker {
  const char* name;
  std::shared_ptr<Inputs> inputs;
};

std::vector<Maker> All(const Schedule& schedule) {
  const auto trajectory = std::make_shared<const MixtureTrajectory>(
      MixtureTrajectory::Create(CircleMixture(3, 1, 0.3).value(), schedule).value());
  const std::shared_ptr<Teacher> teacher = MakeMixtureTeacher(trajectory, {2}).value();
  return {
      {"gaussian", MakeGaussianInputs({0.5, 2}, schedule, {2}, at::kFloat).value()},
      {"mixture", MakeMixtureInputs(trajectory, {2}, at::kFloat).value()},
      {"data", MakeDataInputs(at::linspace(-1, 1, 20).view({10, 2}), schedule, at::kFloat).value()},
      {"rollout", MakeRolloutInputs(teacher, schedule, 3, 0, at::kFloat).value()},
      {"pool", MakeRolloutInputs(teacher, schedule, 3, 300, at::kFloat).value()}};
}

TEST(NetworkInputs, ARowIsTheSameWhoeverAsks) {
  for (const auto& [name, inputs] : All(LoadSchedule("ddpm-linear", 5).value())) {
    SCOPED_TRACE(name);
    const RowStream stream{7, 2, 4, Lane::kTraining};
    const at::Tensor whole = inputs->Draw(4, stream, 0, 40).value();
    EXPECT_TRUE(whole.sizes().equals({40, 2}));
    EXPECT_EQ(whole.scalar_type(), at::kFloat);
    EXPECT_TRUE(at::isfinite(whole).all().item<bool>());
    EXPECT_TRUE(at::equal(inputs->Draw(4, stream, 13, 9).value(), whole.narrow(0, 13, 9)));
    EXPECT_TRUE(at::equal(inputs->Draw(4, stream, 39, 1).value(), whole.narrow(0, 39, 1)));
    for (const RowStream& other :
         {RowStream{8, 2, 4, Lane::kTraining}, RowStream{7, 1, 4, Lane::kTraining},
          RowStream{7, 2, 3, Lane::kTraining}, RowStream{7, 2, 4, Lane::kHeldOut}}) {
      EXPECT_FALSE(at::equal(inputs->Draw(4, other, 0, 40).value(), whole));
    }
  }
}

// Mean and covariance of many rows are those of the law at the level.
TEST(NetworkInputs, RowsHaveTheirLaw) {
  const Schedule schedule = LoadSchedule("edm", 6).value();
  const double ds = schedule.data_scale;
  for (const auto& [name, inputs] : All(schedule)) {
    SCOPED_TRACE(name);
    const int level = 4;
    const double a = schedule.alpha[level], s = schedule.sigma[level];
    const std::int64_t rows = 20000;
    const at::Tensor z = inputs->Draw(level, {1, 1, 4, Lane::kTraining}, 0, rows).value();
    std::vector<double> variance = {0.5 / (ds * ds), 2 / (ds * ds)};
    double mean = 0;
    if (name == std::string("data")) {  // the two columns of a line of 20 numbers
      const at::Tensor data = at::linspace(-1, 1, 20, at::kDouble).view({10, 2});
      variance = {data.select(1, 0).var(false).item<double>() / (ds * ds),
                  data.select(1, 1).var(false).item<double>() / (ds * ds)};
      mean = a * data.select(1, 0).mean().item<double>() / ds;
    } else if (name != std::string("gaussian")) {
      variance = {(0.5 + 0.09) / (ds * ds), (0.5 + 0.09) / (ds * ds)};  // circle of radius 1
    }
    const bool exact = name != std::string("rollout") && name != std::string("pool");
    for (int k = 0; k < 2; ++k) {
      const double n = a * a * variance[k] + s * s;
      const at::Tensor column = z.select(1, k).to(at::kDouble);
      EXPECT_NEAR(column.var().item<double>(), n, (exact ? 0.05 : 0.2) * n);
      if (k == 0) {
        EXPECT_NEAR(column.mean().item<double>(), mean, 5 * std::sqrt(n / 300));
      }
    }
  }
}

TEST(NetworkInputs, DataRowsAreAllUsedAndNothingElseIs) {
  Schedule clean = LoadSchedule("ddpm-linear", 3).value();
  clean.alpha[1] = 1, clean.sigma[1] = 0;
  const auto inputs =
      MakeDataInputs(at::arange(7, at::kFloat).view({7, 1}), clean, at::kFloat).value();
  const at::Tensor z = inputs->Draw(1, {1, 1, 1, Lane::kTraining}, 0, 300).value();
  std::set<float> seen;
  for (std::int64_t i = 0; i < 300; ++i) seen.insert(z.const_data_ptr<float>()[i]);
  EXPECT_EQ(seen, (std::set<float>{0, 1, 2, 3, 4, 5, 6}));
}

// The states of a rollout's pool at a lower level are the teacher's steps from those above, so a
// target that begins with teacher's steps costs nothing.
TEST(NetworkInputs, APoolKnowsTheTeachersSteps) {
  const Schedule schedule = LoadSchedule("ddpm-linear", 5).value();
  const std::shared_ptr<Teacher> teacher = MakeGaussianTeacher({0.5, 2}, schedule, {2}).value();
  const std::shared_ptr<Inputs> pool =
      MakeRolloutInputs(teacher, schedule, 3, 20, at::kFloat).value();
  const std::shared_ptr<Inputs> fresh =
      MakeRolloutInputs(teacher, schedule, 3, 0, at::kFloat).value();
  const RowStream stream{7, 2, 4, Lane::kTraining};
  Frozen frozen;
  frozen.teacher = teacher;
  const std::vector<Link> links = {{4, 1, -1, 0}, {1, 0, -1, 0}};
  std::int64_t calls = 0;
  const at::Tensor z = pool->Draw(4, stream, 5, 8).value();
  const at::Tensor out = ApplyToRows(links, frozen, *pool, stream, 5, z, &calls).value();
  EXPECT_EQ(calls, 8);  // the second link
  EXPECT_TRUE(at::allclose(out, Apply(links, frozen, z).value(), 1e-6, 1e-6));
  EXPECT_EQ(pool->teacher_calls(), 20 * 4);  // levels 4, 3, 2, 1
  EXPECT_TRUE(at::equal(pool->Draw(4, {1, 1, 4, Lane::kHeldOut}, 0, 3).value(),
                        fresh->Draw(4, {1, 1, 4, Lane::kHeldOut}, 0, 3).value()));
  calls = 0;
  const at::Tensor y = fresh->Draw(4, stream, 5, 8).value();
  ASSERT_TRUE(ApplyToRows(links, frozen, *fresh, stream, 5, y, &calls).ok());
  EXPECT_EQ(calls, 8 * 4);
}

TEST(NetworkInputs, BadDataAreRefused) {
  const Schedule schedule = LoadSchedule("ddpm-linear", 3).value();
  const auto error = [&](const at::Tensor& data) {
    return std::string(MakeDataInputs(data, schedule, at::kFloat).status().message());
  };
  at::Tensor bad = at::zeros({4, 2});
  bad[2][1] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_THAT(error(bad), HasSubstr("row 2"));
  EXPECT_THAT(error(at::zeros({0, 2})), HasSubstr("no row"));
  EXPECT_THAT(error(at::zeros({3})), HasSubstr("no row"));
  EXPECT_FALSE(MakeGaussianInputs({1, -1}, schedule, {2}, at::kFloat).ok());
  EXPECT_FALSE(MakeGaussianInputs({1, NAN}, schedule, {2}, at::kFloat).ok());
  EXPECT_FALSE(MakeGaussianInputs({1}, schedule, {2}, at::kFloat).ok());
  EXPECT_FALSE(MakeGaussianTeacher({1, -1}, schedule, {2}).ok());
  EXPECT_FALSE(MakeGaussianTeacher({1}, schedule, {2}).ok());
  const std::shared_ptr<Teacher> teacher = MakeGaussianTeacher({1}, schedule, {1}).value();
  EXPECT_FALSE(MakeRolloutInputs(teacher, schedule, 0, -1, at::kFloat).ok());
  EXPECT_FALSE(MakeRolloutInputs(teacher, LoadSchedule("flow", 4).value(), 0, 0, at::kFloat).ok());
}

TEST(NetworkData, SamplesAreReadInTheNetworksUnits) {
  const TemporaryFolder folder;
  const std::string path = folder.File("im ages.npz");
  NpzWriter npz;
  std::vector<double> pixels;
  for (int i = 0; i < 600 * 4; ++i) pixels.push_back(i % 256);
  npz.Add("images", {600, 2, 2}, pixels, NpzWriter::Type::kUint8);
  ASSERT_TRUE(npz.Write(path).ok());
  const at::Tensor data = LoadData(path, {}, "-0.5:0.5", {1, 2, 2}).value();
  EXPECT_TRUE(data.sizes().equals({600, 1, 2, 2}));
  const at::Tensor flat = data.flatten();
  for (const int i : {0, 255, 2399}) {
    EXPECT_NEAR(flat[i].item<double>(), pixels[i] / 255 - 0.5, 1e-6);
  }
  EXPECT_NEAR(LoadData(path, {}, "", {4}, 3)->max().item<double>(), 11 / 127.5 - 1, 1e-6);
  EXPECT_EQ(LoadData(path, {}, "", {4}, 300)->size(0), 300);
  EXPECT_THAT(std::string(LoadData(path, {}, "", {3}).status().message()),
              ::testing::AllOf(HasSubstr("[2, 2]"), HasSubstr("[3]")));
  EXPECT_FALSE(LoadData(path, {}, "2:1", {4}).ok());
  EXPECT_FALSE(LoadData(folder.File("none"), {}, "", {4}).ok());
}

// Jumps of the analytic teachers: the mixture of one component is the Gaussian.
TEST(NetworkTeachers, AMixtureOfOneIsTheGaussian) {
  for (const char* name : {"cosine", "edm", "flow"}) {
    const Schedule schedule = LoadSchedule(name, 6).value();
    MixtureSpec spec;
    spec.components = 1;
    spec.dimensions = 2;
    spec.weights = {1};
    spec.means = {0, 0};
    spec.variances = {0.5, 2};
    const auto trajectory = std::make_shared<const MixtureTrajectory>(
        MixtureTrajectory::Create(GaussianMixture::Create(spec).value(), schedule).value());
    const auto mixture = MakeMixtureTeacher(trajectory, {2}).value();
    const auto gaussian = MakeGaussianTeacher({0.5, 2}, schedule, {2}).value();
    const at::Tensor z = at::linspace(-2, 2, 8, at::kDouble).view({4, 2});
    for (const auto& [from, to] :
         std::vector<std::pair<int, int>>{{6, 5}, {1, 0}, {6, 0}, {5, 2}}) {
      EXPECT_TRUE(at::allclose(mixture->Jump(z, from, to).value(),
                               gaussian->Jump(z, from, to).value(), 1e-10, 1e-12))
          << name << from << to;
    }
    EXPECT_FALSE(MakeMixtureTeacher(trajectory, {3}).ok());
  }
}

TEST(NetworkInputs, AFitVisitsAllLevels) {
  std::set<int> seen;
  for (std::uint64_t update = 0; update < 200; ++update) {
    int before = 0;
    for (int slice = 0; slice < 4; ++slice) {
      const int level = PickLevel(10, {1, 0, 0, Lane::kTraining}, update, slice, 4);
      EXPECT_GE(level, before);
      EXPECT_LE(level, 10);
      before = level;
      seen.insert(level);
    }
  }
  EXPECT_EQ(seen.size(), 10U);
  EXPECT_EQ(PickLevel(1, {}, 5, 0, 1), 1);
}

}  // namespace
}  // namespace mergeplan::network
