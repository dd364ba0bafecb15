#include "tests/planner/measured/cases.h"

#include <algorithm>
#include <cmath>

namespace mergeplan {

double Uniform(std::mt19937_64& random, double low, double high) {
  return low + (high - low) * (static_cast<double>(random() >> 11) * 0x1p-53);
}

int Pick(std::mt19937_64& random, int low, int high) {
  return low + static_cast<int>(random() % static_cast<std::uint64_t>(high - low + 1));
}

RandomCase MakeCase(const CaseKind& kind, std::mt19937_64& random) {
  RandomCase out;
  out.steps = kind.steps;
  out.start_matters = kind.start_matters;
  const auto number = [&](double low, double high) {
    if (kind.zeros && random() % 3 == 0) return 0.0;
    if (kind.zeros && random() % 3 == 0) return high / 2;
    return Uniform(random, low, high);
  };
  const int knots = Pick(random, 1, 4);
  std::int64_t at = 0;
  for (int k = 0; k < knots; ++k) out.updates.push_back(at += Pick(random, 1, 4));
  std::vector<double> level(kind.steps + 1);
  for (double& g : level) g = Uniform(random, 0.3, 1.4);
  for (int i = 1; i <= kind.steps; ++i) {
    double product = 1;
    for (int m = i; m < kind.steps; ++m) {
      product *= level[m];
      out.gain[{i, m}] = kind.product_gains ? product : number(0.1, 1.6);
    }
    for (int j = i + 1; j <= kind.steps; ++j) {
      out.floor[{i, j}] = number(0, 0.1);
      // Starts from a large child are nearer to the target, more or less.
      for (int a = j; a > i; --a) {
        const double share = static_cast<double>(j - a) / (j - i);
        out.distance[{i, a, j}] = number(0.1, 1) * (j - i) * (1.05 - share);
        if (!kind.start_matters) out.distance[{i, a, j}] = out.distance[{i, j, j}];
      }
      double left = 1, slope = 1e9;
      std::int64_t before = 0;
      for (const std::int64_t u : out.updates) {
        const auto width = static_cast<double>(u - before);
        double drop = Uniform(random, 0, 0.9) * left / width;
        if (kind.convex) drop = std::min(drop, slope * Uniform(random, 0.3, 1));
        left = std::max(0.0, left - drop * width);
        out.residual[{i, j, u}] = left;
        slope = drop;
        before = u;
      }
    }
  }
  return out;
}

MeasuredTables RandomCase::Tables() const {
  MeasuredTables t;
  t.teacher_steps = steps;
  const auto entry = [](int first, int last, int start, std::int64_t u, double v) {
    return MeasuredEntry{first, last, start, u, v, v, v};
  };
  for (const auto& [key, v] : gain) t.gain.push_back(entry(key.first, key.second, 0, 0, v));
  for (const auto& [key, v] : floor) t.floor.push_back(entry(key.first, key.second, 0, 0, v));
  for (const auto& [key, v] : distance) {
    const auto& [i, a, j] = key;
    if (start_matters) {
      t.distance.push_back(entry(i, j, a, 0, v));
    } else if (a == j) {
      t.distance.push_back(entry(i, j, 0, 0, v));
    }
  }
  for (const auto& [key, v] : residual) {
    t.residual.push_back(entry(std::get<0>(key), std::get<1>(key), 0, std::get<2>(key), v));
  }
  return t;
}

}  // namespace mergeplan
