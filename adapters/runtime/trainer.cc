#include "adapters/runtime/trainer.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "adapters/runtime/trainer_parts.h"

namespace mergeplan {
namespace {

// About as many numbers as one draw should have: enough to hide the cost of a call, few enough to
// stay in the cache.
constexpr std::int64_t kDrawSize = 8192;
constexpr int kMaxLanes = 64;
constexpr std::int64_t kTile = 16;  // lanes are cut where the kernel's tiles are
constexpr std::int64_t kMaxUpdatesPerDraw = 64;
constexpr std::int64_t kCurvePoints = 64;

bool AllFinite(const std::vector<double>& values) {
  return std::all_of(values.begin(), values.end(), [](double v) { return std::isfinite(v); });
}

}  // namespace

DrawLayout DrawLayout::Of(int batch, std::int64_t d) {
  DrawLayout layout;
  layout.d = d;
  while (layout.lanes < kMaxLanes && d >= 2 * layout.lanes * kTile &&
         batch * d >= layout.lanes * kDrawSize) {
    layout.lanes *= 2;
  }
  layout.updates_per_draw =
      std::clamp<std::int64_t>(kDrawSize / (batch * layout.WidestLane()), 1, kMaxUpdatesPerDraw);
  return layout;
}

std::int64_t DrawLayout::LaneBegin(int lane) const {
  if (lane == lanes) return d;
  return d / kTile * lane / lanes * kTile;
}

std::int64_t DrawLayout::WidestLane() const {
  std::int64_t widest = 0;
  for (int lane = 0; lane < lanes; ++lane) widest = std::max(widest, LaneWidth(lane));
  return widest;
}

std::int64_t MergesTogether(const TrainerOptions& options, std::int64_t d) {
  constexpr std::int64_t kNumbers = std::int64_t{1} << 25;  // x 4 arrays x 8 bytes
  return std::max<std::int64_t>(1, kNumbers / std::max<std::int64_t>(1, options.batch * d));
}

std::vector<std::int64_t> CurveUpdates(std::int64_t updates) {
  std::vector<std::int64_t> out;
  if (updates <= kCurvePoints) {
    for (std::int64_t u = 0; u < updates; ++u) out.push_back(u);
    return out;
  }
  const double last = static_cast<double>(updates - 1);
  for (std::int64_t i = 0; i < kCurvePoints; ++i) {
    const double share = static_cast<double>(i) / (kCurvePoints - 1);
    const auto u = static_cast<std::int64_t>(std::llround(std::pow(last + 1, share))) - 1;
    if (out.empty() || u > out.back()) out.push_back(u);
  }
  return out;
}

std::vector<NoiseStream> MakeStreams(const std::vector<MergeTask>& tasks,
                                     const TrainerOptions& options, int lanes) {
  std::vector<NoiseStream> streams;
  streams.reserve(tasks.size() * lanes);
  for (const MergeTask& task : tasks) {
    for (int lane = 0; lane < lanes; ++lane) {
      streams.emplace_back(options.seed, task.range.first, task.range.last, lane);
    }
  }
  return streams;
}

absl::Status CheckState(const TrainerState& state, std::int64_t merges, std::int64_t d,
                        const TrainerOptions& options, std::int64_t streams) {
  const auto points = static_cast<std::int64_t>(CurveUpdates(options.updates).size());
  if (state.updates < 0 || state.updates > options.updates ||
      static_cast<std::int64_t>(state.parameters.size()) != merges * d ||
      static_cast<std::int64_t>(state.generators.size()) != streams ||
      static_cast<std::int64_t>(state.curve.size()) != merges * points) {
    return absl::DataLossError(absl::StrCat(
        "training state: ", state.updates, " updates, ", state.parameters.size(), " parameters, ",
        state.generators.size(), " generators, ", state.curve.size(), " losses; expected up to ",
        options.updates, ", ", merges * d, ", ", streams, ", ", merges * points));
  }
  return absl::OkStatus();
}

absl::Status NotFinite(const MergeTask& task, std::int64_t updates, const TrainerOptions& options) {
  return absl::FailedPreconditionError(absl::StrFormat(
      "merge [%d, %d]: the loss is no finite number after update %d of %d; the rate %g is too "
      "large "
      "for batches of %d, use a smaller --lr or a larger --batch",
      task.range.first, task.range.last, updates, options.updates, options.lr, options.batch));
}

absl::StatusOr<std::unique_ptr<Trainer>> Trainer::Create(std::vector<MergeTask> tasks,
                                                         const TrainerOptions& options) {
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
  if (options.updates < 1 || options.batch < 1) {
    return absl::InvalidArgumentError(absl::StrCat("updates = ", options.updates, ", batch = ",
                                                   options.batch, ": expected 1 or more of each"));
  }
  if (!std::isfinite(SumRate(options)) || SumRate(options) <= 0) {
    return absl::InvalidArgumentError(absl::StrCat("lr = ", options.lr,
                                                   ", feature norm = ", options.feature_norm,
                                                   ": expected positive, finite numbers"));
  }
  if (options.step == StepKind::kFused && options.device.cuda) {
    return absl::UnimplementedError("the fused step runs on the CPU only");
  }
  if (options.step == StepKind::kTensor || options.device.cuda) {
    return MakeTensorTrainer(std::move(tasks), options);
  }
  return MakeFusedTrainer(std::move(tasks), options);
}

}  // namespace mergeplan
