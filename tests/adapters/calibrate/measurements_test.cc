// The file that a calibration goes on from, and the linear model's side.
#include "adapters/calibrate/measurements.h"

#include <gtest/gtest.h>

#include <cmath>

#include "adapters/calibrate/linear.h"
#include "planner/base/file.h"
#include "planner/data/npz.h"
#include "tests/adapters/calibrate/synthetic.h"
#include "tests/adapters/support.h"

namespace mergeplan::calibrate {
namespace {

using testing::DesignFor;
using testing::Law;
using testing::Measure;

Measurements Some() {
  Law law;
  law.distance = [](int i, int a, int j) { return 0.1 * (j - i) + 0.01 * (j - a) + 1.0 / 3; };
  law.left = [](double u) { return 1 / (1 + u / 7); };
  law.floor = [](int, int) { return 0.01; };
  law.gain = [](int i, int m) { return 1 + 0.1 * (m - i); };
  Measurements m = Measure(law, DesignFor(5), 5);
  m.probe_calls = std::int64_t{1} << 52;
  m.probe_seconds = 0.1;
  return m;
}

TEST(Measurements, ReadBackEqual) {
  const ::mergeplan::testing::TemporaryFolder folder;
  const Measurements m = Some();
  ASSERT_TRUE(WriteMeasurements(m, folder.File("a b.json")).ok());
  EXPECT_EQ(*ReadMeasurements(folder.File("a b.json")), m);
  const std::string bytes = *MeasurementsNpz(m);
  ASSERT_TRUE(WriteFileAtomically(folder.File("m.npz"), bytes).ok());
  EXPECT_EQ(ReadNpzArray(folder.File("m.npz"), "distance")->shape[0],
            static_cast<std::int64_t>(m.distances.size()));
}

TEST(Measurements, DamagedFilesAreErrors) {
  const ::mergeplan::testing::TemporaryFolder folder;
  const std::string path = folder.File("m.json");
  ASSERT_TRUE(WriteMeasurements(Some(), path).ok());
  const std::string text = *ReadFile(path);
  for (std::size_t cut = 0; cut + 2 < text.size(); cut += 97) {
    ASSERT_TRUE(WriteFileAtomically(path, text.substr(0, cut)).ok());
    EXPECT_TRUE(absl::IsDataLoss(ReadMeasurements(path).status())) << cut;
  }
  for (const char* bad : {"[]", "3", "{}", "{\"format\":1,\"kind\":\"calibration\"}",
                          "{\"format\":2,\"kind\":\"calibration\"}"}) {
    ASSERT_TRUE(WriteFileAtomically(path, bad).ok());
    EXPECT_TRUE(absl::IsDataLoss(ReadMeasurements(path).status())) << bad;
  }
  EXPECT_TRUE(absl::IsNotFound(ReadMeasurements(folder.File("none")).status()));
}

LinearModel::Data Data(int T) {
  LinearModel::Data data;
  data.schedule = CosineSchedule(T);
  data.variances = {0.3, 2.0};
  data.init = Init::kChildJump;
  return data;
}

// One variance, one merge of steps: gamma |J - product| sqrt(n), by hand.
TEST(LinearModel, IsTheFormulaForOneMerge) {
  const int T = 6;
  LinearModel::Data data = Data(T);
  data.variances = {0.3};
  data.copies = 4;  // of the same
  Measurements m;
  m.teacher_steps = T;
  PilotResult r;
  r.pilot = {{2, 5}, {}, 0, false};
  r.updates = {10};
  r.error = {1};
  r.standard_error = {0};
  m.pilots = {r};
  const Schedule& s = data.schedule;
  const auto n = [&](int t) { return s.alpha[t] * s.alpha[t] * 0.3 + s.sigma[t] * s.sigma[t]; };
  const auto jump = [&](int to, int t) {
    return (s.alpha[to] * s.alpha[t] * 0.3 + s.sigma[to] * s.sigma[t]) / n(t);
  };
  double product = 1;
  for (int t = 2; t <= 5; ++t) product *= jump(t - 1, t);
  const double time = 0.7;
  const double error =
      std::exp(-2 * time * n(5)) * std::abs(jump(1, 5) - product) * std::sqrt(4 * n(5));
  m.pilots[0].error = {error * error};
  const LinearModel model = *LinearModel::Fit(data, m);
  EXPECT_NEAR(model.train_time(), time, 1e-4);
  EXPECT_NEAR(*model.ErrorOf(r.pilot), error, 1e-4 * error);
}

TEST(LinearModel, FindsTheTimeOfItsOwnErrors) {
  const int T = 8;
  Measurements m = Some();
  m.teacher_steps = T;
  m.pilots.clear();
  // Errors of the model itself at s = 1.6, from its objective over whole plans.
  ModelSpec spec;
  spec.schedule = CosineSchedule(T);
  spec.variances = {0.3, 2.0};
  spec.budget = Budget::Flow(1.6);
  spec.init = Init::kChildJump;
  spec.reference = Reference::kTeacher;
  const Model truth = *Model::Create(spec);
  for (const Range range : {Range{1, 2}, Range{3, 8}, Range{1, 8}}) {
    const Pilot pilot{range, {}, 0, false};
    const Plan plan = *PlanOf(pilot, T);
    const std::vector<double> values = truth.NodeValues(plan);
    const std::size_t node = static_cast<std::size_t>(T) * 2;
    double sum = 0;
    for (int k = 0; k < 2; ++k) {
      double product = 1;
      for (int t = range.first; t <= range.last; ++t) product *= truth.A(t)[k];
      sum += truth.n(range.last)[k] * std::pow(values[node + k] - product, 2);
    }
    PilotResult r;
    r.pilot = pilot;
    r.updates = {1};
    r.error = {sum};
    r.standard_error = {0};
    m.pilots.push_back(r);
  }
  EXPECT_NEAR(LinearModel::Fit(Data(T), m)->train_time(), 1.6, 1e-3);
  m.pilots.clear();
  EXPECT_TRUE(absl::IsFailedPrecondition(LinearModel::Fit(Data(T), m).status()));
}

TEST(PlanOf, PutsAPilotIntoAPlan) {
  const Plan plan = *PlanOf({{2, 7}, {{2, 3}, {5, 7}}, 0, true}, 8);
  EXPECT_EQ(plan.size(), 3);
  EXPECT_EQ(plan.student_steps(), 3);
  EXPECT_EQ(plan.merges()[2].range(), (Range{2, 7}));
  EXPECT_EQ(plan.merges()[2].children.size(), 3);
}

}  // namespace
}  // namespace mergeplan::calibrate
