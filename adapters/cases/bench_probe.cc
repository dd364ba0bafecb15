#include "adapters/cases/bench_probe.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <utility>
#include <vector>

#include "adapters/cases/network_run.h"
#include "planner/base/status_macros.h"

namespace mergeplan {
namespace {

constexpr int kUpdates = 3;

double Now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Steps of the teacher for one fresh row of a merge, inputs included, and jumps of its children.
double StepsOf(const NetworkJob& job, const Merge& merge) {
  double steps = static_cast<double>(merge.children.size());
  if (job.options.inputs == "rollout" && job.options.pool_rows == 0) {
    steps += job.document.plan.teacher_steps() - merge.last;
  }
  return steps;
}

// Of all rows that a merge is trained on. A pool has every row's target once, and those that only
// the teacher leads to already.
double StepsOfAll(const NetworkJob& job, const Merge& merge, double rows) {
  if (job.options.pool_rows == 0) return rows * StepsOf(job, merge);
  for (const int child : merge.children) {
    if (child >= job.document.plan.teacher_steps()) {
      return static_cast<double>(job.options.pool_rows) * StepsOf(job, merge);
    }
  }
  return 0;
}

}  // namespace

absl::StatusOr<BenchSpeed> ProbeNetworks(const NetworkJob& job) {
  const int T = job.document.plan.teacher_steps();
  BenchSpeed speed;
  network::RowStream stream;
  stream.seed = job.seed;
  stream.lane = network::Lane::kHeldOut;
  MP_ASSIGN_OR_RETURN(const at::Tensor z, job.inputs->Draw(T, stream, 0, job.batch));
  const at::Tensor label = job.inputs->Labels(stream, 0, job.batch);
  MP_RETURN_IF_ERROR(job.teacher->Jump(z, T, T - 1, label).status());  // the first one is slower
  const double start = Now();
  int count = 0;
  do {
    MP_RETURN_IF_ERROR(job.teacher->Jump(z, T, T - 1, label).status());
    ++count;
  } while (count < 5 && Now() - start < 0.5);
  speed.row_step = (Now() - start) / count / job.batch;

  speed.update = 0;
  if (job.document.plan.size() == 0) return speed;
  NetworkJob few = job;
  few.options.iterations = kUpdates;
  few.options.total_updates = 0;
  few.options.fit_updates = 0;
  few.options.held_out_rows = 2;
  few.options.recipe.warmup = 0;
  if (few.options.pool_rows > 0) {  // its rollouts are counted by themselves
    few.options.pool_rows = 0;
    MP_ASSIGN_OR_RETURN(few.inputs, network::MakeRolloutInputs(few.teacher, few.schedule, few.seed,
                                                               0, z.options()));
  }
  const double rows = static_cast<double>(job.batch) * job.options.recipe.accumulate;
  const double target = StepsOf(few, job.document.plan.merges()[0]) * speed.row_step * rows;
  MP_ASSIGN_OR_RETURN(const std::unique_ptr<NetworkTraining> training,
                      NetworkTraining::Create(std::move(few), {}));
  const int first = 0;  // its children are single steps
  MP_RETURN_IF_ERROR(training->Train({&first, 1}));
  speed.update = std::max(0.0, training->Figures(0).seconds / kUpdates - target);
  return speed;
}

BenchNeeds NeedsOf(const NetworkJob& job, const BenchSpeed& speed) {
  const Plan& plan = job.document.plan;
  const double rows = static_cast<double>(job.batch) * job.options.recipe.accumulate;
  BenchNeeds needs;
  needs.snapshot_bytes = SnapshotBytes(job);
  needs.seconds = 0;
  for (const Merge& merge : plan.merges()) {
    const double updates = static_cast<double>(job.options.iterations);
    needs.seconds +=
        updates * speed.update + StepsOfAll(job, merge, updates * rows) * speed.row_step;
  }
  if (job.options.fit_updates > 0) {
    needs.seconds +=
        static_cast<double>(job.options.fit_updates) * (speed.update + rows * speed.row_step);
  }
  if (job.options.pool_rows > 0) {
    needs.seconds +=
        static_cast<double>(job.options.pool_rows) * plan.teacher_steps() * speed.row_step;
  }
  // Every jump is measured beside the teacher before and after.
  needs.seconds += static_cast<double>(job.options.held_out_rows) *
                   (plan.teacher_steps() + 4.0 * plan.size()) * speed.row_step;
  return needs;
}

std::int64_t TeacherCallsOf(const NetworkJob& job) {
  const Plan& plan = job.document.plan;
  const int T = plan.teacher_steps();
  const bool rollout = job.options.inputs == "rollout";
  const std::int64_t pool = rollout ? job.options.pool_rows : 0;
  const std::int64_t rows = job.options.iterations * job.batch * job.options.recipe.accumulate;
  std::int64_t calls = 0;
  int lowest = T;  // level that the pool reaches down to
  for (const Merge& merge : plan.merges()) {
    // Children that are single steps: in all, and those that are applied before any other, which
    // stand last.
    int steps = 0, above = 0;
    for (const int child : merge.children) {
      above = plan.is_step(child) ? above + 1 : 0;
      steps += plan.is_step(child) ? 1 : 0;
    }
    if (pool == 0) {
      calls += rows * (steps + (rollout ? T - merge.last : 0));
    } else {
      calls += pool * (steps - above);
      lowest = std::min(lowest, merge.last - above);
    }
  }
  return calls + pool * (T - lowest);
}

double SecondsOfSamples(const NetworkJob& job, const BenchSpeed& speed, std::int64_t samples) {
  return static_cast<double>(samples) * job.document.plan.student_steps() * speed.row_step;
}

std::int64_t SnapshotBytes(const NetworkJob& job) {
  std::int64_t one = 0;
  for (const auto& [name, tensor] : job.student.module->Parameters()) {
    one += static_cast<std::int64_t>(tensor.nbytes());
  }
  const Plan& plan = job.document.plan;
  const int T = plan.teacher_steps();
  std::vector<int> last_needed(static_cast<std::size_t>(plan.size()), plan.rounds());
  for (int m = 0; m < plan.size(); ++m) {
    for (const int child : plan.merges()[m].children) {
      if (child >= T) last_needed[static_cast<std::size_t>(child - T)] = plan.merges()[m].round;
    }
  }
  std::int64_t most = 0;
  for (int round = 1; round <= plan.rounds(); ++round) {
    std::int64_t live = 1;  // what merges of single steps start from
    for (int m = 0; m < plan.size(); ++m) {
      if (plan.merges()[m].round <= round && last_needed[static_cast<std::size_t>(m)] >= round) {
        ++live;
      }
    }
    most = std::max(most, live);
  }
  return most * one;
}

}  // namespace mergeplan
