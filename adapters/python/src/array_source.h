#pragma once

#include <nanobind/nanobind.h>

#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "planner/data/samples.h"

namespace mergeplan::python {

// An exception that Python raised while a source was read. Sources answer with an error status
// then, and who reads them raises this in its place.
struct Raised {
  std::optional<nanobind::python_error> error;
};

// Samples out of an iterator over arrays: everything that has __dlpack__ or the buffer protocol, on
// the CPU, of floats (16, 32, 64 bits, bfloat16), integers or booleans, any strides, first axis =
// samples. All must agree in type of number and shape of sample. Values are read where they lie.
//
// Needs the interpreter's lock to be made; Read takes it itself, for a new array and to look
// whether a signal has come, so that Ctrl-C ends a pass at the next batch. `raised` outlives the
// source.
absl::StatusOr<std::unique_ptr<SampleSource>> OpenArrays(nanobind::object iterator,
                                                         const std::string& name,
                                                         bool skip_nonfinite, Raised* raised);

}  // namespace mergeplan::python
