#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/types/span.h"

namespace mergeplan {

// A random subset of a stream's samples, of at most `capacity`: those with the smallest of as many
// random keys, which depend on the seed and the sample's number only. In the order of the stream as
// long as all fit.
class RowReservoir {
 public:
  RowReservoir(int dimensions, std::int64_t capacity, std::uint64_t seed);

  // count x d values.
  void Add(absl::Span<const float> rows, int count);
  void Add(absl::Span<const double> rows, int count);

  std::int64_t seen() const { return seen_; }
  std::int64_t kept() const { return static_cast<std::int64_t>(keys_.size()); }
  // kept() x d; the storage leaves the object.
  std::vector<double> TakeRows() { return std::move(rows_); }

 private:
  template <typename T>
  void AddRows(const T* rows, int count);

  std::size_t d_, capacity_;
  std::uint64_t seed_;
  std::int64_t seen_ = 0;
  std::vector<std::pair<std::uint64_t, std::size_t>> keys_;  // heap of (key, slot), largest first
  std::vector<double> rows_;
};

// How many samples of d numbers are kept by default: 2^23 numbers, 64 MiB, and at least 16 samples.
std::int64_t ReservoirCapacity(int dimensions);

}  // namespace mergeplan
