#include "adapters/linear/merge_task.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace mergeplan {

MergeTask MakeMergeTask(const Model& model, const Plan& plan, int merge,
                        absl::FunctionRef<std::vector<double>(int node)> value) {
  const Merge& node = plan.merges()[merge];
  MergeTask task;
  task.range = node.range();
  task.time = static_cast<double>(node.last) / model.steps();
  task.target.assign(model.dimensions(), 1.0);
  std::vector<double> noisiest;
  for (const int child : node.children) {
    std::vector<double> factor = value(child);
    for (size_t k = 0; k < factor.size(); ++k) task.target[k] *= factor[k];
    noisiest = std::move(factor);
  }
  const absl::Span<const double> n = model.n(node.last);
  task.scale.resize(n.size());
  std::transform(n.begin(), n.end(), task.scale.begin(), [](double v) { return std::sqrt(v); });

  switch (model.init()) {
    case Init::kChild:
      task.start = std::move(noisiest);
      break;
    case Init::kTeacher:
    case Init::kJump:
      task.start.resize(n.size());
      for (int k = 0; k < model.dimensions(); ++k) {
        task.start[k] = model.ConstantStart(node.first, node.last, k);
      }
      break;
    case Init::kChildJump: {
      // The x0 estimate that the noisiest child over [m+1, j] implies, used down to level i-1.
      const Schedule& schedule = model.schedule();
      const int i = node.first, j = node.last;
      const int m = plan.range(node.children.back()).first - 1;
      const double whole = SignalNoiseDeterminant(schedule, m, j);
      const double p = SignalNoiseDeterminant(schedule, i - 1, j) / whole;
      const double q = -SignalNoiseDeterminant(schedule, i - 1, m) / whole;
      task.start.resize(n.size());
      for (size_t k = 0; k < noisiest.size(); ++k) task.start[k] = p * noisiest[k] + q;
      break;
    }
  }
  return task;
}

}  // namespace mergeplan
