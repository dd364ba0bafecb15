#include "planner/gaussianity/modes.h"

#include <Eigen/Cholesky>
#include <Eigen/QR>
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <numeric>
#include <utility>

#include "absl/types/span.h"
#include "planner/base/philox.h"
#include "planner/base/status_macros.h"
#include "planner/gaussianity/dip.h"
#include "planner/gaussianity/tails.h"
#include "planner/gaussianity/univariate.h"
#include "planner/mixture/fit.h"

namespace mergeplan {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

constexpr Index kFitRows = 4000;       // of each half that mixtures are fitted to and tried on
constexpr Index kPursuitRows = 20000;  // of the half that directions are pursued in
constexpr int kPursuitSpace = 128;     // principal directions that they are pursued in
constexpr int kMostComponents = 6;

// Values that are stored in steps (whole numbers, say) pile up, and every pile would be a mode:
// such columns get uniform noise of the width of their smallest step.
void FillSteps(RowMatrix& rows, std::uint64_t seed) {
  const PhiloxKey key = {
      {static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)}};
  std::vector<double> sorted(static_cast<std::size_t>(rows.rows()));
  for (Index column = 0; column < rows.cols(); ++column) {
    Eigen::Map<VectorXd>(sorted.data(), rows.rows()) = rows.col(column);
    std::sort(sorted.begin(), sorted.end());
    std::size_t distinct = 1;
    double step = std::numeric_limits<double>::infinity();
    // Differences that are rounding are none.
    const double tiny = 1e-9 * std::max(std::abs(sorted.front()), std::abs(sorted.back()));
    for (std::size_t k = 1; k < sorted.size(); ++k) {
      if (!(sorted[k] - sorted[k - 1] > tiny)) continue;
      ++distinct;
      step = std::min(step, sorted[k] - sorted[k - 1]);
    }
    if (distinct < 2 || 2 * distinct > sorted.size()) continue;
    for (Index i = 0; i < rows.rows(); ++i) {
      const PhiloxWords w = Philox(
          {{static_cast<std::uint32_t>(i), static_cast<std::uint32_t>(column), 0, 0x73746570u}},
          key);
      rows(i, column) += step * ((w.w[0] + 0.5) / 4294967296.0 - 0.5);
    }
  }
}

Projection LookAlong(const RowMatrix& rows, const VectorXd& direction, const std::string& kind,
                     int number) {
  const VectorXd t = rows * direction;
  std::vector<double> values(t.data(), t.data() + t.size());
  const double n = static_cast<double>(values.size());
  const Shape shape = ShapeOf(values);
  Projection out{kind, number};
  out.skewness = shape.skewness;
  out.kurtosis = shape.kurtosis;
  if (!(shape.deviation > 0)) return out;
  out.skewness_p = SkewnessPValue(shape.skewness, n);
  out.kurtosis_p = KurtosisPValue(shape.kurtosis, n);
  std::sort(values.begin(), values.end());
  out.dip = Dip(values);
  out.dip_p = DipPValue(out.dip, n);
  return out;
}

double SmallestAdjusted(const std::vector<Projection>& projections, double Projection::*p) {
  std::vector<double> values;
  for (const Projection& one : projections) values.push_back(one.*p);
  const std::vector<double> adjusted = HolmAdjusted(values);
  return adjusted.empty() ? 1 : *std::min_element(adjusted.begin(), adjusted.end());
}

MatrixXd CovarianceOf(const MixtureSpec& spec, int k) {
  const Index d = spec.dimensions;
  if (spec.kind == CovarianceKind::kDiagonal) {
    return VectorXd(Eigen::Map<const VectorXd>(spec.variances.data() + k * d, d)).asDiagonal();
  }
  return Eigen::Map<const MatrixXd>(spec.covariances.data() + k * d * d, d, d);
}

// The rows split at random: neither the order of the data nor a pattern in it may tell the halves
// apart.
void Split(const RowMatrix& rows, std::uint64_t seed, RowMatrix& a, RowMatrix& b) {
  std::vector<Index> order(static_cast<std::size_t>(rows.rows()));
  std::iota(order.begin(), order.end(), Index{0});
  const PhiloxKey key = {
      {static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)}};
  for (std::size_t k = order.size(); k > 1; --k) {
    const PhiloxWords w = Philox({{static_cast<std::uint32_t>(k), 0, 0, 0x73706C74u}}, key);
    std::swap(order[k - 1], order[(std::uint64_t{w.w[0]} << 32 | w.w[1]) % k]);
  }
  const Index half = (rows.rows() + 1) / 2;
  a.resize(half, rows.cols());
  b.resize(rows.rows() - half, rows.cols());
  for (Index i = 0; i < rows.rows(); ++i) {
    const auto row = rows.row(order[static_cast<std::size_t>(i)]);
    if (i < half) {
      a.row(i) = row;
    } else {
      b.row(i - half) = row;
    }
  }
}

