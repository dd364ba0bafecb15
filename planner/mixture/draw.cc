#include "planner/mixture/draw.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "planner/mixture/row_numbers.h"

namespace mergeplan {
namespace {

using mixture::RowNumbers;

// Draws components and their Gaussians.
class Drawer {
 public:
  explicit Drawer(const GaussianMixture& mixture)
      : mixture_(mixture), normal_(mixture.dimensions() + mixture.rank()) {
    double sum = 0;
    for (const double weight : mixture.weights()) below_.push_back(sum += weight);
  }

  int Component(RowNumbers& numbers) const {
    const double u = numbers.NextUniform();
    const auto found = std::upper_bound(below_.begin(), below_.end(), u);
    // The weights may sum to a little less than 1.
    return static_cast<int>(std::min<std::ptrdiff_t>(
        found - below_.begin(), static_cast<std::ptrdiff_t>(below_.size()) - 1));
  }

  // z ~ N(alpha mean_k, alpha^2 Sigma_k + sigma^2 I).
  void State(int k, NoiseLevel level, RowNumbers& numbers, double* z) {
    const std::size_t d = mixture_.dimensions(), r = mixture_.rank();
    for (double& value : normal_) value = numbers.NextNormal();
    const bool full = mixture_.kind() == CovarianceKind::kFull;
    const double* variances =
        (full ? mixture_.derived().values : mixture_.spec().variances).data() + k * d;
    for (std::size_t j = 0; j < d; ++j) {
      normal_[j] *= std::sqrt(level.alpha * level.alpha * variances[j] + level.sigma * level.sigma);
    }
    const double* mean = mixture_.mean(k).data();
    for (std::size_t j = 0; j < d; ++j) {
      double sum = full ? 0 : normal_[j];
      if (full) {
        const double* row = mixture_.derived().axes_transposed.data() + (k * d + j) * d;
        for (std::size_t i = 0; i < d; ++i) sum += row[i] * normal_[i];
      }
      const double* factor = mixture_.spec().factors.data() + (k * d + j) * r;
      for (std::size_t i = 0; i < r; ++i) sum += level.alpha * factor[i] * normal_[d + i];
      z[j] = level.alpha * mean[j] + sum;
    }
  }

 private:
  const GaussianMixture& mixture_;
  std::vector<double> normal_;
  std::vector<double> below_;  // sums of the weights up to each component
};

}  // namespace

void DrawRows(const GaussianMixture& mixture, NoiseLevel level, DrawStream stream,
              std::uint64_t first_row, std::size_t rows, double* z, std::int32_t* component) {
  Drawer drawer(mixture);
  for (std::size_t i = 0; i < rows; ++i) {
    RowNumbers numbers(stream.seed, stream.number, first_row + i);
    const int k = drawer.Component(numbers);
    if (component != nullptr) component[i] = k;
    drawer.State(k, level, numbers, z + i * mixture.dimensions());
  }
}

void DrawPairs(const GaussianMixture& mixture, DrawStream stream, std::uint64_t first_row,
               std::size_t rows, double* x0, double* noise) {
  Drawer drawer(mixture);
  const std::size_t d = mixture.dimensions();
  for (std::size_t i = 0; i < rows; ++i) {
    RowNumbers numbers(stream.seed, stream.number, first_row + i);
    const int k = drawer.Component(numbers);
    drawer.State(k, {1, 0}, numbers, x0 + i * d);
    for (std::size_t j = 0; j < d; ++j) noise[i * d + j] = numbers.NextNormal();
  }
}

}  // namespace mergeplan
