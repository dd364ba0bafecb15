#include "planner/gaussianity/gaussianity.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <new>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "planner/base/status_macros.h"
#include "planner/gaussianity/tails.h"
#include "planner/gaussianity/univariate.h"

namespace mergeplan {
namespace {

constexpr Eigen::Index kMardiaDimensions = 20;
// Fewer cannot be tested (univariate.h).
constexpr std::int64_t kLeastSamples = 8;
// Variances whose square, and the fourth moment beside it, keep their digits in float64.
constexpr double kLeastVariance = 1e-140, kLargestVariance = 1e145;

AxisTests TestAxes(const Basis& basis, std::int64_t samples, double unit, double level) {
  AxisTests out;
  out.basis = basis.name;
  const double n = static_cast<double>(samples);
  std::vector<double> p;
  const double largest = basis.variances.empty()
                             ? 0
                             : *std::max_element(basis.variances.begin(), basis.variances.end());
  for (std::size_t i = 0; samples >= kLeastSamples && i < basis.kurtosis.size(); ++i) {
    // What is left of a direction without variance is rounding.
    if (!(basis.variances[i] > 1e-20 * largest)) continue;
    // What is stored, of which the moments were taken, is in other units.
    const double variance = basis.variances[i] / unit / unit;
    if (!(variance > kLeastVariance && variance < kLargestVariance)) continue;
    ++out.tested;
    p.push_back(SkewnessPValue(basis.skewness[i], n));
    p.push_back(KurtosisPValue(basis.kurtosis[i], n));
    if (std::abs(basis.skewness[i]) > std::abs(out.largest_skewness)) {
      out.largest_skewness = basis.skewness[i];
    }
    out.least_kurtosis =
        out.tested == 1 ? basis.kurtosis[i] : std::min(out.least_kurtosis, basis.kurtosis[i]);
    out.largest_kurtosis =
        out.tested == 1 ? basis.kurtosis[i] : std::max(out.largest_kurtosis, basis.kurtosis[i]);
  }
  const std::vector<double> adjusted = HolmAdjusted(p);
  for (std::size_t k = 0; k < adjusted.size(); ++k) {
    out.smallest_p = std::min(out.smallest_p, adjusted[k]);
    if (adjusted[k] < level) ++(k % 2 == 0 ? out.skewness_rejected : out.kurtosis_rejected);
  }
  return out;
}

// Why nothing could be tested; empty where something was.
std::string Untested(const Gaussianity& g, const Spectrum& spectrum, bool varies) {
  if (spectrum.samples < kLeastSamples) {
    return absl::StrFormat("%d samples are too few, expected at least %d", spectrum.samples,
                           kLeastSamples);
  }
  const bool axes =
      std::any_of(g.axes.begin(), g.axes.end(), [](const AxisTests& a) { return a.tested > 0; });
  if (axes) return "";
  if (!varies) return "the data is constant";
  const std::vector<double>& variances = spectrum.diagonal.variances;
  const double largest = *std::max_element(variances.begin(), variances.end());
  return absl::StrFormat(
      "the data varies, but its variances (up to %.2g) are too %s for float64 to hold what the "
      "tests "
      "need; multiply the data by a factor that brings its values near 1",
      largest, largest < 1 ? "small" : "large");
}

std::string Words(const Gaussianity& g, std::int64_t samples) {
  const ModesReport& modes = g.modes;
  if (g.verdict == "gaussian") {
    return absl::StrFormat(
        "no test tells these %d samples from normal ones (smallest corrected p-value %.2g): the "
        "theory of a single Gaussian applies as far as they can tell",
        samples, g.p);
  }
  if (g.verdict == "multimodal") {
    std::string how;
    if (modes.by_dip) {
      const Projection& at = modes.projections[static_cast<std::size_t>(modes.dip_at)];
      how = absl::StrFormat(
          "the dip test finds more than one mode along %s direction %d (corrected "
          "p-value %.1g)",
          at.kind, at.number, modes.dip_p);
    }
    if (modes.by_mixture) {
      absl::StrAppendFormat(
          &how,
          "%sa mixture of %d groups of components, at least %.1f deviations apart, describes "
          "samples it "
          "has not seen better than one Gaussian, with few samples between the groups",
          how.empty() ? "" : "; ", modes.mixture.groups, modes.mixture.separation);
    }
    return absl::StrCat(
        "the data has several modes: ", how,
        ". The theory of a single Gaussian knows nothing of them: fit a mixture (mergeplan mixture "
        "fit) and use the mixture teacher");
  }
  double skewness = 0, low = 3, high = 3;
  for (const AxisTests& axes : g.axes) {
    if (std::abs(axes.largest_skewness) > std::abs(skewness)) skewness = axes.largest_skewness;
    low = std::min(low, axes.least_kurtosis);
    high = std::max(high, axes.largest_kurtosis);
  }
  return absl::StrFormat(
      "the data is not normal (smallest corrected p-value %.1g; along the axes skewness up to "
      "%.2g, "
      "kurtosis %.3g to %.3g, where normal data has 0 and 3), but no second mode was found: the "
      "theory uses mean and covariance only and is a model of second moments here",
      g.p, skewness, low, high);
}

absl::StatusOr<Gaussianity> Test(const Spectrum& spectrum, std::vector<double> rows,
                                 const GaussianityOptions& options) {
  const std::size_t d = spectrum.mean.size();
  if (d == 0 || rows.size() % d != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(rows.size(), " values are no whole samples of ", d, " dimensions"));
  }
  Gaussianity out;
  out.level = options.level;
  out.rows = static_cast<std::int64_t>(rows.size() / d);
  for (const Basis* basis : spectrum.Bases()) {
    if (basis->kurtosis.empty()) continue;
    out.axes.push_back(
        TestAxes(*basis, spectrum.samples, spectrum.scaling.multiply, options.level));
  }
  // Centred, and in units of the largest value: neither offset nor unit takes digits.
  double largest = 0;
  bool varies = false;
  for (std::size_t k = d; k < rows.size() && !varies; ++k) varies = rows[k] != rows[k - d];
  for (std::size_t k = 0; k < rows.size(); ++k) {
    rows[k] = spectrum.scaling.Apply(rows[k]) - spectrum.mean[k % d];
    largest = std::max(largest, std::abs(rows[k]));
  }
  if (const std::string why = Untested(out, spectrum, varies); !why.empty()) {
    out.verdict = "untested";
    out.words = absl::StrCat("whether the data is normal was not tested: ", why);
    return out;
  }
  if (largest > 0 && std::isfinite(largest)) {
    for (double& value : rows) value /= largest;
  }
  RowMatrix x = Eigen::Map<const RowMatrix>(rows.data(), out.rows, static_cast<Eigen::Index>(d));
  rows = {};
  if (out.rows > 1) {
    const Eigen::Index most = std::clamp<Eigen::Index>(out.rows / 20, 1, kMardiaDimensions);
    const Eigen::RowVectorXd mean = x.colwise().mean();
    x.rowwise() -= mean;
    const Eigen::MatrixXd leading = LeadingDirections(x, static_cast<int>(most), options.seed);
    out.mardia = MardiaTest(x * leading);
  }
  ModesOptions modes;
  modes.level = options.level;
  modes.seed = options.seed;
  MP_ASSIGN_OR_RETURN(out.modes, LookForModes(x, modes));

  std::vector<double> kinds = {out.mardia.skewness_p, out.mardia.kurtosis_p, out.modes.skewness_p,
                               out.modes.kurtosis_p, out.modes.dip_p};
  for (const AxisTests& axes : out.axes) kinds.push_back(axes.smallest_p);
  out.p = std::min(
      1.0, *std::min_element(kinds.begin(), kinds.end()) * static_cast<double>(kinds.size()));
  out.rejected = out.p < options.level;
  out.verdict = out.modes.multimodal() ? "multimodal" : out.rejected ? "not-gaussian" : "gaussian";
  if (out.verdict == "multimodal") out.rejected = true;
  out.words = Words(out, spectrum.samples);
  return out;
}

}  // namespace

absl::StatusOr<Gaussianity> TestGaussianity(const Spectrum& spectrum, std::vector<double> rows,
                                            const GaussianityOptions& options) {
  try {
    return Test(spectrum, std::move(rows), options);
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError(
        "out of memory in the tests of normality; keep fewer samples");
  }
}

}  // namespace mergeplan