struct Pair {
  int a = 0, b = 0;
  double separation = 0;
};

// Components that are less than kSeparation apart, if need be by way of others, are one group: a
// skewed single mode takes a chain of them. The pairs of components that lie in two groups of
// enough weight, nearest first.
std::vector<Pair> PairsBetweenGroups(const MixtureSpec& spec, MixtureEvidence& evidence) {
  const Index q = spec.dimensions;
  std::vector<std::size_t> group(static_cast<std::size_t>(spec.components));
  std::iota(group.begin(), group.end(), std::size_t{0});
  std::vector<Pair> pairs;
  for (int a = 0; a < spec.components; ++a) {
    for (int b = a + 1; b < spec.components; ++b) {
      const VectorXd apart = Eigen::Map<const VectorXd>(spec.means.data() + b * q, q) -
                             Eigen::Map<const VectorXd>(spec.means.data() + a * q, q);
      const Eigen::LLT<MatrixXd> pooled((CovarianceOf(spec, a) + CovarianceOf(spec, b)) / 2);
      pairs.push_back({a, b, std::sqrt(apart.dot(pooled.solve(apart)))});
    }
  }
  const auto group_of = [&](int k) -> std::size_t& { return group[static_cast<std::size_t>(k)]; };
  for (const Pair& pair : pairs) {
    if (pair.separation >= kSeparation) continue;
    std::replace(group.begin(), group.end(), std::size_t{group_of(pair.b)},
                 std::size_t{group_of(pair.a)});
  }
  std::vector<double> weight(group.size());
  for (std::size_t k = 0; k < group.size(); ++k) weight[group[k]] += spec.weights[k];
  evidence.groups = static_cast<int>(
      std::count_if(weight.begin(), weight.end(), [](double w) { return w >= kLeastShare; }));
  std::erase_if(pairs, [&](const Pair& pair) {
    return group_of(pair.a) == group_of(pair.b) ||
           std::min(weight[group_of(pair.a)], weight[group_of(pair.b)]) < kLeastShare;
  });
  std::stable_sort(pairs.begin(), pairs.end(),
                   [](const Pair& x, const Pair& y) { return x.separation < y.separation; });
  if (!pairs.empty()) {
    evidence.separation = pairs.front().separation;
    evidence.share = std::min(weight[group_of(pairs.front().a)], weight[group_of(pairs.front().b)]);
  }
  return pairs;
}

// Is there a valley between two components? The dip test along the line through both centres, on
// all samples in a tube around it, where these components have most of theirs: whatever other
// components put between the two fills the valley.
double ValleyPValue(const MixtureSpec& spec, const Pair& pair, const RowMatrix& rows) {
  const Index q = spec.dimensions;
  const Eigen::LLT<MatrixXd> pooled((CovarianceOf(spec, pair.a) + CovarianceOf(spec, pair.b)) / 2);
  const Eigen::Map<const VectorXd> from(spec.means.data() + pair.a * q, q);
  MatrixXd y = rows.transpose().colwise() - VectorXd(from);
  pooled.matrixL().solveInPlace(y);
  VectorXd line = Eigen::Map<const VectorXd>(spec.means.data() + pair.b * q, q) - from;
  pooled.matrixL().solveInPlace(line);
  const double length = line.norm();
  line /= length;
  const double radius = q == 1 ? 0 : std::sqrt(static_cast<double>(q - 1)) + 1.5;
  std::vector<double> values;
  for (Index i = 0; i < y.cols(); ++i) {
    const double t = line.dot(y.col(i));
    if (t < -2 || t > length + 2) continue;
    if (q > 1 && y.col(i).squaredNorm() - t * t > radius * radius) continue;
    values.push_back(t);
  }
  if (values.size() < 20) return 1;
  std::sort(values.begin(), values.end());
  return DipPValue(Dip(values), static_cast<double>(values.size()));
}

struct Attempt {
  MixtureEvidence evidence;
  MixtureSpec spec;  // of the least BIC
};

