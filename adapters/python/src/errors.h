#pragma once

#include <nanobind/nanobind.h>

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"

namespace mergeplan::python {

// A message with the arguments of this package in the place of the command's flags.
inline std::string InPython(absl::string_view text) {
  return absl::StrReplaceAll(text, {{"--skip-nonfinite", "skip_nonfinite=True"},
                                    {"--diagonal-only", "basis=\"diagonal\""},
                                    {"--shrink", "shrink"},
                                    {"--teacher-steps", "steps, of plan() teacher_steps"},
                                    {"--schedule", "schedule"},
                                    {"--format ", "Plan."}});
}

// The planner's one-line error as an exception: MemoryError where memory is short, ValueError for
// everything else.
[[noreturn]] inline void Raise(const absl::Status& status) {
  const std::string text = InPython(status.message());
  if (status.code() == absl::StatusCode::kResourceExhausted) {
    PyErr_SetString(PyExc_MemoryError, text.c_str());
    throw nanobind::python_error();
  }
  throw nanobind::value_error(text.c_str());
}

inline void RaiseIfError(const absl::Status& status) {
  if (!status.ok()) Raise(status);
}

template <typename T>
T ValueOrRaise(absl::StatusOr<T> value) {
  if (!value.ok()) Raise(value.status());
  return *std::move(value);
}

}  // namespace mergeplan::python
