#include "adapters/experts/trainer.h"

#include <algorithm>
#include <atomic>
#include <barrier>
#include <chrono>
#include <cmath>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

#include "adapters/experts/dense.h"
#include "adapters/experts/kernel.h"
#include "adapters/experts/level.h"
#include "adapters/experts/training_checks.h"
#include "planner/base/status_macros.h"
#include "planner/runs/curve_updates.h"
#include "planner/spectrum/parallel.h"

namespace mergeplan::experts {
namespace {

// What a thread needs to work on a slice.
template <typename T>
struct SliceMemory {
  Workspace work;
  std::vector<double> z, target;
  AlignedVector<T> scratch, lanes;
};

template <typename T>
class Task {
 public:
  Task(TrainTask task, const Inputs& inputs, const TrainerOptions& options)
      : task_(std::move(task)),
        inputs_(inputs),
        options_(options),
        communicator_(*options.communicator),
        d_(options.shape.dimensions),
        layout_(SumLayout::Of(d_, options.shape.experts, options.shape.hidden)),
        curve_points_(CurveUpdates(options.updates)),
        parameters_(task_.start.begin(), task_.start.end()),
        gradient_(parameters_.size()),
        sums_(layout_.count) {
    slices_ = (options.batch + kSliceRows - 1) / kSliceRows;
    if (options.optimizer.kind == OptimizerKind::kAdam) {
      first_moment_.resize(parameters_.size());
      second_moment_.resize(parameters_.size());
    }
    const int steps = inputs.teacher().steps();
    if (several_levels()) {
      levels_.assign(slices_, LevelNetwork<T>(options.shape, 0));
    } else {
      levels_.assign(
          1, LevelNetwork<T>(options.shape, static_cast<double>(task_.first_level) / steps));
      total_.resize(layout_.count * kTile);
    }
  }

  bool several_levels() const { return task_.targets.size() > 1; }
  // Those of a batch that are made here.
  int first_slice() const { return static_cast<int>(communicator_.ShareBegin(slices_)); }
  int end_slice() const { return static_cast<int>(communicator_.ShareEnd(slices_)); }
  bool done() const { return updates_ == options_.updates; }
  std::int64_t updates() const { return updates_; }

  SliceMemory<T> MakeMemory() const {
    SliceMemory<T> memory;
    memory.z.resize(kSliceRows * d_);
    memory.target.resize(kSliceRows * d_);
    memory.scratch.resize(KernelScratch(d_, options_.shape.experts, options_.shape.hidden));
    return memory;
  }

  bool pooled() const { return options_.inputs == InputKind::kPool && !several_levels(); }
  // Blocks of kSliceRows rows that fill the pool, in any order.
  int PoolBlocks() const {
    return pooled() ? static_cast<int>((options_.pool_rows + kSliceRows - 1) / kSliceRows) : 0;
  }
  void MakePool() {
    pool_z_.resize(options_.pool_rows * d_);
    pool_target_.resize(options_.pool_rows * d_);
  }
  void FillPool(int block, Workspace& work) {
    const std::size_t begin = static_cast<std::size_t>(block) * kSliceRows;
    const std::size_t rows = std::min<std::size_t>(kSliceRows, options_.pool_rows - begin);
    double* z = pool_z_.data() + begin * d_;
    inputs_.Draw(task_.first_level, task_.seed, Stream::kPool, begin, rows, z);
    task_.targets.front()->Apply(z, rows, pool_target_.data() + begin * d_, work);
  }

  // An update is Begin, RunSlice for every slice (in any order, on any thread), Take for every
  // slice in order, Finish.
  void Begin() {
    if (several_levels()) {
      const auto count = static_cast<int>(task_.targets.size());
      slice_levels_.resize(slices_);
      for (int s = 0; s < slices_; ++s) {
        slice_levels_[s] =
            task_.first_level - 1 + PickLevel(count, task_.seed, updates_, s, slices_);
        levels_[s].SetTime(static_cast<double>(slice_levels_[s]) / inputs_.teacher().steps());
      }
    }
    for (LevelNetwork<T>& level : levels_) level.Prepare(parameters_.data());
    std::fill(gradient_.begin(), gradient_.end(), T{0});
    std::fill(total_.begin(), total_.end(), T{0});
    loss_ = 0;
  }

