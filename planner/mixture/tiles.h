#pragma once

#include <algorithm>
#include <cstddef>

#include "planner/mixture/kernels.h"

// Rows to tiles and back. For this folder only.
namespace mergeplan::mixture {

// Puts `count` rows of d numbers into a tile; where they are fewer than kTileRows the last one
// stands for the rest.
template <typename T>
inline void LoadTile(const T* rows, std::size_t count, std::size_t d, double* tile) {
  for (std::size_t b = 0; b < kTileRows; ++b) {
    const T* row = rows + std::min(b, count - 1) * d;
    for (std::size_t j = 0; j < d; ++j) tile[j * kTileRows + b] = static_cast<double>(row[j]);
  }
}

template <typename T>
inline void StoreTile(const double* tile, std::size_t count, std::size_t d, T* rows) {
  for (std::size_t b = 0; b < count; ++b) {
    for (std::size_t j = 0; j < d; ++j) {
      rows[b * d + j] = static_cast<T>(tile[j * kTileRows + b]);
    }
  }
}

}  // namespace mergeplan::mixture
