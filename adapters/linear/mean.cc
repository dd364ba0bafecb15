#include "adapters/linear/mean.h"

#include <algorithm>
#include <limits>
#include <map>

#include "adapters/linear/merge_task.h"
#include "adapters/linear/optimizer.h"

namespace mergeplan {

MeanOfTraining MeanOf(const TrainerOptions& options, absl::Span<const double> n) {
  const auto d = static_cast<std::int64_t>(n.size());
  std::vector<double> sums(n.begin(), n.end());
  for (double& s : sums) s *= static_cast<double>(options.rows());
  const Optimizer<double> optimizer(options, /*time=*/0);
  const auto run = [&](double start, double target) {
    std::vector<double> a(d, start), first(d), average(d, start);
    const std::vector<double> p(d, target);
    const MergeNumbers<double> merge{
        a.data(), p.data(), Optimizer<double>::HasFirst(options.recipe) ? first.data() : nullptr,
        nullptr, Optimizer<double>::HasAverage(options.recipe) ? average.data() : nullptr};
    for (std::int64_t u = 0; u < options.updates; ++u) optimizer.Step(u, d, sums.data(), merge);
    return merge.average == nullptr ? a : average;
  };
  return {run(1, 0), run(0, 1)};
}

std::vector<double> PredictedNodeValues(const Model& model, const Plan& plan,
                                        const TrainerOptions& options) {
  if (options.recipe.is_plain()) return model.NodeValues(plan);
  const auto d = static_cast<size_t>(model.dimensions());
  const auto steps = static_cast<size_t>(plan.teacher_steps());
  std::vector<double> values((steps + plan.size()) * d, std::numeric_limits<double>::quiet_NaN());
  for (size_t t = 0; t < steps; ++t) {
    const absl::Span<const double> step = model.A(static_cast<int>(t) + 1);
    std::copy(step.begin(), step.end(), values.begin() + static_cast<std::ptrdiff_t>(t * d));
  }
  if (!options.recipe.has_prediction()) return values;
  std::map<int, MeanOfTraining> of_level;
  for (int m = 0; m < plan.size(); ++m) {
    const MergeTask task = MakeMergeTask(model, plan, m, [&](int node) {
      return std::vector<double>(values.begin() + static_cast<std::ptrdiff_t>(node * d),
                                 values.begin() + static_cast<std::ptrdiff_t>((node + 1) * d));
    });
    const int level = task.range.last;
    if (of_level.count(level) == 0) of_level[level] = MeanOf(options, model.n(level));
    const MeanOfTraining& mean = of_level[level];
    for (size_t k = 0; k < d; ++k) {
      values[(steps + m) * d + k] = mean.start[k] * task.start[k] + mean.target[k] * task.target[k];
    }
  }
  return values;
}

}  // namespace mergeplan
