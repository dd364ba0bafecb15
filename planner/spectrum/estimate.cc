#include "planner/spectrum/estimate.h"

#include <algorithm>
#include <cmath>
#include <new>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "planner/base/status_macros.h"
#include "planner/spectrum/moments.h"
#include "planner/spectrum/parallel.h"

namespace mergeplan {
namespace {

// Share of the covariance's energy outside its diagonal, beyond what chance gives, up to which the
// data's own axes are good enough.
constexpr double kDiagonalEnough = 0.01;

// Puts the source's name in front, unless the message begins with it already.
absl::Status Annotate(const absl::Status& status, const std::string& source) {
  if (source.empty() || absl::StartsWith(status.message(), source)) return status;
  return absl::Status(status.code(), absl::StrCat(source, ": ", status.message()));
}

// z with P(|N(0,1)| < z) = confidence, by bisection.
double NormalQuantile(double confidence) {
  double low = 0, high = 40;
  for (int i = 0; i < 200; ++i) {
    const double middle = low + (high - low) / 2;
    (std::erfc(middle / std::sqrt(2.0)) > 1 - confidence ? low : high) = middle;
  }
  return low + (high - low) / 2;
}

// Batches of one size until the end, however the source cuts its own.
class BatchReader {
 public:
  BatchReader(SampleSource& source, int dimensions)
      : source_(source),
        d_(dimensions),
        rows_(std::clamp((1 << 20) / dimensions, 256, 8192)),
        buffer_(static_cast<std::size_t>(rows_) * dimensions) {}

  // Number of samples in the batch; 0 at the end.
  absl::StatusOr<int> Next() {
    int filled = 0;
    while (filled < rows_) {
      const std::size_t begin = static_cast<std::size_t>(filled) * d_;
      MP_ASSIGN_OR_RETURN(const int got, source_.Read(absl::MakeSpan(buffer_).subspan(begin)));
      if (got == 0) break;
      if (got < 0 || got > rows_ - filled) {
        return absl::InternalError(absl::StrCat("the reader returned ", got, " samples where ",
                                                rows_ - filled, " were asked for"));
      }
      filled += got;
    }
    return filled;
  }
  absl::Span<const double> samples(int count) const {
    return absl::MakeConstSpan(buffer_).subspan(0, static_cast<std::size_t>(count) * d_);
  }
  int capacity() const { return rows_; }

