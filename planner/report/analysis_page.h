#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "planner/spectrum/channels.h"
#include "planner/spectrum/spectrum.h"

namespace mergeplan {

// One test of normality or for modes, as a row of a table.
struct TestRow {
  std::string name, of;             // "Mardia's skewness", "20 leading directions"
  std::optional<double> statistic;  // what was measured; none where several were
  double p = 1;                     // corrected for tests of its kind
};

// The data multiplied by a factor (planner/cli/scaling_curve.h).
struct ScalingRow {
  double factor = 1;
  std::string mark;  // "as it is", "unit variance" or empty
  std::string regime;
  double fraction_above_one = 0, energy_above_one = 0;
  std::string strategy;  // with a model only, as what follows
  double objective = 0, plan_objective = 0;
};

struct AnalysisPage {
  const Spectrum* spectrum = nullptr;       // must be there
  const Basis* chosen = nullptr;            // one of its bases
  const ChannelReport* channels = nullptr;  // may be absent
  std::string verdict, verdict_words;       // of the tests; empty where they were left out
  double level = 0.01;                      // of theirs
  std::vector<TestRow> tests;
  std::vector<ScalingRow> curve;
  std::string strategy, strategy_reason, network_advice, how_sure;  // empty without a schedule
  std::string command;                                              // that made it
};

// What `mergeplan analyze` found, as one HTML page under the rules of RenderHtml: nothing from
// outside, valid XML, the same bytes for the same input. INVALID_ARGUMENT where arrays have wrong
// lengths. O(d^2).
absl::StatusOr<std::string> RenderAnalysis(const AnalysisPage& page);

}  // namespace mergeplan
