#include "adapters/denoising/batches.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/tensor.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "adapters/network/inputs.h"
#include "adapters/network/try.h"
#include "adapters/noise/noise.h"
#include "planner/base/status_macros.h"

namespace mergeplan::denoising {
namespace {

StreamName Stream(std::uint64_t seed, network::Lane lane) {
  network::RowStream stream;
  stream.seed = seed;
  return stream.Name(lane);
}

// Below `count`, of 64 random bits.
std::int64_t Below(std::uint32_t high, std::uint32_t low, std::int64_t count) {
  const auto bits = static_cast<unsigned __int128>(std::uint64_t{high} << 32 | low);
  return static_cast<std::int64_t>(bits * static_cast<std::uint64_t>(count) >> 64);
}

}  // namespace

std::vector<std::int64_t> ChooseSamples(std::int64_t count, std::uint64_t seed,
                                        std::uint64_t first_row, std::int64_t rows,
                                        std::vector<std::int64_t>* turned) {
  const StreamName choice = Stream(seed, network::Lane::kChoice);
  std::vector<std::int64_t> samples(static_cast<std::size_t>(rows));
  for (std::int64_t r = 0; r < rows; ++r) {
    const PhiloxWords words = choice.Words(first_row + static_cast<std::uint64_t>(r));
    samples[static_cast<std::size_t>(r)] = Below(words.w[0], words.w[1], count);
    if (turned != nullptr && (words.w[2] & 1U) != 0) turned->push_back(r);
  }
  return samples;
}

at::Tensor TakeSamples(const at::Tensor& data, std::uint64_t seed, std::uint64_t first_row,
                       std::int64_t rows, bool flip) {
  std::vector<std::int64_t> turned;
  const std::vector<std::int64_t> samples =
      ChooseSamples(data.size(0), seed, first_row, rows, flip ? &turned : nullptr);
  at::Tensor taken = data.index_select(0, at::tensor(samples, at::kLong));
  if (!turned.empty()) {
    const at::Tensor index = at::tensor(turned, at::kLong);
    taken.index_copy_(0, index, taken.index_select(0, index).flip({-1}));
  }
  return taken;
}

absl::Status CheckFinite(const at::Tensor& data) {
  return network::Try("training data", [&]() -> absl::Status {
    if (at::isfinite(data).all().item<bool>()) return absl::OkStatus();
    return absl::InvalidArgumentError("the training data holds numbers that are not finite");
  });
}

absl::StatusOr<Batches> Batches::Create(at::Tensor data, std::vector<Level> levels,
                                        const BatchOptions& options, at::Tensor labels) {
  if (levels.empty() || options.rows < 1 || data.dim() < 2 || data.numel() == 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "training takes batches of ", options.rows, " rows of ", data.defined() ? data.size(0) : 0,
        " samples at ", levels.size(), " levels, expected 1 or more of all"));
  }
  Batches out;
  MP_RETURN_IF_ERROR(CheckFinite(data));
  if (labels.defined() && (labels.dim() != 1 || labels.size(0) != data.size(0))) {
    return absl::InvalidArgumentError(absl::StrCat("there are ", labels.numel(), " labels for ",
                                                   data.size(0), " samples, expected as many"));
  }
  out.data_ = std::move(data);
  out.labels_ = std::move(labels);
  out.levels_ = std::move(levels);
  out.options_ = options;
  return out;
}

absl::StatusOr<Batch> Batches::Draw(std::uint64_t number) const {
  return network::Try("training data", [&]() -> absl::StatusOr<Batch> {
    const c10::NoGradGuard no_gradients;
    const std::int64_t rows = options_.rows, d = data_.numel() / data_.size(0);
    const auto T = static_cast<std::int64_t>(levels_.size());
    const std::uint64_t first = number * static_cast<std::uint64_t>(rows);
    const StreamName choice = Stream(options_.seed, network::Lane::kChoice);
    std::vector<double> coefficients(5 * rows), times(rows);
    for (std::int64_t r = 0; r < rows; ++r) {
      const PhiloxWords words = choice.Words(first + static_cast<std::uint64_t>(r));
      const double share = (static_cast<double>(r) + words.w[3] * 0x1p-32) / rows;
      const Level& level =
          levels_[std::min<std::int64_t>(T - 1, static_cast<std::int64_t>(share * T))];
      const double values[] = {level.input_data, level.input_noise, level.output_data,
                               level.output_noise, level.weight};
      for (std::int64_t k = 0; k < 5; ++k) coefficients[k * rows + r] = values[k];
      times[r] = level.time;
    }
    at::Tensor x0 = TakeSamples(data_, options_.seed, first, rows, options_.flip);
    at::Tensor noise = at::empty(x0.sizes(), at::TensorOptions().dtype(at::kFloat));
    NoiseStream(Stream(options_.seed, network::Lane::kTraining))
        .FillAt(first * static_cast<std::uint64_t>(d), noise.mutable_data_ptr<float>(),
                noise.numel());
    const auto exact = options_.network.dtype() == at::kDouble ? at::kDouble : at::kFloat;
    const at::TensorOptions states = options_.network.dtype(exact);
    x0 = x0.to(states);
    noise = noise.to(states);
    std::vector<std::int64_t> column(x0.dim(), 1);
    column[0] = rows;
    const at::Tensor all = at::tensor(coefficients, at::kDouble).view({5, rows}).to(states);
    const auto each = [&](std::int64_t k) { return all.select(0, k).view(column); };
    Batch out;
    out.input = (x0 * each(0) + noise * each(1)).to(options_.network.dtype());
    out.target = x0 * each(2) + noise * each(3);
    out.weight = all.select(0, 4);
    if (labels_.defined()) {
      out.label = labels_.index_select(
          0, at::tensor(ChooseSamples(data_.size(0), options_.seed, first, rows), at::kLong));
    }
    out.time =
        at::tensor(times, at::kDouble)
            .to(options_.integer_time ? options_.network.dtype(at::kLong) : options_.network);
    return out;
  });
}

}  // namespace mergeplan::denoising
