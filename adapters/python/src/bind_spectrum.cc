#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <new>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "adapters/python/src/arguments.h"
#include "adapters/python/src/arrays.h"
#include "adapters/python/src/bind.h"
#include "adapters/python/src/errors.h"
#include "adapters/python/src/estimate.h"
#include "adapters/python/src/glue.h"
#include "adapters/python/src/spectrum_state.h"
#include "adapters/python/src/spectrum_value.h"
#include "planner/spectrum/channels.h"

namespace mergeplan::python {
namespace {

namespace nb = nanobind;
using namespace nb::literals;

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
  if (value.of_data && value.of_data->has_leading()) {
    absl::StrAppend(&out, ", ", value.of_data->leading_errors.size(), " leading directions");
  }
  return out + ">";
}

constexpr char kFromLatentsSignature[] =
    "def from_latents(latents: object, *, basis: str = 'auto', scale: str | None = None, "
    "skip_nonfinite: bool = False, second_pass: bool | None = None, confidence: float = 0.95, "
    "off_diagonal: float = 0.01, threads: int = 0, shrink: str = 'none', bootstrap: int = 0, "
    "seed: int = 1, directions: int | None = None, diagonal_only: bool = False, name: str = "
    "'latents', progress: object | None = None) -> Spectrum";

constexpr char kFromLatentsDoc[] =
    "Estimates the variances of data.\n\n"
    "latents: an array (numpy, torch, anything with __dlpack__ or the buffer protocol) of shape\n"
    "(n, ...), float16, float32, float64, bfloat16 or integers, of any strides, read where it "
    "lies;\n"
    "or an iterable of such arrays, a DataLoader among them (of tuples the first entry is taken).\n"
    "Memory grows with d^2, not with n, and with d only where diagonal_only. What can be read "
    "again is read twice, for intervals that\n"
    "hold for any distribution; second_pass=False saves that (a loader that shuffles is fine, one\n"
    "that augments is not).\n\n"
    "basis: \"auto\", \"diagonal\", \"dct\" or \"pca\". scale: \"LOW:HIGH\" that pixels 0..255 "
    "are\n"
    "mapped onto, or \"none\"; by default \"-1:1\" for uint8 and \"none\" for the rest. shrink:\n"
    "\"none\", \"oas\" or \"ledoit-wolf\". bootstrap: replicates for the intervals. progress: "
    "called\n"
    "with the number of samples of every batch of the first pass (tqdm.update).\n\n"
    "directions: that many leading principal directions (1 to 4,096; `leading`) in the place of "
    "all.\n"
    "By default 128 with basis=\"auto\" beyond 4,096 dimensions, where all (basis=\"pca\") take "
    "about\n"
    "9 d^3 operations. They come from the covariance by up to 40 products, or, with "
    "diagonal_only,\n"
    "by up to 40 passes over the data, which must then be the same each time. Their errors are\n"
    "computed; seed is that of the directions to begin with. diagonal_only: means and variances\n"
    "along the data's own axes alone, for any number of dimensions (with covariance: 20,000).";

std::optional<NumpyArray> Measured(const std::vector<double>& numbers) {
  if (numbers.empty()) return std::nullopt;
  return ToNumpy(numbers);
}

void BindLeading(nb::module_& module) {
  nb::class_<LeadingDirections>(
      module, "LeadingDirections",
      "The k principal directions with the largest variances, where all would take too long.\n\n"
      "No basis for plans, since the rest of the space is left open: share says how much it has.")
      .def_prop_ro(
          "variances", [](const LeadingDirections& l) { return ToNumpy(l.basis.variances); },
          "Variance along each direction, shape (k,), largest first.", nb::rv_policy::automatic)
      .def_prop_ro(
          "variances_low",
          [](const LeadingDirections& l) { return ToNumpy(l.basis.variances_low); },
          "Lower ends of the confidence intervals, shape (k,).", nb::rv_policy::automatic)
      .def_prop_ro(
          "variances_high",
          [](const LeadingDirections& l) { return ToNumpy(l.basis.variances_high); },
          "Upper ends of the confidence intervals, shape (k,).", nb::rv_policy::automatic)
      .def_prop_ro(
          "errors", [](const LeadingDirections& l) { return ToNumpy(l.errors); },
          "|C v - variance v| of each direction v, shape (k,): some eigenvalue of the covariance C "
          "is no farther from its variance.",
          nb::rv_policy::automatic)
      .def_prop_ro(
          "vectors",
          [](const LeadingDirections& l) {
            return ToNumpy(l.vectors, {l.errors.size(), l.vectors.size() / l.errors.size()});
          },
          "The directions, one a row, of unit length, the largest component positive; shape (k, "
          "d).",
          nb::rv_policy::automatic)
      .def_ro("share", &LeadingDirections::share, "Share of the variance that they carry.")
      .def_prop_ro(
          "interval", [](const LeadingDirections& l) { return l.basis.interval; },
          "How the intervals were made: \"fourth-moment\", \"gaussian\" or \"bootstrap\".")
      .def_prop_ro(
          "skewness", [](const LeadingDirections& l) { return Measured(l.basis.skewness); },
          "Skewness along each direction, shape (k,); None where the data was read once.",
          nb::rv_policy::automatic)
      .def_prop_ro(
          "kurtosis", [](const LeadingDirections& l) { return Measured(l.basis.kurtosis); },
          "Kurtosis along each direction, shape (k,), 3 for normal data; None where the data was "
          "read once.",
          nb::rv_policy::automatic)
      .def("__len__", [](const LeadingDirections& l) { return l.errors.size(); })
      .def("__getstate__", [](const LeadingDirections& l) { return StateOf(l); })
      .def("__setstate__",
           [](LeadingDirections& self, LeadingState state) {
             new (&self) LeadingDirections(FromState(std::move(state)));
           })
      .def("__repr__", [](const LeadingDirections& l) {
        return absl::StrCat("<mergeplan.LeadingDirections ", l.errors.size(),
                            " directions, variances ", l.basis.variances.front(), " to ",
                            l.basis.variances.back(), ", ", 100 * l.share, " % of the variance>");
      });
}

}  // namespace

