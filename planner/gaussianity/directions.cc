#include "planner/gaussianity/directions.h"

#include <Eigen/Eigenvalues>
#include <Eigen/QR>
#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include "planner/base/philox.h"
#include "planner/gaussianity/univariate.h"

namespace mergeplan {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

MatrixXd Normals(Index rows, Index columns, std::uint64_t seed, std::uint32_t stream) {
  const PhiloxKey key = {
      {static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)}};
  MatrixXd out(rows, columns);
  for (Index k = 0; k < out.size(); k += 2) {
    const PhiloxWords w = Philox({{static_cast<std::uint32_t>(k), stream, 0, 0x70726F6Au}}, key);
    const double radius = std::sqrt(-2 * std::log((w.w[0] + 0.5) / 4294967296.0));
    const double angle = 2 * std::numbers::pi * (w.w[1] / 4294967296.0);
    out.data()[k] = radius * std::cos(angle);
    if (k + 1 < out.size()) out.data()[k + 1] = radius * std::sin(angle);
  }
  return out;
}

MatrixXd Orthonormal(const MatrixXd& columns) {
  const Eigen::HouseholderQR<MatrixXd> qr(columns);
  return qr.householderQ() * MatrixXd::Identity(columns.rows(), columns.cols());
}

}  // namespace

MatrixXd LeadingDirections(const RowMatrix& rows, int k, std::uint64_t seed) {
  const Index n = rows.rows(), d = rows.cols();
  const Index wanted = std::min<Index>({k, d, n});
  const Index width = std::min<Index>({wanted + 8, d, n});
  MatrixXd basis = width == d ? MatrixXd::Identity(d, d) : Orthonormal(Normals(d, width, seed, 1));
  for (int round = 0; round < 4 && width < d; ++round) {
    basis = Orthonormal(rows.transpose() * (rows * basis));
  }
  const MatrixXd inside = rows * basis;
  const Eigen::SelfAdjointEigenSolver<MatrixXd> solver(inside.transpose() * inside);
  const VectorXd values = solver.eigenvalues().reverse();
  Index kept = 0;
  while (kept < wanted && values[kept] > 1e-12 * values[0] && values[kept] > 0) ++kept;
  return (basis * solver.eigenvectors().rowwise().reverse()).leftCols(kept);
}

MatrixXd RandomDirections(Index d, int k, std::uint64_t seed) {
  MatrixXd out = Normals(d, k, seed, 2);
  out.colwise().normalize();
  return out;
}

MatrixXd PursuitDirections(const RowMatrix& white, int most, std::uint64_t seed) {
  const Index n = white.rows(), d = white.cols();
  const int starts = static_cast<int>(std::min<Index>(3 * most, 4 * d));
  struct Found {
    VectorXd w;
    double strength = 0;
  };
  std::vector<Found> found;
  const MatrixXd begin = Normals(d, starts, seed, 3);
  for (int s = 0; s < starts; ++s) {
    VectorXd w = begin.col(s).normalized();
    const bool by_skewness = s % 3 == 2;
    for (int round = 0; round < 30; ++round) {
      const VectorXd t = white * w;
      VectorXd next = by_skewness ? VectorXd(white.transpose() * t.cwiseAbs2())
                                  : VectorXd(white.transpose() * t.array().cube().matrix() -
                                             3 * static_cast<double>(n) * w);
      const double norm = next.norm();
      if (!(norm > 0)) break;
      next /= norm;
      const double turned = std::abs(next.dot(w));
      w = next;
      if (turned > 1 - 1e-6) break;
    }
    const VectorXd t = white * w;
    const Shape shape = ShapeOf({t.data(), static_cast<std::size_t>(t.size())});
    const double strength = std::abs(shape.kurtosis - 3) + std::abs(shape.skewness);
    const bool known = std::any_of(found.begin(), found.end(),
                                   [&](const Found& f) { return std::abs(f.w.dot(w)) > 0.95; });
    if (!known) found.push_back({w, strength});
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const Found& a, const Found& b) { return a.strength > b.strength; });
  if (static_cast<int>(found.size()) > most) found.resize(static_cast<std::size_t>(most));
  MatrixXd out(d, static_cast<Index>(found.size()));
  for (std::size_t k = 0; k < found.size(); ++k) out.col(static_cast<Index>(k)) = found[k].w;
  return out;
}

}  // namespace mergeplan
