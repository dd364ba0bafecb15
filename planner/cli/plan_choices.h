#pragma once

#include <string>

#include "planner/choice/combinations.h"
#include "planner/cli/question.h"
#include "planner/search/search.h"

namespace mergeplan::cli {

// The table of best plans of several schedules and numbers of teacher steps, and what of it may be
// compared.
std::string ChoicesText(const Questions& questions, const SearchOptions& options,
                        const ComparedCombinations& all);
std::string ChoicesJson(const Questions& questions, const SearchOptions& options,
                        const ComparedCombinations& all);

}  // namespace mergeplan::cli
