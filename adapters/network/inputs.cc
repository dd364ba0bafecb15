#include "adapters/network/inputs.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/tensor.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "adapters/network/labels.h"
#include "adapters/network/try.h"
#include "planner/base/memory.h"
#include "planner/base/status_macros.h"
#include "planner/mixture/draw.h"

namespace mergeplan::network {
namespace {

// Rows of a pool that the teacher steps at a time.
constexpr std::int64_t kPoolBlock = 256;

std::int64_t Product(const std::vector<std::int64_t>& shape) {
  std::int64_t d = 1;
  for (const std::int64_t extent : shape) d *= extent;
  return d;
}

std::vector<std::int64_t> Rows(std::int64_t rows, const std::vector<std::int64_t>& shape) {
  std::vector<std::int64_t> out = {rows};
  out.insert(out.end(), shape.begin(), shape.end());
  return out;
}

// Standard normal numbers, float32, [rows, shape] on the CPU: number first_row * d + k of the
// stream is coordinate k of its row.
at::Tensor Noise(const StreamName& name, std::uint64_t first_row, std::int64_t rows,
                 const std::vector<std::int64_t>& shape) {
  at::Tensor out = at::empty(Rows(rows, shape), at::TensorOptions().dtype(at::kFloat));
  NoiseStream(name).FillAt(first_row * static_cast<std::uint64_t>(Product(shape)),
                           out.mutable_data_ptr<float>(), out.numel());
  return out;
}

// Uniform below `count`, one for each row.
std::vector<std::int64_t> Choose(const StreamName& name, std::uint64_t first_row, std::int64_t rows,
                                 std::int64_t count) {
  std::vector<std::int64_t> out(rows);
  for (std::int64_t r = 0; r < rows; ++r) {
    const PhiloxWords words = name.Words(first_row + static_cast<std::uint64_t>(r));
    const auto bits = static_cast<unsigned __int128>(std::uint64_t{words.w[0]} << 32 | words.w[1]);
    out[r] = static_cast<std::int64_t>(bits * static_cast<std::uint64_t>(count) >> 64);
  }
  return out;
}

// The stream of the classes of a stream of rows; every lane has its own.
StreamName LabelsOf(RowStream stream) {
  stream.seed ^= static_cast<std::uint64_t>(stream.lane) << 56;
  return stream.Name(Lane::kLabel);
}

class GaussianInputs : public Inputs {
 public:
  GaussianInputs(std::vector<double> variances, const Schedule& schedule,
                 std::vector<std::int64_t> shape, at::TensorOptions options)
      : variances_(std::move(variances)),
        schedule_(schedule),
        shape_(std::move(shape)),
        options_(options) {}
  absl::StatusOr<at::Tensor> Draw(int level, const RowStream& stream, std::uint64_t first_row,
                                  std::int64_t rows) override {
    return Try("inputs", [&]() -> absl::StatusOr<at::Tensor> {
      const double a = schedule_.alpha[level], s = schedule_.sigma[level];
      std::vector<double> scale;
      scale.reserve(variances_.size());
      for (const double variance : variances_) {
        const double lambda = variance / (schedule_.data_scale * schedule_.data_scale);
        scale.push_back(std::sqrt(a * a * lambda + s * s));
      }
      const at::Tensor noise = Noise(stream.Name(), first_row, rows, shape_).to(options_);
      return noise * at::tensor(scale, at::kDouble).view(shape_).to(options_);
    });
  }

