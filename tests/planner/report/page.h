#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "tests/planner/report/markup.h"

namespace mergeplan {

// Is there a word "nan" or "inf"?
bool HoldsNonNumber(std::string words);

// What has been rendered; expects what must hold of every page.
std::string CheckedPage(const absl::StatusOr<std::string>& html, Markup* markup = nullptr);

// Where the text of the page stands without tags, for sentences that hold numbers.
std::string Plain(const std::string& html);

}  // namespace mergeplan
