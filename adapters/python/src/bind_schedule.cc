#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <cmath>
#include <filesystem>
#include <new>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <system_error>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "adapters/python/src/arguments.h"
#include "adapters/python/src/arrays.h"
#include "adapters/python/src/bind.h"
#include "adapters/python/src/errors.h"
#include "adapters/python/src/glue.h"
#include "planner/base/status_macros.h"
#include "planner/schedule/diffusers_config.h"
#include "planner/schedule/diffusers_options.h"
#include "planner/schedule/json_text.h"
#include "planner/schedule/schedule.h"

namespace mergeplan::python {
namespace {

namespace nb = nanobind;
using namespace nb::literals;

using State = std::tuple<std::string, std::string, std::vector<double>, std::vector<double>,
                         std::vector<double>, double, std::vector<double>, std::string,
                         std::vector<std::string>>;

State StateOf(const Schedule& s) {
  return {s.spec,       s.name,      s.alpha,           s.sigma, s.level_scale,
          s.data_scale, s.timesteps, s.prediction_type, s.notes};
}

Schedule FromState(State state) {
  Schedule s;
  std::tie(s.spec, s.name, s.alpha, s.sigma, s.level_scale, s.data_scale, s.timesteps,
           s.prediction_type, s.notes) = std::move(state);
  RaiseIfError(ValidateSchedule(s));
  return s;
}

using Options = std::vector<SpecParameter>;

absl::StatusOr<Schedule> FromConfig(const std::string& text, int steps, const std::string& name,
                                    const Options& options) {
  MP_ASSIGN_OR_RETURN(const DiffusersTables tables,
                      ReadDiffusersTables(text, steps, name, options));
  return ScheduleOfTables(tables, name);
}

// The path with options behind it, as the command takes them.
std::string WithOptions(std::string path, const Options& options) {
  std::error_code error;
  char before = std::filesystem::exists(path, error) || path.find(':') == path.npos ? ':' : ',';
  for (const auto& [key, text] : options) {
    absl::StrAppend(&path, std::string(1, std::exchange(before, ',')), key, "=", text);
  }
  return path;
}

absl::StatusOr<Schedule> FromArrays(std::vector<double> alpha, std::vector<double> sigma,
                                    std::optional<std::vector<double>> timesteps) {
  Schedule s;
  s.spec = s.name = "arrays";
  s.alpha = std::move(alpha);
  s.sigma = std::move(sigma);
  s.level_scale.assign(s.alpha.size(), 1.0);
  MP_RETURN_IF_ERROR(ValidateSchedule(s));
  if (timesteps) {
    if (timesteps->size() != s.alpha.size()) {
      return absl::InvalidArgumentError(
          absl::StrCat("timesteps: has ", timesteps->size(), " values, expected ", s.alpha.size(),
                       ", one for every level 0..T (that of level 0 is not looked at)"));
    }
    s.timesteps = *std::move(timesteps);
    for (size_t t = 1; t < s.timesteps.size(); ++t) {
      if (std::isfinite(s.timesteps[t])) continue;
      return absl::InvalidArgumentError(absl::StrCat("timesteps: that of level ", t, " is ",
                                                     s.timesteps[t], ", expected a finite number"));
    }
  }
  return s;
}

// A name or a path.
std::string SpecOf(const nb::object& object, const char* what) {
  if (nb::isinstance<nb::str>(object)) return nb::cast<std::string>(object);
  if (nb::hasattr(object, "__fspath__")) return PathOf(object);
  RaiseKind(object, what, "a str or a path");
}

Schedule FromDiffusers(const nb::object& scheduler, int steps, const nb::kwargs& more) {
  const auto [text, name] =
      nb::cast<std::tuple<std::optional<std::string>, std::string>>(Glue("config")(scheduler));
  const auto options = nb::cast<Options>(Glue("options")(more));
  return ValueOrRaise(text ? FromConfig(*text, steps, name, options)
                           : LoadSchedule(WithOptions(name, options), steps));
}

std::string Repr(const Schedule& s) {
  return absl::StrCat("<mergeplan.Schedule ", s.name, ", ", s.steps(), " steps",
                      s.timesteps.empty() ? "" : ", with timesteps", ">");
}

}  // namespace

Schedule AnySchedule(const nb::object& object, std::optional<int> steps) {
  if (nb::isinstance<nb::str>(object)) {
    return ValueOrRaise(LoadSchedule(nb::cast<std::string>(object), steps));
  }
  if (!steps) {
    throw nb::value_error(
        "teacher_steps: is missing, expected the number of the teacher's steps beside a scheduler");
  }
  return FromDiffusers(object, *steps, nb::kwargs());
}

void BindSchedule(nb::module_& module) {
  nb::class_<Schedule>(
      module, "Schedule",
      "Noise levels 0 (clean) .. T (noisy): z_t = alpha_t x_0 + sigma_t eps.\n\n"
      "In the coordinates in which plans are made: schedules that are not variance preserving are\n"
      "turned into z / sqrt(alpha^2 + sigma^2); `level_scale` and `data_scale` lead back.\n\n"
      "Schedule(spec, steps): spec is a name with parameters (\"cosine\", \"ddpm-linear\",\n"
      "\"flow:shift=3\", \"edm\", ...), a diffusers scheduler_config.json or its folder, or a "
      "file\n"
      "with the arrays alpha and sigma. steps is T, the number of the teacher's steps; it may be\n"
      "left out for arrays. ValueError names what is wrong.")
      .def(
          "__init__",
          [](Schedule* self, const nb::args& args, const nb::kwargs& kwargs) {
            const std::vector<nb::object> given = Bound(
                "Schedule", "def Schedule(spec, steps=None)", {"spec", "steps"}, 1, args, kwargs);
            const Argument<std::optional<int>> steps{given[1]};
            new (self)
                Schedule(ValueOrRaise(LoadSchedule(SpecOf(given[0], "spec"), steps("steps"))));
          },
          nb::sig("def __init__(self, spec: str | os.PathLike, steps: int | None = None) -> None"))
      .def_static(
          "from_diffusers",
          [](const Argument<nb::object>& scheduler, const Argument<int>& steps,
             const nb::kwargs& options) {
            return FromDiffusers(scheduler.given, steps("steps"), options);
          },
          "scheduler"_a, "steps"_a, "options"_a,
          nb::sig(
              "def from_diffusers(scheduler: object, steps: int, **options: object) -> Schedule"),
          "The levels of a diffusers scheduler after set_timesteps(steps): of a scheduler "
          "object,\nits config (a dict), or the path of a scheduler_config.json or its "
          "folder.\n\n"
          "options replace those of the config (timestep_spacing=\"trailing\"); mu= or\n"
          "image_seq_len= serve dynamic shifting, which otherwise takes max_shift, right "
          "for the\nlargest images.")
      .def_static(
          "from_arrays",
          [](const nb::object& alpha, const nb::object& sigma, const nb::object& timesteps) {
            std::optional<std::vector<double>> times;
            if (!timesteps.is_none()) times = Numbers(timesteps, "timesteps");
            std::vector<double> signal = Numbers(alpha, "alpha");
            return ValueOrRaise(
                FromArrays(std::move(signal), Numbers(sigma, "sigma"), std::move(times)));
          },
          "alpha"_a, "sigma"_a, "timesteps"_a = nb::none(),
          "Explicit levels, taken as they are: arrays of shape (T+1,), entry 0 is the clean end.")
      .def_prop_ro(
          "alpha", [](const Schedule& s) { return ToNumpy(s.alpha); },
          "Signal at the levels 0..T, shape (T+1,), float64.", nb::rv_policy::automatic)
      .def_prop_ro(
          "sigma", [](const Schedule& s) { return ToNumpy(s.sigma); },
          "Noise at the levels 0..T, shape (T+1,), float64.", nb::rv_policy::automatic)
      .def_prop_ro(
          "level_scale", [](const Schedule& s) { return ToNumpy(s.level_scale); },
          "z in the scheduler's own coordinates over z here, shape (T+1,); all 1 where nothing was "
          "turned.",
          nb::rv_policy::automatic)
      .def_ro("data_scale", &Schedule::data_scale,
              "x_0 in its own units over x_0 here: 1, of EDM sigma_data.")
      .def_prop_ro(
          "timesteps",
          [](const Schedule& s) -> std::optional<NumpyArray> {
            if (s.timesteps.empty()) return std::nullopt;
            return ToNumpy(s.timesteps);
          },
          nb::sig("def timesteps(self) -> numpy.typing.NDArray[numpy.float64] | None"),
          "What a network is told at the levels 0..T, shape (T+1,); entry 0 is not used (NaN). "
          "None "
          "where the schedule has none.",
          nb::rv_policy::automatic)
      .def_prop_ro("steps", &Schedule::steps, "T, the number of the teacher's steps.")
      .def_ro("name", &Schedule::name, "For people: \"cosine\", \"DDIMScheduler\", \"arrays\", ...")
      .def_ro("spec", &Schedule::spec, "As it was asked for.")
      .def_prop_ro(
          "prediction_type",
          [](const Schedule& s) -> std::optional<std::string> {
            if (s.prediction_type.empty()) return std::nullopt;
            return s.prediction_type;
          },
          "Where a config says so: \"epsilon\", \"v_prediction\", \"sample\", \"flow_prediction\".")
      .def_prop_ro(
          "notes",
          [](const Schedule& s) {
            std::vector<std::string> notes;
            for (const std::string& note : s.notes) notes.push_back(InPython(note));
            return notes;
          },
          "What a reader should know, e.g. that T became smaller.")
      .def_prop_ro("variance_preserving", &Schedule::variance_preserving,
                   "Is alpha^2 + sigma^2 = 1 within 1e-6 on all levels?")
      .def("__len__", &Schedule::steps)
      .def(
          "__eq__",
          [](const Schedule& a, const Schedule& b) {
            return a.alpha == b.alpha && a.sigma == b.sigma && a.level_scale == b.level_scale &&
                   a.data_scale == b.data_scale && a.name == b.name &&
                   a.prediction_type == b.prediction_type &&
                   a.timesteps.size() == b.timesteps.size() &&
                   (a.timesteps.empty() || std::equal(a.timesteps.begin() + 1, a.timesteps.end(),
                                                      b.timesteps.begin() + 1));
          },
          nb::is_operator(), nb::sig("def __eq__(self, other: object, /) -> bool"))
      .def("__hash__", [](const Schedule& s) { return std::hash<std::string>()(s.spec); })
      .def("__getstate__", &StateOf)
      .def("__setstate__",
           [](Schedule& self, State state) { new (&self) Schedule(FromState(std::move(state))); })
      .def("__repr__", &Repr);
}

}  // namespace mergeplan::python
