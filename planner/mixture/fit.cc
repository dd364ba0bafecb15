#include "planner/mixture/fit.h"

#include <Eigen/Core>
#include <algorithm>
#include <cmath>
#include <limits>
#include <new>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "planner/base/philox.h"
#include "planner/base/status_macros.h"
#include "planner/mixture/em.h"
#include "planner/spectrum/parallel.h"

namespace mergeplan {
namespace {

using Eigen::Index;

// Uniform numbers in [0, 1), counted.
class Uniforms {
 public:
  Uniforms(std::uint64_t seed, int start)
      : key_{{static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)}},
        start_(static_cast<std::uint32_t>(start)) {}
  double Next() {
    const PhiloxWords w = Philox({{count_++, start_, 0, 0x6B6D7070u}}, key_);
    return static_cast<double>((std::uint64_t{w.w[0]} << 21) ^ (w.w[1] >> 11)) / 9007199254740992.0;
  }

 private:
  PhiloxKey key_;
  std::uint32_t start_;
  std::uint32_t count_ = 0;
};

absl::Status Check(absl::Span<const double> rows, int d, const MixtureFitOptions& options) {
  const auto refuse = [](const std::string& what) { return absl::InvalidArgumentError(what); };
  if (d < 1 || rows.size() % static_cast<std::size_t>(d) != 0) {
    return refuse(absl::StrCat(rows.size(), " values are no whole samples of ", d, " dimensions"));
  }
  const std::int64_t n = static_cast<std::int64_t>(rows.size()) / d;
  if (options.components < 1 || options.components > kMaxMixtureComponents) {
    return refuse(absl::StrCat("components is ", options.components, ", expected 1..",
                               kMaxMixtureComponents));
  }
  if (n < std::max(2, options.components)) {
    return refuse(absl::StrCat("there are ", n, " samples, expected at least ",
                               std::max(2, options.components), " for ", options.components,
                               " components"));
  }
  if (options.kind == CovarianceKind::kLowRank && (options.rank < 1 || options.rank >= d)) {
    return refuse(absl::StrCat("rank is ", options.rank, ", expected 1..", d - 1,
                               ", below the samples' ", d, " dimensions"));
  }
  if (options.restarts < 1 || options.most_iterations < 1 || !(options.tolerance >= 0) ||
      !(options.floor > 0) || !(options.floor < 1)) {
    return refuse(
        "restarts and iterations must be at least 1, tolerance at least 0, 0 < floor < 1");
  }
  for (std::size_t k = 0; k < rows.size(); ++k) {
    if (!std::isfinite(rows[k])) {
      return refuse(absl::StrCat("sample ", k / static_cast<std::size_t>(d),
                                 " (counted from 0) has a value that is not finite"));
    }
  }
  return absl::OkStatus();
}

// Hard assignments of a k-means++ start with Lloyd's rounds behind it.
class KMeans {
 public:
  KMeans(absl::Span<const double> rows, int d, int threads)
      : rows_(rows), d_(static_cast<std::size_t>(d)), n_(rows.size() / d_), threads_(threads) {}

  absl::StatusOr<std::vector<int>> Run(int components, Uniforms& random) {
    std::vector<double> distance(n_, std::numeric_limits<double>::infinity());
    centres_.clear();
    nearest_.assign(n_, 0);
    for (int k = 0; k < components; ++k) {
      std::size_t pick = 0;
      const double total = k == 0 ? 0 : std::accumulate(distance.begin(), distance.end(), 0.0);
      if (total > 0) {
        double left = random.Next() * total;
        while (pick + 1 < n_ && (left -= distance[pick]) >= 0) ++pick;
        while (distance[pick] == 0 && pick > 0) --pick;
      } else {
        pick = std::min(n_ - 1, static_cast<std::size_t>(random.Next() * static_cast<double>(n_)));
      }
      centres_.insert(centres_.end(), rows_.begin() + static_cast<std::ptrdiff_t>(pick * d_),
                      rows_.begin() + static_cast<std::ptrdiff_t>((pick + 1) * d_));
      MP_RETURN_IF_ERROR(Closer(k, distance));
    }
    for (int round = 0; round < 10; ++round) {
      const std::vector<int> before = nearest_;
      Recentre(components);
      std::fill(distance.begin(), distance.end(), std::numeric_limits<double>::infinity());
      for (int k = 0; k < components; ++k) MP_RETURN_IF_ERROR(Closer(k, distance));
      if (nearest_ == before) break;
    }
    return nearest_;
  }