 private:
  std::vector<double> variances_;
  Schedule schedule_;
  std::vector<std::int64_t> shape_;
  at::TensorOptions options_;
};

class MixtureInputs : public Inputs {
 public:
  MixtureInputs(std::shared_ptr<const MixtureTrajectory> trajectory,
                std::vector<std::int64_t> shape, at::TensorOptions options)
      : trajectory_(std::move(trajectory)), shape_(std::move(shape)), options_(options) {}
  absl::StatusOr<at::Tensor> Draw(int level, const RowStream& stream, std::uint64_t first_row,
                                  std::int64_t rows) override {
    return Try("inputs", [&]() -> absl::StatusOr<at::Tensor> {
      at::Tensor z = at::empty(Rows(rows, shape_), at::TensorOptions().dtype(at::kDouble));
      const StreamName name = stream.Name();
      DrawRows(trajectory_->mixture(), trajectory_->level(level),
               {std::uint64_t{name.key.k[1]} << 32 | name.key.k[0], name.counter[0]}, first_row,
               static_cast<std::size_t>(rows), z.mutable_data_ptr<double>(), nullptr);
      return z.to(options_);
    });
  }

 private:
  std::shared_ptr<const MixtureTrajectory> trajectory_;
  std::vector<std::int64_t> shape_;
  at::TensorOptions options_;
};

class DataInputs : public Inputs {
 public:
  DataInputs(at::Tensor data, at::Tensor labels, const Schedule& schedule,
             at::TensorOptions options)
      : data_(std::move(data)),
        labels_(std::move(labels)),
        schedule_(schedule),
        shape_(data_.sizes().begin() + 1, data_.sizes().end()),
        options_(options) {}
  absl::StatusOr<at::Tensor> Draw(int level, const RowStream& stream, std::uint64_t first_row,
                                  std::int64_t rows) override {
    return Try("inputs", [&]() -> absl::StatusOr<at::Tensor> {
      const at::Tensor x0 = data_.index_select(0, Chosen(stream, first_row, rows)).to(options_);
      const at::Tensor noise = Noise(stream.Name(), first_row, rows, shape_).to(options_);
      return x0 * (schedule_.alpha[level] / schedule_.data_scale) + noise * schedule_.sigma[level];
    });
  }
  at::Tensor Labels(const RowStream& stream, std::uint64_t first_row,
                    std::int64_t rows) const override {
    if (!labels_.defined()) return labels_;
    return labels_.index_select(0, Chosen(stream, first_row, rows));
  }

 private:
  at::Tensor Chosen(RowStream stream, std::uint64_t first_row, std::int64_t rows) const {
    // Every lane has choices of its own.
    stream.seed ^= static_cast<std::uint64_t>(stream.lane) << 56;
    return at::tensor(Choose(stream.Name(Lane::kChoice), first_row, rows, data_.size(0)),
                      at::kLong);
  }

  at::Tensor data_, labels_;
  Schedule schedule_;
  std::vector<std::int64_t> shape_;
  at::TensorOptions options_;
};

class RolloutInputs : public Inputs {
 public:
  RolloutInputs(std::shared_ptr<Teacher> teacher, const Schedule& schedule, std::uint64_t seed,
                std::int64_t pool_rows, at::TensorOptions options)
      : teacher_(std::move(teacher)),
        T_(schedule.steps()),
        size_(std::hypot(schedule.alpha[T_], schedule.sigma[T_])),
        seed_(seed),
        pool_rows_(pool_rows),
        options_(options) {
    pool_.resize(T_ + 1);
  }

  absl::StatusOr<at::Tensor> Draw(int level, const RowStream& stream, std::uint64_t first_row,
                                  std::int64_t rows) override {
    if (Pooled(stream)) return FromPool(level, stream, first_row, rows);
    return Rollout(stream.Name(), first_row, rows, level, Labels(stream, first_row, rows));
  }
  at::Tensor Labels(const RowStream& stream, std::uint64_t first_row,
                    std::int64_t rows) const override {
    const std::int64_t classes = teacher_->classes();
    if (classes == 0) return at::Tensor();
    if (!Pooled(stream)) return UniformLabels(LabelsOf(stream), first_row, rows, classes);
    const StreamName pool = LabelsOf(PoolStream());
    if (stream.lane == Lane::kPool) return UniformLabels(pool, first_row, rows, classes);
    const at::Tensor all = UniformLabels(pool, 0, pool_rows_, classes);
    return all.index_select(0, at::tensor(PoolRows(stream, first_row, rows), at::kLong));
  }
  absl::StatusOr<at::Tensor> Lower(int level, const RowStream& stream, std::uint64_t first_row,
                                   std::int64_t rows, int lower) override {
    (void)level;
    if (!Pooled(stream)) return at::Tensor();
    return FromPool(lower, stream, first_row, rows);
  }
  std::int64_t pool_rows() const override { return pool_rows_; }
  std::vector<std::int64_t> PoolRows(const RowStream& stream, std::uint64_t first_row,
                                     std::int64_t rows) const override {
    return Choose(stream.Name(Lane::kChoice), first_row, rows, pool_rows_);
  }
  std::int64_t teacher_calls() const override { return calls_; }

