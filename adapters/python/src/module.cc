#include <nanobind/nanobind.h>

#include "adapters/python/src/bind.h"

// NOLINTNEXTLINE: the macro is nanobind's.
NB_MODULE(_core, module) {
  module.doc() = "The planner of mergeplan, compiled. Import mergeplan, not this.";
  module.attr("__version__") = MERGEPLAN_VERSION;
  mergeplan::python::BindSchedule(module);
  mergeplan::python::BindSpectrum(module);
  mergeplan::python::BindPlan(module);
  mergeplan::python::BindSearch(module);
}
