#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "adapters/python/src/arguments.h"
#include "adapters/python/src/background.h"
#include "adapters/python/src/bind.h"
#include "adapters/python/src/errors.h"
#include "adapters/python/src/glue.h"
#include "adapters/python/src/plan_value.h"
#include "adapters/python/src/spectrum_value.h"
#include "planner/answer/solved.h"
#include "planner/base/memory.h"
#include "planner/base/status_macros.h"
#include "planner/operators/canonical.h"
#include "planner/operators/model.h"
#include "planner/plan/io/evaluate.h"
#include "planner/search/search.h"

namespace mergeplan::python {
namespace {

namespace nb = nanobind;
using namespace nb::literals;

// How students are trained, as Python's arguments say it.
struct BudgetArguments {
  std::optional<double> train_time, lr;
  std::optional<std::int64_t> iterations;
  int batch = 64;
  double feature_norm = 1;
};

absl::StatusOr<Budget> BudgetOf(const BudgetArguments& a) {
  if (a.batch < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("batch: is ", a.batch, ", expected a whole number, 1 or more"));
  }
  if (a.train_time) {
    if (a.lr || a.iterations) {
      return absl::InvalidArgumentError(
          "train_time excludes lr and iterations: give one kind of budget");
    }
    if (a.feature_norm != 1) {
      return absl::InvalidArgumentError(
          "feature_norm: has no effect with train_time, a gradient flow, but only with lr; leave "
          "it "
          "out");
    }
    return Budget::Flow(*a.train_time);
  }
  if (a.lr && a.iterations) return Budget::Sgd(*a.lr, *a.iterations, a.batch, a.feature_norm);
  if (a.lr) {
    return absl::InvalidArgumentError("lr needs iterations, the number of updates of every merge");
  }
  if (a.iterations) return absl::InvalidArgumentError("iterations needs lr, the learning rate");
  return absl::InvalidArgumentError("no budget: give train_time=S, or lr=RATE, iterations=K");
}

// Measured: 79 bytes at the peak for every level and coordinate.
absl::Status CheckSize(const Schedule& schedule, size_t dimensions) {
  constexpr double kBytes = 80;
  return CheckMemory(
      absl::StrCat(schedule.steps(), " teacher steps in ", dimensions, " dimensions"),
      kBytes * schedule.steps() * static_cast<double>(dimensions));
}

absl::StatusOr<Model> MakeModel(const SpectrumValue& spectrum, const Schedule& schedule,
                                std::vector<double> weights, const BudgetArguments& budget,
                                const std::string& init, const std::string& reference) {
  ModelSpec spec;
  spec.schedule = schedule;
  spec.variances = spectrum.chosen().variances;
  spec.weights = std::move(weights);
  MP_ASSIGN_OR_RETURN(spec.budget, BudgetOf(budget));
  MP_ASSIGN_OR_RETURN(spec.init, ParseInit(init));
  MP_ASSIGN_OR_RETURN(spec.reference, ParseReference(reference));
  MP_RETURN_IF_ERROR(CheckSize(schedule, spec.variances.size()));
  return Model::Create(std::move(spec));
}

std::string InputOf(const SpectrumValue& spectrum) {
  return spectrum.of_data ? spectrum.of_data->source : "variances";
}

struct PlanArguments {
  const SpectrumValue* spectrum = nullptr;
  const Schedule* schedule = nullptr;
  BudgetArguments budget;
  std::vector<double> weights;
  std::string init, reference, space;
  SearchOptions search;
};

absl::StatusOr<PlanDocument> Solved(const PlanArguments& a, const nb::object& progress) {
  SearchOptions options = a.search;
  MP_ASSIGN_OR_RETURN(options.space, ParseSpace(a.space));
  absl::StatusOr<PlanDocument> out = absl::InternalError("not run");
  RunSearch(options, progress, [&](const SearchOptions& running) {
    const auto solve = [&]() -> absl::StatusOr<PlanDocument> {
      MP_ASSIGN_OR_RETURN(const Model model, MakeModel(*a.spectrum, *a.schedule, a.weights,
                                                       a.budget, a.init, a.reference));
      MP_ASSIGN_OR_RETURN(const SearchResult result, Solve(model, running));
      return DocumentOf(model, InputOf(*a.spectrum), a.spectrum->basis, result, running);
    };
    out = solve();
  });
  return out;
}

PlanValue ToValue(PlanDocument document, const Schedule& schedule) {
  PlanValue out;
  out.plan = document.plan;
  out.init = document.init;
  out.schedule = schedule;
  out.document = std::move(document);
  return out;
}

// What a plan that nobody searched for costs on a question: nothing is proven of it.
absl::StatusOr<PlanDocument> Evaluated(const Plan& plan, const Model& model,
                                       const SpectrumValue& spectrum) {
  SearchResult result;
  result.plan = plan;
  result.objective = model.Objective(plan);
  result.tolerance = model.Tolerance(model.Value(plan));
  MP_ASSIGN_OR_RETURN(PlanDocument document,
                      DocumentOf(model, InputOf(spectrum), spectrum.basis, result, {}));
  document.status = "unchecked";
  document.guarantee = "nothing is proven: the plan was given, not searched for";
  return document;
}

absl::StatusOr<PlanValue> OnQuestion(Plan plan, const Schedule& schedule,
                                     const SpectrumValue* spectrum, const std::string& init,
                                     const std::string& reference, const BudgetArguments& budget) {
  PlanValue out;
  out.plan = std::move(plan);
  out.schedule = schedule;
  MP_ASSIGN_OR_RETURN(out.init, ParseInit(init));
  if (spectrum == nullptr) {
    MP_RETURN_IF_ERROR(ParseReference(reference).status());
    if (budget.train_time || budget.lr || budget.iterations || budget.feature_norm != 1) {
      return absl::InvalidArgumentError(
          "a budget has no effect without a spectrum; give spectrum= too, or leave it out");
    }
    return out;
  }
  MP_ASSIGN_OR_RETURN(const Model model,
                      MakeModel(*spectrum, schedule, {}, budget, init, reference));
  MP_ASSIGN_OR_RETURN(out.document, Evaluated(out.plan, model, *spectrum));
  return out;
}

// Closes a progress bar when the search is over, however it ended.
struct ClosedAtEnd {
  const nb::object& callback;
  ~ClosedAtEnd() {
    if (callback.is_none() || !nb::hasattr(callback, "close")) return;
    PyObject *t = nullptr, *v = nullptr, *b = nullptr;
    PyErr_Fetch(&t, &v, &b);
    try {
      callback.attr("close")();
    } catch (nb::python_error& error) {
      error.discard_as_unraisable("mergeplan.plan");
    }
    PyErr_Restore(t, v, b);
  }
};

// A Schedule as it is; else a name, a path, a scheduler or a config with `steps`.
Schedule ScheduleFrom(const nb::object& object, std::optional<int> steps) {
  if (nb::isinstance<Schedule>(object)) {
    const auto& schedule = nb::cast<const Schedule&>(object);
    if (steps && *steps != schedule.steps()) {
      throw nb::value_error(absl::StrCat("teacher_steps: is ", *steps, ", but the schedule has ",
                                         schedule.steps(), "; leave one of them out")
                                .c_str());
    }
    return schedule;
  }
  return AnySchedule(object, steps);
}

// A Spectrum as it is; else a list of variances.
SpectrumValue SpectrumFrom(const nb::object& object) {
  if (nb::isinstance<SpectrumValue>(object)) return nb::cast<SpectrumValue>(object);
  RefusePath(object, "spectrum");
  return ValueOrRaise(Given(Numbers(object, "spectrum")));
}

constexpr char kPlanDoc[] =
    "Finds the merge schedule that loses least, with a certificate.\n\n"
    "spectrum: a Spectrum, or variances of shape (d,).\n"
    "schedule: a Schedule; or its name, file, diffusers scheduler or config, with teacher_steps.\n"
    "Budget: train_time (gradient-flow time of every merge), or lr and iterations (SGD updates of\n"
    "every merge on the batch mean of the squared error summed over dimensions); feature_norm is\n"
    "the squared norm of the feature that feeds the operator.\n"
    "student_steps: N, the steps of the student. init: where students start, \"child\", "
    "\"teacher\",\n"
    "\"jump\" or \"child-jump\". reference: what is aimed at, \"surrogate\", \"teacher\" or "
    "\"data\".\n"
    "space: \"nary\" or \"binary\". gap: the search stops at this relative gap; 0 asks for a "
    "proof.\n"
    "time_limit: seconds; the best plan so far is returned with its bound. weights: of the "
    "squared\n"
    "errors, shape (d,). max_merges, max_rounds: only plans with at most so many; 0: any number.\n"
    "progress: True (tqdm), a class like tqdm.tqdm, or a function of (seconds, objective,\n"
    "lower_bound); where it returns False the search stops with what it has. Ctrl-C raises\n"
    "KeyboardInterrupt. The interpreter's lock is free while it searches.\n\n"
    "ValueError says what is wrong with an argument.";

constexpr char kStrategyDoc[] =
    "One of the strategies of the literature as a plan: \"vanilla\", \"progressive\", \"boot\" or\n"
    "\"consistency\"; inside N equal blocks where student_steps = N > 1. With spectrum and budget\n"
    "its figures are computed; without, they are None.";

constexpr char kPlanSignature[] =
    "def plan(spectrum: object, schedule: object, *, teacher_steps: int | None = None, "
    "train_time: float | None = None, lr: float | None = None, iterations: int | None = None, "
    "batch: int = 64, feature_norm: float = 1.0, student_steps: int = 1, init: str = 'child', "
    "reference: str = 'surrogate', space: str = 'nary', gap: float = 0.001, "
    "time_limit: float = 30.0, weights: object | None = None, max_merges: int = 0, "
    "max_rounds: int = 0, threads: int = 0, progress: object | None = None) -> Plan";

constexpr char kStrategySignature[] =
    "def strategy(name: str, schedule: object, *, teacher_steps: int | None = None, "
    "student_steps: int = 1, init: str = 'child-jump', spectrum: object | None = None, "
    "train_time: float | None = None, lr: float | None = None, iterations: int | None = None, "
    "feature_norm: float = 1.0, reference: str = 'surrogate') -> Plan";

// A number of things of which 0 means any.
// `zero` says what 0 means.
int AnyNumber(const Argument<int>& given, const char* name, const char* zero) {
  const int number = given(name);
  if (number >= 0) return number;
  throw nb::value_error(
      absl::StrCat(name, ": is ", number, ", expected 0 (", zero, ") or more").c_str());
}

std::optional<std::int64_t> Updates(const Argument<std::optional<std::int64_t>>& given) {
  if (given.given.is_none()) return std::nullopt;
  return WholeNumber(given.given, "iterations", 1, std::numeric_limits<std::int64_t>::max());
}

std::vector<double> Weights(const nb::object& given) {
  std::vector<double> weights;
  if (given.is_none()) return weights;
  weights = Numbers(given, "weights");
  if (std::any_of(weights.begin(), weights.end(), [](double w) { return w != 0; })) return weights;
  throw nb::value_error(
      absl::StrCat("weights: are ", weights.empty() ? "none" : "all 0",
                   ", expected one for every variance and at least one above 0; leave them out "
                   "where all count the same")
          .c_str());
}

}  // namespace