 private:
  bool Pooled(const RowStream& stream) const {
    return pool_rows_ > 0 && (stream.lane == Lane::kTraining || stream.lane == Lane::kPool);
  }

  absl::StatusOr<at::Tensor> Rollout(const StreamName& name, std::uint64_t first_row,
                                     std::int64_t rows, int level, const at::Tensor& label) {
    absl::StatusOr<at::Tensor> z = Try("inputs", [&]() -> absl::StatusOr<at::Tensor> {
      return Noise(name, first_row, rows, teacher_->shape()).to(options_) * size_;
    });
    for (int t = T_; z.ok() && t > level; --t) {
      z = teacher_->Jump(*z, t, t - 1, label);
      calls_ += rows;
    }
    return z;
  }
  RowStream PoolStream() const {
    RowStream stream;
    stream.seed = seed_;
    stream.lane = Lane::kPool;
    return stream;
  }

  absl::StatusOr<at::Tensor> FromPool(int level, const RowStream& stream, std::uint64_t first_row,
                                      std::int64_t rows) {
    MP_RETURN_IF_ERROR(Extend(level));
    return Try("inputs", [&]() -> absl::StatusOr<at::Tensor> {
      if (stream.lane == Lane::kPool) {
        return pool_[level].narrow(0, static_cast<std::int64_t>(first_row), rows).to(options_);
      }
      const std::vector<std::int64_t> index = PoolRows(stream, first_row, rows);
      return pool_[level].index_select(0, at::tensor(index, at::kLong)).to(options_);
    });
  }

  // Makes the pool reach down to a level.
  absl::Status Extend(int level) {
    if (pool_[level].defined()) return absl::OkStatus();
    int known = level + 1;
    while (known <= T_ && !pool_[known].defined()) ++known;
    for (int t = std::min(known, T_ + 1) - 1; t >= level; --t) {
      std::vector<at::Tensor> blocks;
      for (std::int64_t begin = 0; begin < pool_rows_; begin += kPoolBlock) {
        const std::int64_t rows = std::min(kPoolBlock, pool_rows_ - begin);
        absl::StatusOr<at::Tensor> z;
        const auto first = static_cast<std::uint64_t>(begin);
        if (t == T_) {
          z = Rollout(PoolStream().Name(), first, rows, T_, at::Tensor());
        } else {
          z = teacher_->Jump(pool_[t + 1].narrow(0, begin, rows).to(options_), t + 1, t,
                             Labels(PoolStream(), first, rows));
          calls_ += rows;
        }
        if (!z.ok()) return z.status();
        blocks.push_back(z->to(at::kCPU));
      }
      MP_RETURN_IF_ERROR(Try("inputs", [&] {
        pool_[t] = at::cat(blocks);
        return absl::OkStatus();
      }));
    }
    return absl::OkStatus();
  }

