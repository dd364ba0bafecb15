#include "adapters/python/src/estimate.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <functional>
#include <memory>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "adapters/python/src/array_source.h"
#include "adapters/python/src/arrays.h"
#include "adapters/python/src/errors.h"
#include "adapters/python/src/glue.h"
#include "planner/base/status_macros.h"
#include "planner/spectrum/estimate.h"
#include "planner/spectrum/from_moments.h"
#include "planner/spectrum/merge.h"
#include "planner/spectrum/shrinkage.h"

namespace mergeplan::python {
namespace {

namespace nb = nanobind;

constexpr int kMostReplicates = 100'000;
constexpr int kMostDirections = 4096;

absl::Status CheckDirections(const EstimateArguments& a) {
  if (a.directions && (*a.directions < 1 || *a.directions > kMostDirections)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "directions: is ", *a.directions, ", expected a whole number from 1 to ", kMostDirections));
  }
  if (a.directions && a.basis == "pca") {
    return absl::InvalidArgumentError(
        "directions: gives leading directions in the place of all that basis=\"pca\" asks for; "
        "leave one of them out");
  }
  if (!a.diagonal_only) return absl::OkStatus();
  if (a.basis != "auto" && a.basis != "diagonal") {
    return absl::InvalidArgumentError(absl::StrCat(
        "basis: ", a.basis, " needs the covariance, which diagonal_only=True leaves out"));
  }
  if (a.shrink != "none" || a.bootstrap > 0) {
    return absl::InvalidArgumentError(
        "shrink and bootstrap need the covariance, which diagonal_only=True leaves out");
  }
  if (a.directions && !a.second_pass) {
    return absl::InvalidArgumentError(
        "directions: without covariance they are found by up to 40 passes over the data, which can "
        "be read once only (an iterator, or second_pass=False); hand over an array, a list or a "
        "DataLoader, or leave out diagonal_only=True, whose covariance needs one pass");
  }
  return absl::OkStatus();
}

absl::StatusOr<EstimateOptions> OptionsOf(const EstimateArguments& a) {
  EstimateOptions options;
  options.source = a.name;
  options.want_pca = a.basis == "auto" || a.basis == "pca";
  options.want_dct = a.basis == "auto" || a.basis == "dct";
  if (a.basis == "pca") options.pca_up_to = kMaxDimensions;
  if (!options.want_pca && !options.want_dct && a.basis != "diagonal") {
    return absl::InvalidArgumentError(
        absl::StrCat("basis: unknown word \"", a.basis, "\", expected auto, diagonal, dct or pca"));
  }
  MP_RETURN_IF_ERROR(CheckDirections(a));
  if (a.directions) {
    options.leading = *a.directions;
    options.want_leading = true;
  }
  if (a.diagonal_only) options.want_covariance = options.want_pca = options.want_dct = false;
  if (a.scale) {
    MP_ASSIGN_OR_RETURN(options.scaling, ParseScaling(*a.scale));
  }
  MP_RETURN_IF_ERROR(CheckShrinkageRule(a.shrink));
  if (a.bootstrap < 0 || a.bootstrap == 1 || a.bootstrap > kMostReplicates) {
    return absl::InvalidArgumentError(absl::StrCat(
        "bootstrap: is ", a.bootstrap, ", expected 0 or 2 to ", kMostReplicates, " replicates"));
  }
  if (!(a.off_diagonal >= 0 && a.off_diagonal <= 1)) {
    return absl::InvalidArgumentError(
        absl::StrCat("off_diagonal: is ", a.off_diagonal, ", expected a share from 0 to 1"));
  }
  if (a.threads < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("threads: is ", a.threads, ", expected 0 (all) or more"));
  }
  if (!a.second_pass && (a.bootstrap > 0 || a.shrink == "ledoit-wolf")) {
    return absl::InvalidArgumentError(
        "bootstrap and shrink=\"ledoit-wolf\" need a second pass over the data, which an iterator "
        "cannot give; hand over an array, a list or a DataLoader");
  }
  options.confidence = a.confidence;
  options.off_diagonal_bound = a.off_diagonal;
  options.threads = a.threads;
  options.shrinkage_rule = a.shrink;
  options.bootstrap = a.bootstrap;
  options.seed = a.seed;
  return options;
}

