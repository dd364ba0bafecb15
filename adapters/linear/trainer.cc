#include "adapters/linear/trainer.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "adapters/linear/optimizer.h"
#include "planner/base/status_macros.h"
#include "planner/runs/curve_updates.h"

namespace mergeplan {
namespace {

bool AllFinite(const std::vector<double>& values) {
  return std::all_of(values.begin(), values.end(), [](double v) { return std::isfinite(v); });
}

}  // namespace

absl::Status CheckTasks(const std::vector<MergeTask>& tasks, const TrainerOptions& options) {
  if (tasks.empty()) return absl::InvalidArgumentError("no merges to train");
  const size_t d = tasks.front().start.size();
  if (d == 0) return absl::InvalidArgumentError("merges have no dimensions");
  for (const MergeTask& task : tasks) {
    const std::string what = absl::StrCat("merge [", task.range.first, ", ", task.range.last, "]");
    if (task.start.size() != d || task.target.size() != d || task.scale.size() != d) {
      return absl::InvalidArgumentError(absl::StrCat(
          what, ": start, target and scale have ", task.start.size(), ", ", task.target.size(),
          ", ", task.scale.size(), " values, expected ", d, " each"));
    }
    if (!AllFinite(task.start) || !AllFinite(task.target) || !AllFinite(task.scale)) {
      return absl::InvalidArgumentError(
          absl::StrCat(what, ": start, target or scale holds NaN or infinity"));
    }
  }
  if (options.updates < 1 || options.batch < 1 || options.recipe.accumulate < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("updates = ", options.updates, ", batch = ", options.batch,
                     ", accumulate = ", options.recipe.accumulate, ": expected 1 or more of each"));
  }
  for (const double number : {options.lr, options.feature_norm}) {
    if (std::isfinite(number) && number > 0) continue;
    return absl::InvalidArgumentError(absl::StrCat("lr = ", options.lr,
                                                   ", feature norm = ", options.feature_norm,
                                                   ": expected positive, finite numbers"));
  }
  const double numbers = static_cast<double>(options.rows()) * static_cast<double>(d) *
                         static_cast<double>(options.updates);
  if (numbers >= 0x1p62) {
    return absl::InvalidArgumentError(
        absl::StrFormat("%d updates of %d samples of %d dimensions are %g numbers, more than a "
                        "stream of noise has (2^62); give a smaller batch or fewer updates",
                        options.updates, options.rows(), d, numbers));
  }
  return options.recipe.Validate(options.updates, options.feature_norm);
}

absl::Status CheckState(const TrainerState& state, std::int64_t merges, std::int64_t d,
                        const TrainerOptions& options) {
  const auto points = static_cast<std::int64_t>(CurveUpdates(options.updates).size());
  const auto fits = [](const std::vector<double>& values, std::int64_t count) {
    return static_cast<std::int64_t>(values.size()) == count;
  };
  using Needs = Optimizer<double>;
  const Recipe& recipe = options.recipe;
  const std::int64_t size = merges * d;
  if (state.updates >= 0 && state.updates <= options.updates && fits(state.parameters, size) &&
      fits(state.first, Needs::HasFirst(recipe) ? size : 0) &&
      fits(state.second, Needs::HasSecond(recipe) ? size : 0) &&
      fits(state.average, Needs::HasAverage(recipe) ? size : 0) &&
      fits(state.curve, merges * points)) {
    return absl::OkStatus();
  }
  return absl::DataLossError(
      absl::StrCat("training state: ", state.updates, " updates, ", state.parameters.size(),
                   " parameters with ", state.first.size(), " first and ", state.second.size(),
                   " second moments and ", state.average.size(), " averages, ", state.curve.size(),
                   " losses; expected up to ", options.updates, " updates of ", size,
                   " parameters, with what the optimizer needs, ", merges * points, " losses"));
}

absl::Status NotFinite(const MergeTask& task, std::int64_t updates, const TrainerOptions& options) {
  // What else than the rate can make a training run away.
  std::string more;
  if (options.recipe.weight_decay > 0) absl::StrAppend(&more, ", a smaller --weight-decay");
  if (options.recipe.momentum > 0) absl::StrAppend(&more, ", a smaller --momentum");
  return absl::FailedPreconditionError(absl::StrFormat(
      "merge [%d, %d]: the loss is no finite number after update %d of %d; the training runs away "
      "with the rate %g and batches of %d, use a smaller --lr%s or a larger --batch",
      task.range.first, task.range.last, updates, options.updates, options.lr, options.batch,
      more));
}

}  // namespace mergeplan
