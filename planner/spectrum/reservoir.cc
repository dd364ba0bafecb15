#include "planner/spectrum/reservoir.h"

#include <algorithm>

#include "planner/base/philox.h"

namespace mergeplan {

RowReservoir::RowReservoir(int dimensions, std::int64_t capacity, std::uint64_t seed)
    : d_(static_cast<std::size_t>(dimensions)),
      capacity_(static_cast<std::size_t>(capacity)),
      seed_(seed) {}

template <typename T>
void RowReservoir::AddRows(const T* rows, int count) {
  const PhiloxKey seed = {
      {static_cast<std::uint32_t>(seed_), static_cast<std::uint32_t>(seed_ >> 32)}};
  for (int r = 0; r < count; ++r, ++seen_) {
    const std::uint64_t number = static_cast<std::uint64_t>(seen_);
    const PhiloxWords words = Philox({{static_cast<std::uint32_t>(number),
                                       static_cast<std::uint32_t>(number >> 32), 0, 0x726F7773u}},
                                     seed);
    const std::uint64_t key = std::uint64_t{words.w[0]} << 32 | words.w[1];
    const T* row = rows + static_cast<std::size_t>(r) * d_;
    if (keys_.size() < capacity_) {
      keys_.emplace_back(key, keys_.size());
      std::push_heap(keys_.begin(), keys_.end());
      rows_.insert(rows_.end(), row, row + d_);
    } else if (capacity_ > 0 && key < keys_.front().first) {
      std::pop_heap(keys_.begin(), keys_.end());
      keys_.back().first = key;
      std::copy_n(row, d_, rows_.begin() + static_cast<std::ptrdiff_t>(keys_.back().second * d_));
      std::push_heap(keys_.begin(), keys_.end());
    }
  }
}

void RowReservoir::Add(absl::Span<const float> rows, int count) { AddRows(rows.data(), count); }
void RowReservoir::Add(absl::Span<const double> rows, int count) { AddRows(rows.data(), count); }

std::int64_t ReservoirCapacity(int dimensions) {
  return std::max<std::int64_t>(16, (std::int64_t{1} << 23) / dimensions);
}

}  // namespace mergeplan