  // `lanes` gets the sums of the slice.
  void RunSlice(int slice, SliceMemory<T>& memory, AlignedVector<T>& lanes) const {
    const int begin = slice * kSliceRows;
    const int rows = std::min(kSliceRows, options_.batch - begin);
    const auto row = static_cast<std::uint64_t>(updates_ * options_.batch + begin);
    if (pooled()) {
      const auto pool = static_cast<std::size_t>(options_.pool_rows);
      for (int done = 0; done < rows;) {
        const std::size_t from = (row + done) % pool;
        const std::size_t count = std::min<std::size_t>(rows - done, pool - from);
        std::copy_n(pool_z_.data() + from * d_, count * d_, memory.z.data() + done * d_);
        std::copy_n(pool_target_.data() + from * d_, count * d_, memory.target.data() + done * d_);
        done += static_cast<int>(count);
      }
    } else {
      const int level = several_levels() ? slice_levels_[slice] : task_.first_level;
      inputs_.Draw(level, task_.seed, Stream::kTraining, row, rows, memory.z.data());
      task_.targets[level - task_.first_level]->Apply(memory.z.data(), rows, memory.target.data(),
                                                      memory.work);
    }
    lanes.assign(layout_.count * kTile, T{0});
    AccumulateRows(levels_[several_levels() ? slice : 0].tables(), memory.z.data(),
                   memory.target.data(), rows, lanes.data(), memory.scratch.data());
  }

  void Take(int slice, const AlignedVector<T>& lanes) {
    if (several_levels()) {
      AddSums(levels_[slice], lanes);
    } else {
      Add(lanes.data(), lanes.size(), total_.data());
    }
  }

  absl::Status Finish() {
    if (!several_levels()) AddSums(levels_.front(), total_);
    MP_RETURN_IF_ERROR(
        communicator_.Sum(gradient_.data(), static_cast<std::int64_t>(gradient_.size())));
    MP_RETURN_IF_ERROR(communicator_.Sum(&loss_, 1));
    const double loss = loss_ / options_.batch;
    if (!std::isfinite(loss) || !AllFinite(gradient_.data(), gradient_.size())) {
      return NotFinite(task_, loss, updates_, options_);
    }
    OptimizerStep(options_.optimizer, updates_ + 1, gradient_, first_moment_, second_moment_,
                  parameters_);
    if (curve_.size() < curve_points_.size() && curve_points_[curve_.size()] == updates_) {
      curve_.push_back(loss);
    }
    ++updates_;
    return absl::OkStatus();
  }

  TaskState Save() const {
    TaskState state;
    state.updates = updates_;
    state.parameters.assign(parameters_.begin(), parameters_.end());
    state.first_moment.assign(first_moment_.begin(), first_moment_.end());
    state.second_moment.assign(second_moment_.begin(), second_moment_.end());
    state.curve = curve_;
    return state;
  }

  absl::Status Restore(const TaskState& state) {
    MP_RETURN_IF_ERROR(CheckState(task_, state, options_));
    updates_ = state.updates;
    parameters_.assign(state.parameters.begin(), state.parameters.end());
    first_moment_.assign(state.first_moment.begin(), state.first_moment.end());
    second_moment_.assign(state.second_moment.begin(), state.second_moment.end());
    curve_ = state.curve;
    return absl::OkStatus();
  }

 private:
  void AddSums(LevelNetwork<T>& level, const AlignedVector<T>& lanes) {
    SumLanes(lanes.data(), layout_.count, sums_.data());
    level.AddGradient(parameters_.data(), sums_.data(), static_cast<T>(2.0 / options_.batch),
                      gradient_.data());
    loss_ += static_cast<double>(sums_[layout_.loss]);
  }