 private:
  SampleSource& source_;
  const int d_;
  const int rows_;
  std::vector<double> buffer_;
};

absl::StatusOr<int> CheckedDimensions(const std::vector<std::int64_t>& shape) {
  std::int64_t d = 1;
  for (const std::int64_t extent : shape) {
    if (extent <= 0) {
      return absl::InvalidArgumentError(absl::StrCat("samples of shape ", absl::StrJoin(shape, "x"),
                                                     " are empty; expected at least one value"));
    }
    d = extent > (std::int64_t{1} << 40) / d ? std::int64_t{1} << 40 : d * extent;
  }
  if (d > kMaxDimensions) {
    return absl::InvalidArgumentError(absl::StrCat(
        "samples of shape ", absl::StrJoin(shape, "x"), " have more than ", kMaxDimensions,
        " dimensions, the most whose covariance (d x d numbers) is computed; reduce the samples "
        "first: crop or shrink the images, or encode them to latents"));
  }
  return static_cast<int>(d);
}

// Interval of each variance from n values with the given kurtosis (EstimateSpectrum's comment).
void SetIntervals(Basis& basis, const std::vector<double>& kurtosis, std::int64_t samples,
                  double z) {
  const double n = static_cast<double>(samples);
  for (std::size_t i = 0; i < basis.variances.size(); ++i) {
    const double width = z * std::sqrt((kurtosis[i] - (n - 3) / (n - 1)) / n);
    basis.variances_low.push_back(basis.variances[i] * std::exp(-width));
    basis.variances_high.push_back(basis.variances[i] * std::exp(width));
  }
}

double SquaredNorm(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value * value;
  return sum;
}

// ||offdiag(V C V^T)||_F^2 / ||C||_F^2 for orthonormal rows V, a few rows at a time.
absl::StatusOr<double> RotatedOffDiagonalEnergy(const Spectrum& spectrum, const Kernels& kernels,
                                                int threads) {
  constexpr int kRows = 64;
  const int d = spectrum.dimensions();
  const int tasks = (d + kRows - 1) / kRows;
  std::vector<double> sums(tasks);
  MP_RETURN_IF_ERROR(ParallelFor(tasks, threads, [&](int task) {
    try {
      const int first = task * kRows, rows = std::min(kRows, d - first);
      std::vector<double> half(static_cast<std::size_t>(rows) * d), rotated(half.size());
      if (!kernels.multiply_f64(spectrum.vectors.data() + static_cast<std::size_t>(first) * d, rows,
                                d, spectrum.covariance.data(), half.data()) ||
          !kernels.multiply_transposed_f64(half.data(), rows, d, spectrum.vectors.data(),
                                           rotated.data())) {
        return false;
      }
      for (int r = 0; r < rows; ++r) rotated[static_cast<std::size_t>(r) * d + first + r] = 0;
      sums[task] = SquaredNorm(rotated);
      return true;
    } catch (const std::bad_alloc&) {
      return false;
    }
  }));
  double off = 0;
  for (const double sum : sums) off += sum;
  const double all = SquaredNorm(spectrum.covariance);
  return all > 0 ? off / all : 0.0;
}

// Kurtosis of the data along every principal direction. `mean` and the data are as stored: the
// kurtosis does not depend on the scaling. Projected in float32, whose rounding is far below the
// sampling error of a fourth moment; `unit`, the largest standard deviation, keeps it in range.
absl::StatusOr<std::vector<double>> KurtosisAlong(const std::vector<double>& vectors,
                                                  const std::vector<double>& mean, double unit,
                                                  std::int64_t samples, SampleSource& source,
                                                  const Kernels& kernels, int threads) {
  constexpr int kRows = 128;
  const int d = static_cast<int>(mean.size());
  const std::vector<float> directions(vectors.begin(), vectors.end());
  MomentAccumulator moments(d, /*with_covariance=*/false, threads, kernels);
  BatchReader reader(source, d);
  std::vector<double> widened(static_cast<std::size_t>(reader.capacity()) * d);
  std::vector<float> centred(static_cast<std::size_t>(reader.capacity()) * d),
      projected(centred.size());
  while (true) {
    MP_ASSIGN_OR_RETURN(const int count, reader.Next());
    if (count == 0) break;
    const double* stored = reader.samples(count).data();
    MP_RETURN_IF_ERROR(ParallelFor((count + kRows - 1) / kRows, threads, [&](int task) {
      const int first = task * kRows, rows = std::min(kRows, count - first);
      const std::size_t begin = static_cast<std::size_t>(first) * d;
      for (int r = 0; r < rows; ++r) {
        const std::size_t row = begin + static_cast<std::size_t>(r) * d;
        for (int i = 0; i < d; ++i) {
          centred[row + i] = static_cast<float>((stored[row + i] - mean[i]) / unit);
        }
      }
      return kernels.multiply_transposed_f32(centred.data() + begin, rows, d, directions.data(),
                                             projected.data() + begin);
    }));
    std::copy(projected.begin(), projected.begin() + static_cast<std::ptrdiff_t>(count) * d,
              widened.begin());
    MP_RETURN_IF_ERROR(moments.Add(
        absl::MakeConstSpan(widened).subspan(0, static_cast<std::size_t>(count) * d), count));
  }
  if (moments.count() != samples) {
    return absl::DataLossError(absl::StrCat("the second pass read ", moments.count(),
                                            " samples, the first ", samples,
                                            "; the data changed meanwhile, run it again"));
  }
  return moments.Kurtosis();
}

// Eigenvectors by falling eigenvalue, each with its largest component positive (the first of those
// that are as large up to rounding), so that the result is reproducible.
absl::Status SetPrincipalDirections(Spectrum& spectrum, const Kernels& kernels) {
  const std::size_t d = spectrum.dimensions();
  std::vector<double>& values = spectrum.pca.variances;
  std::vector<double>& vectors = spectrum.vectors;
  values.resize(d);
  vectors.resize(d * d);
  bool converged = false;
  if (!kernels.eigen(spectrum.covariance.data(), static_cast<std::ptrdiff_t>(d), values.data(),
                     vectors.data(), &converged)) {
    return absl::ResourceExhaustedError(
        absl::StrCat("out of memory in the eigenvectors of a ", d, " x ", d, " covariance"));
  }
  if (!converged) {
    return absl::InternalError(absl::StrCat("the eigenvalue iteration of the ", d, " x ", d,
                                            " covariance did not converge"));
  }
  std::reverse(values.begin(), values.end());
  for (double& value : values) value = std::max(0.0, value);
  for (std::size_t i = 0; i < d / 2; ++i) {
    std::swap_ranges(vectors.begin() + i * d, vectors.begin() + (i + 1) * d,
                     vectors.begin() + (d - 1 - i) * d);
  }
  for (std::size_t i = 0; i < d; ++i) {
    double* row = vectors.data() + i * d;
    double largest = 0;
    for (std::size_t j = 0; j < d; ++j) largest = std::max(largest, std::abs(row[j]));
    const double* leader = std::find_if(row, row + d, [&](double component) {
      return std::abs(component) >= largest * (1 - 1e-6);
    });
    if (*leader < 0) {
      for (std::size_t j = 0; j < d; ++j) row[j] = -row[j];
    }
  }
  return absl::OkStatus();
}

void Recommend(Spectrum& spectrum, bool want_pca) {
  if (!want_pca) {
    spectrum.recommended_basis = "diagonal";
    spectrum.recommended_basis_reason = "no other basis was computed";
    return;
  }
  const double all = SquaredNorm(spectrum.covariance);
  double trace = 0;
  for (const double variance : spectrum.diagonal.variances) trace += variance;
  // What unrelated dimensions with these variances would show in this many samples.
  const double chance = all > 0 ? (trace * trace - SquaredNorm(spectrum.diagonal.variances)) /
                                      (static_cast<double>(spectrum.samples - 1) * all)
                                : 0.0;
  const double energy = spectrum.diagonal.off_diagonal_energy;
  const std::string found =
      absl::StrFormat("%.2f %% of the covariance's energy is off the diagonal", 100 * energy);
  if (energy <= kDiagonalEnough) {
    spectrum.recommended_basis = "diagonal";
    spectrum.recommended_basis_reason =
        absl::StrFormat("%s, not more than the %.0f %% up to which the data's own axes do", found,
                        100 * kDiagonalEnough);
    return;
  }
  const std::string by_chance =
      absl::StrFormat("unrelated dimensions would show %.2f %% on average in %d samples",
                      100 * chance, spectrum.samples);
  if (energy - chance <= kDiagonalEnough) {
    spectrum.recommended_basis = "diagonal";
    spectrum.recommended_basis_reason =
        absl::StrFormat("%s, but %s: as far as these can tell, not more than %.0f %% beyond chance",
                        found, by_chance, 100 * kDiagonalEnough);
    return;
  }
  spectrum.recommended_basis = "pca";
  spectrum.recommended_basis_reason = absl::StrFormat(
      "%s; %s, and the rest is more than the %.0f %% up to which the data's own axes do", found,
      by_chance, 100 * kDiagonalEnough);
}

absl::StatusOr<Spectrum> Estimate(SampleSource& source, const EstimateOptions& options) {
  if (!(options.confidence > 0 && options.confidence < 1)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "confidence is ", options.confidence, "; expected a number between 0 and 1, such as 0.95"));
  }
  MP_ASSIGN_OR_RETURN(const int d, CheckedDimensions(source.shape()));
  const Kernels& kernels = options.kernels != nullptr ? *options.kernels : BestKernels();
  const int threads = ThreadCount(options.threads);

