#include "planner/mixture/mixture.h"

#include <Eigen/Core>
#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "planner/base/memory.h"
#include "planner/base/status_macros.h"
#include "planner/base/utf8.h"
#include "planner/mixture/axes.h"

namespace mergeplan {
namespace {

using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using ConstMap = Eigen::Map<const Matrix>;

// What a covariance that was rounded to float32 on its way may miss, relative to its largest entry.
constexpr double kSlack = 1e-6;

absl::Status Invalid(const std::string& what) { return absl::InvalidArgumentError(what); }

// "[2, 0, 1]" for the position in an array of this shape.
std::string Place(std::size_t at, const std::vector<std::size_t>& shape) {
  std::vector<std::size_t> index(shape.size());
  for (std::size_t i = shape.size(); i-- > 0;) {
    index[i] = at % shape[i];
    at /= shape[i];
  }
  return absl::StrCat("[", absl::StrJoin(index, ", "), "]");
}

absl::Status CheckNumbers(const char* name, const std::vector<double>& values,
                          const std::vector<std::size_t>& shape) {
  std::size_t size = 1;
  for (const std::size_t extent : shape) size *= extent;
  if (values.size() != size) {
    return Invalid(absl::StrCat("array ", name, " holds ", values.size(), " numbers; expected [",
                                absl::StrJoin(shape, ", "), "]"));
  }
  for (std::size_t i = 0; i < size; ++i) {
    if (!std::isfinite(values[i])) {
      return Invalid(absl::StrCat("array ", name, " is ", values[i], " at ", Place(i, shape),
                                  "; expected finite numbers"));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckUnused(const char* name, const std::vector<double>& values, CovarianceKind kind) {
  if (values.empty()) return absl::OkStatus();
  return Invalid(absl::StrCat("array ", name, " is there, but covariances are ",
                              std::string(ToString(kind)), ", which has none"));
}

absl::Status CheckSizes(const MixtureSpec& spec) {
  if (!IsUtf8(spec.name)) return Invalid("name is not UTF-8");
  if (spec.components < 1 || spec.components > kMaxMixtureComponents) {
    return Invalid(absl::StrCat("K is ", spec.components, "; expected 1..", kMaxMixtureComponents));
  }
  if (spec.dimensions < 1 || spec.dimensions > kMaxMixtureDimensions) {
    return Invalid(absl::StrCat("d is ", spec.dimensions, "; expected 1..", kMaxMixtureDimensions));
  }
  const bool low_rank = spec.kind == CovarianceKind::kLowRank;
  if (low_rank ? spec.rank < 1 || spec.rank > spec.dimensions : spec.rank != 0) {
    return Invalid(absl::StrCat("rank is ", spec.rank, "; expected ",
                                low_rank ? absl::StrCat("1..d, d is ", spec.dimensions)
                                         : std::string("none, covariances are not low-rank")));
  }
  std::int64_t most = std::int64_t{spec.components} * spec.dimensions;
  if (low_rank) most *= spec.rank;
  if (spec.kind == CovarianceKind::kFull) most *= spec.dimensions;
  if (most > kMaxMixtureNumbers) {
    return Invalid(absl::StrCat("K = ", spec.components, ", d = ", spec.dimensions, " with ",
                                std::string(ToString(spec.kind)), " covariances are ", most,
                                " numbers; expected at most ", kMaxMixtureNumbers));
  }
  return absl::OkStatus();
}

absl::Status CheckArrays(const MixtureSpec& spec) {
  const std::size_t K = spec.components, d = spec.dimensions, r = spec.rank;
  MP_RETURN_IF_ERROR(CheckNumbers("weights", spec.weights, {K}));
  MP_RETURN_IF_ERROR(CheckNumbers("means", spec.means, {K, d}));
  for (std::size_t k = 0; k < K; ++k) {
    if (!(spec.weights[k] > 0)) {
      return Invalid(absl::StrCat("array weights is ", spec.weights[k], " at [", k,
                                  "]; expected weights above 0, leave the component out"));
    }
  }
  if (spec.kind == CovarianceKind::kFull) {
    MP_RETURN_IF_ERROR(CheckUnused("variances", spec.variances, spec.kind));
    MP_RETURN_IF_ERROR(CheckNumbers("covariances", spec.covariances, {K, d, d}));
  } else {
    MP_RETURN_IF_ERROR(CheckUnused("covariances", spec.covariances, spec.kind));
    MP_RETURN_IF_ERROR(CheckNumbers("variances", spec.variances, {K, d}));
    for (std::size_t i = 0; i < K * d; ++i) {
      if (spec.variances[i] < 0) {
        return Invalid(absl::StrCat("array variances is ", spec.variances[i], " at ",
                                    Place(i, {K, d}), "; expected no negative ones"));
      }
    }
  }
  if (spec.kind == CovarianceKind::kLowRank)
    return CheckNumbers("factors", spec.factors, {K, d, r});
  return CheckUnused("factors", spec.factors, spec.kind);
}

absl::Status NormaliseWeights(MixtureSpec& spec, std::vector<std::string>& notes) {
  long double sum = 0;
  for (const double weight : spec.weights) sum += weight;
  const double miss = std::abs(static_cast<double>(sum - 1));
  if (miss > 1e-6) {
    return Invalid(
        absl::StrFormat("array weights sums to %.9g; expected 1 within 1e-6, divide by the sum",
                        static_cast<double>(sum)));
  }
  // Weights that were divided once miss by rounding only and stay as they are.
  if (miss <= 4e-16 * static_cast<double>(spec.weights.size())) return absl::OkStatus();
  for (double& weight : spec.weights) weight = static_cast<double>(weight / sum);
  notes.push_back(
      absl::StrCat("the weights miss a sum of 1 by ", miss, "; they were divided by their sum"));
  return absl::OkStatus();
}

// Makes covariance k symmetric and writes its eigenvectors and eigenvalues.
absl::Status Decompose(MixtureSpec& spec, int k, double& asymmetry,
                       GaussianMixture::Derived& derived) {
  const Eigen::Index d = spec.dimensions;
  const std::size_t offset = static_cast<std::size_t>(k) * d * d;
  Eigen::Map<Matrix> covariance(spec.covariances.data() + offset, d, d);
  const double largest = covariance.cwiseAbs().maxCoeff();
  Eigen::Index row = 0, column = 0;
  const double apart = (covariance - covariance.transpose()).cwiseAbs().maxCoeff(&row, &column);
  if (apart > kSlack * largest) {
    return Invalid(absl::StrCat("array covariances is ", covariance(row, column), " at [", k, ", ",
                                row, ", ", column, "], but ", covariance(column, row), " at [", k,
                                ", ", column, ", ", row, "]; expected symmetric matrices"));
  }
  if (apart > 0) {
    asymmetry = std::max(asymmetry, apart / largest);
    covariance = (0.5 * (covariance + covariance.transpose())).eval();
  }
  double* values = derived.values.data() + static_cast<std::size_t>(k) * d;
  if (!mixture::EigenAxes(covariance.data(), d, derived.axes.data() + offset,
                          derived.axes_transposed.data() + offset, values)) {
    return Invalid(absl::StrCat("array covariances at [", k,
                                "]: its eigenvalues could not be found; rescale the data"));
  }
  if (values[d - 1] < -kSlack * largest) {
    return Invalid(absl::StrCat("array covariances at [", k, "] has the eigenvalue ", values[d - 1],
                                "; expected none below 0"));
  }
  for (Eigen::Index i = 0; i < d; ++i) values[i] = std::max(values[i], 0.0);
  return absl::OkStatus();
}

absl::Status DeriveFull(MixtureSpec& spec, std::vector<std::string>& notes,
                        GaussianMixture::Derived& derived) {
  const std::size_t d = spec.dimensions;
  MP_RETURN_IF_ERROR(CheckMemory("the eigenvectors of the mixture's covariances",
                                 2.0 * 8.0 * static_cast<double>(spec.covariances.size())));
  derived.axes.resize(spec.covariances.size());
  derived.axes_transposed.resize(spec.covariances.size());
  derived.values.resize(spec.components * d);
  double asymmetry = 0;
  for (int k = 0; k < spec.components; ++k) {
    MP_RETURN_IF_ERROR(Decompose(spec, k, asymmetry, derived));
  }
  if (asymmetry > 0) {
    notes.push_back(absl::StrCat("covariances are symmetric up to ", asymmetry,
                                 " of their largest entry; the mean of both halves was taken"));
  }
  return absl::OkStatus();
}

bool EveryComponentFlat(const MixtureSpec& spec) {
  const std::size_t d = spec.dimensions;
  for (std::size_t i = 0; i < spec.variances.size(); ++i) {
    if (spec.variances[i] != spec.variances[i - i % d]) return false;
  }
  return true;
}

void DeriveLowRank(const MixtureSpec& spec, GaussianMixture::Derived& derived) {
  if (!EveryComponentFlat(spec)) return;
  const std::size_t K = spec.components, d = spec.dimensions, r = spec.rank;
  derived.axes.resize(K * r * d);
  derived.axes_transposed.resize(K * r * d);
  derived.values.resize(K * r);
  for (std::size_t k = 0; k < K; ++k) {
    mixture::FactorAxes(spec.factors.data() + k * d * r, nullptr, d, r,
                        derived.axes.data() + k * r * d, derived.axes_transposed.data() + k * r * d,
                        derived.values.data() + k * r);
  }
}

}  // namespace

std::string_view ToString(CovarianceKind kind) {
  switch (kind) {
    case CovarianceKind::kDiagonal:
      return "diagonal";
    case CovarianceKind::kLowRank:
      return "low-rank";
    case CovarianceKind::kFull:
      break;
  }
  return "full";
}

absl::StatusOr<GaussianMixture> GaussianMixture::Create(MixtureSpec spec) {
  MP_RETURN_IF_ERROR(CheckSizes(spec));
  MP_RETURN_IF_ERROR(CheckArrays(spec));
  auto data = std::make_shared<Data>();
  MP_RETURN_IF_ERROR(NormaliseWeights(spec, data->notes));
  if (spec.kind == CovarianceKind::kFull) {
    MP_RETURN_IF_ERROR(DeriveFull(spec, data->notes, data->derived));
  } else if (spec.kind == CovarianceKind::kLowRank) {
    DeriveLowRank(spec, data->derived);
  }
  data->spec = std::move(spec);
  return GaussianMixture(std::move(data));
}

std::vector<double> GaussianMixture::Covariance(int k) const {
  const Eigen::Index d = dimensions();
  const std::size_t at = static_cast<std::size_t>(k) * d;
  std::vector<double> out(static_cast<std::size_t>(d) * d);
  Eigen::Map<Matrix> covariance(out.data(), d, d);
  if (kind() == CovarianceKind::kFull) {
    covariance = ConstMap(spec().covariances.data() + at * d, d, d);
    return out;
  }
  covariance.diagonal() = Eigen::Map<const Eigen::VectorXd>(spec().variances.data() + at, d);
  if (kind() == CovarianceKind::kLowRank) {
    const ConstMap factor(spec().factors.data() + at * rank(), d, rank());
    covariance += factor * factor.transpose();
  }
  return out;
}

absl::StatusOr<GaussianMixture> GaussianMixture::Scaled(double factor) const {
  if (!(factor > 0 && std::isfinite(factor))) {
    return Invalid(absl::StrCat("a mixture cannot be scaled by ", factor,
                                "; expected a finite number above 0"));
  }
  MixtureSpec scaled = spec();
  for (double& value : scaled.means) value *= factor;
  for (double& value : scaled.factors) value *= factor;
  for (double& value : scaled.variances) value *= factor * factor;
  for (double& value : scaled.covariances) value *= factor * factor;
  return Create(std::move(scaled));
}

absl::StatusOr<GaussianMixture> CircleMixture(int components, double radius, double spread) {
  MixtureSpec spec;
  spec.name = "circle";
  spec.components = components;
  spec.dimensions = 2;
  for (int k = 0; k < components; ++k) {
    const double angle = 2 * std::numbers::pi * k / components;
    spec.weights.push_back(1.0 / components);
    spec.means.push_back(radius * std::cos(angle));
    spec.means.push_back(radius * std::sin(angle));
    spec.variances.insert(spec.variances.end(), 2, spread * spread);
  }
  return GaussianMixture::Create(std::move(spec));
}

}  // namespace mergeplan
