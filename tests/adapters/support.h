#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "planner/spectrum/spectrum.h"
#include "tests/adapters/linear/support.h"

namespace mergeplan::testing {

// A fresh folder that is gone when the test ends.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::string& path() const { return path_; }
  std::string File(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

// A spectrum with these variances along the axes of "pca", which are the data's own turned by a
// rotation in every pair of neighbouring coordinates; the mean is 0.25, 0.5, …
Spectrum MakeSpectrum(const std::vector<double>& variances);

// Log-spaced from `low` to `high`.
std::vector<double> LogSpaced(double low, double high, int count);

}  // namespace mergeplan::testing
