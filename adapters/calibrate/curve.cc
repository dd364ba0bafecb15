#include "adapters/calibrate/curve.h"

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>

namespace mergeplan::calibrate {

std::vector<double> NonNegativeLeastSquares(absl::Span<const double> a, absl::Span<const double> b,
                                            int columns) {
  using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  const auto rows = static_cast<Eigen::Index>(b.size());
  const Matrix A = Eigen::Map<const Matrix>(a.data(), rows, columns);
  const Eigen::VectorXd B = Eigen::Map<const Eigen::VectorXd>(b.data(), rows);
  Eigen::VectorXd x = Eigen::VectorXd::Zero(columns);
  std::vector<bool> free(columns, false);
  const double tolerance = 1e-12 * std::max(1e-300, (A.transpose() * B).cwiseAbs().maxCoeff());
  const auto solve = [&] {
    std::vector<int> chosen;
    for (int k = 0; k < columns; ++k) {
      if (free[k]) chosen.push_back(k);
    }
    Matrix part(rows, static_cast<Eigen::Index>(chosen.size()));
    for (std::size_t k = 0; k < chosen.size(); ++k) {
      part.col(static_cast<Eigen::Index>(k)) = A.col(chosen[k]);
    }
    const Eigen::VectorXd values = part.colPivHouseholderQr().solve(B);
    Eigen::VectorXd out = Eigen::VectorXd::Zero(columns);
    for (std::size_t k = 0; k < chosen.size(); ++k) {
      out[chosen[k]] = values[static_cast<Eigen::Index>(k)];
    }
    return out;
  };
  // Each round frees one; more than this many means that rounding goes round in circles.
  for (int round = 0; round < 10 * columns; ++round) {
    const Eigen::VectorXd gradient = A.transpose() * (B - A * x);
    int best = -1;
    for (int k = 0; k < columns; ++k) {
      if (!free[k] && gradient[k] > tolerance && (best < 0 || gradient[k] > gradient[best])) {
        best = k;
      }
    }
    if (best < 0) break;
    free[best] = true;
    for (int inner = 0; inner < 10 * columns; ++inner) {
      const Eigen::VectorXd full = solve();
      double step = 1;
      for (int k = 0; k < columns; ++k) {
        if (free[k] && full[k] <= 0) step = std::min(step, x[k] / (x[k] - full[k] + 1e-300));
      }
      x += step * (full - x);
      if (step >= 1) break;
      for (int k = 0; k < columns; ++k) {
        if (free[k] && x[k] <= 1e-15) x[k] = 0, free[k] = false;
      }
    }
  }
  std::vector<double> out(columns);
  for (int k = 0; k < columns; ++k) out[k] = std::max(0.0, x[k]);
  return out;
}

LossCurve LossCurve::Fit(absl::Span<const std::int64_t> updates, absl::Span<const double> shares) {
  LossCurve out;
  const auto most = static_cast<double>(updates.back());
  for (int k = -1; std::exp2(k) <= 2 * most; ++k) out.times_.push_back(std::exp2(k));
  const int columns = static_cast<int>(out.times_.size()) + 1;
  std::vector<double> a, b;
  const auto add = [&](double u, double share) {
    if (!(share > 0)) return;  // relative residuals have no meaning there
    a.push_back(1 / share);
    for (const double time : out.times_) a.push_back(std::exp(-u / time) / share);
    b.push_back(1);
  };
  // A training that begins by getting worse (Adam at too high a rate) falls from there.
  if (shares.front() <= 1) add(0, 1);
  for (std::size_t k = 0; k < updates.size(); ++k) {
    add(static_cast<double>(updates[k]), shares[k]);
  }
  out.shares_ = NonNegativeLeastSquares(a, b, columns);
  out.unlearnt_ = out.shares_[0];
  int used = out.shares_[0] > 0 ? 1 : 0;
  for (int k = 1; k < columns; ++k) {
    used += out.shares_[k] > 0 ? 1 : 0;
    if (out.times_[k - 1] > most / 2) out.unlearnt_ += out.shares_[k];
  }
  double squares = 0;
  int points = 0;
  for (std::size_t k = 0; k < updates.size(); ++k) {
    const double fitted = out.At(static_cast<double>(updates[k]));
    if (!(shares[k] > 0) || !(fitted > 0)) continue;
    const double log = std::log(shares[k] / fitted);
    squares += log * log;
    ++points;
  }
  if (points > 0) out.scatter_ = std::sqrt(squares / std::max(1, points - used));
  return out;
}

double LossCurve::At(double updates) const {
  double sum = shares_[0];
  for (std::size_t k = 0; k < times_.size(); ++k) {
    sum += shares_[k + 1] * std::exp(-updates / times_[k]);
  }
  return sum;
}

}  // namespace mergeplan::calibrate