  Spectrum spectrum;
  spectrum.source = options.source;
  spectrum.source_sha256 = options.source_sha256;
  spectrum.shape = source.shape();
  spectrum.confidence = options.confidence;
  if (options.scaling.has_value()) {
    spectrum.scaling = *options.scaling;
  } else {
    MP_ASSIGN_OR_RETURN(spectrum.scaling, ParseScaling(source.is_pixels() ? "-1:1" : "none"));
  }

  std::vector<double> stored_mean, kurtosis;
  double unit = 1;
  {
    MomentAccumulator moments(d, /*with_covariance=*/true, threads, kernels);
    BatchReader reader(source, d);
    while (true) {
      MP_ASSIGN_OR_RETURN(const int count, reader.Next());
      if (count == 0) break;
      MP_RETURN_IF_ERROR(moments.Add(reader.samples(count), count));
    }
    spectrum.samples = moments.count();
    spectrum.skipped = source.skipped();
    if (spectrum.samples < 2) {
      return absl::InvalidArgumentError(
          absl::StrCat("holds ", spectrum.samples, spectrum.samples == 1 ? " sample" : " samples",
                       spectrum.skipped > 0
                           ? absl::StrCat(" beside ", spectrum.skipped, " left out as not finite")
                           : "",
                       "; a variance needs at least 2 samples"));
    }
    stored_mean = moments.Mean();
    kurtosis = moments.Kurtosis();
    const double largest = *std::max_element(moments.m2().begin(), moments.m2().end());
    if (largest > 0) unit = std::sqrt(largest / static_cast<double>(spectrum.samples - 1));
    spectrum.covariance = moments.TakeCovariance();
  }

