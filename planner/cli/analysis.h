#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "planner/choice/sensitivity.h"
#include "planner/cli/advice.h"
#include "planner/cli/scaling_curve.h"
#include "planner/gaussianity/gaussianity.h"
#include "planner/spectrum/channels.h"
#include "planner/spectrum/spectrum.h"

namespace mergeplan::cli {

// Everything that `analyze` has found out, and how it is shown.
struct Analysis {
  Spectrum spectrum;
  const Basis* chosen = nullptr;  // of the spectrum
  std::optional<ChannelReport> channels;
  bool per_channel = false;  // list them?
  std::optional<Gaussianity> gaussianity;
  std::optional<Advice> advice;
  std::optional<Sensitivity> sure;
  std::vector<CurvePoint> curve;
  std::string incomplete;  // what there is, where parts of the data are missing
  double seconds = 0;
};

nlohmann::ordered_json AnalysisJson(const Analysis& analysis);
// The page of `--report`; `command` is what made it. Errors of RenderAnalysis.
absl::StatusOr<std::string> AnalysisHtml(const Analysis& analysis, const std::string& command);
// What stands on the terminal, and ends with a line break.
std::string AnalysisText(const Analysis& analysis);
// One of them on stdout; the text says where the spectrum was written, if it was.
void PrintAnalysis(const Analysis& analysis, bool json, const std::string& written_to);

}  // namespace mergeplan::cli
