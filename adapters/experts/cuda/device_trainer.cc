#include "adapters/experts/cuda/device_trainer.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "adapters/experts/cuda/rows.h"
#include "adapters/experts/cuda/step.h"
#include "adapters/experts/cuda/tables.h"
#include "adapters/experts/training_checks.h"
#include "planner/base/status_macros.h"

namespace mergeplan::experts {
namespace {

using experts_device::Backend;
using experts_device::kSliceTiles;
using experts_device::kTileRows;
using experts_device::Memories;
using experts_device::Size;
using experts_device::Training;
using experts_device::Work;

static_assert(experts_device::kSliceRows == kSliceRows);

constexpr Size kMostLanes = Size{1} << 17;

constexpr Work kForward[] = {Work::kBegin, Work::kPrepare, Work::kExperts, Work::kRows,
                             Work::kStep,  Work::kSums,    Work::kPull,    Work::kGradient};
constexpr Work kUpdate[] = {Work::kCheck, Work::kUpdate, Work::kFinish};

template <typename T>
std::vector<T> Numbers(const std::vector<double>& values) {
  return {values.begin(), values.end()};
}

template <typename T>
class DeviceTrainer : public Trainer {
 public:
  DeviceTrainer(std::vector<TrainTask> tasks, const Inputs& inputs, const TrainerOptions& options,
                std::unique_ptr<Backend> backend)
      : tasks_(std::move(tasks)),
        inputs_(inputs),
        options_(options),
        backend_(std::move(backend)),
        memories_(*backend_),
        states_(tasks_.size()) {
    if (options_.communicator == nullptr) options_.communicator = Alone();
    for (std::size_t i = 0; i < tasks_.size(); ++i) {
      states_[i].parameters = tasks_[i].start;
      if (!adam()) continue;
      states_[i].first_moment.resize(tasks_[i].start.size());
      states_[i].second_moment.resize(tasks_[i].start.size());
    }
  }

  // Takes the memory, and fills the pools.
  absl::Status Begin() {
    MP_RETURN_IF_ERROR(backend_->Use());
    Measure();
    MP_RETURN_IF_ERROR(
        experts_device::FillTables(tasks_, inputs_, options_, memories_, &training_));
    MP_RETURN_IF_ERROR(TakeMemory());
    return training_.pooled != 0 ? backend_->Run(Work::kPool, training_) : absl::OkStatus();
  }

  absl::Status Advance(double seconds) override {
    const auto start = std::chrono::steady_clock::now();
    MP_RETURN_IF_ERROR(backend_->Use());
    if (changed_) MP_RETURN_IF_ERROR(UploadStates());
    std::int64_t left = 0;
    for (const TaskState& state : states_) left = std::max(left, options_.updates - state.updates);
    for (std::int64_t u = 0; u < std::min(piece_, left); ++u) MP_RETURN_IF_ERROR(Update());
    absl::Status found = DownloadStates();
    const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start;
    // Towards the wished time, at most ten times as many as before.
    const double ratio = std::clamp(seconds / std::max(passed.count(), 1e-6), 0.1, 10.0);
    piece_ =
        std::max<std::int64_t>(1, static_cast<std::int64_t>(ratio * static_cast<double>(piece_)));
    MP_RETURN_IF_ERROR(options_.communicator->Broadcast(&piece_, sizeof(piece_)));
    return found;
  }

  bool done() const override {
    return std::all_of(states_.begin(), states_.end(), [this](const TaskState& state) {
      return state.updates == options_.updates;
    });
  }
  std::int64_t updates_made() const override {
    std::int64_t sum = 0;
    for (const TaskState& state : states_) sum += state.updates;
    return sum;
  }
  TaskState Save(int task) const override { return states_[task]; }
  absl::Status Restore(int task, const TaskState& state) override {
    MP_RETURN_IF_ERROR(CheckState(tasks_[task], state, options_));
    states_[task] = state;
    changed_ = true;
    return absl::OkStatus();
  }

 private:
  bool adam() const { return options_.optimizer.kind == OptimizerKind::kAdam; }
  bool alone() const { return options_.communicator->ranks() == 1; }