absl::StatusOr<Attempt> TryMixtures(const RowMatrix& fit_rows, const RowMatrix& test_rows,
                                    std::uint64_t seed) {
  Attempt attempt;
  MixtureEvidence& out = attempt.evidence;
  const Index q = fit_rows.cols(), n = fit_rows.rows();
  out.dimensions = static_cast<int>(q);
  const absl::Span<const double> rows(fit_rows.data(), static_cast<std::size_t>(fit_rows.size()));
  MixtureFitOptions options;
  options.restarts = 2;
  options.seed = seed;
  options.threads = 1;
  options.tolerance = 1e-5;
  options.kind = CovarianceKind::kFull;
  MP_ASSIGN_OR_RETURN(const MixtureFit one, FitMixture(rows, static_cast<int>(q), options));
  MixtureFit best = one;
  for (const CovarianceKind kind : {CovarianceKind::kFull, CovarianceKind::kDiagonal}) {
    if (kind == CovarianceKind::kDiagonal && q == 1) continue;
    options.kind = kind;
    double least = std::numeric_limits<double>::infinity();
    int worse = 0;
    for (int k = kind == CovarianceKind::kFull ? 2 : 1; k <= kMostComponents && worse < 2; ++k) {
      // Every component needs samples to know its covariance from.
      if (n < 10 * k * (q + 1)) break;
      options.components = k;
      MP_ASSIGN_OR_RETURN(MixtureFit fit, FitMixture(rows, static_cast<int>(q), options));
      worse = fit.bic < least ? 0 : worse + 1;
      least = std::min(least, fit.bic);
      if (fit.bic < best.bic) best = std::move(fit);
    }
  }
  out.components = best.spec.components;
  out.covariance = std::string(ToString(best.spec.kind));
  out.bic_gain = one.bic - best.bic;
  attempt.spec = best.spec;
  if (out.components < 2) return attempt;

  const absl::Span<const double> tested(test_rows.data(),
                                        static_cast<std::size_t>(test_rows.size()));
  MP_ASSIGN_OR_RETURN(const MixtureDensities many, DensitiesOf(best.spec, tested));
  MP_ASSIGN_OR_RETURN(const MixtureDensities single, DensitiesOf(one.spec, tested));
  std::vector<double> gain(many.log_densities.size());
  for (std::size_t i = 0; i < gain.size(); ++i) {
    gain[i] = many.log_densities[i] - single.log_densities[i];
  }
  const Shape shape = ShapeOf(gain);
  if (shape.deviation > 0) {
    out.held_out_gain = shape.mean / shape.deviation * std::sqrt(static_cast<double>(gain.size()));
  }
  const std::vector<Pair> pairs = PairsBetweenGroups(best.spec, out);
  for (const Pair& pair : pairs) {
    const double p = ValleyPValue(best.spec, pair, test_rows);
    out.valley_p = std::min(out.valley_p, p * static_cast<double>(pairs.size()));
  }
  return attempt;
}

// Orthonormal columns that span the given ones, without those that add next to nothing.
MatrixXd Span(const MatrixXd& columns) {
  MatrixXd out(columns.rows(), columns.cols());
  Index width = 0;
  for (Index k = 0; k < columns.cols(); ++k) {
    VectorXd w = columns.col(k);
    const double before = w.norm();
    for (int twice = 0; twice < 2; ++twice) {
      w -= out.leftCols(width) * (out.leftCols(width).transpose() * w);
    }
    if (!(w.norm() > 0.1 * before) || width == columns.rows()) continue;
    out.col(width++) = w.normalized();
  }
  return out.leftCols(width);
}

// The space through the components' centres, seen in all coordinates of the rows that the mixture
// was fitted to a view of: there the components are farthest apart (the rows being white, it is
// that of linear discriminants).
absl::StatusOr<MatrixXd> SpaceOfCentres(const MixtureSpec& spec, const RowMatrix& view,
                                        const RowMatrix& white) {
  MP_ASSIGN_OR_RETURN(const MixtureDensities densities,
                      DensitiesOf(spec, {view.data(), static_cast<std::size_t>(view.size())}));
  const Eigen::Map<const RowMatrix> shares(densities.responsibilities.data(), view.rows(),
                                           spec.components);
  MatrixXd centres = white.transpose() * shares;
  for (Index k = 0; k < centres.cols(); ++k) centres.col(k) /= shares.col(k).sum();
  centres.colwise() -= white.colwise().mean().transpose().eval();
  return Span(centres);
}

bool Found(const MixtureEvidence& m, double level) {
  return m.components > 1 && m.bic_gain > 10 && m.held_out_gain > 3 && m.groups > 1 &&
         m.valley_p < level;
}

