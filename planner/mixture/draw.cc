#include "planner/mixture/draw.h"

#include <vector>

#include "planner/mixture/row_numbers.h"

namespace mergeplan {

using mixture::DrawComponent;
using mixture::DrawState;
using mixture::DrawTables;
using mixture::Lane;
using mixture::RowNumbers;

std::vector<double> WeightSums(const GaussianMixture& mixture) {
  std::vector<double> below;
  double sum = 0;
  for (const double weight : mixture.weights()) below.push_back(sum += weight);
  return below;
}

DrawTables DrawTablesOf(const GaussianMixture& mixture, NoiseLevel level,
                        const std::vector<double>& weight_sums) {
  const bool full = mixture.kind() == CovarianceKind::kFull;
  DrawTables t;
  t.kind = mixture.kind();
  t.K = mixture.components();
  t.d = mixture.dimensions();
  t.r = mixture.rank();
  t.alpha = level.alpha;
  t.sigma = level.sigma;
  t.below = weight_sums.data();
  t.means = mixture.spec().means.data();
  t.variances = (full ? mixture.derived().values : mixture.spec().variances).data();
  t.axes_transposed = full ? mixture.derived().axes_transposed.data() : nullptr;
  t.factors = mixture.spec().factors.data();
  return t;
}

void DrawRows(const GaussianMixture& mixture, NoiseLevel level, DrawStream stream,
              std::uint64_t first_row, std::size_t rows, double* z, std::int32_t* component) {
  const std::vector<double> sums = WeightSums(mixture);
  const DrawTables tables = DrawTablesOf(mixture, level, sums);
  std::vector<double> normal(tables.d + tables.r);
  for (std::size_t i = 0; i < rows; ++i) {
    RowNumbers numbers(stream.seed, stream.number, first_row + i);
    const std::size_t k = DrawComponent(tables, numbers);
    if (component != nullptr) component[i] = static_cast<std::int32_t>(k);
    DrawState(tables, k, numbers, {normal.data(), 1}, {z + i * tables.d, 1});
  }
}

void DrawPairs(const GaussianMixture& mixture, DrawStream stream, std::uint64_t first_row,
               std::size_t rows, double* x0, double* noise) {
  const std::vector<double> sums = WeightSums(mixture);
  const DrawTables tables = DrawTablesOf(mixture, {1, 0}, sums);
  const std::size_t d = tables.d;
  std::vector<double> normal(d + tables.r);
  for (std::size_t i = 0; i < rows; ++i) {
    RowNumbers numbers(stream.seed, stream.number, first_row + i);
    const std::size_t k = DrawComponent(tables, numbers);
    DrawState(tables, k, numbers, {normal.data(), 1}, {x0 + i * d, 1});
    for (std::size_t j = 0; j < d; ++j) noise[i * d + j] = numbers.NextNormal();
  }
}

}  // namespace mergeplan
