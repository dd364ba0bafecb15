#include "adapters/runtime/recorder.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "planner/base/file.h"
#include "planner/base/status_macros.h"
#include "planner/runs/curve_updates.h"
#include "planner/runs/result_file.h"

namespace mergeplan {
namespace {

constexpr char kEvents[] = "/events.out.tfevents.0.mergeplan";

// A number that reads back exactly; nothing where there is none.
std::string Cell(double value) {
  return std::isnan(value) ? std::string() : absl::StrFormat("%.17g", value);
}
std::string Cell(const std::optional<double>& value) { return value ? Cell(*value) : ""; }

std::string MergeTable(const std::vector<MergeRecord>& merges) {
  std::string out =
      "first,last,round,updates,teacher_calls,seconds,initial_loss,final_loss,residual,"
      "predicted_error,achieved_error,achieved_standard_error,effective_time\n";
  for (const MergeRecord& m : merges) {
    absl::StrAppend(&out, m.first, ",", m.last, ",", m.round, ",", m.updates, ",", m.teacher_calls,
                    ",", Cell(m.seconds), ",", Cell(m.initial_loss), ",", Cell(m.final_loss), ",");
    absl::StrAppend(&out, Cell(m.residual()), ",", Cell(m.predicted_error), ",",
                    Cell(m.achieved_error), ",", Cell(m.standard_error), ",",
                    Cell(m.effective_time), "\n");
  }
  return out;
}

}  // namespace

Recorder::Recorder(std::string folder, const Plan& plan)
    : folder_(std::move(folder)), plan_(plan) {}

absl::Status Recorder::Begin(const Training& training) {
  if (folder_.empty()) return absl::OkStatus();
  for (int merge = 0; merge < plan_.size(); ++merge) {
    if (training.trained(merge)) Add(training, merge);
  }
  return events_.Write(folder_ + kEvents);
}

absl::Status Recorder::Trained(const Training& training, absl::Span<const int> merges) {
  if (folder_.empty()) return absl::OkStatus();
  for (const int merge : merges) Add(training, merge);
  return events_.Append(folder_ + kEvents);
}

void Recorder::Add(const Training& training, int merge) {
  const Range range = plan_.merges()[merge].range();
  const TrainResult figures = training.Figures(merge);
  const std::vector<double> losses = training.Curve(merge);
  const std::vector<std::int64_t> updates = CurveUpdates(figures.updates);
  const std::string tag = absl::StrCat("loss/[", range.first, ", ", range.last, "]");
  for (std::size_t k = 0; k < std::min(losses.size(), updates.size()); ++k) {
    events_.AddScalar(tag, updates[k], losses[k]);
  }
  ++merges_;
  if (figures.initial_loss > 0) {
    events_.AddScalar("merges/residual", merges_, figures.final_loss / figures.initial_loss);
  }
  events_.AddScalar("merges/final_loss", merges_, figures.final_loss);
  events_.AddScalar("merges/updates", merges_, static_cast<double>(figures.updates));
  events_.AddScalar("merges/seconds", merges_, figures.seconds);
}

absl::Status Recorder::Finish(const Training& training) const {
  if (folder_.empty()) return absl::OkStatus();
  MP_ASSIGN_OR_RETURN(const RunResult result, ReadRunResult(folder_));
  std::string losses = "first,last,update,loss\n";
  for (int merge = 0; merge < plan_.size(); ++merge) {
    const Range range = plan_.merges()[merge].range();
    const std::vector<double> curve = training.Curve(merge);
    const std::vector<std::int64_t> updates = CurveUpdates(training.Figures(merge).updates);
    for (std::size_t k = 0; k < std::min(curve.size(), updates.size()); ++k) {
      absl::StrAppend(&losses, range.first, ",", range.last, ",", updates[k], ",", Cell(curve[k]),
                      "\n");
    }
  }
  MP_RETURN_IF_ERROR(WriteFileAtomically(folder_ + "/losses.csv", losses));
  return WriteFileAtomically(folder_ + "/merges.csv", MergeTable(result.merges));
}

}  // namespace mergeplan