// Mixtures in the leading and the pursued directions; where these do not settle it, in the pursued
// ones alone, and in the space of the centres that were found. Every attempt more counts in the
// p-value.
absl::StatusOr<MixtureEvidence> LookForComponents(const RowMatrix& fit_white,
                                                  const RowMatrix& test_white,
                                                  const MatrixXd& pursued, bool normal,
                                                  const ModesOptions& options) {
  const Index q = fit_white.cols(), lead = std::min<Index>(q, 6);
  const Index extra = std::min<Index>(pursued.cols(), 3);
  MatrixXd first(q, lead + extra);
  first << MatrixXd::Identity(q, lead), pursued.leftCols(extra);
  std::vector<MatrixXd> views = {Span(first)};
  if (pursued.cols() > 0) views.push_back(Span(pursued));
  MixtureEvidence best;
  int attempts = 0;
  const auto attempt_in = [&](const MatrixXd& view) -> absl::StatusOr<Attempt> {
    ++attempts;
    return TryMixtures(fit_white * view, test_white * view, options.seed);
  };
  const auto take = [&](MixtureEvidence found) {
    found.valley_p = std::min(1.0, attempts * found.valley_p);
    const bool better = Found(found, options.level) || found.bic_gain > best.bic_gain;
    if (attempts == 1 || better) best = found;
    return Found(best, options.level);
  };
  for (const MatrixXd& view : views) {
    MP_ASSIGN_OR_RETURN(Attempt attempt, attempt_in(view));
    if (take(attempt.evidence) || normal) return best;
    MatrixXd seen = view;
    for (int round = 0; round < 2 && attempt.spec.components > 1; ++round) {
      MP_ASSIGN_OR_RETURN(const MatrixXd centres,
                          SpaceOfCentres(attempt.spec, fit_white * seen, fit_white));
      if (centres.cols() == 0) break;
      seen = centres;
      MP_ASSIGN_OR_RETURN(attempt, attempt_in(seen));
      if (take(attempt.evidence)) return best;
    }
  }
  return best;
}

}  // namespace

absl::StatusOr<ModesReport> LookForModes(const RowMatrix& rows, const ModesOptions& options) {
  ModesReport report;
  if (rows.rows() < 100 || rows.cols() < 1) return report;
  RowMatrix a, b;
  {
    RowMatrix filled = rows;
    FillSteps(filled, options.seed);
    Split(filled, options.seed, a, b);
  }
  const Eigen::RowVectorXd mean = a.colwise().mean();
  a.rowwise() -= mean;
  b.rowwise() -= mean;
  const Index n = a.rows();
  const int space = static_cast<int>(std::clamp<Index>(n / 10, 1, kPursuitSpace));
  const MatrixXd leading = LeadingDirections(a, space, options.seed);
  if (leading.cols() == 0) return report;  // no variance
  // Coordinates of variance 1 along the principal directions of the first half.
  RowMatrix white_a = a * leading, white_b = b * leading;
  const Eigen::RowVectorXd scale =
      (white_a.colwise().squaredNorm() / static_cast<double>(n)).array().rsqrt();
  white_a.array().rowwise() *= scale.array();
  white_b.array().rowwise() *= scale.array();
  const Index q = white_a.cols();
  const MatrixXd pursued = q > 1 ? PursuitDirections(white_a.topRows(std::min(n, kPursuitRows)),
                                                     options.pursuit, options.seed)
                                 : MatrixXd(q, 0);

  const int principal = static_cast<int>(std::min<Index>(q, options.principal));
  for (int k = 0; k < principal; ++k) {
    report.projections.push_back(LookAlong(white_b, VectorXd::Unit(q, k), "principal", k + 1));
  }
  for (Index k = 0; k < pursued.cols(); ++k) {
    report.projections.push_back(
        LookAlong(white_b, pursued.col(k), "pursuit", static_cast<int>(k) + 1));
  }
  if (a.cols() > 1) {
    const MatrixXd random = RandomDirections(a.cols(), options.random, options.seed);
    for (Index k = 0; k < random.cols(); ++k) {
      report.projections.push_back(LookAlong(b, random.col(k), "random", static_cast<int>(k) + 1));
    }
  }
  report.skewness_p = SmallestAdjusted(report.projections, &Projection::skewness_p);
  report.kurtosis_p = SmallestAdjusted(report.projections, &Projection::kurtosis_p);
  report.dip_p = SmallestAdjusted(report.projections, &Projection::dip_p);
  const auto least =
      std::min_element(report.projections.begin(), report.projections.end(),
                       [](const Projection& x, const Projection& y) {
                         return x.dip_p != y.dip_p ? x.dip_p < y.dip_p : x.dip > y.dip;
                       });
  report.dip_at = static_cast<int>(least - report.projections.begin());
  report.by_dip = report.dip_p < options.level;

  const Index few = std::min(kFitRows, n), tried = std::min(kFitRows, white_b.rows());
  const bool normal = report.skewness_p >= options.level && report.kurtosis_p >= options.level;
  MP_ASSIGN_OR_RETURN(
      report.mixture,
      LookForComponents(white_a.topRows(few), white_b.topRows(tried), pursued, normal, options));
  report.by_mixture = Found(report.mixture, options.level);
  return report;
}

}  // namespace mergeplan