 private:
  // Gives centre k the rows that are nearer to it than `distance`.
  absl::Status Closer(int k, std::vector<double>& distance) {
    constexpr std::size_t kRows = 1024;
    const double* centre = centres_.data() + static_cast<std::size_t>(k) * d_;
    const int threads = n_ * d_ < 1'000'000 ? 1 : threads_;
    return ParallelFor(static_cast<int>((n_ + kRows - 1) / kRows), threads, [&](int task) {
      const std::size_t first = static_cast<std::size_t>(task) * kRows;
      for (std::size_t i = first; i < std::min(n_, first + kRows); ++i) {
        const double* row = rows_.data() + i * d_;
        double sum = 0;
        for (std::size_t c = 0; c < d_; ++c) sum += (row[c] - centre[c]) * (row[c] - centre[c]);
        if (sum < distance[i]) distance[i] = sum, nearest_[i] = k;
      }
      return true;
    });
  }
  void Recentre(int components) {
    std::vector<double> sums(static_cast<std::size_t>(components) * d_);
    std::vector<double> counts(static_cast<std::size_t>(components));
    for (std::size_t i = 0; i < n_; ++i) {
      const std::size_t k = static_cast<std::size_t>(nearest_[i]);
      ++counts[k];
      for (std::size_t c = 0; c < d_; ++c) sums[k * d_ + c] += rows_[i * d_ + c];
    }
    for (std::size_t k = 0; k < counts.size(); ++k) {
      if (counts[k] == 0) continue;
      for (std::size_t c = 0; c < d_; ++c) centres_[k * d_ + c] = sums[k * d_ + c] / counts[k];
    }
  }

  absl::Span<const double> rows_;
  std::size_t d_, n_;
  int threads_;
  std::vector<double> centres_;
  std::vector<int> nearest_;
};

// By falling weight.
MixtureSpec SpecOf(const EmState& state) {
  MixtureSpec spec;
  const Index d = state.means.rows(), components = state.components();
  spec.kind = state.kind;
  spec.components = static_cast<int>(components);
  spec.dimensions = static_cast<int>(d);
  spec.rank = state.kind == CovarianceKind::kLowRank ? state.rank : 0;
  std::vector<Index> order(static_cast<std::size_t>(components));
  std::iota(order.begin(), order.end(), Index{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](Index a, Index b) { return state.weights[a] > state.weights[b]; });
  for (const Index k : order) {
    spec.weights.push_back(state.weights[k]);
    for (Index i = 0; i < d; ++i) spec.means.push_back(state.means(i, k));
    if (state.kind == CovarianceKind::kDiagonal) {
      for (Index i = 0; i < d; ++i) spec.variances.push_back(state.variances(i, k));
    } else if (state.kind == CovarianceKind::kFull) {
      const Eigen::MatrixXd& c = state.covariances[static_cast<std::size_t>(k)];
      spec.covariances.insert(spec.covariances.end(), c.data(), c.data() + c.size());
    } else {
      const Eigen::MatrixXd& f = state.factors[static_cast<std::size_t>(k)];
      for (Index i = 0; i < d; ++i) {
        spec.variances.push_back(state.noise[k]);
        for (Index r = 0; r < f.cols(); ++r) spec.factors.push_back(f(i, r));
      }
    }
  }
  return spec;
}

struct Ended {
  EmState state;
  double log_likelihood = -std::numeric_limits<double>::infinity();
  int iterations = 0;
  bool converged = false;
};

absl::StatusOr<Ended> OneStart(absl::Span<const double> rows, int d, double floor,
                               const MixtureFitOptions& options, int threads, int start) {
  Uniforms random(options.seed, start);
  const std::size_t n = rows.size() / static_cast<std::size_t>(d);
  MP_ASSIGN_OR_RETURN(const std::vector<int> nearest,
                      KMeans(rows, d, threads).Run(options.components, random));
  const std::size_t components = static_cast<std::size_t>(options.components);
  std::vector<double> responsibilities(n * components);
  for (std::size_t i = 0; i < n; ++i) {
    responsibilities[i * components + static_cast<std::size_t>(nearest[i])] = 1;
  }
  Ended out;
  out.state.kind = options.kind;
  out.state.rank = options.rank;
  out.state.floor = floor;
  out.state.means.resize(d, options.components);
  while (out.iterations < options.most_iterations) {
    if (options.stop && options.stop()) return absl::CancelledError("stopped before the fit ended");
    MP_RETURN_IF_ERROR(MaximisationStep(rows, responsibilities, threads, out.state));
    MP_ASSIGN_OR_RETURN(const double now,
                        ExpectationStep(out.state, rows, threads, responsibilities, nullptr));
    ++out.iterations;
    const double gain = (now - out.log_likelihood) / static_cast<double>(n);
    out.log_likelihood = now;
    if (gain < options.tolerance) {
      out.converged = true;
      break;
    }
  }
  return out;
}

// The mean over the dimensions of the variance, and of that of the values between the percentiles 1
// and 99 (without at least one at either end). Where the latter is nothing, as for data that is
// constant but for a few samples, it is the former.
struct Variances {
  double all = 0, inner = 0;
};

Variances MeanVariances(absl::Span<const double> rows, int d) {
  const std::size_t n = rows.size() / static_cast<std::size_t>(d);
  const auto variance = [](absl::Span<const double> values) {
    // About the first value, so that what is constant has no variance.
    const double count = static_cast<double>(values.size());
    double mean = 0, sum = 0;
    for (const double v : values) mean += (v - values[0]) / count;
    for (const double v : values) sum += (v - values[0] - mean) * (v - values[0] - mean);
    return sum / count;
  };
  // As many as settle a scale; all would cost as much as an iteration.
  constexpr std::size_t kMost = 100'000;
  const std::size_t step = (n + kMost - 1) / kMost;
  Variances out;
  std::vector<double> column(n), some;
  for (int i = 0; i < d; ++i) {
    for (std::size_t k = 0; k < n; ++k) {
      column[k] = rows[k * static_cast<std::size_t>(d) + static_cast<std::size_t>(i)];
    }
    out.all += variance(column) / d;
    some.clear();
    for (std::size_t k = 0; k < n; k += step) some.push_back(column[k]);
    const std::size_t cut = some.size() < 10 ? 0 : std::max<std::size_t>(1, some.size() / 100);
    const auto low = some.begin() + static_cast<std::ptrdiff_t>(cut);
    const auto high = some.end() - static_cast<std::ptrdiff_t>(cut);
    if (cut > 0) {
      std::nth_element(some.begin(), low, some.end());
      std::nth_element(low, high, some.end());
    }
    out.inner += variance({&*low, static_cast<std::size_t>(high - low)}) / d;
  }
  if (!(out.inner > 0)) out.inner = out.all;
  return out;
}

absl::StatusOr<MixtureFit> Fit(absl::Span<const double> rows, int d,
                               const MixtureFitOptions& options) {
  MP_RETURN_IF_ERROR(Check(rows, d, options));
  const double n = static_cast<double>(rows.size()) / d;
  const Variances variances = MeanVariances(rows, d);
  const double floor = options.floor * variances.inner;
  if (!(floor > 0) || !std::isfinite(variances.all)) {
    bool alike = true;
    const std::size_t width = static_cast<std::size_t>(d);
    for (std::size_t k = width; alike && k < rows.size(); ++k) alike = rows[k] == rows[k % width];
    return absl::InvalidArgumentError(
        alike ? "all samples are alike, expected some variance to fit a mixture to"
              : absl::StrCat("the samples' variance is ",
                             std::isfinite(variances.all) ? "below" : "beyond",
                             " what float64 can hold; multiply the data by a factor that brings "
                             "its values near 1 first"));
  }
  const int threads = ThreadCount(options.threads);
  Ended best;
  for (int start = 0; start < (options.components == 1 ? 1 : options.restarts); ++start) {
    MP_ASSIGN_OR_RETURN(Ended ended, OneStart(rows, d, floor, options, threads, start));
    if (start == 0 || ended.log_likelihood > best.log_likelihood) best = std::move(ended);
  }
  MixtureFit out;
  out.spec = SpecOf(best.state);
  out.log_likelihood = best.log_likelihood;
  out.parameters = MixtureParameters(options.kind, out.spec.components, d, options.rank);
  out.bic = static_cast<double>(out.parameters) * std::log(n) - 2 * best.log_likelihood;
  out.iterations = best.iterations;
  out.converged = best.converged;
  return out;
}

}  // namespace

