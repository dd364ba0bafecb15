#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "planner/data/samples.h"

namespace mergeplan {

// Samples that stand in memory, handed out at most `batch` at a time.
class MemorySource : public SampleSource {
 public:
  MemorySource(std::vector<double> values, std::vector<std::int64_t> shape, int batch = 1 << 30)
      : values_(std::move(values)), shape_(std::move(shape)), batch_(batch) {
    for (const std::int64_t extent : shape_) d_ *= static_cast<std::size_t>(extent);
  }

  const std::vector<std::int64_t>& shape() const override { return shape_; }
  bool is_pixels() const override { return pixels; }
  std::optional<std::int64_t> size() const override { return std::nullopt; }
  absl::StatusOr<int> Read(absl::Span<double> rows) override {
    if (!error.ok() && next_ >= error_after) return error;
    const std::size_t left = (values_.size() - next_) / d_;
    const std::size_t count = std::min({left, rows.size() / d_, static_cast<std::size_t>(batch_)});
    std::copy_n(values_.begin() + static_cast<std::ptrdiff_t>(next_), count * d_, rows.begin());
    next_ += count * d_;
    return static_cast<int>(count);
  }
  std::int64_t skipped() const override { return left_out; }

  bool pixels = false;
  std::int64_t left_out = 0;
  absl::Status error;
  std::size_t error_after = 0;

 private:
  std::vector<double> values_;
  std::vector<std::int64_t> shape_;
  int batch_;
  std::size_t d_ = 1;
  std::size_t next_ = 0;
};

}  // namespace mergeplan
