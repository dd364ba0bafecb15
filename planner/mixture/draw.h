#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "planner/mixture/mixture.h"
#include "planner/mixture/row_draw.h"
#include "planner/mixture/step.h"

namespace mergeplan {

// The name of a stream of draws. Row i of a stream is always the same, whoever asks for it, in what
// order and in what company; streams with other names share nothing.
struct DrawStream {
  std::uint64_t seed = 0;
  std::uint32_t number = 0;
};

// Rows first_row .. first_row + rows - 1 of the stream: states z, rows x d, drawn from the law at
// `level` itself (component k with probability weight_k, then N(alpha mean_k, C_k)), and the
// components drawn, one per row, where `component` is not null. Level (1, 0) gives data, also where
// covariances are singular. O(d), O(d r) or O(d^2) per row. Random bits come from Philox 4x32 with
// ten rounds, counted by row, and are the same everywhere; normal numbers (Box and Muller) are so
// up to the rounding of the C library's log, sin and cos. Allocates d + r numbers.
void DrawRows(const GaussianMixture& mixture, NoiseLevel level, DrawStream stream,
              std::uint64_t first_row, std::size_t rows, double* z, std::int32_t* component);

// The same rows as data x0 and standard normal noise, each rows x d: z = alpha x0 + sigma noise is
// then a state at any level. (Not the z of DrawRows, which needs half the draws.)
void DrawPairs(const GaussianMixture& mixture, DrawStream stream, std::uint64_t first_row,
               std::size_t rows, double* x0, double* noise);

// What one row of DrawRows is made from, for devices: `weight_sums` is WeightSums(mixture), and the
// tables are valid as long as both stay where they are.
std::vector<double> WeightSums(const GaussianMixture& mixture);
mixture::DrawTables DrawTablesOf(const GaussianMixture& mixture, NoiseLevel level,
                                 const std::vector<double>& weight_sums);

}  // namespace mergeplan
