#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "planner/report/calibration_page.h"

namespace mergeplan::cli {

// Is it the measured model of a calibration, a file, and not the folder of a run?
bool IsCalibration(const std::string& path);
// What it is beside: m.answer.json of m.toml.
std::string AnswerFileOf(const std::string& path);

// What `mergeplan calibrate -o PATH` left: the tables, and what was judged and planned. NOT_FOUND
// says how the answer is made again; DATA_LOSS for one that belongs to other tables or is damaged.
absl::StatusOr<CalibrationPage> ReadCalibration(const std::string& path);

}  // namespace mergeplan::cli
