// A training loop of its own that distils along a plan: data N(0, diag(variances)), whose teacher
// is known, and a student that has one number for every level and coordinate (its estimate of x0 is
// that number times z). What it needs of mergeplan is a plan file and
// adapters/runtime/training_schedule.h.
//
//   training_loop PLAN.toml STEPS      trains every round for STEPS updates, prints the loss of
//   each round before and after, and how
//                                      far the student's samples are from the teacher's
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/index_select.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>

#include <cstdio>
#include <cstdlib>
#include <vector>

#include "adapters/runtime/training_schedule.h"
#include "planner/plan/io/document.h"

namespace {

using mergeplan::Denoiser;
using mergeplan::Round;
using mergeplan::TrainingBatch;
using mergeplan::TrainingSchedule;

template <typename T>
T Or(absl::StatusOr<T> value) {
  if (value.ok()) return *std::move(value);
  std::fprintf(stderr, "training_loop: %s\n", std::string(value.status().message()).c_str());
  std::exit(1);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "training_loop: expected PLAN.toml STEPS\n");
    return 2;
  }
  const TrainingSchedule schedule = Or(TrainingSchedule::FromFile(argv[1]));
  const mergeplan::PlanDocument document = Or(mergeplan::ReadPlan(argv[1]));
  const int steps = std::atoi(argv[2]);
  const int T = schedule.plan().teacher_steps();
  const auto d = static_cast<int64_t>(document.variances.size());

  // The teacher: x0 = alpha lambda z / (alpha^2 lambda + sigma^2), one row for every level.
  std::vector<at::Tensor> rows;
  at::Tensor lambda = at::zeros({d});
  for (int64_t k = 0; k < d; ++k) lambda[k] = document.variances[static_cast<size_t>(k)];
  for (int t = 0; t <= T; ++t) {
    const double a = schedule.schedule().alpha[static_cast<size_t>(t)];
    const double s = schedule.schedule().sigma[static_cast<size_t>(t)];
    rows.push_back(lambda * a / (lambda * (a * a) + s * s));
  }
  const at::Tensor truth = at::stack(rows);
  const Denoiser teacher = [&](const at::Tensor& z, int level) { return z * truth[level]; };

  at::Tensor student = truth.clone().requires_grad_();
  at::Generator generator = at::detail::createCPUGenerator(1);
  for (const Round& round : schedule) {
    const at::Tensor kept = student.detach().clone();
    const Denoiser frozen = [&](const at::Tensor& z, int level) { return z * kept[level]; };
    double first = 0, last = 0;
    for (int update = 0; update < steps; ++update) {
      const at::Tensor x0 = at::randn({256, d}, generator) * lambda.sqrt();
      const TrainingBatch batch = Or(schedule.Sample(round, x0, generator));
      const at::Tensor target = Or(schedule.Target(round, batch, teacher, frozen));
      const at::Tensor estimate = batch.z * at::index_select(student, 0, batch.from);
      const at::Tensor loss = (Or(schedule.Jump(batch, estimate)) - target).square().sum(1).mean();
      loss.backward();
      {
        const at::NoGradGuard no_grad;
        student.sub_(student.grad() * 0.5);
        student.mutable_grad().zero_();
      }
      last = loss.item<double>();
      if (update == 0) first = last;
    }
    std::printf("round %d: %zu merges, loss %.3e -> %.3e\n", round.number, round.merges.size(),
                first, last);
  }

  const at::NoGradGuard no_grad;
  const at::Tensor z = at::randn({4096, d}, generator);
  const at::Tensor learnt = student.detach();
  const at::Tensor made = Or(
      schedule.Run(z, [&](const at::Tensor& state, int level) { return state * learnt[level]; }));
  at::Tensor wanted = z;
  for (int t = T; t > 0; --t) {
    wanted = Or(schedule.Jump(wanted, teacher(wanted, t), t, t - 1));
  }
  std::printf("student of %d steps, teacher of %d: root mean square difference %.3e of %.3e\n",
              schedule.plan().student_steps(), T,
              (made - wanted).square().mean().sqrt().item<double>(),
              wanted.square().mean().sqrt().item<double>());
  return 0;
}
