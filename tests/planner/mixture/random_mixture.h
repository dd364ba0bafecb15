#pragma once

#include <cmath>
#include <random>
#include <vector>

#include "planner/mixture/mixture.h"
#include "tests/oracle/mixture.h"

namespace mergeplan::testing {

inline double Uniform(std::mt19937_64& rng, double low, double high) {
  return std::uniform_real_distribution<double>(low, high)(rng);
}
inline int RandomInt(std::mt19937_64& rng, int low, int high) {
  return std::uniform_int_distribution<int>(low, high)(rng);
}
inline double Normal(std::mt19937_64& rng) { return std::normal_distribution<double>()(rng); }

struct RandomMixtureOptions {
  bool singular = false;   // some directions without variance
  bool duplicate = false;  // the last component is the first again
  bool flat = false;       // low-rank: all variances of a component alike
};

// A mixture with means of size about 3 and variances from 0.01 to about 4.
inline MixtureSpec RandomMixtureSpec(std::mt19937_64& rng, CovarianceKind kind, int K, int d,
                                     RandomMixtureOptions options = {}) {
  MixtureSpec spec;
  spec.name = "random";
  spec.kind = kind;
  spec.components = K;
  spec.dimensions = d;
  if (kind == CovarianceKind::kLowRank) spec.rank = RandomInt(rng, 1, d);
  double sum = 0;
  for (int k = 0; k < K; ++k) sum += spec.weights.emplace_back(Uniform(rng, 0.05, 1));
  for (double& weight : spec.weights) weight /= sum;
  for (int i = 0; i < K * d; ++i) spec.means.push_back(3 * Normal(rng));
  const auto variance = [&] {
    const double drawn = std::exp(Uniform(rng, std::log(0.01), std::log(4)));
    return options.singular && RandomInt(rng, 0, 2) == 0 ? 0.0 : drawn;
  };
  if (kind != CovarianceKind::kFull) {
    for (int k = 0; k < K; ++k) {
      const double flat = variance();
      for (int j = 0; j < d; ++j) spec.variances.push_back(options.flat ? flat : variance());
    }
  }
  for (int i = 0; i < K * d * spec.rank; ++i) spec.factors.push_back(0.7 * Normal(rng));
  if (kind == CovarianceKind::kFull) {
    for (int k = 0; k < K; ++k) {
      const int columns = options.singular ? RandomInt(rng, 0, d) : d + 1;
      std::vector<double> f(static_cast<std::size_t>(d) * columns);
      for (double& value : f) value = 0.7 * Normal(rng);
      for (int i = 0; i < d; ++i) {
        for (int j = 0; j < d; ++j) {
          double entry = 0;
          for (int l = 0; l < columns; ++l) entry += f[i * columns + l] * f[j * columns + l];
          spec.covariances.push_back(entry);
        }
      }
    }
  }
  if (options.duplicate && K > 1) {
    for (std::vector<double>* values :
         {&spec.means, &spec.variances, &spec.factors, &spec.covariances}) {
      const std::size_t each = values->size() / K;
      std::copy_n(values->begin(), each, values->end() - static_cast<std::ptrdiff_t>(each));
    }
  }
  return spec;
}

inline oracle::Mixture OracleMixture(const MixtureSpec& spec) {
  oracle::Mixture mixture;
  mixture.K = spec.components;
  mixture.d = spec.dimensions;
  mixture.weights.assign(spec.weights.begin(), spec.weights.end());
  mixture.means.assign(spec.means.begin(), spec.means.end());
  if (spec.kind == CovarianceKind::kFull) {
    mixture.covariances.assign(spec.covariances.begin(), spec.covariances.end());
  } else {
    mixture.SetCovariances(spec.variances, spec.factors, spec.rank);
  }
  return mixture;
}

inline constexpr CovarianceKind kKinds[] = {CovarianceKind::kDiagonal, CovarianceKind::kLowRank,
                                            CovarianceKind::kFull};

}  // namespace mergeplan::testing
