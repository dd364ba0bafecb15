#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "planner/choice/sensitivity.h"
#include "planner/cli/question.h"

namespace mergeplan::cli {

// How sure a recommendation is, in words and as JSON.

// A few draws without planning anew, for the sentence beside a recommendation: nothing where there
// are no intervals, where even a few draws would take long, or where no draw could be made. Of
// `search` the threads and the limits on merges and rounds are read.
std::optional<Sensitivity> QuickSensitivity(const Model& model,
                                            const std::optional<VarianceIntervals>& intervals,
                                            const Plan& plan, const std::string& name,
                                            const SearchOptions& search);

// One sentence: "in 97 % of 200 draws of the variances within their intervals (...) no other
// strategy beats boot; it leads by 12 % ...". `what`: the name of the plan asked about.
std::string HowSure(const Sensitivity& sensitivity, const std::string& what);

// Where QuickSensitivity said nothing although there are intervals.
inline constexpr char kNotLookedAt[] =
    "how sure: not looked at, as it would take long for so many steps and dimensions; mergeplan "
    "plan --sensitivity does";

// The table of candidates and the sentences of --sensitivity.
std::string SensitivityText(const Sensitivity& sensitivity);

// draws, asked, refused, seed, confidence, distribution, not_beaten {share, low, high}, lead {p5,
// median, p95}, candidates [...], best_strategy {name: {share, low, high}}, replans, regret.
nlohmann::ordered_json SensitivityJson(const Sensitivity& sensitivity);

}  // namespace mergeplan::cli
