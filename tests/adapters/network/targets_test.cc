#include "adapters/network/targets.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "planner/schedule/schedule.h"

namespace mergeplan::network {
namespace {

constexpr std::int64_t kPoolOfTargets = 150;  // two whole blocks and a part

std::shared_ptr<Inputs> PoolOf(const std::shared_ptr<Teacher>& teacher, const Schedule& schedule) {
  return MakeRolloutInputs(teacher, schedule, 3, kPoolOfTargets, at::kDouble).value();
}

// Two links of the teacher, so that the cache is used: of its own first step the pool knows.
TEST(Targets, AreWhatTheLinksGiveAndEachRowIsPaidOnce) {
  const Schedule schedule = LoadSchedule("ddpm-linear", 5).value();
  const std::shared_ptr<Teacher> teacher = MakeGaussianTeacher({0.5, 2}, schedule, {2}).value();
  const std::shared_ptr<Inputs> pool = PoolOf(teacher, schedule);
  Frozen frozen;
  frozen.teacher = teacher;
  const std::vector<Link> links = {{4, 2, -1, 0}, {2, 0, -1, 0}};
  Targets targets(links, 4);
  std::int64_t calls = 0;
  for (std::uint64_t update = 0; update < 40; ++update) {
    const RowStream stream{7, 2, 4, Lane::kTraining};
    const at::Tensor z = pool->Draw(4, stream, 16 * update, 16).value();
    const at::Tensor target = targets.Of(frozen, *pool, stream, 16 * update, z, &calls).value();
    ASSERT_TRUE(at::allclose(target, Apply(links, frozen, z).value(), 1e-12, 1e-12));
  }
  EXPECT_EQ(calls, 2 * kPoolOfTargets);  // of the second link
}

// A run that is taken up has other rows first, and must see the same bits.
TEST(Targets, DependOnNoOrder) {
  const Schedule schedule = LoadSchedule("cosine", 4).value();
  const std::shared_ptr<Teacher> teacher = MakeGaussianTeacher({0.5, 2}, schedule, {2}).value();
  Frozen frozen;
  frozen.teacher = teacher;
  const std::vector<Link> links = {{4, 2, -1, 0}, {2, 0, -1, 0}};
  const RowStream stream{7, 1, 4, Lane::kTraining};
  std::int64_t calls = 0;
  const auto at_rows = [&](Targets& targets, Inputs& inputs, std::uint64_t first) {
    const at::Tensor z = inputs.Draw(4, stream, first, 8).value();
    return targets.Of(frozen, inputs, stream, first, z, &calls).value();
  };
  Targets forward(links, 4), backward(links, 4);
  const std::shared_ptr<Inputs> one = PoolOf(teacher, schedule), two = PoolOf(teacher, schedule);
  std::vector<at::Tensor> there, back;
  for (int k = 0; k < 6; ++k) there.push_back(at_rows(forward, *one, 8U * k));
  for (int k = 5; k >= 0; --k) back.push_back(at_rows(backward, *two, 8U * k));
  for (int k = 0; k < 6; ++k) EXPECT_TRUE(at::equal(there[k], back[5 - k])) << k;
}

// Rows that are not of the pool: held-out ones, and all of inputs without a pool.
TEST(Targets, FreshRowsAreMadeAfresh) {
  const Schedule schedule = LoadSchedule("cosine", 4).value();
  const std::shared_ptr<Teacher> teacher = MakeGaussianTeacher({0.5, 2}, schedule, {2}).value();
  Frozen frozen;
  frozen.teacher = teacher;
  const std::vector<Link> links = {{4, 2, -1, 0}, {2, 0, -1, 0}};
  for (const std::int64_t rows : {0, 150}) {
    const std::shared_ptr<Inputs> inputs =
        MakeRolloutInputs(teacher, schedule, 3, rows, at::kDouble).value();
    Targets targets(links, 4);
    std::int64_t calls = 0;
    for (int again = 0; again < 2; ++again) {
      const RowStream stream{7, 1, 4, rows == 0 ? Lane::kTraining : Lane::kHeldOut};
      const at::Tensor z = inputs->Draw(4, stream, 0, 8).value();
      const at::Tensor target = targets.Of(frozen, *inputs, stream, 0, z, &calls).value();
      EXPECT_TRUE(at::equal(target, Apply(links, frozen, z).value()));
    }
    EXPECT_EQ(calls, 2 * 8 * 4);
  }
}

}  // namespace
}  // namespace mergeplan::network
