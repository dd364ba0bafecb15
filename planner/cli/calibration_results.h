#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "planner/report/calibration_page.h"

namespace mergeplan::cli {

// Is it the measured model of a calibration, a file, and not the folder of a run?
bool IsCalibration(const std::string& path);
// INVALID_ARGUMENT where `path`, which is no calibration, is a file and so no run either; says what
// the file is and what to give.
absl::Status CheckNoFile(const std::string& path);
// What it is beside: m.answer.json of m.toml.
std::string AnswerFileOf(const std::string& path);

// What `mergeplan calibrate -o PATH` left: the tables, and what was judged and planned. NOT_FOUND
// says how the answer is made again; DATA_LOSS for one that belongs to other tables, is damaged or
// holds what calibrate does not write, with the key. Counts are those of the lists.
absl::StatusOr<CalibrationPage> ReadCalibration(const std::string& path);

}  // namespace mergeplan::cli
