// The step on the CPU: LibTorch's generators and threads, our fused forward and backward.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <cmath>
#include <new>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "adapters/runtime/kernel.h"
#include "adapters/runtime/trainer_parts.h"
#include "planner/base/status_macros.h"

namespace mergeplan {
namespace {

// About how many numbers one Advance draws: some milliseconds, between which a run can be stopped.
constexpr std::int64_t kAdvanceSize = std::int64_t{1} << 20;

template <typename T>
class FusedTrainer : public Trainer {
 public:
  FusedTrainer(std::vector<MergeTask> tasks, const TrainerOptions& options)
      : options_(options),
        merges_(static_cast<std::int64_t>(tasks.size())),
        d_(static_cast<std::int64_t>(tasks.front().start.size())),
        layout_(DrawLayout::Of(options.batch, d_)),
        curve_updates_(CurveUpdates(options.updates)),
        streams_(MakeStreams(tasks, options, layout_.lanes)) {
    for (MergeTask& task : tasks) {
      a_.insert(a_.end(), task.start.begin(), task.start.end());
      p_.insert(p_.end(), task.target.begin(), task.target.end());
      scale_.insert(scale_.end(), task.scale.begin(), task.scale.end());
      tasks_.push_back({task.range, {}, {}, {}});
    }
    curve_.resize(merges_ * curve_updates_.size());
    scratch_.resize(std::max(1, at::get_num_threads()));
  }

  bool done() const override { return updates_ == options_.updates; }
  std::int64_t updates() const override { return updates_; }

  absl::Status Advance() override {
    if (done()) return absl::OkStatus();
    // Whole draws, so that where an Advance ends does not matter to the streams.
    const std::int64_t draws = std::max<std::int64_t>(
        1, kAdvanceSize / (layout_.updates_per_draw * merges_ * options_.batch * d_));
    const std::int64_t count =
        std::min(draws * layout_.updates_per_draw, options_.updates - updates_);
    losses_.assign(merges_ * layout_.lanes * count, 0.0);
    try {
      at::parallel_for(0, merges_ * layout_.lanes, 1, [&](std::int64_t begin, std::int64_t end) {
        Scratch& scratch = scratch_[at::get_thread_num()];
        for (std::int64_t s = begin; s < end; ++s) {
          AdvanceLane(s / layout_.lanes, static_cast<int>(s % layout_.lanes), count, scratch,
                      losses_.data() + s * count);
        }
      });
    } catch (const std::bad_alloc&) {
      return absl::ResourceExhaustedError(absl::StrFormat(
          "training step: out of memory, batches of %d samples of %d dimensions need about %.1f "
          "GiB; "
          "give a smaller --batch or fewer --threads",
          options_.batch, d_, FusedTrainerBytes(options_, d_, merges_) / (1 << 30)));
    } catch (const std::exception& error) {
      return absl::InternalError(absl::StrCat("training step: ", error.what()));
    }
    for (std::int64_t u = 0; u < count; ++u) Record(updates_ + u, u, count);
    updates_ += count;
    for (std::int64_t i = 0; i < merges_; ++i) {
      if (!std::isfinite(Loss(i, count - 1, count)))
        return NotFinite(tasks_[i], updates_, options_);
    }
    return absl::OkStatus();
  }

  TrainerState Save() const override {
    TrainerState state;
    state.updates = updates_;
    state.parameters.assign(a_.begin(), a_.end());
    for (const NoiseStream& stream : streams_) state.generators.push_back(stream.Save());
    state.curve = curve_;
    return state;
  }

  absl::Status Restore(const TrainerState& state) override {
    MP_RETURN_IF_ERROR(
        CheckState(state, merges_, d_, options_, static_cast<std::int64_t>(streams_.size())));
    for (size_t s = 0; s < streams_.size(); ++s) {
      MP_RETURN_IF_ERROR(streams_[s].Restore(state.generators[s]));
    }
    std::transform(state.parameters.begin(), state.parameters.end(), a_.begin(),
                   [](double v) { return static_cast<T>(v); });
    curve_ = state.curve;
    updates_ = state.updates;
    curve_next_ = std::lower_bound(curve_updates_.begin(), curve_updates_.end(), updates_) -
                  curve_updates_.begin();
    return absl::OkStatus();
  }

