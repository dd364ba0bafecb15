#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "nlohmann/json.hpp"

namespace mergeplan {

// What Infinity and -Infinity read as (see below): beyond every number that a schedule may hold.
inline constexpr double kJsonInfinity = 1.79e308;

// Parses JSON text. INVALID_ARGUMENT names `path`, line and column (both from 1) of the first
// character that does not fit, and what the parser expected.
//
// Python writes Infinity and -Infinity, which JSON does not know, and published scheduler configs
// hold them (lambda_min_clipped): they are read as +-kJsonInfinity. NaN is an error that says
// where.
absl::StatusOr<nlohmann::json> ParseJson(std::string_view text, const std::string& path);

}  // namespace mergeplan
