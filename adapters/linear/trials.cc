#include "adapters/linear/trials.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "adapters/linear/merge_task.h"
#include "planner/base/status_macros.h"

namespace mergeplan {

TrainerOptions WithBudget(TrainerOptions options, const Budget& budget) {
  options.lr = budget.lr;
  options.feature_norm = budget.feature_norm;
  options.updates = budget.iterations;
  options.batch = budget.batch;
  return options;
}

absl::StatusOr<std::vector<double>> TrainTrials(const Model& model, const Plan& plan,
                                                const std::vector<std::uint64_t>& seeds,
                                                TrainerOptions options) {
  if (!model.has_schedule() || !model.budget().sgd) {
    return absl::InvalidArgumentError(
        "the budget is a gradient-flow time; training needs a learning rate and a number of "
        "updates (--lr and --iterations)");
  }
  if (plan.teacher_steps() != model.steps()) {
    return absl::InvalidArgumentError(absl::StrCat("the plan has ", plan.teacher_steps(),
                                                   " teacher steps, the schedule ", model.steps()));
  }
  options = WithBudget(options, model.budget());
  const auto d = static_cast<std::ptrdiff_t>(model.dimensions());
  const auto trials = static_cast<std::ptrdiff_t>(seeds.size());
  std::vector<double> learnt(plan.size() * trials * d);  // merges x trials x d
  const auto node_value = [&](std::ptrdiff_t trial, int node) -> std::vector<double> {
    if (plan.is_step(node)) {
      const absl::Span<const double> step = model.A(node + 1);
      return {step.begin(), step.end()};
    }
    const auto begin = learnt.begin() + ((node - plan.teacher_steps()) * trials + trial) * d;
    return {begin, begin + d};
  };
  for (const std::vector<int>& round : plan.MergesByRound()) {
    if (round.empty()) continue;
    std::vector<MergeTask> tasks;
    tasks.reserve(round.size() * seeds.size());
    for (const int merge : round) {
      for (std::ptrdiff_t i = 0; i < trials; ++i) {
        tasks.push_back(
            MakeMergeTask(model, plan, merge, [&](int node) { return node_value(i, node); }));
        tasks.back().seed = seeds[i];
      }
    }
    MP_ASSIGN_OR_RETURN(const std::unique_ptr<Trainer> trainer,
                        MakeLinearTrainer(std::move(tasks), options));
    while (!trainer->done()) MP_RETURN_IF_ERROR(trainer->Advance());
    const TrainerState end = trainer->Save();
    auto from = end.Frozen().begin();
    for (const int merge : round) {
      std::copy(from, from + trials * d, learnt.begin() + merge * trials * d);
      from += trials * d;
    }
  }
  std::vector<double> out(trials * d, 1.0);
  for (std::ptrdiff_t i = 0; i < trials; ++i) {
    for (const int block : plan.blocks()) {
      const std::vector<double> factor = node_value(i, block);
      for (std::ptrdiff_t k = 0; k < d; ++k) out[i * d + k] *= factor[k];
    }
  }
  return out;
}

}  // namespace mergeplan
