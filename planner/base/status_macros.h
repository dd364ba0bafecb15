#pragma once

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

// MP_RETURN_IF_ERROR(expr): returns from the enclosing function where `expr` is not OK.
#define MP_RETURN_IF_ERROR(expr)             \
  do {                                       \
    ::absl::Status mp_status_ = (expr);      \
    if (!mp_status_.ok()) return mp_status_; \
  } while (false)

#define MP_CONCAT_INNER(a, b) a##b
#define MP_CONCAT(a, b) MP_CONCAT_INNER(a, b)

// MP_ASSIGN_OR_RETURN(auto x, expr): binds the value of a StatusOr, or returns its error.
#define MP_ASSIGN_OR_RETURN(lhs, expr) MP_ASSIGN_OR_RETURN_(MP_CONCAT(mp_or_, __LINE__), lhs, expr)
// NOLINTBEGIN(bugprone-macro-parentheses): `lhs` may be a declaration.
#define MP_ASSIGN_OR_RETURN_(tmp, lhs, expr) \
  auto tmp = (expr);                         \
  if (!tmp.ok()) return tmp.status();        \
  lhs = std::move(tmp).value()
// NOLINTEND(bugprone-macro-parentheses)