  // All sizes and options.
  void Measure() {
    Training<T>& q = training_;
    const NetworkShape& shape = options_.shape;
    q.tasks = static_cast<Size>(tasks_.size());
    q.d = shape.dimensions;
    q.E = shape.experts;
    q.H = shape.hidden;
    q.M = shape.embedding;
    q.steps = inputs_.teacher().steps();
    q.parameters = shape.parameters();
    q.gate_b1 = shape.gate_b1();
    q.gate_w2 = shape.gate_w2();
    q.gate_b2 = shape.gate_b2();
    q.expert_w1 = shape.expert_w1();
    q.expert_b1 = shape.expert_b1();
    q.expert_w2 = shape.expert_w2();
    q.expert_b2 = shape.expert_b2();
    q.outputs = shape.outputs();
    q.sum.w1 = q.H;
    q.sum.w2 = q.sum.w1 + q.H * q.d;
    q.sum.b2 = q.sum.w2 + q.H * q.E;
    q.sum.expert = q.sum.b2 + q.E;
    q.sum.loss = q.sum.expert + q.outputs;
    q.sum.count = q.sum.loss + 1;
    q.updates = options_.updates;
    q.batch = options_.batch;
    q.slices = (q.batch + kSliceRows - 1) / kSliceRows;
    const Communicator& communicator = *options_.communicator;
    q.row_begin = std::min(q.batch, communicator.ShareBegin(q.slices) * kSliceRows);
    q.row_end = std::min(q.batch, communicator.ShareEnd(q.slices) * kSliceRows);
    const bool levels = std::any_of(tasks_.begin(), tasks_.end(),
                                    [](const TrainTask& task) { return task.targets.size() > 1; });
    const bool one_level = std::any_of(tasks_.begin(), tasks_.end(), [](const TrainTask& task) {
      return task.targets.size() == 1;
    });
    q.slots = levels ? q.slices : 1;
    q.pooled = options_.inputs == InputKind::kPool && one_level ? 1 : 0;
    q.pool_rows = q.pooled != 0 ? options_.pool_rows : 0;
    q.adam = adam() ? 1 : 0;
    q.lr = options_.optimizer.lr;
    q.beta1 = options_.optimizer.beta1;
    q.beta2 = options_.optimizer.beta2;
    q.epsilon = options_.optimizer.epsilon;
    MeasureScratch();
  }

  // How the work is cut, so that its scratch is bounded.
  void MeasureScratch() {
    Training<T>& q = training_;
    const auto most = static_cast<Size>(backend_->memory().scratch);
    const Size rows = q.row_end - q.row_begin;
    const Size part_bytes = q.tasks * q.sum.count * static_cast<Size>(sizeof(T));
    for (q.part_tiles = 1;; q.part_tiles *= 2) {
      const Size of_part = q.part_tiles * kTileRows;
      q.parts = (rows + of_part - 1) / of_part;
      if (q.part_tiles == kSliceTiles || q.parts * part_bytes <= most) break;
    }
    const Size lane_bytes = static_cast<Size>(sizeof(double)) * RowNumbers();
    q.lanes = std::clamp(q.tasks * std::max(rows, q.pool_rows), Size{1}, kMostLanes);
    q.lanes = std::min(q.lanes, std::max(Size{1}, most / lane_bytes));
    q.blocks = q.tasks * q.parts;
    if (!BlocksShare()) {
      q.blocks = std::min(q.blocks, std::max(Size{1}, most / BlockBytes()));
    }
  }
  Size RowNumbers() const {
    const GaussianMixture& mixture = inputs_.teacher().mixture();
    return static_cast<Size>(experts_device::RowScratch(mixture.components(), mixture.dimensions(),
                                                        mixture.rank(), options_.shape.experts));
  }
  Size BlockBytes() const {
    return experts_device::StepNumbers(training_.d, training_.E, training_.H) *
           static_cast<Size>(sizeof(T));
  }
  // Is the memory that blocks have by themselves enough?
  bool BlocksShare() const { return BlockBytes() <= static_cast<Size>(backend_->memory().shared); }