void BindSpectrum(nb::module_& module) {
  BindLeading(module);
  nb::class_<SpectrumValue> spectrum(
      module, "Spectrum",
      "Variances of data along the axes of one basis: what plans are made for.\n\n"
      "Spectrum(variances): as given, shape (d,). Spectrum.from_latents(x): estimated from data.");
  spectrum
      .def(
          "__init__",
          [](SpectrumValue* self, const nb::args& args, const nb::kwargs& kwargs) {
            const nb::object variances =
                Bound("Spectrum", "def Spectrum(variances)", {"variances"}, 1, args, kwargs)[0];
            RefusePath(variances, "variances");
            new (self) SpectrumValue(ValueOrRaise(Given(Numbers(variances, "variances"))));
          },
          nb::sig("def __init__(self, variances: object) -> None"))
      .def_static(
          "from_latents",
          [](const Argument<nb::object>& latents, const Argument<std::string>& basis,
             const Argument<std::optional<std::string>>& scale,
             const Argument<bool>& skip_nonfinite, const Argument<std::optional<bool>>& second_pass,
             const Argument<double>& confidence, const Argument<double>& off_diagonal,
             const Argument<int>& threads, const Argument<std::string>& shrink,
             const Argument<int>& bootstrap, const Argument<std::uint64_t>& seed,
             const Argument<std::optional<int>>& directions, const Argument<bool>& diagonal_only,
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
                 threads("threads"), shrink("shrink"), bootstrap("bootstrap"), seed("seed"),
                 directions("directions"), diagonal_only("diagonal_only")},
                progress);
          },
          "latents"_a, nb::kw_only(), "basis"_a = "auto", "scale"_a = nb::none(),
          "skip_nonfinite"_a = false, "second_pass"_a = nb::none(), "confidence"_a = 0.95,
          "off_diagonal"_a = 0.01, "threads"_a = 0, "shrink"_a = "none", "bootstrap"_a = 0,
          "seed"_a = 1, "directions"_a = nb::none(), "diagonal_only"_a = false,
          "name"_a = "latents", "progress"_a = nb::none(), nb::sig(kFromLatentsSignature),
          kFromLatentsDoc)
      .def_static(
          "from_moments",
          [](const Argument<nb::object>& moments, const Argument<std::string>& basis,
             const Argument<double>& confidence, const Argument<double>& off_diagonal,
             const Argument<int>& threads, const Argument<std::string>& shrink,
             const Argument<std::optional<int>>& directions, const Argument<std::uint64_t>& seed,
             const Argument<std::string>& name) {
            EstimateArguments arguments;
            arguments.basis = basis("basis");
            arguments.name = name("name");
            arguments.confidence = confidence("confidence");
            arguments.off_diagonal = off_diagonal("off_diagonal");
            arguments.threads = threads("threads");
            arguments.shrink = shrink("shrink");
            arguments.directions = directions("directions");
            arguments.seed = seed("seed");
            return FromMoments(moments.given, arguments);
          },
          "moments"_a, nb::kw_only(), "basis"_a = "auto", "confidence"_a = 0.95,
          "off_diagonal"_a = 0.01, "threads"_a = 0, "shrink"_a = "none",
          "directions"_a = nb::none(), "seed"_a = 1, "name"_a = "moments",
          nb::sig(
              "def from_moments(moments: object, *, basis: str = 'auto', confidence: float = "
              "0.95, off_diagonal: float = 0.01, threads: int = 0, shrink: str = 'none', "
              "directions: int | None = None, seed: int = 1, name: str = 'moments') -> Spectrum"),
          "The spectrum of samples whose moments were computed elsewhere: "
          "mergeplan.torch.LatentMoments\n(on a GPU, over processes), or an object or dict with "
          "count, shape (of a sample), mean, m2, m3, m4\n(sums of powers of the deviations from "
          "the mean, shape (d,)) and comoment (sums of their products,\nshape (d, d)). m3 with "
          "m4, and comoment may be None: then intervals are those of normal data, and\nthere is "
          "only the diagonal basis. O(d^3) for the principal directions; directions as in "
          "from_latents.")
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
          "Covariance of the data, shape (d, d); None where it was not computed (diagonal_only).",
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
          "leading", [](const SpectrumValue& s) { return LeadingOf(Data(s, "leading")); },
          "Leading principal directions; None where they were not computed.",
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
           [](SpectrumValue& self, SpectrumState state) {
             new (&self) SpectrumValue(FromState(std::move(state)));
           })
      .def("__repr__", &Repr);
  spectrum.attr("__hash__") = nb::none();
}

}  // namespace mergeplan::python
