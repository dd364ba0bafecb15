#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "adapters/denoising/levels.h"

namespace mergeplan::denoising {

// One pass of a denoising training.
struct Batch {
  at::Tensor input, time, target;
  at::Tensor weight;  // [rows]; of the target's type
  at::Tensor label;   // [rows] int64 on the CPU; undefined where samples have no classes
};

// Which samples of `count` the rows first_row and on of a stream are, drawn with replacement, and,
// in `turned`, which rows are mirrored: each with probability 1/2, by the seed and the row's
// number.
std::vector<std::int64_t> ChooseSamples(std::int64_t count, std::uint64_t seed,
                                        std::uint64_t first_row, std::int64_t rows,
                                        std::vector<std::int64_t>* turned = nullptr);
// Rows first_row and on of a stream of samples: each one of `data` [N, ...] drawn with replacement
// and, with `flip`, mirrored left to right with probability 1/2, by the seed and the row's number
// alone. Throws c10::Error.
at::Tensor TakeSamples(const at::Tensor& data, std::uint64_t seed, std::uint64_t first_row,
                       std::int64_t rows, bool flip);
// INVALID_ARGUMENT where a number is not finite.
absl::Status CheckFinite(const at::Tensor& data);

struct BatchOptions {
  std::uint64_t seed = 0;
  std::int64_t rows = 0;
  bool flip = false;
  at::TensorOptions network;  // type and device of the network's input
  bool integer_time = false;  // else of the network's type
};

// Batches by number: which sample, level, mirroring and noise a row has follows from the seed and
// the row's number alone (Philox), so that a training can be taken up anywhere. Samples are drawn
// with replacement. Row r of B gets a level from the r-th of B equal shares of them, so that every
// batch sees all of the noise levels.
class Batches {
 public:
  // `data` is [N, shape] in native units, on the CPU, `labels` [N] int64 or undefined.
  // INVALID_ARGUMENT for no level, no sample, another number of labels or numbers that are not
  // finite.
  static absl::StatusOr<Batches> Create(at::Tensor data, std::vector<Level> levels,
                                        const BatchOptions& options, at::Tensor labels = {});

  absl::StatusOr<Batch> Draw(std::uint64_t number) const;
  std::int64_t rows() const { return options_.rows; }

 private:
  Batches() = default;

  at::Tensor data_, labels_;
  std::vector<Level> levels_;
  BatchOptions options_;
};

}  // namespace mergeplan::denoising