  template <typename X>
  absl::Status Take(Size count, X** to) {
    MP_ASSIGN_OR_RETURN(*to, memories_.Room<X>(count));
    return absl::OkStatus();
  }
  absl::Status TakeMemory() {
    Training<T>& q = training_;
    const Size all = q.tasks * q.parameters, tables = q.tasks * q.slots;
    const Size rows = q.tasks * (q.row_end - q.row_begin);
    for (Size** counts : {&q.made, &q.curve_size}) MP_RETURN_IF_ERROR(Take(q.tasks, counts));
    for (int** flags : {&q.stopped, &q.bad}) MP_RETURN_IF_ERROR(Take(q.tasks, flags));
    for (T** numbers : {&q.p, &q.gradient}) MP_RETURN_IF_ERROR(Take(all, numbers));
    for (T** numbers : {&q.m, &q.v}) MP_RETURN_IF_ERROR(Take(adam() ? all : 0, numbers));
    for (T** units : {&q.hidden, &q.units, &q.pull}) MP_RETURN_IF_ERROR(Take(tables * q.H, units));
    for (double** states : {&q.z, &q.target}) MP_RETURN_IF_ERROR(Take(rows * q.d, states));
    for (double** states : {&q.pool_z, &q.pool_target}) {
      MP_RETURN_IF_ERROR(Take(q.tasks * q.pool_rows * q.d, states));
    }
    MP_RETURN_IF_ERROR(Take(q.tasks * q.curve_points, &q.curve));
    MP_RETURN_IF_ERROR(Take(tables, &q.level));
    MP_RETURN_IF_ERROR(Take(2 * q.tasks, &q.rate));
    MP_RETURN_IF_ERROR(Take(q.tasks, &q.loss));
    MP_RETURN_IF_ERROR(Take(tables * q.outputs, &q.expert));
    MP_RETURN_IF_ERROR(Take(q.tasks * q.parts * q.sum.count, &q.part));
    MP_RETURN_IF_ERROR(Take(tables * q.sum.count, &q.sums));
    MP_RETURN_IF_ERROR(Take(q.lanes * RowNumbers(), &q.scratch));
    if (BlocksShare()) return absl::OkStatus();
    return Take(q.blocks * BlockBytes() / static_cast<Size>(sizeof(T)), &q.block_memory);
  }

  // One update of every task that has one left.
  absl::Status Update() {
    if (!alone() || !all_kernels_ran_) {
      MP_RETURN_IF_ERROR(RunAll(kForward));
      if (!alone()) MP_RETURN_IF_ERROR(SumOverProcesses());
      MP_RETURN_IF_ERROR(RunAll(kUpdate));
      all_kernels_ran_ = true;
      return absl::OkStatus();
    }
    if (!recorded_) {
      MP_RETURN_IF_ERROR(backend_->Record([this]() -> absl::Status {
        MP_RETURN_IF_ERROR(RunAll(kForward));
        return RunAll(kUpdate);
      }));
      recorded_ = true;
    }
    return backend_->Replay();
  }
  template <std::size_t kCount>
  absl::Status RunAll(const Work (&works)[kCount]) {
    for (const Work work : works) MP_RETURN_IF_ERROR(backend_->Run(work, training_));
    return absl::OkStatus();
  }

  absl::Status SumOverProcesses() {
    MP_ASSIGN_OR_RETURN(std::vector<T> gradient,
                        Download(training_.gradient, training_.tasks * training_.parameters));
    MP_ASSIGN_OR_RETURN(std::vector<double> loss, Download(training_.loss, training_.tasks));
    const Communicator& communicator = *options_.communicator;
    MP_RETURN_IF_ERROR(communicator.Sum(gradient.data(), static_cast<Size>(gradient.size())));
    MP_RETURN_IF_ERROR(communicator.Sum(loss.data(), static_cast<Size>(loss.size())));
    MP_RETURN_IF_ERROR(Upload(gradient, training_.gradient));
    return Upload(loss, training_.loss);
  }

  template <typename X>
  absl::StatusOr<std::vector<X>> Download(const X* from, Size count) {
    std::vector<X> to(static_cast<std::size_t>(count));
    MP_RETURN_IF_ERROR(backend_->Download(to.data(), from, to.size() * sizeof(X)));
    return to;
  }
  template <typename X>
  absl::Status Upload(const std::vector<X>& from, X* to) {
    return backend_->Upload(to, from.data(), from.size() * sizeof(X));
  }

  absl::Status UploadStates() {
    const Training<T>& q = training_;
    std::vector<Size> made, curve_size;
    for (std::size_t i = 0; i < states_.size(); ++i) {
      const TaskState& state = states_[i];
      const Size at = static_cast<Size>(i) * q.parameters;
      made.push_back(state.updates);
      curve_size.push_back(static_cast<Size>(state.curve.size()));
      MP_RETURN_IF_ERROR(Upload(Numbers<T>(state.parameters), q.p + at));
      MP_RETURN_IF_ERROR(Upload(state.curve, q.curve + static_cast<Size>(i) * q.curve_points));
      if (!adam()) continue;
      MP_RETURN_IF_ERROR(Upload(Numbers<T>(state.first_moment), q.m + at));
      MP_RETURN_IF_ERROR(Upload(Numbers<T>(state.second_moment), q.v + at));
    }
    MP_RETURN_IF_ERROR(Upload(made, q.made));
    MP_RETURN_IF_ERROR(Upload(curve_size, q.curve_size));
    changed_ = false;
    return absl::OkStatus();
  }

