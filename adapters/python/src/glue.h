#pragma once

#include <nanobind/nanobind.h>

#include <optional>
#include <string>
#include <vector>

#include "planner/schedule/schedule.h"

namespace mergeplan::python {

// A function of mergeplan/_glue.py.
nanobind::object Glue(const char* function);

// A list of numbers out of anything that numpy takes for one; ValueError names `what`.
std::vector<double> Numbers(const nanobind::object& object, const char* what);

// ValueError where a path stands in the place of numbers: it names `what` and how files are read.
void RefusePath(const nanobind::object& object, const char* what);

// A str or os.PathLike.
std::string PathOf(const nanobind::object& path);

// A name or path, or a scheduler or config of diffusers, which need `steps`.
Schedule AnySchedule(const nanobind::object& object, std::optional<int> steps);

}  // namespace mergeplan::python
