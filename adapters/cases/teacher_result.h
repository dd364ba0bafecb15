#pragma once

#include <map>
#include <string>

#include "planner/plan/plan.h"
#include "planner/runs/merge_record.h"
#include "planner/runs/result_file.h"

namespace mergeplan {

// result.toml of students that are no linear operators: against the teacher only, with a prediction
// of the whole at most. Merges and the arrays' hash are added by the caller.
RunResult TeacherResult(const RunSummary& summary, std::map<std::string, std::string> training,
                        int dimensions);
// One of its merges: what was trained, and its error against the teacher with the standard error.
MergeRecord TeacherRecord(const Merge& merge, const MergeFigures& figures, double error,
                          double standard_error);

}  // namespace mergeplan
