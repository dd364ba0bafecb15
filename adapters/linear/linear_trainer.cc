// The trainer: draws the sums of several updates of all merges on all threads, or on a device, then
// lets the merges make these updates, which takes a batch's share of the time.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <new>
#include <utility>

#include "absl/strings/str_format.h"
#include "adapters/linear/batch_sums.h"
#include "adapters/linear/optimizer.h"
#include "adapters/linear/trainer.h"
#include "planner/base/status_macros.h"
#include "planner/runs/curve_updates.h"
#include "planner/spectrum/parallel.h"

namespace mergeplan {
namespace {

// Fewer steps of a dimension than these are made faster than a thread starts.
constexpr double kWorthAThread = 1 << 15;
constexpr double kAdamCost = 16;

template <typename T>
class LinearTrainer : public Trainer {
 public:
  LinearTrainer(std::vector<MergeTask> tasks, const TrainerOptions& options)
      : options_(options),
        merges_(static_cast<std::int64_t>(tasks.size())),
        d_(static_cast<std::int64_t>(tasks.front().start.size())),
        curve_updates_(CurveUpdates(options.updates)),
        sums_(tasks, options) {
    for (MergeTask& task : tasks) {
      a_.insert(a_.end(), task.start.begin(), task.start.end());
      p_.insert(p_.end(), task.target.begin(), task.target.end());
      optimizers_.emplace_back(options, task.time);
      MergeTask name;
      name.range = task.range;
      tasks_.push_back(std::move(name));
    }
    using Optimizer = mergeplan::Optimizer<T>;
    if (Optimizer::HasFirst(options.recipe)) first_.resize(a_.size());
    if (Optimizer::HasSecond(options.recipe)) second_.resize(a_.size());
    if (Optimizer::HasAverage(options.recipe)) average_ = a_;
    curve_.resize(merges_ * curve_updates_.size());
  }

  bool done() const override { return updates_ == options_.updates; }
  std::int64_t updates() const override { return updates_; }

  absl::Status Advance() override {
    if (done()) return absl::OkStatus();
    try {
      const std::int64_t count = sums_.Together(options_.updates - updates_);
      bool complete = false;
      MP_RETURN_IF_ERROR(sums_.Draw(updates_, count, &complete));
      return complete ? MakeUpdates(count) : absl::OkStatus();
    } catch (const std::bad_alloc&) {
      return absl::ResourceExhaustedError(absl::StrFormat(
          "training step: out of memory with %d merges of %d dimensions", merges_, d_));
    }
  }

  TrainerState Save() const override {
    TrainerState state;
    state.updates = updates_;
    state.parameters.assign(a_.begin(), a_.end());
    state.first.assign(first_.begin(), first_.end());
    state.second.assign(second_.begin(), second_.end());
    state.average.assign(average_.begin(), average_.end());
    state.curve = curve_;
    return state;
  }

  absl::Status Restore(const TrainerState& state) override {
    MP_RETURN_IF_ERROR(CheckState(state, merges_, d_, options_));
    const std::pair<const std::vector<double>*, std::vector<T>*> parts[] = {
        {&state.parameters, &a_},
        {&state.first, &first_},
        {&state.second, &second_},
        {&state.average, &average_}};
    for (const auto& [from, to] : parts) {
      std::transform(from->begin(), from->end(), to->begin(),
                     [](double v) { return static_cast<T>(v); });
    }
    curve_ = state.curve;
    updates_ = state.updates;
    return absl::OkStatus();
  }

 private:
  // Updates updates_ .. updates_ + count - 1 of all merges. All or nothing: where a loss is no
  // finite number, the state is what it was before.
  absl::Status MakeUpdates(std::int64_t count) {
    const std::vector<T> before[] = {a_, first_, second_, average_};
    const double cost = options_.recipe.optimizer == OptimizerKind::kSgd ? 1 : kAdamCost;
    const double work = cost * static_cast<double>(merges_) * static_cast<double>(count * d_);
    const int threads = work < kWorthAThread ? 1 : ThreadCount(options_.threads);
    std::vector<std::int64_t> failed(merges_, -1);  // the update whose loss is no number
    std::atomic<std::int64_t> next = 0;
    MP_RETURN_IF_ERROR(ParallelFor(threads, threads, [&](int) {
      for (std::int64_t i = next++; i < merges_; i = next++) failed[i] = MakeUpdatesOf(i, count);
      return true;
    }));
    for (std::int64_t i = 0; i < merges_; ++i) {
      if (failed[i] < 0) continue;
      a_ = before[0];
      first_ = before[1];
      second_ = before[2];
      average_ = before[3];
      return NotFinite(tasks_[i], failed[i], options_);
    }
    updates_ += count;
    return absl::OkStatus();
  }

  // The number of the update after which the numbers of merge i are not finite, or -1.
  std::int64_t MakeUpdatesOf(std::int64_t i, std::int64_t count) {
    const auto at = [&](std::vector<T>& v) { return v.empty() ? nullptr : v.data() + i * d_; };
    const MergeNumbers<T> merge{at(a_), at(p_), at(first_), at(second_), at(average_)};
    const auto points = static_cast<std::int64_t>(curve_updates_.size());
    std::int64_t point = std::lower_bound(curve_updates_.begin(), curve_updates_.end(), updates_) -
                         curve_updates_.begin();
    for (std::int64_t u = 0; u < count; ++u) {
      const double loss = optimizers_[i].Step(updates_ + u, d_, sums_.Of(i, u), merge);
      if (!std::isfinite(loss)) return updates_ + u;
      if (point < points && curve_updates_[point] == updates_ + u) {
        curve_[i * points + point++] = loss;
      }
    }
    const bool finite =
        std::all_of(merge.a, merge.a + d_, [](T value) { return std::isfinite(value); });
    return finite ? -1 : updates_ + count;
  }

  const TrainerOptions options_;
  const std::int64_t merges_, d_;
  const std::vector<std::int64_t> curve_updates_;
  BatchSums<T> sums_;
  std::vector<Optimizer<T>> optimizers_;     // one per merge
  std::vector<MergeTask> tasks_;             // ranges only, for messages
  std::vector<T> a_, p_;                     // merges x d
  std::vector<T> first_, second_, average_;  // the same, or empty
  std::vector<double> curve_;                // merges x points
  std::int64_t updates_ = 0;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Trainer>> MakeLinearTrainer(std::vector<MergeTask> tasks,
                                                           const TrainerOptions& options) {
  MP_RETURN_IF_ERROR(CheckTasks(tasks, options));
  const size_t merges = tasks.size(), d = tasks.front().start.size();
  try {
    if (options.dtype == DType::kFloat32) {
      return std::make_unique<LinearTrainer<float>>(std::move(tasks), options);
    }
    return std::make_unique<LinearTrainer<double>>(std::move(tasks), options);
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError(absl::StrFormat(
        "training: out of memory with %d merges of %d dimensions together", merges, d));
  }
}

}  // namespace mergeplan
