#include "tests/oracle/judging.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace mergeplan::oracle {
namespace {

PlainMatrix Product(const PlainMatrix& a, const PlainMatrix& b) {
  const std::size_t d = a.size();
  PlainMatrix out(d, std::vector<long double>(d, 0));
  for (std::size_t i = 0; i < d; ++i) {
    for (std::size_t j = 0; j < d; ++j) {
      for (std::size_t k = 0; k < d; ++k) out[i][j] += a[i][k] * b[k][j];
    }
  }
  return out;
}

PlainMatrix Inverse(PlainMatrix a) {
  const std::size_t d = a.size();
  PlainMatrix out(d, std::vector<long double>(d, 0));
  for (std::size_t i = 0; i < d; ++i) out[i][i] = 1;
  for (std::size_t c = 0; c < d; ++c) {
    std::size_t pivot = c;
    for (std::size_t r = c + 1; r < d; ++r) {
      if (std::fabs(a[r][c]) > std::fabs(a[pivot][c])) pivot = r;
    }
    std::swap(a[c], a[pivot]);
    std::swap(out[c], out[pivot]);
    const long double scale = 1 / a[c][c];
    for (std::size_t k = 0; k < d; ++k) a[c][k] *= scale, out[c][k] *= scale;
    for (std::size_t r = 0; r < d; ++r) {
      if (r == c) continue;
      const long double factor = a[r][c];
      for (std::size_t k = 0; k < d; ++k) {
        a[r][k] -= factor * a[c][k];
        out[r][k] -= factor * out[c][k];
      }
    }
  }
  return out;
}

}  // namespace

long double PlainFrechet(const std::vector<double>& mean1, const PlainMatrix& covariance1,
                         const std::vector<double>& mean2, const PlainMatrix& covariance2) {
  const std::size_t d = mean1.size();
  PlainMatrix y = Product(covariance1, covariance2);
  PlainMatrix z(d, std::vector<long double>(d, 0));
  for (std::size_t i = 0; i < d; ++i) z[i][i] = 1;
  for (int step = 0; step < 60; ++step) {
    const PlainMatrix inverse_y = Inverse(y), inverse_z = Inverse(z);
    for (std::size_t i = 0; i < d; ++i) {
      for (std::size_t j = 0; j < d; ++j) {
        y[i][j] = (y[i][j] + inverse_z[i][j]) / 2;
        z[i][j] = (z[i][j] + inverse_y[i][j]) / 2;
      }
    }
  }
  long double out = 0;
  for (std::size_t i = 0; i < d; ++i) {
    const long double difference = static_cast<long double>(mean1[i]) - mean2[i];
    out += difference * difference + covariance1[i][i] + covariance2[i][i] - 2 * y[i][i];
  }
  return out;
}

std::pair<double, double> PlainPrecisionRecall(const std::vector<std::vector<double>>& reference,
                                               const std::vector<std::vector<double>>& generated,
                                               int k) {
  const auto distance = [](const std::vector<double>& a, const std::vector<double>& b) {
    double sum = 0;
    for (std::size_t i = 0; i < a.size(); ++i) sum += (a[i] - b[i]) * (a[i] - b[i]);
    return std::sqrt(sum);
  };
  const auto share = [&](const std::vector<std::vector<double>>& set,
                         const std::vector<std::vector<double>>& points) {
    std::vector<double> radius;
    for (std::size_t i = 0; i < set.size(); ++i) {
      std::vector<double> others;
      for (std::size_t j = 0; j < set.size(); ++j) {
        if (j != i) others.push_back(distance(set[i], set[j]));
      }
      std::sort(others.begin(), others.end());
      radius.push_back(others[static_cast<std::size_t>(k) - 1]);
    }
    int inside = 0;
    for (const auto& point : points) {
      bool any = false;
      for (std::size_t i = 0; i < set.size(); ++i) any |= distance(point, set[i]) <= radius[i];
      inside += any ? 1 : 0;
    }
    return static_cast<double>(inside) / static_cast<double>(points.size());
  };
  return {share(reference, generated), share(generated, reference)};
}

}  // namespace mergeplan::oracle
