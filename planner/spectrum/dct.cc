#include "planner/spectrum/dct.h"

#include <cmath>
#include <cstddef>
#include <numbers>

namespace mergeplan {
namespace {

std::vector<double> Table(std::int64_t n) {
  std::vector<double> table(static_cast<std::size_t>(n * n));
  for (std::int64_t k = 0; k < n; ++k) {
    const double scale = std::sqrt((k == 0 ? 1.0 : 2.0) / static_cast<double>(n));
    for (std::int64_t i = 0; i < n; ++i) {
      // (2 i + 1) k modulo the period 4 n: a small angle has all its digits.
      const double turn = static_cast<double>(((2 * i + 1) * k) % (4 * n));
      table[static_cast<std::size_t>(k * n + i)] =
          scale * std::cos(std::numbers::pi * turn / (2.0 * static_cast<double>(n)));
    }
  }
  return table;
}

}  // namespace

std::optional<SpatialAxes> SpatialAxesOf(absl::Span<const std::int64_t> shape) {
  if (shape.size() < 2 || shape.size() > 4) return std::nullopt;
  SpatialAxes axes;
  axes.height = shape[shape.size() - 2];
  axes.width = shape[shape.size() - 1];
  for (std::size_t k = 0; k + 2 < shape.size(); ++k) axes.planes *= shape[k];
  if (axes.planes < 1 || axes.height < 1 || axes.width < 1) return std::nullopt;
  if (axes.height == 1 && axes.width == 1) return std::nullopt;
  return axes;
}

Dct::Dct(const SpatialAxes& axes)
    : axes_(axes),
      rows_(Table(axes.height)),
      columns_(Table(axes.width)),
      turned_columns_(columns_.size()) {
  const std::size_t w = static_cast<std::size_t>(axes.width);
  for (std::size_t k = 0; k < columns_.size(); ++k)
    turned_columns_[k % w * w + k / w] = columns_[k];
}

void Dct::Apply(double* sample, bool forward, std::vector<double>& scratch) const {
  const std::size_t h = static_cast<std::size_t>(axes_.height);
  const std::size_t w = static_cast<std::size_t>(axes_.width);
  scratch.resize(h * w);
  for (std::int64_t plane = 0; plane < axes_.planes; ++plane, sample += h * w) {
    // scratch[i, v] = sum_j sample[i, j] columns[v, j], or with its transpose on the way back: rows
    // of a table are added up, so that the inner loops run over neighbours.
    const double* table = forward ? turned_columns_.data() : columns_.data();
    for (std::size_t i = 0; i < h; ++i) {
      double* out = scratch.data() + i * w;
      for (std::size_t v = 0; v < w; ++v) out[v] = 0;
      for (std::size_t j = 0; j < w; ++j) {
        const double factor = sample[i * w + j];
        const double* in = table + j * w;
        for (std::size_t v = 0; v < w; ++v) out[v] += factor * in[v];
      }
    }
    for (std::size_t u = 0; u < h; ++u) {
      double* out = sample + u * w;
      for (std::size_t v = 0; v < w; ++v) out[v] = 0;
      for (std::size_t i = 0; i < h; ++i) {
        const double factor = forward ? rows_[u * h + i] : rows_[i * h + u];
        const double* in = scratch.data() + i * w;
        for (std::size_t v = 0; v < w; ++v) out[v] += factor * in[v];
      }
    }
  }
}

void Dct::Forward(double* sample, std::vector<double>& scratch) const {
  Apply(sample, true, scratch);
}
void Dct::Backward(double* sample, std::vector<double>& scratch) const {
  Apply(sample, false, scratch);
}

double Dct::Coefficient(std::int64_t k, const double* sample, std::int64_t stride) const {
  const std::int64_t h = axes_.height, w = axes_.width, size = h * w;
  const double* rows = rows_.data() + k % size / w * h;
  const double* columns = columns_.data() + k % w * w;
  const double* plane = sample + k / size * size * stride;
  double sum = 0;
  for (std::int64_t i = 0; i < h; ++i) {
    double row = 0;
    for (std::int64_t j = 0; j < w; ++j) row += columns[j] * plane[(i * w + j) * stride];
    sum += rows[i] * row;
  }
  return sum;
}

std::vector<double> Dct::Matrix() const {
  const std::size_t d = static_cast<std::size_t>(dimensions());
  std::vector<double> matrix(d * d), scratch;
  // Row k is what the unit coefficient k looks like.
  for (std::size_t k = 0; k < d; ++k) {
    matrix[k * d + k] = 1;
    Backward(matrix.data() + k * d, scratch);
  }
  return matrix;
}

}  // namespace mergeplan