// For EstimateOptions::stop: has a signal (Ctrl-C) come? Its exception is kept in `raised`.
std::function<bool()> StopOnSignals(Raised& raised) {
  return [&raised] {
    const nb::gil_scoped_acquire lock;
    if (!raised.error && PyErr_CheckSignals() != 0) raised.error.emplace(nb::python_error());
    return raised.error.has_value();
  };
}

}  // namespace

SpectrumValue FromArrays(const nb::callable& open, const EstimateArguments& arguments,
                         const nb::object& progress) {
  EstimateOptions options = ValueOrRaise(OptionsOf(arguments));
  Raised raised;
  const auto open_again = [&]() -> absl::StatusOr<std::unique_ptr<SampleSource>> {
    const nb::gil_scoped_acquire lock;
    try {
      return OpenArrays(open(), arguments.name, arguments.skip_nonfinite, &raised);
    } catch (nb::python_error& error) {
      const absl::Status status = absl::CancelledError(error.what());
      raised.error.emplace(std::move(error));
      return status;
    }
  };
  if (arguments.second_pass) options.reopen = open_again;
  options.stop = StopOnSignals(raised);
  if (!progress.is_none()) {
    options.observe = [&](const Rows&, int count) {
      const nb::gil_scoped_acquire lock;
      if (raised.error) return;
      try {
        progress(count);
      } catch (nb::python_error& error) {
        raised.error.emplace(std::move(error));
      }
    };
  }
  absl::StatusOr<Spectrum> spectrum = absl::InternalError("not run");
  {
    const nb::gil_scoped_release release;
    absl::StatusOr<std::unique_ptr<SampleSource>> source = open_again();
    if (source.ok()) {
      spectrum = EstimateSpectrum(**source, options);
    } else {
      spectrum = source.status();
    }
  }
  if (raised.error) throw std::move(*raised.error);
  return ValueOrRaise(InBasis(ValueOrRaise(std::move(spectrum)), arguments.basis));
}

SpectrumValue FromMoments(const nb::object& moments, const EstimateArguments& arguments) {
  if (arguments.shrink == "ledoit-wolf") {
    throw nb::value_error(
        "shrink: \"ledoit-wolf\" needs the samples, which moments do not hold; expected \"none\" "
        "or "
        "\"oas\"");
  }
  EstimateOptions options = ValueOrRaise(OptionsOf(arguments));
  Raised raised;
  options.stop = StopOnSignals(raised);
  using Array = std::optional<NumpyArray>;
  auto [count, shape, mean, m2, m3, m4, comoment] =
      nb::cast<std::tuple<std::int64_t, std::vector<std::int64_t>, NumpyArray, NumpyArray, Array,
                          Array, Array>>(Glue("moments")(moments));
  if (arguments.directions && !comoment) {
    throw nb::value_error(
        "directions: need sums of products (comoment), which these moments do not have; leave "
        "directions out, or sum the moments with them");
  }
  const auto copy = [](const Array& array) { return array ? Copy(*array) : std::vector<double>(); };
  CentralMoments given{count,    std::move(shape), Copy(mean),    Copy(m2),
                       copy(m3), copy(m4),         copy(comoment)};
  absl::StatusOr<Spectrum> made = absl::InternalError("not run");
  {
    const nb::gil_scoped_release release;
    made = SpectrumFromMoments(std::move(given), options);
  }
  if (raised.error) throw std::move(*raised.error);
  if (absl::IsInvalidArgument(made.status())) {
    made = absl::InvalidArgumentError(absl::StrCat("moments: ", made.status().message()));
  }
  return ValueOrRaise(InBasis(ValueOrRaise(std::move(made)), arguments.basis));
}

SpectrumValue Merge(const std::vector<const SpectrumValue*>& parts) {
  std::vector<Spectrum> spectra;
  for (const SpectrumValue* part : parts) {
    if (!part->of_data) {
      throw nb::value_error(
          "merge: one of the parts is a list of variances, which does not say how many samples it "
          "rests on; expected spectra of data");
    }
    spectra.push_back(*part->of_data);
  }
  EstimateOptions options;
  options.source = "merged";
  Raised raised;
  options.stop = StopOnSignals(raised);
  absl::StatusOr<Spectrum> merged = absl::InternalError("not run");
  {
    const nb::gil_scoped_release release;
    merged = MergeSpectra(spectra, options);
  }
  if (raised.error) throw std::move(*raised.error);
  return ValueOrRaise(InBasis(ValueOrRaise(std::move(merged)), "auto"));
}

}  // namespace mergeplan::python
