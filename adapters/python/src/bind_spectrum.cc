#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <functional>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "adapters/python/src/arguments.h"
#include "adapters/python/src/array_source.h"
#include "adapters/python/src/arrays.h"
#include "adapters/python/src/bind.h"
#include "adapters/python/src/errors.h"
#include "adapters/python/src/glue.h"
#include "adapters/python/src/spectrum_value.h"
#include "planner/base/status_macros.h"
#include "planner/spectrum/channels.h"
#include "planner/spectrum/estimate.h"
#include "planner/spectrum/figures.h"
#include "planner/spectrum/from_moments.h"
#include "planner/spectrum/merge.h"
#include "planner/spectrum/shrinkage.h"

namespace mergeplan::python {
namespace {

namespace nb = nanobind;
using namespace nb::literals;

// ---- pickling

using BasisState =
    std::tuple<std::string, std::vector<double>, std::vector<double>, std::vector<double>, double,
               std::string, std::vector<double>, std::vector<double>>;
using DataState =
    std::tuple<std::string, std::string, std::vector<std::int64_t>, std::int64_t, std::int64_t,
               std::string, double, std::string, double, NumpyArray, NumpyArray, NumpyArray,
               std::vector<BasisState>, std::string, std::string>;
using State = std::tuple<std::string, std::optional<std::vector<double>>, std::optional<DataState>>;

BasisState StateOf(const Basis& b) {
  return {b.name,     b.variances, b.variances_low, b.variances_high, b.off_diagonal_energy,
          b.interval, b.skewness,  b.kurtosis};
}

Basis FromState(BasisState state) {
  Basis b;
  std::tie(b.name, b.variances, b.variances_low, b.variances_high, b.off_diagonal_energy,
           b.interval, b.skewness, b.kurtosis) = std::move(state);
  SummarizeVariances(b);
  return b;
}

State StateOf(const SpectrumValue& value) {
  if (!value.of_data) return {value.basis, value.given.variances, std::nullopt};
  const Spectrum& s = *value.of_data;
  std::vector<BasisState> bases;
  for (const Basis* basis : s.Bases()) bases.push_back(StateOf(*basis));
  return {value.basis, std::nullopt,
          DataState(s.source, s.source_sha256, s.shape, s.samples, s.skipped, s.scaling.text,
                    s.confidence, s.shrinkage_rule, s.shrinkage, ToNumpy(s.mean),
                    ToNumpy(s.covariance), ToNumpy(s.vectors), std::move(bases),
                    s.recommended_basis, s.recommended_basis_reason)};
}

std::vector<double> Copy(const NumpyArray& array) {
  return std::vector<double>(array.data(), array.data() + array.size());
}

SpectrumValue FromState(State state) {
  auto& [basis, given, data] = state;
  if (given) return ValueOrRaise(Given(*std::move(given)));
  if (!data) throw nb::value_error("mergeplan.Spectrum: a pickled state with nothing in it");
  Spectrum s;
  std::string scaling;
  NumpyArray mean, covariance, vectors;
  std::vector<BasisState> bases;
  std::tie(s.source, s.source_sha256, s.shape, s.samples, s.skipped, scaling, s.confidence,
           s.shrinkage_rule, s.shrinkage, mean, covariance, vectors, bases, s.recommended_basis,
           s.recommended_basis_reason) = *std::move(data);
  s.scaling = ValueOrRaise(ParseScaling(scaling));
  s.mean = Copy(mean);
  s.covariance = Copy(covariance);
  s.vectors = Copy(vectors);
  for (BasisState& one : bases) {
    Basis b = FromState(std::move(one));
    (b.name == "dct" ? s.dct : b.name == "pca" ? s.pca : s.diagonal) = std::move(b);
  }
  return ValueOrRaise(InBasis(std::move(s), basis));
}

// ---- making

struct EstimateArguments {
  std::string basis, name;
  std::optional<std::string> scale;
  bool skip_nonfinite = false, second_pass = true;
  double confidence = 0.95, off_diagonal = 0.01;
  int threads = 0;
  std::string shrink;
  int bootstrap = 0;
  std::uint64_t seed = 1;
};

constexpr int kMostReplicates = 100'000;

absl::StatusOr<EstimateOptions> OptionsOf(const EstimateArguments& a) {
  EstimateOptions options;
  options.source = a.name;
  options.want_pca = a.basis == "auto" || a.basis == "pca";
  options.want_dct = a.basis == "auto" || a.basis == "dct";
  options.leading = 0;
  if (a.basis == "pca") options.pca_up_to = kMaxDimensions;
  if (!options.want_pca && !options.want_dct && a.basis != "diagonal") {
    return absl::InvalidArgumentError(
        absl::StrCat("basis: unknown word \"", a.basis, "\", expected auto, diagonal, dct or pca"));
  }
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

// `open` gives an iterator over arrays each time that it is called.
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
    options.observe = [&](absl::Span<const double>, int count) {
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
  using Array = std::optional<NumpyArray>;
  auto [count, shape, mean, m2, m3, m4, comoment] =
      nb::cast<std::tuple<std::int64_t, std::vector<std::int64_t>, NumpyArray, NumpyArray, Array,
                          Array, Array>>(Glue("moments")(moments));
  const auto copy = [](const Array& array) { return array ? Copy(*array) : std::vector<double>(); };
  CentralMoments given{count,    std::move(shape), Copy(mean),    Copy(m2),
                       copy(m3), copy(m4),         copy(comoment)};
  absl::StatusOr<Spectrum> made = absl::InternalError("not run");
  {
    const nb::gil_scoped_release release;
    made = SpectrumFromMoments(std::move(given), options);
  }
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
  options.leading = 0;
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

void ToFile(const SpectrumValue& value, const std::string& path) {
  if (!value.of_data) {
    throw nb::value_error(
        "to_file: a list of variances is no spectrum of data; keep the list (numpy.save), which "
        "mergeplan plan --variances reads");
  }
  Spectrum spectrum = *value.of_data;
  if (spectrum.recommended_basis != value.basis) {
    spectrum.recommended_basis = value.basis;
    spectrum.recommended_basis_reason = "asked for with basis";
  }
  const nb::gil_scoped_release release;
  const absl::Status status = WriteSpectrum(spectrum, path);
  if (status.ok()) return;
  const nb::gil_scoped_acquire lock;
  Raise(status);
}

const Spectrum& Data(const SpectrumValue& value, const char* what) {
  if (value.of_data) return *value.of_data;
  throw nb::value_error(
      absl::StrCat(what, ": a list of variances has none, expected a spectrum of data").c_str());
}

std::string Repr(const SpectrumValue& value) {
  const Basis& basis = value.chosen();
  std::string out =
      absl::StrCat("<mergeplan.Spectrum ", basis.variances.size(), " dimensions, basis ",
                   value.basis, ", regime ", std::string(ToString(basis.regime)));
  if (value.of_data) absl::StrAppend(&out, ", ", value.of_data->samples, " samples");
  return out + ">";
}

constexpr char kFromLatentsSignature[] =
    "def from_latents(latents: object, *, basis: str = 'auto', scale: str | None = None, "
    "skip_nonfinite: bool = False, second_pass: bool | None = None, confidence: float = 0.95, "
    "off_diagonal: float = 0.01, threads: int = 0, shrink: str = 'none', bootstrap: int = 0, "
    "seed: int = 1, name: str = 'latents', progress: object | None = None) -> Spectrum";

constexpr char kFromLatentsDoc[] =
    "Estimates the variances of data.\n\n"
    "latents: an array (numpy, torch, anything with __dlpack__ or the buffer protocol) of shape\n"
    "(n, ...), float16, float32, float64, bfloat16 or integers, of any strides, read where it "
    "lies;\n"
    "or an iterable of such arrays, a DataLoader among them (of tuples the first entry is taken).\n"
    "Memory grows with d^2, not with n. What can be read again is read twice, for intervals that\n"
    "hold for any distribution; second_pass=False saves that (a loader that shuffles is fine, one\n"
    "that augments is not).\n\n"
    "basis: \"auto\", \"diagonal\", \"dct\" or \"pca\". scale: \"LOW:HIGH\" that pixels 0..255 "
    "are\n"
    "mapped onto, or \"none\"; by default \"-1:1\" for uint8 and \"none\" for the rest. shrink:\n"
    "\"none\", \"oas\" or \"ledoit-wolf\". bootstrap: replicates for the intervals. progress: "
    "called\n"
    "with the number of samples of every batch of the first pass (tqdm.update).";

}  // namespace

void BindSpectrum(nb::module_& module) {
  nb::class_<SpectrumValue> spectrum(
      module, "Spectrum",
      "Variances of data along the axes of one basis: what plans are made for.\n\n"
      "Spectrum(variances): as given, shape (d,). Spectrum.from_latents(x): estimated from data.");
  spectrum
      .def(
          "__init__",
          [](SpectrumValue* self, const Argument<nb::object>& variances) {
            RefusePath(variances.given, "variances");
            new (self) SpectrumValue(ValueOrRaise(Given(Numbers(variances.given, "variances"))));
          },
          "variances"_a, nb::sig("def __init__(self, variances: object) -> None"))
      .def_static(
          "from_latents",
          [](const Argument<nb::object>& latents, const Argument<std::string>& basis,
             const Argument<std::optional<std::string>>& scale,
             const Argument<bool>& skip_nonfinite, const Argument<std::optional<bool>>& second_pass,
             const Argument<double>& confidence, const Argument<double>& off_diagonal,
             const Argument<int>& threads, const Argument<std::string>& shrink,
             const Argument<int>& bootstrap, const Argument<std::uint64_t>& seed,
             const Argument<std::string>& name, const nb::object& progress) {
            if (!progress.is_none() && PyCallable_Check(progress.ptr()) == 0) {
              RaiseKind(progress, "progress", "a function of the number of samples (tqdm.update)");
            }
            const auto [open, again] =
                nb::cast<std::tuple<nb::callable, bool>>(Glue("samples")(latents.given));
            const std::optional<bool> twice = second_pass("second_pass");
            if (twice.value_or(false) && !again) {
              throw nb::value_error(
                  "second_pass: an iterator can be read once only; hand over an array, a list or "
                  "a DataLoader");
            }
            return FromArrays(
                open,
                {basis("basis"), name("name"), scale("scale"), skip_nonfinite("skip_nonfinite"),
                 twice.value_or(again), confidence("confidence"), off_diagonal("off_diagonal"),
                 threads("threads"), shrink("shrink"), bootstrap("bootstrap"), seed("seed")},
                progress);
          },
          "latents"_a, nb::kw_only(), "basis"_a = "auto", "scale"_a = nb::none(),
          "skip_nonfinite"_a = false, "second_pass"_a = nb::none(), "confidence"_a = 0.95,
          "off_diagonal"_a = 0.01, "threads"_a = 0, "shrink"_a = "none", "bootstrap"_a = 0,
          "seed"_a = 1, "name"_a = "latents", "progress"_a = nb::none(),
          nb::sig(kFromLatentsSignature), kFromLatentsDoc)
      .def_static(
          "from_moments",
          [](const Argument<nb::object>& moments, const Argument<std::string>& basis,
             const Argument<double>& confidence, const Argument<double>& off_diagonal,
             const Argument<int>& threads, const Argument<std::string>& shrink,
             const Argument<std::string>& name) {
            EstimateArguments arguments;
            arguments.basis = basis("basis");
            arguments.name = name("name");
            arguments.confidence = confidence("confidence");
            arguments.off_diagonal = off_diagonal("off_diagonal");
            arguments.threads = threads("threads");
            arguments.shrink = shrink("shrink");
            return FromMoments(moments.given, arguments);
          },
          "moments"_a, nb::kw_only(), "basis"_a = "auto", "confidence"_a = 0.95,
          "off_diagonal"_a = 0.01, "threads"_a = 0, "shrink"_a = "none", "name"_a = "moments",
          nb::sig("def from_moments(moments: object, *, basis: str = 'auto', confidence: float = "
                  "0.95, off_diagonal: float = 0.01, threads: int = 0, shrink: str = 'none', "
                  "name: str = 'moments') -> Spectrum"),
          "The spectrum of samples whose moments were computed elsewhere: "
          "mergeplan.torch.LatentMoments\n(on a GPU, over processes), or an object or dict with "
          "count, shape (of a sample), mean, m2, m3, m4\n(sums of powers of the deviations from "
          "the mean, shape (d,)) and comoment (sums of their products,\nshape (d, d)). m3 with "
          "m4, and comoment may be None: then intervals are those of normal data, and\nthere is "
          "only the diagonal basis. O(d^3) for the principal directions.")
      .def(
          "merge",
          [](const nb::handle self, const nb::args& others) {
            std::vector<const SpectrumValue*> parts{&nb::cast<const SpectrumValue&>(self)};
            for (const nb::handle other : others) {
              if (!nb::isinstance<SpectrumValue>(other)) {
                throw nb::value_error("merge: one of the parts is no mergeplan.Spectrum");
              }
              parts.push_back(&nb::cast<const SpectrumValue&>(other));
            }
            return Merge(parts);
          },
          "others"_a,
          "The spectrum of all samples behind this one and others, of disjoint parts of one data "
          "set, as one pass over everything would give it.")
      .def_static(
          "from_file",
          [](const Argument<nb::object>& path, const Argument<std::string>& basis) {
            const std::string file = PathOf(path.given), axes = basis("basis");
            absl::StatusOr<Spectrum> read = absl::InternalError("not run");
            {
              const nb::gil_scoped_release release;
              read = ReadSpectrum(file);
            }
            return ValueOrRaise(InBasis(ValueOrRaise(std::move(read)), axes));
          },
          "path"_a, "basis"_a = "auto",
          nb::sig("def from_file(path: str | os.PathLike, basis: str = 'auto') -> Spectrum"),
          "Reads a spectrum.toml, with its .npz, as to_file and mergeplan analyze -o write it.")
      .def(
          "to_file",
          [](const SpectrumValue& self, const Argument<nb::object>& path) {
            ToFile(self, PathOf(path.given));
          },
          "path"_a, nb::sig("def to_file(self, path: str | os.PathLike) -> None"),
          "Writes spectrum.toml with an .npz beside it, which mergeplan plan reads.")
      .def(
          "in_basis",
          [](const SpectrumValue& self, const Argument<std::string>& basis) {
            if (!self.of_data) Data(self, "in_basis");
            return ValueOrRaise(InBasis(*self.of_data, basis("basis")));
          },
          "basis"_a, nb::sig("def in_basis(self, basis: str) -> Spectrum"),
          "The same data along other axes: \"diagonal\", \"dct\", \"pca\", or \"auto\", the "
          "recommended ones.")
      .def_prop_ro(
          "variances", [](const SpectrumValue& s) { return ToNumpy(s.chosen().variances); },
          "Variance along each axis of the basis, shape (d,), float64; largest first in \"pca\".",
          nb::rv_policy::automatic)
      .def_prop_ro(
          "variances_low", [](const SpectrumValue& s) { return ToNumpy(s.chosen().variances_low); },
          "Lower ends of the confidence intervals, shape (d,); empty where the variances were "
          "given.",
          nb::rv_policy::automatic)
      .def_prop_ro(
          "variances_high",
          [](const SpectrumValue& s) { return ToNumpy(s.chosen().variances_high); },
          "Upper ends of the confidence intervals, shape (d,); empty where the variances were "
          "given.",
          nb::rv_policy::automatic)
      .def_prop_ro(
          "regime", [](const SpectrumValue& s) { return std::string(ToString(s.chosen().regime)); },
          "\"low\": every variance <= 1; \"high\": every one above; \"mixed\".")
      .def_prop_ro(
          "fraction_above_one",
          [](const SpectrumValue& s) { return s.chosen().fraction_above_one; },
          "Share of the dimensions with a variance above 1.")
      .def_ro("basis", &SpectrumValue::basis, "\"diagonal\", \"dct\", \"pca\" or \"given\".")
      .def_prop_ro(
          "bases",
          [](const SpectrumValue& s) {
            std::vector<std::string> out;
            if (!s.of_data) return out;
            for (const Basis* basis : s.of_data->Bases()) out.push_back(basis->name);
            return out;
          },
          "The bases that in_basis knows.")
      .def_prop_ro(
          "basis_reason",
          [](const SpectrumValue& s) {
            return s.of_data ? s.of_data->recommended_basis_reason : std::string();
          },
          "Why the recommended basis is recommended.")
      .def_prop_ro(
          "dimensions", [](const SpectrumValue& s) { return s.chosen().variances.size(); },
          "d, the number of values in a sample.")
      .def_prop_ro(
          "shape",
          [](const SpectrumValue& s) {
            std::vector<std::int64_t> shape;
            if (s.of_data) shape = s.of_data->shape;
            return nb::tuple(nb::cast(shape));
          },
          nb::sig("def shape(self) -> tuple[int, ...]"), "Shape of one sample; () where given.")
      .def_prop_ro(
          "samples", [](const SpectrumValue& s) { return s.of_data ? s.of_data->samples : 0; },
          "Number of samples that it rests on; 0 where given.")
      .def_prop_ro(
          "skipped", [](const SpectrumValue& s) { return s.of_data ? s.of_data->skipped : 0; },
          "Samples left out because they were not finite.")
      .def_prop_ro(
          "source", [](const SpectrumValue& s) { return s.of_data ? s.of_data->source : ""; },
          "The name of the data.")
      .def_prop_ro(
          "mean", [](const SpectrumValue& s) { return ToNumpy(Data(s, "mean").mean); },
          "Mean of the data, shape (d,).", nb::rv_policy::automatic)
      .def_prop_ro(
          "covariance",
          [](const SpectrumValue& s) -> std::optional<NumpyArray> {
            const Spectrum& data = Data(s, "covariance");
            if (!data.has_covariance()) return std::nullopt;
            const auto d = static_cast<size_t>(data.dimensions());
            return ToNumpy(data.covariance, {d, d});
          },
          "Covariance of the data, shape (d, d); None where only single dimensions were looked at.",
          nb::rv_policy::automatic)
      .def_prop_ro(
          "vectors",
          [](const SpectrumValue& s) -> std::optional<NumpyArray> {
            const Spectrum& data = Data(s, "vectors");
            if (!data.has_pca()) return std::nullopt;
            const auto d = static_cast<size_t>(data.dimensions());
            return ToNumpy(data.vectors, {d, d});
          },
          "Principal directions, one a row, shape (d, d); None where they were not computed.",
          nb::rv_policy::automatic)
      .def_prop_ro(
          "scaling_factor",
          [](const SpectrumValue& s) {
            return ValueOrRaise(DescribeChannels(Data(s, "scaling_factor"))).scaling_factor;
          },
          "1 / standard deviation over all values: diffusers' scaling_factor for these latents.")
      .def_prop_ro(
          "shift_factor",
          [](const SpectrumValue& s) {
            return ValueOrRaise(DescribeChannels(Data(s, "shift_factor"))).shift_factor;
          },
          "Mean over all values: diffusers' shift_factor for these latents.")
      .def("__len__", [](const SpectrumValue& s) { return s.chosen().variances.size(); })
      .def(
          "__eq__",
          [](const SpectrumValue& a, const SpectrumValue& b) {
            return a.basis == b.basis && a.given == b.given && a.of_data == b.of_data;
          },
          nb::is_operator(), nb::sig("def __eq__(self, other: object, /) -> bool"))
      .def("__getstate__", [](const SpectrumValue& s) { return StateOf(s); })
      .def("__setstate__",
           [](SpectrumValue& self, State state) {
             new (&self) SpectrumValue(FromState(std::move(state)));
           })
      .def("__repr__", &Repr);
  spectrum.attr("__hash__") = nb::none();
}

}  // namespace mergeplan::python
