#include "adapters/analytic/mixture.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

#include "adapters/analytic/gaussian.h"
#include "planner/mixture/mixture_io.h"
#include "planner/operators/gaussian.h"

namespace mergeplan {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class MixtureTeacherTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (std::filesystem::temp_directory_path() / "teacher XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
    path_ = folder_ + "/mixture.toml";
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string folder_, path_;
};

TEST_F(MixtureTeacherTest, LoadsAndSteps) {
  ASSERT_TRUE(WriteMixture(*CircleMixture(), path_).ok());
  const auto teacher = MixtureTeacher::Load(path_);
  ASSERT_TRUE(teacher.ok()) << teacher.status();
  EXPECT_EQ(teacher->path(), path_);
  EXPECT_EQ(teacher->sha256().size(), 64u);
  EXPECT_EQ(teacher->dimensions(), 2);
  EXPECT_EQ(teacher->components(), 8);
  const auto trajectory = teacher->Along(CosineSchedule(32));
  ASSERT_TRUE(trajectory.ok()) << trajectory.status();
  // From the law at level 20 the teacher leads to states like those of level 4: compare the mean
  // squared length, which is alpha^2 (R^2 + 2 * 0.09) + 2 sigma^2 there. The sampler with 32 steps
  // is not exact, so this is a rough bound.
  const std::size_t rows = 4000;
  std::vector<double> z(rows * 2), scratch(trajectory->scratch_size());
  DrawLevel(*trajectory, 20, {1, 0}, 0, rows, z.data());
  const auto length = [&] {
    double sum = 0;
    for (const double value : z) sum += value * value;
    return sum / rows;
  };
  const auto expected = [&](int t) {
    const NoiseLevel level = trajectory->level(t);
    return level.alpha * level.alpha * (25 + 0.18) + 2 * level.sigma * level.sigma;
  };
  EXPECT_NEAR(length(), expected(20), 0.05 * expected(20));
  trajectory->Composite(5, 20, z.data(), rows, z.data(), absl::MakeSpan(scratch));
  EXPECT_NEAR(length(), expected(4), 0.05 * expected(4));
}

TEST_F(MixtureTeacherTest, ErrorsNameTheFile) {
  EXPECT_THAT(MixtureTeacher::Load(path_).status().message(), HasSubstr(path_));
  MixtureSpec spec = CircleMixture()->spec();
  spec.means[0] = 1e200;
  ASSERT_TRUE(WriteMixture(*GaussianMixture::Create(spec), path_).ok());
  const auto teacher = MixtureTeacher::Load(path_);
  ASSERT_TRUE(teacher.ok());
  EXPECT_THAT(teacher->MomentSpectrum().status().message(),
              AllOf(HasSubstr(path_), HasSubstr("too large")));
  Schedule broken = CosineSchedule(3);
  broken.sigma[1] = 0;
  EXPECT_THAT(teacher->Along(broken).status().message(), HasSubstr(path_));
}

// The Gaussian teacher in the basis "pca" is the one for the full covariance: a mixture of one
// component with that covariance takes the same steps in the data's axes.
TEST_F(MixtureTeacherTest, OneFullComponentIsTheGaussianTeacherInItsEigenbasis) {
  MixtureSpec spec;
  spec.name = "one";
  spec.kind = CovarianceKind::kFull;
  spec.components = 1;
  spec.dimensions = 3;
  spec.weights = {1};
  spec.means = {0.5, -1, 2};
  spec.covariances = {2.0, 0.7, -0.3, 0.7, 1.0, 0.2, -0.3, 0.2, 0.5};
  ASSERT_TRUE(WriteMixture(*GaussianMixture::Create(spec), path_).ok());
  const auto mixture = MixtureTeacher::Load(path_);
  ASSERT_TRUE(mixture.ok());
  const auto spectrum = mixture->MomentSpectrum();
  ASSERT_TRUE(spectrum.ok()) << spectrum.status();
  ASSERT_TRUE(WriteSpectrum(*spectrum, folder_ + "/spectrum.toml").ok());
  const auto gaussian = GaussianTeacher::Load(folder_ + "/spectrum.toml", "");
  ASSERT_TRUE(gaussian.ok()) << gaussian.status();
  EXPECT_EQ(gaussian->basis(), "pca");

  const Schedule schedule = CosineSchedule(10);
  const auto trajectory = mixture->Along(schedule);
  ASSERT_TRUE(trajectory.ok());
  // The same state in both descriptions: y along the axes, centred, and z in the data's axes.
  const auto state = [&](const std::vector<double>& y, int t) {
    std::vector<double> z = gaussian->Decode(y);
    for (int j = 0; j < 3; ++j) z[j] += (schedule.alpha[t] - 1) * gaussian->mean()[j];
    return z;
  };
  std::vector<double> y = {0.3, -1.2, 0.8}, z = state(y, 10), scratch(trajectory->scratch_size());
  for (int t = 10; t >= 1; --t) {
    trajectory->Step(t).Apply(z.data(), 1, z.data(), absl::MakeSpan(scratch));
    for (int k = 0; k < 3; ++k) y[k] *= JumpGain(schedule, t, t, gaussian->variances()[k]);
    const std::vector<double> want = state(y, t - 1);
    for (int j = 0; j < 3; ++j) EXPECT_NEAR(z[j], want[j], 1e-12);
  }
}

}  // namespace
}  // namespace mergeplan
