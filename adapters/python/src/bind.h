#pragma once

#include <nanobind/nanobind.h>

namespace mergeplan::python {

void BindSchedule(nanobind::module_& module);
void BindSpectrum(nanobind::module_& module);
void BindPlan(nanobind::module_& module);
void BindSearch(nanobind::module_& module);

}  // namespace mergeplan::python
