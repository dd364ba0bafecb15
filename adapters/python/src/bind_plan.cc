#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <functional>
#include <new>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "adapters/python/src/arguments.h"
#include "adapters/python/src/arrays.h"
#include "adapters/python/src/bind.h"
#include "adapters/python/src/errors.h"
#include "adapters/python/src/glue.h"
#include "adapters/python/src/plan_value.h"
#include "planner/answer/student_levels.h"
#include "planner/plan/costs.h"
#include "planner/plan/io/document.h"
#include "planner/plan/io/document_read.h"
#include "planner/plan/io/node.h"
#include "planner/report/arcs.h"

namespace mergeplan::python {
namespace {

namespace nb = nanobind;
using namespace nb::literals;

// ---- what only a plan with a question knows

const PlanDocument& Document(const PlanValue& plan, const char* what) {
  if (plan.document) return *plan.document;
  throw nb::value_error(
      absl::StrCat(what,
                   ": this plan was made without data, so nothing is known of its error; give "
                   "strategy(...) a spectrum and a budget")
          .c_str());
}

const Schedule& Levels(const PlanValue& plan, const char* what) {
  if (plan.schedule) return *plan.schedule;
  throw nb::value_error(absl::StrCat(what, ": the plan has no schedule").c_str());
}

// A figure of the document, or None.
template <typename Get>
auto Figure(Get get) {
  return [get](const PlanValue& plan) -> std::optional<decltype(get(*plan.document))> {
    if (!plan.document) return std::nullopt;
    return get(*plan.document);
  };
}

nb::dict ToDict(const StrategyFigures& figures) {
  nb::dict out;
  out["objective"] = figures.objective;
  if (figures.objective_equal_total_time) {
    out["objective_equal_total_time"] = *figures.objective_equal_total_time;
  }
  out["merges_trained"] = figures.merges_trained;
  if (figures.costs) {
    out["rounds"] = figures.costs->rounds;
    out["teacher_calls"] = figures.costs->teacher_calls;
    out["student_calls"] = figures.costs->student_calls;
  }
  return out;
}

nb::dict Strategies(const PlanValue& plan) {
  nb::dict out;
  if (!plan.document) return out;
  for (const StrategyFigures& figures : plan.document->strategies) {
    out[figures.name.c_str()] = ToDict(figures);
  }
  return out;
}

// ---- the tree

// Children stand before their parents in merges(), so that no recursion as deep as the plan is
// needed.
nb::list Tree(const Plan& plan) {
  std::vector<nb::list> nodes(static_cast<size_t>(plan.teacher_steps() + plan.size()));
  const auto make = [&](int node) {
    nb::list& out = nodes[static_cast<size_t>(node)];
    const Range range = plan.range(node);
    out.append(range.first);
    out.append(range.last);
    if (plan.is_step(node)) return;
    nb::list children;
    for (const int child :
         plan.merges()[static_cast<size_t>(node - plan.teacher_steps())].children) {
      children.append(nodes[static_cast<size_t>(child)]);
    }
    out.append(children);
  };
  for (size_t node = 0; node < nodes.size(); ++node) make(static_cast<int>(node));
  nb::list out;
  for (const int block : plan.blocks()) out.append(nodes[static_cast<size_t>(block)]);
  return out;
}

std::vector<std::pair<int, int>> Blocks(const Plan& plan) {
  std::vector<std::pair<int, int>> out;
  for (const int block : plan.blocks()) {
    const Range range = plan.range(block);
    out.emplace_back(range.first, range.last);
  }
  return out;
}

// ---- pictures

std::string Svg(const PlanValue& plan) { return ArcPlotSvg(plan.plan); }

std::string Html(const PlanValue& plan) {
  // An image, since a style inside the page would reach other pictures in it.
  std::string out = absl::StrCat("<div><img alt=\"", DescribePlan(plan.plan),
                                 "\" src=\"data:image/svg+xml;base64,",
                                 absl::Base64Escape(ArcPlotSvg(plan.plan)), "\">");
  if (plan.document) {
    const PlanDocument& d = *plan.document;
    absl::StrAppendFormat(&out,
                          "<p>objective %.6e, lower bound %.6e, gap %.3g, %s</p><table><thead><tr>"
                          "<th>strategy</th><th>objective</th><th>at equal total time</th>"
                          "<th>merges</th></tr></thead><tbody>",
                          d.objective, d.lower_bound, d.gap(), d.status);
    std::vector<StrategyFigures> rows = d.strategies;
    rows.push_back({"plan", d.objective, d.objective_equal_total_time, d.plan.size()});
    for (const StrategyFigures& row : rows) {
      absl::StrAppendFormat(
          &out, "<tr><td>%s</td><td>%.6e</td><td>%s</td><td>%d</td></tr>", row.name, row.objective,
          row.objective_equal_total_time ? absl::StrFormat("%.6e", *row.objective_equal_total_time)
                                         : "",
          row.merges_trained);
    }
    out += "</tbody></table>";
  }
  return out + "</div>";
}

std::string Repr(const PlanValue& plan) {
  const Plan& p = plan.plan;
  std::string out = absl::StrCat("<mergeplan.Plan T=", p.teacher_steps(), " N=", p.student_steps(),
                                 ", ", p.size(), " merges in ", p.rounds(), " rounds, init ",
                                 std::string(ToString(plan.init)));
  if (plan.document) {
    absl::StrAppendFormat(&out, ", objective %.6e, %s", plan.document->objective,
                          plan.document->status);
  }
  return out + ">";
}

// ---- files

PlanValue FromFile(const std::string& path) {
  absl::StatusOr<PlanDocument> document = absl::InternalError("not run");
  {
    const nb::gil_scoped_release release;
    document = ReadPlan(path);
  }
  PlanValue out;
  out.document = ValueOrRaise(std::move(document));
  out.plan = out.document->plan;
  out.init = out.document->init;
  out.schedule = ScheduleOfDocument(*out.document);
  return out;
}

void ToFile(const PlanValue& plan, const std::string& path) {
  const PlanDocument& document = Document(plan, "to_toml");
  absl::Status status;
  {
    const nb::gil_scoped_release release;
    status = WritePlan(document, path);
  }
  RaiseIfError(status);
}

// ---- pickling

using Ranges = std::vector<std::pair<int, int>>;
// The document as JSON, or none; T, merges and blocks; init; the schedule.
using State = std::tuple<std::optional<std::string>, int, std::vector<std::tuple<int, int, Ranges>>,
                         Ranges, std::string, nb::object>;

State StateOf(const PlanValue& value) {
  std::vector<std::tuple<int, int, Ranges>> merges;
  for (const MergeValue& merge : value.Merges()) {
    merges.emplace_back(merge.first, merge.last, merge.children);
  }
  std::optional<std::string> document;
  if (value.document) document = PlanJson(*value.document);
  return {std::move(document), value.plan.teacher_steps(),        std::move(merges),
          Blocks(value.plan),  std::string(ToString(value.init)), nb::cast(value.schedule)};
}

PlanValue FromState(const State& state) {
  const auto& [document, steps, merges, blocks, init, schedule] = state;
  std::vector<MergeSpec> specs;
  for (const auto& [first, last, children] : merges) {
    MergeSpec& spec = specs.emplace_back();
    spec.range = {first, last};
    for (const auto& [from, to] : children) spec.children.push_back({from, to});
  }
  std::vector<Range> tops;
  for (const auto& [first, last] : blocks) tops.push_back({first, last});
  PlanValue out;
  out.plan = ValueOrRaise(Plan::Create(steps, specs, tops));
  out.init = ValueOrRaise(ParseInit(init));
  if (!schedule.is_none()) out.schedule = nb::cast<Schedule>(schedule);
  if (document) {
    const plan_io::Node root = ValueOrRaise(plan_io::ParseJson(*document, "pickled plan"));
    out.document =
        ValueOrRaise(plan_io::ReadDocument(root, "pickled plan", plan_io::PlanForm::kJson));
  }
  return out;
}

void BindMerge(nb::module_& module) {
  nb::class_<MergeValue>(
      module, "Merge",
      "One merge: the jump from level `last` to level `first - 1`, trained against its children.")
      .def_ro("first", &MergeValue::first, "The cleanest step that it covers, 1..T.")
      .def_ro("last", &MergeValue::last,
              "The noisiest step that it covers: the level that it starts from.")
      .def_ro("round", &MergeValue::round,
              "1 + the largest round of its children; merges of one round may train together.")
      .def_ro("children", &MergeValue::children,
              "The parts that it joins, from clean to noisy, as (first, last); single steps of the "
              "teacher have first == last.")
      .def_prop_ro(
          "target", [](const MergeValue& m) { return m.first - 1; }, "The level that it lands on.")
      .def(
          "__eq__", [](const MergeValue& a, const MergeValue& b) { return a == b; },
          nb::is_operator(), nb::sig("def __eq__(self, other: object, /) -> bool"))
      .def("__hash__",
           [](const MergeValue& m) { return nb::hash(nb::make_tuple(m.first, m.last, m.round)); })
      .def(
          "__getstate__",
          [](const MergeValue& m) { return std::make_tuple(m.first, m.last, m.round, m.children); })
      .def("__setstate__",
           [](MergeValue& self, std::tuple<int, int, int, std::vector<std::pair<int, int>>> state) {
             new (&self) MergeValue{std::get<0>(state), std::get<1>(state), std::get<2>(state),
                                    std::get<3>(std::move(state))};
           })
      .def("__repr__", [](const MergeValue& m) {
        return absl::StrCat("<mergeplan.Merge ", m.first, "..", m.last, ", round ", m.round, ", ",
                            m.children.size(), " children>");
      });
}

}  // namespace

void BindPlan(nb::module_& module) {
  BindMerge(module);
  nb::class_<PlanValue>(
      module, "Plan",
      "A merge schedule: an ordered tree over the steps 1..T of the teacher with N blocks on top,\n"
      "one for every step of the student, with the question it answers and its certificate where\n"
      "they are known. Step t takes noise level t to level t-1; step 1 is the cleanest.")
      .def_static(
          "from_toml",
          [](const Argument<nb::object>& path) { return FromFile(PathOf(path.given)); }, "path"_a,
          nb::sig("def from_toml(path: str | os.PathLike) -> Plan"),
          "Reads a plan file, TOML or JSON by its ending, of this package or the command.")
      .def(
          "to_toml",
          [](const PlanValue& p, const Argument<nb::object>& path) {
            ToFile(p, PathOf(path.given));
          },
          "path"_a, nb::sig("def to_toml(self, path: str | os.PathLike) -> None"),
          "Writes a plan file (.json: JSON, else TOML, long arrays in an .npz beside it), which "
          "mergeplan show, distill and report read.")
      .def_prop_ro(
          "teacher_steps", [](const PlanValue& p) { return p.plan.teacher_steps(); },
          "T, the number of the teacher's steps.")
      .def_prop_ro(
          "student_steps", [](const PlanValue& p) { return p.plan.student_steps(); },
          "N, the number of the student's steps.")
      .def_prop_ro("merges", &PlanValue::Merges,
                   "All merges, children before parents, from the clean end.")
      .def_prop_ro("rounds", &PlanValue::Rounds,
                   "The merges by round, in the order of training: those of one list do not depend "
                   "on each other.")
      .def_prop_ro(
          "blocks", [](const PlanValue& p) { return Blocks(p.plan); },
          "The N top nodes as (first, last), from the clean end.")
      .def_prop_ro(
          "levels", [](const PlanValue& p) { return StudentLevels(p.plan); },
          "The N + 1 levels that the student visits, from T down to 0.")
      .def_prop_ro(
          "timesteps",
          [](const PlanValue& p) {
            return ToNumpy(ValueOrRaise(StudentTimesteps(p.plan, Levels(p, "timesteps"))));
          },
          "What a network is told at the N levels that the student starts from, noisiest first, "
          "shape (N,); ValueError where the schedule has no timesteps.",
          nb::rv_policy::automatic)
      .def_prop_ro(
          "sigmas",
          [](const PlanValue& p) {
            return ToNumpy(ValueOrRaise(StudentSigmas(p.plan, Levels(p, "sigmas"))));
          },
          "The student's levels as k-diffusion counts noise, noisiest first, shape (N+1,); of flow "
          "matching the share of noise. ValueError where a level is pure noise.",
          nb::rv_policy::automatic)
      .def_prop_ro(
          "tree", [](const PlanValue& p) { return Tree(p.plan); },
          nb::sig("def tree(self) -> list[typing.Any]"),
          "The blocks, each [first, last] or [first, last, [children...]], as in the command's "
          "--json.")
      .def_prop_ro(
          "schedule", [](const PlanValue& p) { return p.schedule; },
          "The noise levels, a Schedule; None where a file does not say.")
      .def_prop_ro(
          "init", [](const PlanValue& p) { return std::string(ToString(p.init)); },
          "Where students start: \"child\", \"teacher\", \"jump\" or \"child-jump\".")
      .def_prop_ro("reference",
                   Figure([](const PlanDocument& d) { return std::string(ToString(d.reference)); }),
                   "What the objective compares with: \"surrogate\", \"teacher\" or \"data\".")
      .def_prop_ro("objective", Figure([](const PlanDocument& d) { return d.objective; }),
                   "Sum of w_i (tau_i - V_i)^2 against the reference; None without data.")
      .def_prop_ro("objective_teacher",
                   Figure([](const PlanDocument& d) { return d.objective_teacher; }),
                   "The same against the teacher's product of steps.")
      .def_prop_ro(
          "objective_surrogate",
          [](const PlanValue& p) -> std::optional<double> {
            return p.document ? p.document->objective_surrogate : std::nullopt;
          },
          "The same against the surrogate composite.")
      .def_prop_ro(
          "objective_equal_total_time",
          [](const PlanValue& p) -> std::optional<double> {
            return p.document ? p.document->objective_equal_total_time : std::nullopt;
          },
          "The objective where all merges share the time that T - N merges would spend.")
      .def_prop_ro("lower_bound", Figure([](const PlanDocument& d) { return d.lower_bound; }),
                   "No plan of the space has an objective below it; None without data.")
      .def_prop_ro("gap", Figure([](const PlanDocument& d) { return d.gap(); }),
                   "(objective - lower_bound) / objective.")
      .def_prop_ro("tolerance", Figure([](const PlanDocument& d) { return d.tolerance; }),
                   "Bound on the rounding error of the objective.")
      .def_prop_ro("status", Figure([](const PlanDocument& d) { return d.status; }),
                   "\"optimal\", \"within_gap\", \"time_limit\", \"interrupted\" or \"unchecked\".")
      .def_prop_ro("guarantee", Figure([](const PlanDocument& d) { return d.guarantee; }),
                   "What is proven, in words.")
      .def_prop_ro("seconds", Figure([](const PlanDocument& d) { return d.seconds; }),
                   "How long the search took.")
      .def_prop_ro("strategies", &Strategies,
                   nb::sig("def strategies(self) -> dict[str, dict[str, float]]"),
                   "Figures of the canonical strategies on the same question, by name.")
      .def_prop_ro(
          "variances",
          [](const PlanValue& p) { return ToNumpy(Document(p, "variances").variances); },
          "The variances that it was made for, shape (d,).", nb::rv_policy::automatic)
      .def_prop_ro(
          "value", [](const PlanValue& p) { return ToNumpy(Document(p, "value").value); },
          "What the student multiplies each coordinate with, shape (d,).", nb::rv_policy::automatic)
      .def_prop_ro(
          "tau", [](const PlanValue& p) { return ToNumpy(Document(p, "tau").tau); },
          "What the reference multiplies each coordinate with, shape (d,).",
          nb::rv_policy::automatic)
      .def_prop_ro(
          "description", [](const PlanValue& p) { return DescribePlan(p.plan); },
          "One sentence; names the canonical strategy where the plan is one.")
      .def_prop_ro(
          "costs",
          [](const PlanValue& p) {
            const PlanCosts costs = CostsOf(p.plan);
            nb::dict out;
            out["merges_trained"] = p.plan.size();
            out["rounds"] = costs.rounds;
            out["teacher_calls"] = costs.teacher_calls;
            out["student_calls"] = costs.student_calls;
            return out;
          },
          nb::sig("def costs(self) -> dict[str, int]"),
          "What training takes, calls per training sample.")
      .def(
          "to_json", [](const PlanValue& p) { return PlanJson(Document(p, "to_json")); },
          "The object that mergeplan plan --json prints.")
      .def("__str__", [](const PlanValue& p) { return p.plan.ToString(); })
      .def("__len__", [](const PlanValue& p) { return p.plan.size(); })
      .def(
          "__eq__", [](const PlanValue& a, const PlanValue& b) { return a.plan == b.plan; },
          nb::is_operator(), nb::sig("def __eq__(self, other: object, /) -> bool"))
      .def("__hash__",
           [](const PlanValue& p) { return std::hash<std::string>()(p.plan.ToString()); })
      .def("__getstate__", &StateOf)
      .def("__setstate__",
           [](PlanValue& self, const State& state) { new (&self) PlanValue(FromState(state)); })
      .def("_repr_svg_", &Svg)
      .def("_repr_html_", &Html)
      .def("__repr__", &Repr);
}

}  // namespace mergeplan::python
