#pragma once

#include <cmath>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "planner/base/file.h"
#include "planner/data/npy.h"
#include "planner/spectrum/estimate.h"
#include "tests/planner/spectrum/memory_source.h"

namespace mergeplan {

inline absl::StatusOr<Spectrum> Estimate(const std::vector<double>& values,
                                         std::vector<std::int64_t> shape,
                                         const EstimateOptions& options = {}, int batch = 1 << 30) {
  MemorySource source(values, std::move(shape), batch);
  return EstimateSpectrum(source, options);
}

inline EstimateOptions WithSecondPass(const std::vector<double>& values,
                                      const std::vector<std::int64_t>& shape) {
  EstimateOptions options;
  options.reopen = [=] { return std::make_unique<MemorySource>(values, shape); };
  return options;
}

inline int NextNumber() {
  static int number = 0;
  return ++number;
}

// A file of its own in the folder for tests.
template <typename T>
std::string WriteNpy(const std::string& descr, const std::vector<std::int64_t>& shape,
                     const std::vector<T>& values) {
  const std::string path = absl::StrCat(::testing::TempDir(), "samples ", NextNumber(), ".npy");
  std::string bytes = NpyHeaderBytes(descr, shape);
  bytes.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
  EXPECT_TRUE(WriteFileAtomically(path, bytes).ok());
  return path;
}

// n samples of d correlated values: skewed factors, mixed, moved by `mean`.
inline std::vector<double> Correlated(int n, int d, double mean, double spread, unsigned seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal;
  std::vector<double> mix(static_cast<std::size_t>(d) * d);
  for (double& entry : mix) entry = normal(random) / std::sqrt(d);
  std::exponential_distribution<double> factor;
  std::vector<double> values;
  std::vector<double> factors(d);
  for (int r = 0; r < n; ++r) {
    for (int i = 0; i < d; ++i) factors[i] = (factor(random) - 1) * std::pow(0.9, i);
    for (int i = 0; i < d; ++i) {
      double x = 0;
      for (int k = 0; k < d; ++k) x += mix[static_cast<std::size_t>(i) * d + k] * factors[k];
      values.push_back(static_cast<float>(mean + spread * x));
    }
  }
  return values;
}

}  // namespace mergeplan