 private:
  struct Scratch {
    std::vector<float> noise;
    std::vector<T> gradient, loss;
  };

  // Takes one lane of merge i through `count` updates. losses: the sums of squares before each.
  void AdvanceLane(std::int64_t i, int lane, std::int64_t count, Scratch& scratch, double* losses) {
    const std::int64_t width = layout_.LaneWidth(lane);
    const std::int64_t offset = i * d_ + layout_.LaneBegin(lane);
    const std::int64_t size = options_.batch * width;
    if (static_cast<std::int64_t>(scratch.noise.size()) < layout_.updates_per_draw * size) {
      scratch.noise.resize(layout_.updates_per_draw * size);
    }
    const T rate = static_cast<T>(SumRate(options_));
    T* a = a_.data() + offset;
    for (std::int64_t begin = 0; begin < count; begin += layout_.updates_per_draw) {
      const std::int64_t drawn = std::min(layout_.updates_per_draw, count - begin);
      streams_[i * layout_.lanes + lane].Fill(scratch.noise.data(), drawn * size);
      for (std::int64_t u = 0; u < drawn; ++u) {
        scratch.gradient.assign(width, T{0});
        scratch.loss.assign(width, T{0});
        AccumulateGradient(scratch.noise.data() + u * size, options_.batch, width,
                           scale_.data() + offset, a, p_.data() + offset, scratch.gradient.data(),
                           scratch.loss.data());
        for (std::int64_t k = 0; k < width; ++k) a[k] -= rate * scratch.gradient[k];
        losses[begin + u] = std::accumulate(scratch.loss.begin(), scratch.loss.end(), 0.0);
      }
    }
  }

  // Loss of merge i before update u of the last Advance, which made `count`: lanes in their order.
  double Loss(std::int64_t i, std::int64_t u, std::int64_t count) const {
    double sum = 0;
    for (int lane = 0; lane < layout_.lanes; ++lane) {
      sum += losses_[(i * layout_.lanes + lane) * count + u];
    }
    return sum / options_.batch;
  }

  void Record(std::int64_t update, std::int64_t u, std::int64_t count) {
    const auto points = static_cast<std::int64_t>(curve_updates_.size());
    if (curve_next_ == points || curve_updates_[curve_next_] != update) return;
    for (std::int64_t i = 0; i < merges_; ++i) {
      curve_[i * points + curve_next_] = Loss(i, u, count);
    }
    ++curve_next_;
  }

  const TrainerOptions options_;
  const std::int64_t merges_, d_;
  const DrawLayout layout_;
  const std::vector<std::int64_t> curve_updates_;
  std::vector<NoiseStream> streams_;  // merges x lanes
  std::vector<MergeTask> tasks_;      // ranges only, for messages
  std::vector<T> a_, p_, scale_;      // merges x d
  std::vector<double> losses_;        // merges x lanes x updates of one Advance
  std::vector<double> curve_;         // merges x points
  std::vector<Scratch> scratch_;      // one per thread
  std::int64_t updates_ = 0;
  std::int64_t curve_next_ = 0;
};

}  // namespace

double FusedTrainerBytes(const TrainerOptions& options, std::int64_t d, std::int64_t merges) {
  const DrawLayout layout = DrawLayout::Of(options.batch, d);
  const std::int64_t together =
      std::min<std::int64_t>(at::get_num_threads(), layout.lanes * merges);
  return static_cast<double>(sizeof(float)) * static_cast<double>(together) *
         static_cast<double>(layout.updates_per_draw) * options.batch *
         static_cast<double>(layout.WidestLane());
}

std::unique_ptr<Trainer> MakeFusedTrainer(std::vector<MergeTask> tasks,
                                          const TrainerOptions& options) {
  if (options.dtype == DType::kFloat32) {
    return std::make_unique<FusedTrainer<float>>(std::move(tasks), options);
  }
  return std::make_unique<FusedTrainer<double>>(std::move(tasks), options);
}

}  // namespace mergeplan