  const TrainTask task_;
  const Inputs& inputs_;
  const TrainerOptions& options_;
  const Communicator& communicator_;
  const std::size_t d_;
  const SumLayout layout_;
  const std::vector<std::int64_t> curve_points_;
  int slices_ = 0;
  std::vector<double> pool_z_, pool_target_;

  std::int64_t updates_ = 0;
  AlignedVector<T> parameters_, first_moment_, second_moment_;
  std::vector<double> curve_;
  // Of the update that is being made.
  std::vector<LevelNetwork<T>> levels_;  // one, or one per slice
  std::vector<int> slice_levels_;
  AlignedVector<T> gradient_, sums_, total_;
  double loss_ = 0;
};

template <typename T>
class TrainerOf : public Trainer {
 public:
  TrainerOf(std::vector<TrainTask> tasks, Inputs inputs, const TrainerOptions& options)
      : inputs_(std::move(inputs)), options_(options) {
    if (options_.communicator == nullptr) options_.communicator = Alone();
    tasks_.reserve(tasks.size());
    for (TrainTask& task : tasks) {
      tasks_.push_back(std::make_unique<Task<T>>(std::move(task), inputs_, options_));
    }
  }

  absl::Status FillPools() {
    const int blocks = tasks_.front()->PoolBlocks();
    if (blocks == 0) return absl::OkStatus();
    for (auto& task : tasks_) task->MakePool();
    return ParallelFor(blocks * static_cast<int>(tasks_.size()), options_.threads, [&](int i) {
      Workspace work;
      tasks_[i / blocks]->FillPool(i % blocks, work);
      return true;
    });
  }

  absl::Status Advance(double seconds) override {
    const auto start = std::chrono::steady_clock::now();
    const auto tasks = static_cast<int>(tasks_.size());
    std::vector<absl::Status> statuses(tasks);
    const Communicator& communicator = *options_.communicator;
    // Sums over several processes are asked for by one thread, task after task.
    if (communicator.ranks() == 1 && options_.threads <= tasks) {
      MP_RETURN_IF_ERROR(ParallelFor(tasks, options_.threads, [&](int i) {
        std::unique_ptr<SliceMemory<T>> memory = TakeMemory(*tasks_[i]);
        statuses[i] = RunAlone(*tasks_[i], *memory);
        GiveMemory(std::move(memory));
        return true;
      }));
    } else {
      for (int i = 0; i < tasks; ++i) statuses[i] = RunShared(*tasks_[i]);
    }
    const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start;
    // Towards the wished time, at most ten times as many as before.
    const double ratio = std::clamp(seconds / std::max(passed.count(), 1e-6), 0.1, 10.0);
    piece_ =
        std::max<std::int64_t>(1, static_cast<std::int64_t>(ratio * static_cast<double>(piece_)));
    MP_RETURN_IF_ERROR(communicator.Broadcast(&piece_, sizeof(piece_)));
    for (const absl::Status& status : statuses) MP_RETURN_IF_ERROR(status);
    return absl::OkStatus();
  }

  bool done() const override {
    return std::all_of(tasks_.begin(), tasks_.end(), [](const auto& task) { return task->done(); });
  }
  std::int64_t updates_made() const override {
    std::int64_t sum = 0;
    for (const auto& task : tasks_) sum += task->updates();
    return sum;
  }
  TaskState Save(int task) const override { return tasks_[task]->Save(); }
  absl::Status Restore(int task, const TaskState& state) override {
    return tasks_[task]->Restore(state);
  }

 private:
  absl::Status RunAlone(Task<T>& task, SliceMemory<T>& memory) {
    for (std::int64_t u = 0; u < piece_ && !task.done(); ++u) {
      task.Begin();
      for (int s = task.first_slice(); s < task.end_slice(); ++s) {
        task.RunSlice(s, memory, memory.lanes);
        task.Take(s, memory.lanes);
      }
      MP_RETURN_IF_ERROR(task.Finish());
    }
    return absl::OkStatus();
  }

