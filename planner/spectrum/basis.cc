#include "planner/spectrum/basis.h"

#include <new>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "planner/base/status_macros.h"
#include "planner/spectrum/dct.h"
#include "planner/spectrum/kernels.h"

namespace mergeplan {
namespace {

absl::Status CheckBlock(const Spectrum& spectrum, std::string_view basis, std::size_t values) {
  MP_RETURN_IF_ERROR(spectrum.FindBasis(basis).status());
  const std::size_t d = spectrum.dimensions();
  if (d == 0 || values % d != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a block of ", values, " values does not hold whole samples of ", d, " dimensions"));
  }
  return absl::OkStatus();
}

absl::Status OutOfMemory(std::size_t values) {
  return absl::ResourceExhaustedError(
      absl::StrCat("out of memory for a block of ", values, " values"));
}

// values (n x d) plus factor times the mean in every row.
void AddMean(std::vector<double>& values, const std::vector<double>& mean, double factor) {
  const std::size_t d = mean.size();
  for (std::size_t row = 0; row < values.size(); row += d) {
    for (std::size_t i = 0; i < d; ++i) values[row + i] += factor * mean[i];
  }
}

// Rows of d values to their DCT, or back.
std::vector<double> WithDct(const Spectrum& spectrum, std::vector<double> rows, bool forward) {
  const Dct dct(*SpatialAxesOf(spectrum.shape));  // CheckBlock found the basis
  std::vector<double> scratch;
  for (std::size_t row = 0; row < rows.size(); row += spectrum.mean.size()) {
    forward ? dct.Forward(rows.data() + row, scratch) : dct.Backward(rows.data() + row, scratch);
  }
  return rows;
}

}  // namespace

absl::StatusOr<std::vector<double>> ProjectToBasis(const Spectrum& spectrum, std::string_view basis,
                                                   absl::Span<const double> samples) {
  MP_RETURN_IF_ERROR(CheckBlock(spectrum, basis, samples.size()));
  try {
    std::vector<double> centred(samples.begin(), samples.end());
    AddMean(centred, spectrum.mean, -1);
    if (basis == "diagonal") return centred;
    if (basis == "dct") return WithDct(spectrum, std::move(centred), true);
    std::vector<double> coordinates(centred.size());
    const std::ptrdiff_t d = spectrum.dimensions();
    if (!BestKernels().multiply_transposed_f64(centred.data(),
                                               static_cast<std::ptrdiff_t>(centred.size()) / d, d,
                                               spectrum.vectors.data(), d, coordinates.data())) {
      return OutOfMemory(samples.size());
    }
    return coordinates;
  } catch (const std::bad_alloc&) {
    return OutOfMemory(samples.size());
  }
}

absl::StatusOr<std::vector<double>> FromBasis(const Spectrum& spectrum, std::string_view basis,
                                              absl::Span<const double> coordinates) {
  MP_RETURN_IF_ERROR(CheckBlock(spectrum, basis, coordinates.size()));
  try {
    std::vector<double> samples(coordinates.begin(), coordinates.end());
    if (basis == "dct") samples = WithDct(spectrum, std::move(samples), false);
    if (basis == "pca") {
      const std::ptrdiff_t d = spectrum.dimensions();
      if (!BestKernels().multiply_f64(coordinates.data(),
                                      static_cast<std::ptrdiff_t>(coordinates.size()) / d, d,
                                      spectrum.vectors.data(), samples.data())) {
        return OutOfMemory(coordinates.size());
      }
    }
    AddMean(samples, spectrum.mean, 1);
    return samples;
  } catch (const std::bad_alloc&) {
    return OutOfMemory(coordinates.size());
  }
}

std::vector<double> BasisVectors(const Spectrum& spectrum, std::string_view basis) {
  if (basis == "pca") return spectrum.vectors;
  const std::optional<SpatialAxes> axes = SpatialAxesOf(spectrum.shape);
  return basis == "dct" && axes ? Dct(*axes).Matrix() : std::vector<double>();
}

}  // namespace mergeplan
