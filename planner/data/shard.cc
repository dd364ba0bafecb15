#include "planner/data/shard.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "planner/base/status_macros.h"

namespace mergeplan {
namespace {

// Some neighbouring rows of a file.
class RangeRows : public RowFile {
 public:
  RangeRows(const RowFile& file, std::int64_t first, std::int64_t rows)
      : file_(file), first_(first), rows_(rows) {}

  std::int64_t rows() const override { return rows_; }
  bool fits_float() const override { return file_.fits_float(); }
  absl::Status Read(std::int64_t first, std::int64_t count, float* out) const override {
    return file_.Read(first_ + first, count, out);
  }
  absl::Status Read(std::int64_t first, std::int64_t count, double* out) const override {
    return file_.Read(first_ + first, count, out);
  }
  std::unique_ptr<FileWindow> ViewOf(std::size_t size, std::int64_t first,
                                     std::int64_t count) const override {
    return file_.ViewOf(size, first_ + first, count);
  }

 private:
  const RowFile& file_;
  std::int64_t first_, rows_;
};

// first .. last - 1 by number.
class RangeSource : public SampleSource {
 public:
  RangeSource(std::unique_ptr<SampleSource> source, std::int64_t first, std::int64_t last)
      : source_(std::move(source)), skip_(first), left_(last - first), size_(left_) {
    if (source_->row_file() != nullptr) rows_.emplace(*source_->row_file(), first, size_);
  }

  const std::vector<std::int64_t>& shape() const override { return source_->shape(); }
  bool is_pixels() const override { return source_->is_pixels(); }
  std::optional<std::int64_t> size() const override { return size_; }
  std::int64_t skipped() const override { return source_->skipped(); }
  const RowFile* row_file() const override { return rows_ ? &*rows_ : nullptr; }
  absl::StatusOr<int> Read(absl::Span<double> rows) override {
    if (skip_ > 0) {
      MP_RETURN_IF_ERROR(source_->Skip(skip_));
      skip_ = 0;
    }
    if (left_ == 0) return 0;
    const std::size_t most = static_cast<std::size_t>(left_ * dimensions());
    MP_ASSIGN_OR_RETURN(const int got,
                        source_->Read(rows.size() > most ? rows.subspan(0, most) : rows));
    left_ -= got;
    return got;
  }

 private:
  std::unique_ptr<SampleSource> source_;
  std::int64_t skip_, left_, size_;
  std::optional<RangeRows> rows_;
};

class EverySource : public SampleSource {
 public:
  EverySource(std::unique_ptr<SampleSource> source, int index, int count)
      : source_(std::move(source)), index_(index - 1), count_(count) {}

  const std::vector<std::int64_t>& shape() const override { return source_->shape(); }
  bool is_pixels() const override { return source_->is_pixels(); }
  std::optional<std::int64_t> size() const override { return std::nullopt; }
  std::int64_t skipped() const override { return index_ == 0 ? source_->skipped() : 0; }
  absl::StatusOr<int> Read(absl::Span<double> rows) override {
    const std::size_t d = static_cast<std::size_t>(dimensions());
    int kept = 0;
    while (kept == 0) {
      MP_ASSIGN_OR_RETURN(const int got, source_->Read(rows));
      if (got == 0) return 0;
      for (int r = 0; r < got; ++r, ++seen_) {
        if (seen_ % count_ != index_) continue;
        if (kept != r) {
          std::copy_n(
              rows.begin() + static_cast<std::ptrdiff_t>(static_cast<std::size_t>(r) * d), d,
              rows.begin() + static_cast<std::ptrdiff_t>(static_cast<std::size_t>(kept) * d));
        }
        ++kept;
      }
    }
    return kept;
  }

 private:
  std::unique_ptr<SampleSource> source_;
  std::int64_t index_, count_, seen_ = 0;
};

}  // namespace

bool CutsEvery(const SampleSource& source, bool every) { return every || !source.size(); }

std::unique_ptr<SampleSource> ShardOf(std::unique_ptr<SampleSource> source, int index, int count,
                                      bool every) {
  if (CutsEvery(*source, every)) {
    return std::make_unique<EverySource>(std::move(source), index, count);
  }
  const std::int64_t n = *source->size();
  return std::make_unique<RangeSource>(std::move(source), EndOfShard(n, index - 1, count),
                                       EndOfShard(n, index, count));
}

std::int64_t EndOfShard(std::int64_t n, std::int64_t index, std::int64_t count) {
  // Without forming n * index, which could overflow.
  return n / count * index + n % count * index / count;
}

}  // namespace mergeplan