void BindSearch(nb::module_& module) {
  module.def(
      "plan",
      [](const Argument<nb::object>& spectrum, const Argument<nb::object>& schedule,
         const Argument<std::optional<int>>& teacher_steps,
         const Argument<std::optional<double>>& train_time,
         const Argument<std::optional<double>>& lr,
         const Argument<std::optional<std::int64_t>>& iterations, const Argument<int>& batch,
         const Argument<double>& feature_norm, const Argument<int>& student_steps,
         const Argument<std::string>& init, const Argument<std::string>& reference,
         const Argument<std::string>& space, const Argument<double>& gap,
         const Argument<double>& time_limit, const nb::object& weights,
         const Argument<int>& max_merges, const Argument<int>& max_rounds,
         const Argument<int>& threads, const nb::object& progress) {
        const Schedule levels = ScheduleFrom(schedule.given, teacher_steps("teacher_steps"));
        const SpectrumValue data = SpectrumFrom(spectrum.given);
        PlanArguments a;
        a.spectrum = &data;
        a.schedule = &levels;
        a.budget = {train_time("train_time"), lr("lr"), Updates(iterations), batch("batch"),
                    feature_norm("feature_norm")};
        a.weights = Weights(weights);
        a.init = init("init");
        a.reference = reference("reference");
        a.space = space("space");
        a.search.student_steps = student_steps("student_steps");
        a.search.max_merges = AnyNumber(max_merges, "max_merges", "any number");
        a.search.max_rounds = AnyNumber(max_rounds, "max_rounds", "any number");
        a.search.gap = gap("gap");
        a.search.time_limit_seconds = time_limit("time_limit");
        a.search.threads = AnyNumber(threads, "threads", "all there are");
        const nb::object callback = Glue("progress")(progress, a.search.time_limit_seconds);
        const ClosedAtEnd closed{callback};
        return ToValue(ValueOrRaise(Solved(a, callback)), levels);
      },
      "spectrum"_a, "schedule"_a, nb::kw_only(), "teacher_steps"_a = nb::none(),
      "train_time"_a = nb::none(), "lr"_a = nb::none(), "iterations"_a = nb::none(), "batch"_a = 64,
      "feature_norm"_a = 1.0, "student_steps"_a = 1, "init"_a = "child",
      "reference"_a = "surrogate", "space"_a = "nary", "gap"_a = 1e-3, "time_limit"_a = 30.0,
      "weights"_a = nb::none(), "max_merges"_a = 0, "max_rounds"_a = 0, "threads"_a = 0,
      "progress"_a = nb::none(), nb::sig(kPlanSignature), kPlanDoc);
  module.def(
      "strategy",
      [](const Argument<std::string>& name, const Argument<nb::object>& schedule,
         const Argument<std::optional<int>>& teacher_steps, const Argument<int>& student_steps,
         const Argument<std::string>& init, const nb::object& spectrum,
         const Argument<std::optional<double>>& train_time,
         const Argument<std::optional<double>>& lr,
         const Argument<std::optional<std::int64_t>>& iterations,
         const Argument<double>& feature_norm, const Argument<std::string>& reference) {
        const Schedule levels = ScheduleFrom(schedule.given, teacher_steps("teacher_steps"));
        std::optional<SpectrumValue> data;
        if (!spectrum.is_none()) data = SpectrumFrom(spectrum);
        const Strategy strategy = ValueOrRaise(ParseStrategy(name("name")));
        Plan plan =
            ValueOrRaise(CanonicalPlan(strategy, levels.steps(), student_steps("student_steps")));
        return ValueOrRaise(OnQuestion(std::move(plan), levels, data ? &*data : nullptr,
                                       init("init"), reference("reference"),
                                       {train_time("train_time"), lr("lr"), Updates(iterations), 64,
                                        feature_norm("feature_norm")}));
      },
      "name"_a, "schedule"_a, nb::kw_only(), "teacher_steps"_a = nb::none(), "student_steps"_a = 1,
      "init"_a = "child-jump", "spectrum"_a = nb::none(), "train_time"_a = nb::none(),
      "lr"_a = nb::none(), "iterations"_a = nb::none(), "feature_norm"_a = 1.0,
      "reference"_a = "surrogate", nb::sig(kStrategySignature), kStrategyDoc);
}

}  // namespace mergeplan::python
