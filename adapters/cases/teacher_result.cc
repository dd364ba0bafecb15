#include "adapters/cases/teacher_result.h"

#include <limits>
#include <utility>

#include "planner/base/memory.h"

namespace mergeplan {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

}  // namespace

RunResult TeacherResult(const RunSummary& summary, std::map<std::string, std::string> training,
                        int dimensions) {
  RunResult result;
  result.summary = summary;
  result.predicted_teacher = summary.predicted;
  result.achieved_teacher = summary.achieved;
  result.predicted_surrogate = result.achieved_surrogate = kNone;
  result.training = std::move(training);
  result.dimensions = dimensions;
  result.peak_memory_bytes = PeakMemoryBytes();
  return result;
}

MergeRecord TeacherRecord(const Merge& merge, const MergeFigures& figures, double error,
                          double standard_error) {
  MergeRecord record;
  static_cast<MergeFigures&>(record) = figures;
  record.first = merge.first;
  record.last = merge.last;
  record.round = merge.round;
  record.predicted_error = kNone;
  record.achieved_error = error;
  record.standard_error = standard_error;
  return record;
}

}  // namespace mergeplan
