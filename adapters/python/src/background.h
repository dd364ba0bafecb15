#pragma once

#include <nanobind/nanobind.h>

#include <functional>

#include "planner/search/search.h"

namespace mergeplan::python {

// Runs `work` on a thread of its own while the calling thread, without the interpreter's lock,
// waits for it and looks in 20 times a second whether a signal (Ctrl-C) has come: Python handles
// signals on the main thread only, and search threads never enter the interpreter.
//
// `work` gets a SearchOptions with `interrupted` and `progress` set. `progress`, where it is not
// None, is called on the calling thread with (seconds, objective, lower_bound) after every change,
// at most 20 times a second and once at the end; where it returns False the search stops with what
// there is. An exception, its own or KeyboardInterrupt, stops the search too and is raised when the
// search has ended.
void RunSearch(SearchOptions options, const nanobind::object& progress,
               const std::function<void(const SearchOptions&)>& work);

}  // namespace mergeplan::python