std::int64_t MixtureParameters(CovarianceKind kind, int components, int d, int rank) {
  const std::int64_t k = components, n = d, r = rank;
  const std::int64_t each = kind == CovarianceKind::kDiagonal ? n
                            : kind == CovarianceKind::kFull   ? n * (n + 1) / 2
                                                              : n * r - r * (r - 1) / 2 + 1;
  return k * (n + each) + k - 1;
}

absl::StatusOr<MixtureFit> FitMixture(absl::Span<const double> rows, int d,
                                      const MixtureFitOptions& options) {
  try {
    return Fit(rows, d, options);
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError(
        absl::StrCat("out of memory for a mixture of ", options.components, " components in ", d,
                     " dimensions; give fewer samples, components or dimensions"));
  }
}

absl::StatusOr<MixtureDensities> DensitiesOf(const MixtureSpec& spec,
                                             absl::Span<const double> rows) {
  const Index d = spec.dimensions, components = spec.components;
  if (d < 1 || rows.size() % static_cast<std::size_t>(d) != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(rows.size(), " values are no whole samples of ", d, " dimensions"));
  }
  MP_ASSIGN_OR_RETURN(const GaussianMixture mixture, GaussianMixture::Create(spec));
  EmState state;
  state.kind = spec.kind == CovarianceKind::kLowRank ? CovarianceKind::kFull : spec.kind;
  state.weights = Eigen::Map<const Eigen::VectorXd>(mixture.weights().data(), components);
  state.means = Eigen::Map<const Eigen::MatrixXd>(spec.means.data(), d, components);
  if (spec.kind == CovarianceKind::kDiagonal) {
    state.variances = Eigen::Map<const Eigen::MatrixXd>(spec.variances.data(), d, components);
  } else {
    for (int k = 0; k < spec.components; ++k) {
      const std::vector<double> covariance = mixture.Covariance(k);
      state.covariances.emplace_back(Eigen::Map<const Eigen::MatrixXd>(covariance.data(), d, d));
    }
  }
  MixtureDensities out;
  MP_RETURN_IF_ERROR(
      ExpectationStep(state, rows, 1, out.responsibilities, &out.log_densities).status());
  return out;
}

}  // namespace mergeplan
