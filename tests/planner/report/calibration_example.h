#pragma once

#include "planner/report/calibration_page.h"

namespace mergeplan {

// A made-up calibration of 8 teacher steps: pilots at both ends with two seeds each, five merges
// that judge, a plan of two merges beside BOOT.
CalibrationPage MakeCalibration();

}  // namespace mergeplan
