#include "planner/spectrum/estimate.h"

#include <algorithm>
#include <cmath>
#include <new>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "planner/base/status_macros.h"
#include "planner/spectrum/batches.h"
#include "planner/spectrum/diagonal_pass.h"
#include "planner/spectrum/finish.h"
#include "planner/spectrum/intervals.h"
#include "planner/spectrum/leading.h"
#include "planner/spectrum/moments.h"
#include "planner/spectrum/parallel.h"

namespace mergeplan {
namespace {

// Puts the source's name in front, unless the message begins with it already.
absl::Status Annotate(const absl::Status& status, const std::string& source) {
  if (source.empty() || absl::StartsWith(status.message(), source)) return status;
  return absl::Status(status.code(), absl::StrCat(source, ": ", status.message()));
}

absl::StatusOr<int> CheckedDimensions(const std::vector<std::int64_t>& shape, bool covariance) {
  std::int64_t d = 1;
  for (const std::int64_t extent : shape) {
    if (extent <= 0) {
      return absl::InvalidArgumentError(absl::StrCat("samples of shape ", absl::StrJoin(shape, "x"),
                                                     " are empty; expected at least one value"));
    }
    d = extent > (std::int64_t{1} << 40) / d ? std::int64_t{1} << 40 : d * extent;
  }
  if (!covariance) {
    if (d <= kMaxDiagonalDimensions) return static_cast<int>(d);
    return absl::InvalidArgumentError(absl::StrCat("samples of shape ", absl::StrJoin(shape, "x"),
                                                   " have more than ", kMaxDiagonalDimensions,
                                                   " dimensions, the most that are analysed"));
  }
  if (d > kMaxDimensions) {
    return absl::InvalidArgumentError(absl::StrCat(
        "samples of shape ", absl::StrJoin(shape, "x"), " have more than ", kMaxDimensions,
        " dimensions, the most whose covariance (d x d numbers) is computed; give --diagonal-only "
        "for the variances alone, with --directions 32 leading directions beside them, or reduce "
        "the samples first: crop or shrink the images, or encode them to latents"));
  }
  return static_cast<int>(d);
}

// Fewer than two samples have no variance.
absl::Status CheckCount(const Spectrum& spectrum) {
  if (spectrum.samples >= 2) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "holds ", spectrum.samples, spectrum.samples == 1 ? " sample" : " samples",
      spectrum.skipped > 0 ? absl::StrCat(" beside ", spectrum.skipped, " left out as not finite")
                           : "",
      "; a variance needs at least 2 samples"));
}

// Reads the data once more. The spectrum must stay where it is.
SecondPassReader SecondPassOf(const EstimateOptions& options, std::vector<double> stored_mean,
                              double unit, const Kernels& kernels, int threads,
                              const Spectrum& spectrum) {
  if (!options.reopen) return nullptr;
  return [&options, &kernels, &spectrum, stored_mean = std::move(stored_mean), unit, threads](
             const std::vector<double>& vectors, const Dct* dct) -> absl::StatusOr<SecondPass> {
    MP_ASSIGN_OR_RETURN(const std::unique_ptr<SampleSource> again, options.reopen());
    if (again->shape() != spectrum.shape) {
      return absl::DataLossError(
          "the second pass found samples of another shape; the data changed, run it again");
    }
    MP_ASSIGN_OR_RETURN(SecondPass pass,
                        RunSecondPass(vectors, dct, stored_mean, unit, spectrum.samples, *again,
                                      kernels, {options.bootstrap, options.seed, threads}));
    pass.fourth_norm *= std::pow(unit * spectrum.scaling.multiply, 4);
    return pass;
  };
}

template <typename T>
absl::Status SumMomentsAs(SampleSource& source, const EstimateOptions& options, int d, int threads,
                          MomentAccumulator& moments) {
  BatchReader<T> reader(source, d, threads);
  while (true) {
    MP_ASSIGN_OR_RETURN(const int count, reader.Next());
    if (count == 0) return absl::OkStatus();
    MP_RETURN_IF_ERROR(moments.Add(reader.samples(count), count));
    if (options.observe) options.observe(reader.samples(count), count);
  }
}

// The first pass. Half the memory is moved where float holds the values.
absl::Status SumMoments(SampleSource& source, const EstimateOptions& options, int d, int threads,
                        MomentAccumulator& moments) {
  const RowFile* file = source.row_file();
  return file != nullptr && file->fits_float()
             ? SumMomentsAs<float>(source, options, d, threads, moments)
             : SumMomentsAs<double>(source, options, d, threads, moments);
}

