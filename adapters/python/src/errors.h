#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"

namespace mergeplan::python {

// A message with the arguments of this package in the place of the command's flags.
inline std::string InPython(absl::string_view text) {
  return absl::StrReplaceAll(
      text, {{"take such samples out of the file, or, with analyze, give --skip-nonfinite to leave "
              "such samples out",
              "take such samples out, or pass skip_nonfinite=True"},
             {"--skip-nonfinite", "skip_nonfinite=True"},
             {"train time is ", "train_time is "},
             {"learning rate is ", "lr is "},
             {"feature norm is ", "feature_norm is "},
             {"student steps is ", "student_steps is "},
             {"time limit is ", "time_limit is "},
             {"teacher steps are missing, expected a number (--teacher-steps)",
              "teacher_steps (of Schedule: steps) is missing, expected a number"},
             {"--diagonal-only", "diagonal_only=True"},
             {"--directions 32", "directions=32"},
             {"--shrink", "shrink"},
             {"--teacher-steps", "steps, of plan() teacher_steps"},
             {"--schedule", "schedule"},
             {"--format ", "Plan."},
             {"write :mu=… or :image_seq_len=… after the path", "pass mu=… or image_seq_len=…"},
             {"write :mu=1.15 after the path", "pass mu=1.15"},
             {"(original_inference_steps=… after the path raises it)",
              "(original_inference_steps=… raises it)"}});
}

// Of a status RESOURCE_EXHAUSTED: the errno of what the system has too little of (space on a disk,
// descriptors), 0 where that is memory.
inline int ShortOf(absl::string_view text) {
  for (const int error : {ENOSPC, EDQUOT, EMFILE, ENFILE, ENOBUFS, EMLINK, EUSERS}) {
    if (absl::StrContains(text, std::strerror(error))) return error;
  }
  return 0;
}

// The planner's one-line error as an exception: MemoryError where memory is short, OSError where
// the disk is full or files are too many, ValueError for everything else.
[[noreturn]] inline void Raise(const absl::Status& status) {
  const std::string text = InPython(status.message());
  if (status.code() == absl::StatusCode::kResourceExhausted) {
    if (const int error = ShortOf(text); error != 0) {
      PyErr_SetObject(PyExc_OSError, nanobind::make_tuple(error, text).ptr());
    } else {
      PyErr_SetString(PyExc_MemoryError, text.c_str());
    }
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
