#pragma once

#include <string>
#include <vector>

#include "planner/report/calibration_page.h"

namespace mergeplan {

// "[1, 8]", "[1, 8] over [5, 8]".
std::string StepsText(Range range);
std::string MergeText(Range range, const std::vector<Range>& trained);

// The error of one merge over the updates, both on log scales: diamonds for every seed with their
// sampling errors, the fit as a line in its interval, the start as a dashed line. `seeds` are
// pilots of the same merge.
std::string PilotChart(const std::vector<const CalibrationPilot*>& seeds);

// Entries of one table over their number of steps: a bar from low to high and a dot at the value.
// Of residuals those after the most updates; of distances those from a trained child (`start` after
// the first step) are drawn in the second colour.
std::string TableChart(const std::string& title, const std::string& axis,
                       const std::vector<MeasuredEntry>& entries);
// Those that TableChart draws.
std::vector<MeasuredEntry> ShownEntries(const std::vector<MeasuredEntry>& entries);

// Predicted over measured error, both on log scales, with the line on which both are the same:
// rings with their intervals for the measured model, diamonds for the linear one.
std::string JudgedChart(const std::vector<CalibrationJudged>& judged);

}  // namespace mergeplan