  // Waits for the updates and copies all states, or none. The error of a task that had to stop.
  absl::Status DownloadStates() {
    const Training<T>& q = training_;
    const Size all = q.tasks * q.parameters;
    MP_ASSIGN_OR_RETURN(const std::vector<T> p, Download(q.p, all));
    MP_ASSIGN_OR_RETURN(const std::vector<T> m, Download(q.m, adam() ? all : 0));
    MP_ASSIGN_OR_RETURN(const std::vector<T> v, Download(q.v, adam() ? all : 0));
    MP_ASSIGN_OR_RETURN(const auto curve, Download(q.curve, q.tasks * q.curve_points));
    MP_ASSIGN_OR_RETURN(const auto curve_size, Download(q.curve_size, q.tasks));
    MP_ASSIGN_OR_RETURN(const auto made, Download(q.made, q.tasks));
    MP_ASSIGN_OR_RETURN(const auto stopped, Download(q.stopped, q.tasks));
    MP_ASSIGN_OR_RETURN(const auto loss, Download(q.loss, q.tasks));
    absl::Status found;
    for (std::size_t i = 0; i < states_.size(); ++i) {
      TaskState& state = states_[i];
      const auto at = static_cast<Size>(i) * q.parameters;
      const auto losses = curve.begin() + static_cast<Size>(i) * q.curve_points;
      state.updates = made[i];
      state.parameters.assign(p.begin() + at, p.begin() + at + q.parameters);
      if (adam()) {
        state.first_moment.assign(m.begin() + at, m.begin() + at + q.parameters);
        state.second_moment.assign(v.begin() + at, v.begin() + at + q.parameters);
      }
      state.curve.assign(losses, losses + curve_size[i]);
      if (stopped[i] != 0) {
        found.Update(NotFinite(tasks_[i], loss[i] / options_.batch, state.updates, options_));
      }
    }
    return found;
  }

  const std::vector<TrainTask> tasks_;
  const Inputs inputs_;
  TrainerOptions options_;
  const std::unique_ptr<Backend> backend_;
  Memories memories_;
  Training<T> training_{};
  std::vector<TaskState> states_;  // the device's, after the last Advance
  bool changed_ = true;            // the device does not have states_ yet
  bool all_kernels_ran_ = false, recorded_ = false;
  std::int64_t piece_ = 1;  // updates of the next Advance
};

template <typename T>
absl::StatusOr<std::unique_ptr<Trainer>> Make(std::vector<TrainTask> tasks, const Inputs& inputs,
                                              const TrainerOptions& options,
                                              std::unique_ptr<Backend> backend) {
  auto trainer =
      std::make_unique<DeviceTrainer<T>>(std::move(tasks), inputs, options, std::move(backend));
  MP_RETURN_IF_ERROR(trainer->Begin());
  return trainer;
}

absl::StatusOr<std::unique_ptr<Trainer>> MakeAny(std::vector<TrainTask> tasks, const Inputs& inputs,
                                                 const TrainerOptions& options,
                                                 std::unique_ptr<Backend> backend) {
  return options.precision == Precision::kFloat32
             ? Make<float>(std::move(tasks), inputs, options, std::move(backend))
             : Make<double>(std::move(tasks), inputs, options, std::move(backend));
}

}  // namespace

MakeTrainer TrainOnCuda(int device) {
  return [device](std::vector<TrainTask> tasks, const Inputs& inputs,
                  const TrainerOptions& options) -> absl::StatusOr<std::unique_ptr<Trainer>> {
    MP_ASSIGN_OR_RETURN(std::unique_ptr<Backend> backend, experts_device::OpenCuda(device));
    return MakeAny(std::move(tasks), inputs, options, std::move(backend));
  };
}

MakeTrainer TrainOnEmulation(std::size_t block_bytes, std::size_t scratch_bytes) {
  return [=](std::vector<TrainTask> tasks, const Inputs& inputs, const TrainerOptions& options) {
    return MakeAny(std::move(tasks), inputs, options,
                   experts_device::Emulation({block_bytes, scratch_bytes}));
  };
}

}  // namespace mergeplan::experts
