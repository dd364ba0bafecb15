#include "planner/mixture/moments.h"

#include <Eigen/Core>
#include <utility>

#include "planner/base/memory.h"
#include "planner/base/status_macros.h"
#include "planner/mixture/axes.h"

namespace mergeplan {
namespace {

using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using ConstMap = Eigen::Map<const Matrix>;

void AddCovariance(const GaussianMixture& mixture, int k, Eigen::Map<Matrix>& sum) {
  const Eigen::Index d = mixture.dimensions();
  const std::size_t at = static_cast<std::size_t>(k) * d;
  const double weight = mixture.weights()[k];
  const MixtureSpec& spec = mixture.spec();
  if (spec.kind == CovarianceKind::kFull) {
    sum += weight * ConstMap(spec.covariances.data() + at * d, d, d);
    return;
  }
  sum.diagonal() += weight * Eigen::Map<const Eigen::VectorXd>(spec.variances.data() + at, d);
  if (spec.kind == CovarianceKind::kLowRank) {
    const ConstMap factor(spec.factors.data() + at * spec.rank, d, spec.rank);
    sum.noalias() += weight * factor * factor.transpose();
  }
}

void FillBasis(Basis& basis, std::string name, const Eigen::VectorXd& variances, double energy) {
  basis.name = std::move(name);
  basis.variances.assign(variances.data(), variances.data() + variances.size());
  basis.variances_low = basis.variances_high = basis.variances;
  basis.off_diagonal_energy = energy;
  basis.interval = "gaussian";
  SummarizeVariances(basis);
}

}  // namespace

MixtureMoments Moments(const GaussianMixture& mixture) {
  const Eigen::Index d = mixture.dimensions();
  MixtureMoments moments;
  moments.mean.assign(d, 0);
  moments.covariance.assign(static_cast<std::size_t>(d) * d, 0);
  Eigen::Map<Eigen::VectorXd> mean(moments.mean.data(), d);
  Eigen::Map<Matrix> covariance(moments.covariance.data(), d, d);
  const auto of = [&](int k) {
    return Eigen::Map<const Eigen::VectorXd>(mixture.mean(k).data(), d);
  };
  for (int k = 0; k < mixture.components(); ++k) mean += mixture.weights()[k] * of(k);
  for (int k = 0; k < mixture.components(); ++k) {
    AddCovariance(mixture, k, covariance);
    const Eigen::VectorXd apart = of(k) - mean;
    covariance.noalias() += mixture.weights()[k] * apart * apart.transpose();
  }
  return moments;
}

absl::StatusOr<Spectrum> MixtureSpectrum(const GaussianMixture& mixture, std::string source) {
  const Eigen::Index d = mixture.dimensions();
  MP_RETURN_IF_ERROR(CheckMemory("the covariance of the mixture and its eigenvectors",
                                 8.0 * 4.0 * static_cast<double>(d) * static_cast<double>(d)));
  MixtureMoments moments = Moments(mixture);
  const Eigen::Map<const Matrix> covariance(moments.covariance.data(), d, d);
  Matrix vectors(d, d), columns(d, d);
  Eigen::VectorXd values(d);
  if (!covariance.allFinite() ||
      !mixture::EigenAxes(covariance.data(), d, vectors.data(), columns.data(), values.data())) {
    return absl::InvalidArgumentError(
        "the moments of the mixture are too large for float64; rescale the data");
  }
  Spectrum spectrum;
  spectrum.source = std::move(source);
  spectrum.shape = {d};
  // Each direction's largest component is made positive.
  for (Eigen::Index i = 0; i < d; ++i) {
    Eigen::Index at = 0;
    vectors.row(i).cwiseAbs().maxCoeff(&at);
    if (vectors(i, at) < 0) vectors.row(i) *= -1;
  }
  spectrum.vectors.assign(vectors.data(), vectors.data() + vectors.size());
  const double all = covariance.squaredNorm();
  const double off = (covariance - Matrix(covariance.diagonal().asDiagonal())).squaredNorm();
  const double energy = all > 0 ? off / all : 0;
  FillBasis(spectrum.diagonal, "diagonal", covariance.diagonal(), energy);
  FillBasis(spectrum.pca, "pca", values.cwiseMax(0.0), 0);
  const bool turned = energy > 1e-12;
  spectrum.recommended_basis = turned ? "pca" : "diagonal";
  spectrum.recommended_basis_reason =
      turned ? "the mixture's covariance is not diagonal" : "the mixture's covariance is diagonal";
  spectrum.mean = std::move(moments.mean);
  spectrum.covariance = std::move(moments.covariance);
  return spectrum;
}

}  // namespace mergeplan
