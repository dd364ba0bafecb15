#include "planner/data/source.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <limits>

#include "absl/strings/str_cat.h"
#include "planner/base/status_macros.h"

namespace mergeplan {
namespace {

constexpr std::int64_t kMostDimensions = std::int64_t{1} << 28;

std::int64_t CountNonfinite(const double* row, std::int64_t dimensions) {
  std::int64_t bad = 0;
  for (std::int64_t i = 0; i < dimensions; ++i) bad += std::isfinite(row[i]) ? 0 : 1;
  return bad;
}

}  // namespace

std::int64_t SampleSource::dimensions() const {
  std::int64_t count = 1;
  for (const std::int64_t extent : shape()) count *= extent;
  return count;
}

absl::Status SampleSource::Skip(std::int64_t count) {
  const std::int64_t d = dimensions();
  const std::int64_t rows = std::clamp<std::int64_t>((std::int64_t{1} << 16) / d, 1, count);
  std::vector<double> buffer(static_cast<std::size_t>(rows * d));
  while (count > 0) {
    const std::size_t wanted = static_cast<std::size_t>(std::min(count, rows) * d);
    MP_ASSIGN_OR_RETURN(const int got, Read(absl::MakeSpan(buffer).subspan(0, wanted)));
    if (got == 0) break;
    count -= got;
  }
  return absl::OkStatus();
}

absl::Status CheckedSource::Describe(std::vector<std::int64_t> shape, bool is_pixels,
                                     std::optional<std::int64_t> size, bool may_be_nonfinite) {
  MP_ASSIGN_OR_RETURN(dimensions_, CountElements(shape, 1, name_));
  if (dimensions_ < 1 || dimensions_ > kMostDimensions) {
    return absl::InvalidArgumentError(absl::StrCat(name_, ": has samples of the shape ",
                                                   ShapeText(shape), ", expected 1 to ",
                                                   kMostDimensions, " values in a sample"));
  }
  shape_ = std::move(shape);
  is_pixels_ = is_pixels;
  size_ = size;
  may_be_nonfinite_ = may_be_nonfinite && !keep_nonfinite_;
  return absl::OkStatus();
}

absl::StatusOr<int> CheckedSource::Read(absl::Span<double> rows) {
  if (!status_.ok()) return status_;
  absl::StatusOr<int> got = ReadChecked(rows);
  if (!got.ok()) status_ = got.status();
  return got;
}

absl::StatusOr<int> CheckedSource::ReadChecked(absl::Span<double> rows) {
  const std::size_t d = static_cast<std::size_t>(dimensions_);
  const int most =
      static_cast<int>(std::min<std::size_t>(rows.size() / d, std::numeric_limits<int>::max()));
  if (most == 0) {
    return absl::InvalidArgumentError(absl::StrCat(name_, ": was given room for ", rows.size(),
                                                   " values, expected at least the ", d,
                                                   " of one sample"));
  }
  int kept = 0;
  while (kept < most) {
    double* begin = rows.data() + static_cast<std::size_t>(kept) * d;
    MP_ASSIGN_OR_RETURN(const int filled, Fill(begin, most - kept));
    if (filled == 0) break;
    int good = filled;
    if (may_be_nonfinite_) {
      good = 0;
      for (int i = 0; i < filled; ++i) {
        double* row = begin + static_cast<std::size_t>(i) * d;
        if (CountNonfinite(row, dimensions_) > 0) {
          if (!skip_nonfinite_) return Nonfinite(rows, begin, i, filled);
          ++skipped_;
          continue;
        }
        if (good != i)
          std::memcpy(begin + static_cast<std::size_t>(good) * d, row, d * sizeof(double));
        ++good;
      }
    }
    seen_ += filled;
    kept += good;
  }
  if (kept == 0 && seen_ == skipped_) {
    return absl::InvalidArgumentError(
        absl::StrCat(name_, ": all ", seen_,
                     " samples have values that are NaN or infinite, expected finite ones"));
  }
  return kept;
}

// The error for row `bad_row` of the `filled` rows at `begin`, the latest that Fill gave. The rest
// of the data is read, into `rows`, to tell how many are like it.
absl::Status CheckedSource::Nonfinite(absl::Span<double> rows, const double* begin, int bad_row,
                                      int filled) {
  const std::size_t d = static_cast<std::size_t>(dimensions_);
  const auto count_bad = [&](const double* first, int from, int to) {
    std::int64_t bad = 0;
    for (int i = from; i < to; ++i) {
      bad += CountNonfinite(first + static_cast<std::size_t>(i) * d, dimensions_) > 0 ? 1 : 0;
    }
    return bad;
  };
  const std::int64_t values =
      CountNonfinite(begin + static_cast<std::size_t>(bad_row) * d, dimensions_);
  const std::int64_t number = seen_ + bad_row;
  std::int64_t bad = count_bad(begin, bad_row, filled);
  std::int64_t total = seen_ + filled;
  bool complete = false;
  for (;;) {
    const absl::StatusOr<int> more = Fill(rows.data(), static_cast<int>(rows.size() / d));
    if (!more.ok()) break;
    complete = *more == 0;
    if (complete) break;
    bad += count_bad(rows.data(), 0, *more);
    total += *more;
  }
  return absl::InvalidArgumentError(
      absl::StrCat(name_, ": sample ", number, " (counted from 0) has ", values,
                   values == 1 ? " value that is" : " values that are", " NaN or infinite, as ",
                   complete ? "" : "at least ", bad, " of ", total,
                   " samples have; expected finite values: take such samples out of the file, or, "
                   "with analyze, give --skip-nonfinite to leave such "
                   "samples out"));
}

absl::StatusOr<std::vector<std::int64_t>> SampleShape(const ElementType& type,
                                                      absl::Span<const std::int64_t> shape,
                                                      const std::string& where) {
  if (type.kind == 'S') {
    return absl::InvalidArgumentError(
        absl::StrCat(where, ": holds byte strings, expected an array of numbers"));
  }
  if (shape.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        where,
        ": is a single number (shape ()), expected an array whose first axis counts samples"));
  }
  if (shape[0] == 0) {
    return absl::InvalidArgumentError(absl::StrCat(where, ": has no sample (shape ",
                                                   ShapeText(shape), "), expected one or more"));
  }
  if (shape.size() == 1) return std::vector<std::int64_t>{1};
  return std::vector<std::int64_t>(shape.begin() + 1, shape.end());
}

}  // namespace mergeplan