  std::shared_ptr<Teacher> teacher_;
  int T_;
  double size_;  // of the noise at level T
  std::uint64_t seed_;
  std::int64_t pool_rows_;
  at::TensorOptions options_;
  std::vector<at::Tensor> pool_;  // by level, on the CPU
  std::int64_t calls_ = 0;
};

absl::Status Fits(const std::vector<std::int64_t>& shape, std::int64_t dimensions) {
  if (!shape.empty() && Product(shape) == dimensions) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("inputs of ", dimensions,
                                                 " dimensions for samples of the shape [",
                                                 absl::StrJoin(shape, ", "), "]"));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Inputs>> MakeGaussianInputs(std::vector<double> variances,
                                                           const Schedule& schedule,
                                                           std::vector<std::int64_t> shape,
                                                           at::TensorOptions options) {
  MP_RETURN_IF_ERROR(Fits(shape, static_cast<std::int64_t>(variances.size())));
  for (const double variance : variances) {
    if (variance >= 0 && std::isfinite(variance)) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("inputs: a variance is ", variance, ", expected a finite number >= 0"));
  }
  return std::make_unique<GaussianInputs>(std::move(variances), schedule, std::move(shape),
                                          options);
}

absl::StatusOr<std::unique_ptr<Inputs>> MakeMixtureInputs(
    std::shared_ptr<const MixtureTrajectory> trajectory, std::vector<std::int64_t> shape,
    at::TensorOptions options) {
  MP_RETURN_IF_ERROR(Fits(shape, trajectory->dimensions()));
  return std::make_unique<MixtureInputs>(std::move(trajectory), std::move(shape), options);
}

absl::StatusOr<std::unique_ptr<Inputs>> MakeDataInputs(at::Tensor data, const Schedule& schedule,
                                                       at::TensorOptions options,
                                                       at::Tensor labels) {
  if (!data.defined() || data.dim() < 2 || data.size(0) == 0 || data.numel() == 0) {
    return absl::InvalidArgumentError("training data: there is no row, expected one or more");
  }
  return Try("training data", [&]() -> absl::StatusOr<std::unique_ptr<Inputs>> {
    const at::Tensor finite = at::isfinite(data).flatten(1).all(1);
    if (!finite.all().item<bool>()) {
      return absl::InvalidArgumentError(
          absl::StrCat("training data: row ", finite.to(at::kInt).argmin().item<std::int64_t>(),
                       " holds numbers that are not finite"));
    }
    if (labels.defined() && (labels.dim() != 1 || labels.size(0) != data.size(0))) {
      return absl::InvalidArgumentError(absl::StrCat("training data: there are ", labels.numel(),
                                                     " labels for ", data.size(0), " rows"));
    }
    return std::make_unique<DataInputs>(std::move(data), std::move(labels), schedule, options);
  });
}

absl::StatusOr<std::unique_ptr<Inputs>> MakeRolloutInputs(std::shared_ptr<Teacher> teacher,
                                                          const Schedule& schedule,
                                                          std::uint64_t seed,
                                                          std::int64_t pool_rows,
                                                          at::TensorOptions options) {
  if (pool_rows < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("the pool of rollouts has ", pool_rows, " rows, expected 0 or more"));
  }
  if (teacher->steps() != schedule.steps()) {
    return absl::InvalidArgumentError(absl::StrCat("the teacher has ", teacher->steps(),
                                                   " steps, the schedule ", schedule.steps()));
  }
  MP_RETURN_IF_ERROR(
      CheckMemory(absl::StrCat("a pool of ", pool_rows, " rollouts"),
                  static_cast<double>(pool_rows) * static_cast<double>(Product(teacher->shape())) *
                      (schedule.steps() + 1) * static_cast<double>(options.dtype().itemsize())));
  return std::make_unique<RolloutInputs>(std::move(teacher), schedule, seed, pool_rows, options);
}

int PickLevel(int levels, const RowStream& stream, std::uint64_t update, int slice, int slices) {
  const PhiloxWords words =
      stream.Name(Lane::kLevels)
          .Words(update * static_cast<std::uint64_t>(slices) + static_cast<std::uint64_t>(slice));
  const double uniform = (static_cast<double>(words.w[0]) + 0.5) * 0x1p-32;
  return 1 + std::min(levels - 1, static_cast<int>((slice + uniform) / slices * levels));
}

}  // namespace mergeplan::network
