#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "adapters/calibrate/design.h"
#include "adapters/calibrate/measurements.h"
#include "adapters/calibrate/pilots.h"

namespace mergeplan::calibrate {

struct CalibrateOptions {
  DesignQuestion question;
  std::string fingerprint;  // of all that determines the numbers, but for the design
  std::map<std::string, std::string> chosen;  // Measurements
  // Where the measurements are kept after every pilot; empty: nowhere.
  std::string file;
  // What an earlier calibration has kept, to go on with; empty fingerprint: nothing.
  Measurements before;

  // Asked between updates; true ends with what there is.
  std::function<bool()> stop;
  // Before anything is trained: what will be measured and what it takes.
  std::function<void(const Design& design, int pilots_there)> forecast;
  std::function<void(int done, int total, const Pilot& next)> progress;
};

struct Calibration {
  Measurements measured;
  Design design;
  bool stopped = false;  // before everything was measured
  std::string why;       // what a pilot failed by; the others stand
};

// Measures by the design: distances and gains, then pilots in its order. A pilot whose loss is not
// finite ends it with what there is. Errors of MakeDesign and of what is measured first.
absl::StatusOr<Calibration> Calibrate(Setting setting, const CalibrateOptions& options);

}  // namespace mergeplan::calibrate