// Mean and variances along the data's own axes, and leading directions where they are wanted.
absl::Status EstimateDiagonal(SampleSource& source, const EstimateOptions& options, int d,
                              const Kernels& kernels, int threads, Spectrum& spectrum) {
  if (options.want_pca || options.want_dct || options.shrinkage_rule != "none" ||
      options.bootstrap > 0) {
    return absl::InvalidArgumentError(
        "other bases, shrinkage and bootstrap need the covariance, which was not asked for");
  }
  std::vector<double> mean, m2;
  MP_ASSIGN_OR_RETURN(const std::optional<DiagonalMoments> fast,
                      ReadDiagonalMoments(source, d, threads, kernels));
  if (fast) {
    spectrum.samples = fast->count;
    mean = fast->mean;
    m2 = fast->m2;
    spectrum.diagonal.skewness = fast->Skewness();
    spectrum.diagonal.kurtosis = fast->Kurtosis();
  } else {
    if (options.begin) options.begin(spectrum.shape, d);
    MomentAccumulator moments(d, /*with_covariance=*/false, threads, kernels);
    MP_RETURN_IF_ERROR(SumMoments(source, options, d, threads, moments));
    spectrum.samples = moments.count();
    spectrum.skipped = source.skipped();
    mean = moments.Mean();
    m2 = moments.m2();
    spectrum.diagonal.skewness = moments.Skewness();
    spectrum.diagonal.kurtosis = moments.Kurtosis();
  }
  MP_RETURN_IF_ERROR(CheckCount(spectrum));
  const double square = spectrum.scaling.multiply * spectrum.scaling.multiply;
  for (const double value : mean) spectrum.mean.push_back(spectrum.scaling.Apply(value));
  for (const double value : m2) {
    spectrum.diagonal.variances.push_back(square * value /
                                          static_cast<double>(spectrum.samples - 1));
  }
  double unit = 0;
  for (const double value : m2) unit = std::max(unit, value);
  unit = unit > 0 ? std::sqrt(unit / static_cast<double>(spectrum.samples - 1)) : 1;
  if (!WantsLeadingDirections(options, d)) return FinishSpectrum(spectrum, options, nullptr);
  if (!options.reopen) {
    return absl::InvalidArgumentError(
        "leading directions without covariance need further passes over the data, which can be "
        "read once only; leave them out");
  }
  MP_RETURN_IF_ERROR(
      SetLeadingDirections(spectrum,
                           TimesCovarianceOfData(options.reopen, mean, spectrum.scaling.multiply,
                                                 spectrum.samples, kernels, threads),
                           LeadingOptionsOf(options)));
  return FinishSpectrum(spectrum, options,
                        SecondPassOf(options, mean, unit, kernels, threads, spectrum));
}

absl::StatusOr<Spectrum> Estimate(SampleSource& source, const EstimateOptions& options) {
  MP_RETURN_IF_ERROR(CheckConfidence(options.confidence));
  MP_ASSIGN_OR_RETURN(const int d, CheckedDimensions(source.shape(), options.want_covariance));
  const Kernels& kernels = options.kernels != nullptr ? *options.kernels : BestKernels();
  const int threads = ThreadCount(options.threads);

  Spectrum spectrum;
  spectrum.source = options.source;
  spectrum.source_sha256 = options.source_sha256;
  spectrum.parts = options.parts;
  spectrum.shape = source.shape();
  spectrum.confidence = options.confidence;
  if (options.scaling.has_value()) {
    spectrum.scaling = *options.scaling;
  } else {
    MP_ASSIGN_OR_RETURN(spectrum.scaling, ParseScaling(source.is_pixels() ? "-1:1" : "none"));
  }

  if (!options.want_covariance) {
    MP_RETURN_IF_ERROR(EstimateDiagonal(source, options, d, kernels, threads, spectrum));
    return spectrum;
  }
  if (options.begin) options.begin(spectrum.shape, d);
  std::vector<double> stored_mean;
  double unit = 1;
  {
    MomentAccumulator moments(d, /*with_covariance=*/true, threads, kernels);
    MP_RETURN_IF_ERROR(SumMoments(source, options, d, threads, moments));
    spectrum.samples = moments.count();
    spectrum.skipped = source.skipped();
    MP_RETURN_IF_ERROR(CheckCount(spectrum));
    stored_mean = moments.Mean();
    spectrum.diagonal.skewness = moments.Skewness();
    spectrum.diagonal.kurtosis = moments.Kurtosis();
    const double largest = *std::max_element(moments.m2().begin(), moments.m2().end());
    if (largest > 0) unit = std::sqrt(largest / static_cast<double>(spectrum.samples - 1));
    spectrum.covariance = moments.TakeCovariance();
  }
  const double square = spectrum.scaling.multiply * spectrum.scaling.multiply;
  for (const double mean : stored_mean) spectrum.mean.push_back(spectrum.scaling.Apply(mean));
  for (double& value : spectrum.covariance) value *= square;

  MP_RETURN_IF_ERROR(FinishSpectrum(
      spectrum, options,
      SecondPassOf(options, std::move(stored_mean), unit, kernels, threads, spectrum)));
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