  const double multiply = spectrum.scaling.multiply, square = multiply * multiply;
  for (const double mean : stored_mean) spectrum.mean.push_back(spectrum.scaling.Apply(mean));
  for (double& value : spectrum.covariance) value *= square;
  for (int i = 0; i < d; ++i) {
    spectrum.diagonal.variances.push_back(spectrum.covariance[static_cast<std::size_t>(i) * d + i]);
  }
  const double all = SquaredNorm(spectrum.covariance);
  if (!std::isfinite(all)) {
    return absl::InvalidArgumentError(
        absl::StrCat("the values are too large for their covariance to be computed in float64 "
                     "under the scaling \"",
                     spectrum.scaling.text, "\"; choose a smaller range"));
  }

  const double z = NormalQuantile(options.confidence);
  spectrum.diagonal.name = "diagonal";
  spectrum.diagonal.interval = "fourth-moment";
  SetIntervals(spectrum.diagonal, kurtosis, spectrum.samples, z);
  SummarizeVariances(spectrum.diagonal);
  double off = 0;
  for (std::size_t i = 0; i < spectrum.covariance.size(); ++i) {
    if (i % (d + 1) != 0) off += spectrum.covariance[i] * spectrum.covariance[i];
  }
  spectrum.diagonal.off_diagonal_energy = all > 0 ? off / all : 0.0;

  if (options.want_pca) {
    MP_RETURN_IF_ERROR(SetPrincipalDirections(spectrum, kernels));
    spectrum.pca.name = "pca";
    if (options.reopen) {
      MP_ASSIGN_OR_RETURN(const std::unique_ptr<SampleSource> again, options.reopen());
      if (again->shape() != spectrum.shape) {
        return absl::DataLossError(
            "the second pass found samples of another shape; the data changed, run it again");
      }
      MP_ASSIGN_OR_RETURN(kurtosis, KurtosisAlong(spectrum.vectors, stored_mean, unit,
                                                  spectrum.samples, *again, kernels, threads));
      spectrum.pca.interval = "fourth-moment";
    } else {
      kurtosis.assign(d, 3.0);
      spectrum.pca.interval = "gaussian";
    }
    SetIntervals(spectrum.pca, kurtosis, spectrum.samples, z);
    SummarizeVariances(spectrum.pca);
    MP_ASSIGN_OR_RETURN(spectrum.pca.off_diagonal_energy,
                        RotatedOffDiagonalEnergy(spectrum, kernels, threads));
  }
  Recommend(spectrum, options.want_pca);
  return spectrum;
}

}  // namespace

absl::StatusOr<Spectrum> EstimateSpectrum(SampleSource& source, const EstimateOptions& options) {
  try {
    absl::StatusOr<Spectrum> spectrum = Estimate(source, options);
    if (!spectrum.ok()) return Annotate(spectrum.status(), options.source);
    return spectrum;
  } catch (const std::bad_alloc&) {
    return Annotate(
        absl::ResourceExhaustedError(
            "out of memory: the covariance and its eigenvectors need up to 4 d^2 numbers of 8 "
            "bytes; reduce the samples' dimensions first"),
        options.source);
  }
}

}  // namespace mergeplan
