#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <exception>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace mergeplan::layers {

// Runs what may throw; what was thrown becomes one line behind `what`.
template <typename Body>
absl::Status Caught(const std::string& what, Body&& body) {
  try {
    body();
  } catch (const c10::Error& error) {
    std::string message = error.what_without_backtrace();
    std::replace(message.begin(), message.end(), '\n', ' ');
    return absl::InternalError(absl::StrCat(what, ": ", message));
  } catch (const std::exception& error) {
    return absl::InternalError(absl::StrCat(what, ": ", error.what()));
  }
  return absl::OkStatus();
}

// "[2, 3, 8, 8]".
inline std::string ShapeOf(const at::Tensor& x) {
  std::string text = "[";
  for (const std::int64_t extent : x.sizes()) {
    absl::StrAppend(&text, text.size() > 1 ? ", " : "", extent);
  }
  return text + "]";
}

// Has `x` the type and the device of a network's own tensor?
inline absl::Status CheckKind(const at::Tensor& x, const at::Tensor& own, const char* what) {
  if (x.scalar_type() == own.scalar_type() && x.device() == own.device()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      what, " is ", at::toString(x.scalar_type()), " on ", x.device().str(), ", the network is ",
      at::toString(own.scalar_type()), " on ", own.device().str()));
}

}  // namespace mergeplan::layers
