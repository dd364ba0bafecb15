#include "planner/mixture/step.h"

#include <Eigen/Core>
#include <cfloat>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <numbers>
#include <utility>

#include "absl/strings/str_cat.h"
#include "planner/base/status_macros.h"
#include "planner/mixture/axes.h"
#include "planner/mixture/tiles.h"

namespace mergeplan {
namespace {

using mixture::kTileRows;
using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

// Eigenvalues of a full covariance below this share of the largest are rounding.
constexpr double kRounding = 1e-13;

absl::Status CheckLevels(NoiseLevel from, NoiseLevel to) {
  if (!(std::isfinite(from.alpha) && from.alpha >= 0 && std::isfinite(from.sigma) &&
        from.sigma >= 0)) {
    return absl::InvalidArgumentError(absl::StrCat("a mixture at alpha = ", from.alpha,
                                                   ", sigma = ", from.sigma,
                                                   "; expected finite numbers >= 0"));
  }
  if (!(std::isfinite(to.alpha) && std::isfinite(to.sigma))) {
    return absl::InvalidArgumentError(absl::StrCat("a mixture's step to alpha = ", to.alpha,
                                                   ", sigma = ", to.sigma,
                                                   "; expected finite numbers"));
  }
  for (const double value : {from.alpha, from.sigma}) {
    if (value != 0 && value * value < DBL_MIN) {
      return absl::InvalidArgumentError(absl::StrCat("a mixture at alpha = ", from.alpha,
                                                     ", sigma = ", from.sigma,
                                                     "; expected squares above ", DBL_MIN));
    }
  }
  if (from.alpha == 0 && from.sigma == 0) {
    return absl::InvalidArgumentError(
        "a mixture at alpha = 0, sigma = 0: the state is always 0; expected a level with either");
  }
  return absl::OkStatus();
}

absl::Status NoDensity(int k, std::size_t j, CovarianceKind kind) {
  return absl::InvalidArgumentError(
      absl::StrCat("a mixture at sigma = 0: component ", k, " has no variance along ",
                   kind == CovarianceKind::kFull ? "eigenvector " : "dimension ", j,
                   kind == CovarianceKind::kLowRank ? " besides its factors" : "",
                   ", so it has no density there; expected sigma > 0, or variances above 0"));
}

void CheckScratch(std::size_t have, std::size_t need) {
  if (have >= need) [[likely]]
    return;
  std::fprintf(stderr, "MixtureStep: a scratch of %zu numbers; expected scratch_size(), %zu\n",
               have, need);
  std::abort();
}

}  // namespace

// Fills c, 1/c and the gains of component k from its d variances along its axes, and log det.
absl::Status MixtureStep::FillDiagonal(int k, const double* variances) {
  const std::size_t d = dimensions(), at = static_cast<std::size_t>(k) * d;
  const bool full = mixture_.kind() == CovarianceKind::kFull;
  // Eigenvalues stand in falling order.
  const double least = from_.sigma > 0 || !full ? 0 : kRounding * variances[0];
  double log_det = 0;
  for (std::size_t j = 0; j < d; ++j) {
    const double lambda = variances[j];
    const double c = from_.alpha * from_.alpha * lambda + from_.sigma * from_.sigma;
    if (from_.sigma == 0 && !(lambda > least)) return NoDensity(k, j, mixture_.kind());
    if (!(c >= DBL_MIN && c <= DBL_MAX)) {
      return absl::InvalidArgumentError(
          absl::StrCat("a mixture at alpha = ", from_.alpha, ", sigma = ", from_.sigma,
                       ": component ", k, " has the variance ", c, " in dimension ", j,
                       "; expected a normal number, rescale the data"));
    }
    inverse_[at + j] = 1 / c;
    gain_[at + j] = (from_.alpha * to_.alpha * lambda + from_.sigma * to_.sigma) / c;
    log_det += std::log(c);
  }
  log_weight_[k] = std::log(mixture_.weights()[k]) -
                   0.5 * (log_det + static_cast<double>(d) * std::log(2 * std::numbers::pi));
  return absl::OkStatus();
}

absl::Status MixtureStep::FillLowRank(int k) {
  const std::size_t d = dimensions(), r = mixture_.rank();
  const std::size_t at = static_cast<std::size_t>(k) * d;
  MP_RETURN_IF_ERROR(FillDiagonal(k, mixture_.spec().variances.data() + at));
  for (std::size_t j = 0; j < d; ++j) {
    root_[at + j] = std::sqrt(1 / inverse_[at + j]);
    inverse_root_[at + j] = 1 / root_[at + j];
  }
  std::vector<double> values(r);
  if (!axes_.empty()) {
    mixture::FactorAxes(mixture_.spec().factors.data() + at * r, inverse_root_.data() + at, d, r,
                        axes_.data() + at * r, axes_transposed_.data() + at * r, values.data());
  } else {
    // E is a number: its root only scales the factors' own singular values.
    for (std::size_t i = 0; i < r; ++i) {
      values[i] = mixture_.derived().values[k * r + i] / root_[at];
    }
  }
  double log_det = 0;
  for (std::size_t i = 0; i < r; ++i) {
    const double square = values[i] * values[i];
    const double whole = 1 + from_.alpha * from_.alpha * square;
    pull_[k * r + i] = square / whole;
    share_[k * r + i] = (from_.alpha * from_.alpha * square / whole) / whole;
    log_det += std::log1p(from_.alpha * from_.alpha * square);
  }
  log_weight_[k] -= 0.5 * log_det;
  return absl::OkStatus();
}

absl::StatusOr<MixtureStep> MixtureStep::Create(const GaussianMixture& mixture, NoiseLevel from,
                                                NoiseLevel to) {
  MP_RETURN_IF_ERROR(CheckLevels(from, to));
  MixtureStep step(mixture, from, to);
  const std::size_t K = mixture.components(), d = mixture.dimensions(), r = mixture.rank();
  step.log_weight_.resize(K);
  for (std::vector<double>* table : {&step.centre_, &step.target_, &step.inverse_, &step.gain_}) {
    table->resize(K * d);
  }
  if (mixture.kind() == CovarianceKind::kLowRank) {
    step.root_.resize(K * d);
    step.inverse_root_.resize(K * d);
    step.pull_.resize(K * r);
    step.share_.resize(K * r);
    if (mixture.derived().axes.empty()) {
      step.axes_.resize(K * r * d);
      step.axes_transposed_.resize(K * r * d);
    }
  }
  for (std::size_t i = 0; i < K * d; ++i) {
    step.centre_[i] = from.alpha * mixture.spec().means[i];
    step.target_[i] = to.alpha * mixture.spec().means[i];
  }
  const double* variances = mixture.kind() == CovarianceKind::kFull
                                ? mixture.derived().values.data()
                                : mixture.spec().variances.data();
  for (int k = 0; k < mixture.components(); ++k) {
    MP_RETURN_IF_ERROR(mixture.kind() == CovarianceKind::kLowRank
                           ? step.FillLowRank(k)
                           : step.FillDiagonal(k, variances + static_cast<std::size_t>(k) * d));
  }
  return step;
}

mixture::StepTables MixtureStep::tables() const {
  mixture::StepTables t;
  t.kind = mixture_.kind();
  t.K = mixture_.components();
  t.d = mixture_.dimensions();
  t.r = mixture_.rank();
  t.alpha2 = from_.alpha * from_.alpha;
  t.cross = from_.alpha * to_.alpha;
  t.log_weight = log_weight_.data();
  t.centre = centre_.data();
  t.target = target_.data();
  t.inverse = inverse_.data();
  t.gain = gain_.data();
  const bool own = !axes_.empty();
  t.axes = own ? axes_.data() : mixture_.derived().axes.data();
  t.axes_transposed = own ? axes_transposed_.data() : mixture_.derived().axes_transposed.data();
  t.root = root_.data();
  t.inverse_root = inverse_root_.data();
  t.pull = pull_.data();
  t.share = share_.data();
  return t;
}

namespace {

// Cuts the scratch: tiles of d x kTileRows (`states` of them), then the kernels' own.
struct Cut {
  Cut(const mixture::StepTables& step, absl::Span<double> scratch)
      : tile(step.d * kTileRows), at(scratch.data()) {}
  double* Tile(int i) const { return at + i * tile; }
  double* Rest(int tiles) const { return at + tiles * tile; }
  std::size_t tile;
  double* at;
};

constexpr int kTiles = 4;

template <typename T>
void ApplyRows(const MixtureStep& step, const T* z, std::size_t rows, T* out,
               absl::Span<double> scratch) {
  CheckScratch(scratch.size(), step.scratch_size());
  const mixture::StepTables tables = step.tables();
  const Cut cut(tables, scratch);
  for (std::size_t row = 0; row < rows; row += kTileRows) {
    const std::size_t count = std::min(kTileRows, rows - row);
    mixture::LoadTile(z + row * tables.d, count, tables.d, cut.Tile(0));
    mixture::StepTile(tables, cut.Tile(0), cut.Tile(1), cut.Rest(kTiles));
    mixture::StoreTile(cut.Tile(1), count, tables.d, out + row * tables.d);
  }
}

template <typename T>
void DerivativeRows(const MixtureStep& step, const T* z, const T* direction, std::size_t rows,
                    T* out, T* derivative, absl::Span<double> scratch) {
  CheckScratch(scratch.size(), step.scratch_size());
  const mixture::StepTables tables = step.tables();
  const Cut cut(tables, scratch);
  for (std::size_t row = 0; row < rows; row += kTileRows) {
    const std::size_t count = std::min(kTileRows, rows - row);
    const std::size_t at = row * tables.d;
    mixture::LoadTile(z + at, count, tables.d, cut.Tile(0));
    mixture::LoadTile(direction + at, count, tables.d, cut.Tile(1));
    mixture::DerivativeTile(tables, cut.Tile(0), cut.Tile(1), cut.Tile(2), cut.Tile(3),
                            cut.Rest(kTiles));
    if (out != nullptr) mixture::StoreTile(cut.Tile(2), count, tables.d, out + at);
    mixture::StoreTile(cut.Tile(3), count, tables.d, derivative + at);
  }
}

// Calls take(row, count, r, top, sum) for every tile.
template <typename Take>
void WeightRows(const MixtureStep& step, const double* z, std::size_t rows,
                absl::Span<double> scratch, const Take& take) {
  CheckScratch(scratch.size(), step.scratch_size());
  const mixture::StepTables tables = step.tables();
  const Cut cut(tables, scratch);
  double top[kTileRows], sum[kTileRows];
  double* r = cut.Rest(kTiles);
  for (std::size_t row = 0; row < rows; row += kTileRows) {
    const std::size_t count = std::min(kTileRows, rows - row);
    mixture::LoadTile(z + row * tables.d, count, tables.d, cut.Tile(0));
    mixture::WeightTile(tables, cut.Tile(0), r, top, sum, r + tables.K * kTileRows);
    take(row, count, r, top, sum);
  }
}

}  // namespace

std::size_t MixtureStep::scratch_size() const {
  const mixture::StepTables t = tables();
  return (kTiles * t.d + t.K) * kTileRows + mixture::TileScratch(t);
}

void MixtureStep::Apply(const double* z, std::size_t rows, double* out,
                        absl::Span<double> scratch) const {
  ApplyRows(*this, z, rows, out, scratch);
}

void MixtureStep::Apply(const float* z, std::size_t rows, float* out,
                        absl::Span<double> scratch) const {
  ApplyRows(*this, z, rows, out, scratch);
}

void MixtureStep::Responsibilities(const double* z, std::size_t rows, double* r,
                                   absl::Span<double> scratch) const {
  const std::size_t K = components();
  WeightRows(*this, z, rows, scratch,
             [&](std::size_t row, std::size_t count, const double* weights, const double*,
                 const double*) { mixture::StoreTile(weights, count, K, r + row * K); });
}

void MixtureStep::LogDensity(const double* z, std::size_t rows, double* log_density,
                             absl::Span<double> scratch) const {
  WeightRows(
      *this, z, rows, scratch,
      [&](std::size_t row, std::size_t count, const double*, const double* top, const double* sum) {
        for (std::size_t b = 0; b < count; ++b) {
          log_density[row + b] = top[b] + std::log(sum[b]);
        }
      });
}

void MixtureStep::Derivative(const double* z, const double* direction, std::size_t rows,
                             double* out, double* derivative, absl::Span<double> scratch) const {
  DerivativeRows(*this, z, direction, rows, out, derivative, scratch);
}

void MixtureStep::Derivative(const float* z, const float* direction, std::size_t rows, float* out,
                             float* derivative, absl::Span<double> scratch) const {
  DerivativeRows(*this, z, direction, rows, out, derivative, scratch);
}

std::vector<double> MixtureStep::ExpertMatrix(int k) const {
  const mixture::StepTables t = tables();
  const Eigen::Index d = dimensions(), r = mixture_.rank();
  std::vector<double> out(static_cast<std::size_t>(d) * d);
  Eigen::Map<Matrix> A(out.data(), d, d);
  const Eigen::Map<const Eigen::VectorXd> gain(t.gain + k * d, d);
  switch (t.kind) {
    case CovarianceKind::kDiagonal:
      A.diagonal() = gain;
      break;
    case CovarianceKind::kFull: {
      const Eigen::Map<const Matrix> axes(t.axes + k * d * d, d, d);
      A.noalias() = axes.transpose() * gain.asDiagonal() * axes;
      break;
    }
    case CovarianceKind::kLowRank: {
      const Eigen::Map<const Matrix> axes(t.axes + k * r * d, r, d);
      const Eigen::Map<const Eigen::VectorXd> root(t.root + k * d, d), pull(t.pull + k * r, r);
      const Matrix pulled = root.asDiagonal() * axes.transpose() * pull.asDiagonal() * axes *
                            root.cwiseInverse().asDiagonal();
      A = (t.cross - t.alpha2 * gain.array()).matrix().asDiagonal() * pulled;
      A.diagonal() += gain;
      break;
    }
  }
  return out;
}

std::vector<double> MixtureStep::ExpertOffset(int k) const {
  const Eigen::Index d = dimensions();
  const std::vector<double> matrix = ExpertMatrix(k);
  const Eigen::Map<const Matrix> A(matrix.data(), d, d);
  const Eigen::Map<const Eigen::VectorXd> mean(mixture_.mean(k).data(), d);
  const Eigen::VectorXd b = to_.alpha * mean - from_.alpha * (A * mean);
  return {b.data(), b.data() + d};
}

absl::StatusOr<std::vector<double>> Denoise(const GaussianMixture& mixture,
                                            absl::Span<const double> z, double alpha,
                                            double sigma) {
  const std::size_t d = mixture.dimensions();
  if (z.size() % d != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(z.size(), " numbers are no rows of ", d, " dimensions"));
  }
  MP_ASSIGN_OR_RETURN(const MixtureStep step,
                      MixtureStep::Create(mixture, {alpha, sigma}, {1.0, 0.0}));
  std::vector<double> out(z.size()), scratch(step.scratch_size());
  step.Apply(z.data(), z.size() / d, out.data(), absl::MakeSpan(scratch));
  return out;
}

}  // namespace mergeplan
