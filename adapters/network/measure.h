#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>

#include "absl/status/statusor.h"
#include "adapters/network/inputs.h"
#include "adapters/network/operators.h"

namespace mergeplan::network {

// A mean over rows of a squared distance, summed over the dimensions.
struct ErrorEstimate {
  double mean = 0, standard_error = 0;
  std::int64_t rows = 0;

  // 95 % confidence interval of the mean, by the normal law.
  double low() const { return mean - 1.959963984540054 * standard_error; }
  double high() const { return mean + 1.959963984540054 * standard_error; }
  bool operator==(const ErrorEstimate&) const = default;
};

// Held-out rows, the same for all students at a level, and what the teacher makes of them. Both are
// kept while they take less than 512 MiB. CANCELLED where `stop` (may be empty), asked before every
// block of rows, said so.
class HeldOut {
 public:
  HeldOut(Frozen frozen, std::shared_ptr<Inputs> inputs, std::uint64_t seed, std::int64_t rows,
          std::int64_t block, std::function<bool()> stop = nullptr)
      : frozen_(std::move(frozen)),
        inputs_(std::move(inputs)),
        seed_(seed),
        rows_(rows),
        block_(block),
        stop_(std::move(stop)) {}

  // z at a level.
  absl::StatusOr<at::Tensor> States(int level);
  // The classes of these rows; undefined where there are none.
  at::Tensor Labels(int level) const;
  // The teacher's steps from `level` down to `to`, of States(level).
  absl::StatusOr<at::Tensor> Teacher(int level, int to);
  // What links make of states, `block` rows at a time; `label`: their classes where there are some.
  absl::StatusOr<at::Tensor> Run(const std::vector<Link>& links, const at::Tensor& z,
                                 const at::Tensor& label = {}) const;
  // What a network makes of them.
  absl::StatusOr<at::Tensor> Jump(Module& module, const at::Tensor& z, int from, int landing,
                                  const at::Tensor& label = {}) const;
  std::int64_t rows() const { return rows_; }

 private:
  void Keep(const at::Tensor& states);
  RowStream StreamOf(int level) const;

  Frozen frozen_;
  std::shared_ptr<Inputs> inputs_;
  std::uint64_t seed_;
  std::int64_t rows_, block_;
  std::function<bool()> stop_;
  std::map<int, std::map<int, at::Tensor>> known_;  // level, reached
  std::int64_t bytes_ = 0;
};

absl::StatusOr<ErrorEstimate> SquaredDistance(const at::Tensor& a, const at::Tensor& b);

}  // namespace mergeplan::network
