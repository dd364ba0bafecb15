#include "tests/adapters/support.h"

#include <cmath>
#include <cstdlib>
#include <filesystem>

namespace mergeplan::testing {

TemporaryFolder::TemporaryFolder() {
  std::string name = (std::filesystem::temp_directory_path() / "mergeplan test XXXXXX").string();
  path_ = mkdtemp(name.data());
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

Spectrum MakeSpectrum(const std::vector<double>& variances) {
  const auto d = static_cast<std::int64_t>(variances.size());
  Spectrum s;
  s.source = "made by a test";
  s.shape = {d};
  s.samples = 1000;
  s.mean.resize(d);
  s.vectors.assign(d * d, 0.0);
  s.covariance.assign(d * d, 0.0);
  const double c = 0.8, n = 0.6;
  for (std::int64_t k = 0; k < d; ++k) {
    s.mean[k] = 0.25 * static_cast<double>(k + 1);
    if (k + 1 < d && k % 2 == 0) {
      s.vectors[k * d + k] = c;
      s.vectors[k * d + k + 1] = n;
      s.vectors[(k + 1) * d + k] = -n;
      s.vectors[(k + 1) * d + k + 1] = c;
    } else if (k % 2 == 0) {
      s.vectors[k * d + k] = 1;
    }
  }
  for (std::int64_t i = 0; i < d; ++i) {
    for (std::int64_t j = 0; j < d; ++j) {
      for (std::int64_t k = i / 2 * 2; k < std::min(d, i / 2 * 2 + 2); ++k) {
        s.covariance[i * d + j] += s.vectors[k * d + i] * variances[k] * s.vectors[k * d + j];
      }
    }
  }
  s.pca.name = "pca";
  s.pca.variances = variances;
  s.diagonal.name = "diagonal";
  for (std::int64_t k = 0; k < d; ++k) s.diagonal.variances.push_back(s.covariance[k * d + k]);
  for (Basis* basis : {&s.pca, &s.diagonal}) {
    basis->variances_low = basis->variances_high = basis->variances;
    basis->interval = "gaussian";
    SummarizeVariances(*basis);
  }
  s.recommended_basis = "pca";
  s.recommended_basis_reason = "the test wants it";
  return s;
}

std::vector<double> LogSpaced(double low, double high, int count) {
  std::vector<double> out(count);
  for (int k = 0; k < count; ++k) {
    out[k] = low * std::pow(high / low, count > 1 ? static_cast<double>(k) / (count - 1) : 0);
  }
  return out;
}

}  // namespace mergeplan::testing