  // The threads share the slices of each update; the first one adds up.
  absl::Status RunShared(Task<T>& task) {
    const int begin = task.first_slice(), end = task.end_slice();
    const int wanted = std::clamp(options_.threads, 1, std::max(1, end - begin));
    std::vector<SliceMemory<T>> memory;
    std::vector<AlignedVector<T>> lanes(std::max(0, end - begin));
    memory.reserve(wanted);
    for (int i = 0; i < wanted; ++i) memory.push_back(task.MakeMemory());
    absl::Status status;
    bool stop = false;  // written by the first thread between two meetings only
    std::optional<std::barrier<>> meeting;
    std::atomic<int> team = 0;  // how many there are; 0 while that is not known
    const auto work = [&](int me) {
      team.wait(0);
      const int threads = team;
      for (std::int64_t u = 0; u < piece_; ++u) {
        if (me == 0) {
          stop = task.done() || !status.ok();
          if (!stop) task.Begin();
        }
        meeting->arrive_and_wait();
        if (stop) return;
        for (int s = begin + me; s < end; s += threads) {
          task.RunSlice(s, memory[me], lanes[s - begin]);
        }
        meeting->arrive_and_wait();
        if (me != 0) continue;
        for (int s = begin; s < end; ++s) task.Take(s, lanes[s - begin]);
        status = task.Finish();
      }
    };
    std::vector<std::thread> helpers;
    for (int i = 1; i < wanted; ++i) {
      try {
        helpers.emplace_back(work, i);
      } catch (const std::system_error&) {
        break;  // The system grants no more threads.
      }
    }
    meeting.emplace(static_cast<std::ptrdiff_t>(helpers.size()) + 1);
    team = static_cast<int>(helpers.size()) + 1;
    team.notify_all();
    work(0);
    for (std::thread& helper : helpers) helper.join();
    return status;
  }

  std::unique_ptr<SliceMemory<T>> TakeMemory(const Task<T>& task) {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (!free_.empty()) {
        std::unique_ptr<SliceMemory<T>> memory = std::move(free_.back());
        free_.pop_back();
        return memory;
      }
    }
    return std::make_unique<SliceMemory<T>>(task.MakeMemory());
  }
  void GiveMemory(std::unique_ptr<SliceMemory<T>> memory) {
    const std::lock_guard<std::mutex> lock(mutex_);
    free_.push_back(std::move(memory));
  }

  const Inputs inputs_;
  TrainerOptions options_;
  std::vector<std::unique_ptr<Task<T>>> tasks_;
  std::int64_t piece_ = 1;  // updates of the next Advance
  std::mutex mutex_;
  std::vector<std::unique_ptr<SliceMemory<T>>> free_;
};

template <typename T>
absl::StatusOr<std::unique_ptr<Trainer>> Make(std::vector<TrainTask> tasks, const Inputs& inputs,
                                              const TrainerOptions& options) {
  auto trainer = std::make_unique<TrainerOf<T>>(std::move(tasks), inputs, options);
  MP_RETURN_IF_ERROR(trainer->FillPools());
  return trainer;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Trainer>> Trainer::Create(std::vector<TrainTask> tasks,
                                                         const Inputs& inputs,
                                                         const TrainerOptions& options) {
  MP_RETURN_IF_ERROR(CheckTraining(tasks, inputs, options));
  if (options.elsewhere) return options.elsewhere(std::move(tasks), inputs, options);
  return options.precision == Precision::kFloat32 ? Make<float>(std::move(tasks), inputs, options)
                                                  : Make<double>(std::move(tasks), inputs, options);
}

double TaskBytes(const TrainerOptions& options) {
  const double number = options.precision == Precision::kFloat32 ? 4 : 8;
  const double pool = options.inputs == InputKind::kPool
                          ? 16.0 * static_cast<double>(options.pool_rows) * options.shape.dimensions
                          : 0;
  return 5 * number * static_cast<double>(options.shape.parameters()) + pool;
}

}  // namespace mergeplan::experts
