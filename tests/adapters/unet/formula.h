#pragma once

// Weights and inputs by formula, as golden.py has them, so that only results need to be stored.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

namespace mergeplan::testing {

// golden.py: fill.
inline void Fill(const std::string& name, at::Tensor tensor) {
  int phase = 0;
  for (size_t k = 0; k < name.size(); ++k) phase += static_cast<int>(k + 1) * name[k];
  phase %= 997;
  const bool weight = name.size() > 7 && name.compare(name.size() - 7, 7, ".weight") == 0;
  const double fan = tensor.dim() > 1 ? static_cast<double>(tensor.numel() / tensor.size(0)) : 1;
  double* values = tensor.data_ptr<double>();
  for (std::int64_t i = 0; i < tensor.numel(); ++i) {
    const double wave = std::sin(12.9898 * static_cast<double>(i) + phase);
    values[i] = tensor.dim() > 1 ? wave / std::sqrt(fan) : (weight ? 1 : 0) + 0.3 * wave;
  }
}

inline at::Tensor Wave(std::vector<std::int64_t> shape, double frequency, double phase) {
  std::int64_t count = 1;
  for (const std::int64_t extent : shape) count *= extent;
  const at::Tensor at = at::arange(count, at::kDouble);
  return (at * frequency + phase).sin().view(shape);
}

inline void ExpectClose(const at::Tensor& found, const std::vector<double>& expected,
                        double tolerance) {
  ASSERT_EQ(found.numel(), static_cast<std::int64_t>(expected.size()));
  const double* values = found.data_ptr<double>();
  double largest = 0;
  for (const double e : expected) largest = std::max(largest, std::abs(e));
  for (size_t k = 0; k < expected.size(); ++k) {
    ASSERT_NEAR(values[k], expected[k], tolerance * largest) << k;
  }
}

}  // namespace mergeplan::testing
