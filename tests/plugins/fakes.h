#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "planner/operators/canonical.h"
#include "planner/schedule/schedule.h"
#include "plugins/host/host.h"
#include "plugins/host/services.h"

namespace mergeplan {

// A question over `teacher_steps` steps with two variances.
inline PlanRequest Question(int teacher_steps, int student_steps = 1) {
  PlanRequest request;
  request.schedule = CosineSchedule(teacher_steps);
  request.student_steps = student_steps;
  request.variances = {0.5, 0.9};
  request.budget = Budget::Flow(1.6);
  request.time_limit_seconds = 5;
  return request;
}

// The real services with what they log, and a switch for the user's wish to stop.
class RecordingServices : public PlannerServices {
 public:
  absl::StatusOr<Solution> Solve(const PlanRequest& request,
                                 const SolveOverrides& overrides) override {
    return real_.Solve(request, overrides);
  }
  absl::StatusOr<double> EvaluateTree(const PlanRequest& request, const Plan& plan) override {
    return real_.EvaluateTree(request, plan);
  }
  absl::StatusOr<Plan> ParsePlan(const PlanRequest& request, const std::string& path) override {
    return real_.ParsePlan(request, path);
  }
  void Log(LogLevel level, std::string_view text) override {
    log.push_back(absl::StrCat(static_cast<int>(level), " ", std::string(text)));
  }
  bool Cancelled() override { return cancel; }

  std::vector<std::string> log;
  bool cancel = false;

 private:
  LinearPlannerServices real_;
};

// Writes down what it is asked, trains nothing.
class RecordingRuntime : public RuntimeInterface {
 public:
  explicit RecordingRuntime(const Plan& plan) : plan_(plan) {}

  absl::StatusOr<TrainResult> TrainMerge(int merge) override {
    calls.push_back(absl::StrCat("train", Text(merge)));
    if (!train_status.ok()) return train_status;
    if (on_train) on_train();
    return Result();
  }
  absl::StatusOr<std::vector<TrainResult>> TrainRound(absl::Span<const int> merges) override {
    std::string call = "round";
    for (const int merge : merges) absl::StrAppend(&call, Text(merge));
    calls.push_back(call);
    if (!train_status.ok()) return train_status;
    if (on_train) on_train();
    return std::vector<TrainResult>(results_missing ? 0 : merges.size(), Result());
  }
  absl::StatusOr<EvaluationResult> Evaluate() override {
    calls.push_back("evaluate");
    return EvaluationResult{plan_.size(), 0.25, 0.5, 0.75};
  }
  absl::Status Snapshot(int merge) override {
    calls.push_back(absl::StrCat("snapshot", Text(merge)));
    return absl::OkStatus();
  }
  absl::Status Release(int merge) override {
    calls.push_back(absl::StrCat("release", Text(merge)));
    return absl::OkStatus();
  }
  absl::Status Checkpoint() override {
    calls.push_back("checkpoint");
    return checkpoint_status;
  }
  void Log(LogLevel level, std::string_view text) override {
    log.push_back(absl::StrCat(static_cast<int>(level), " ", std::string(text)));
  }
  void Progress(double fraction, std::string_view what) override {
    progress.emplace_back(fraction, std::string(what));
  }
  bool Cancelled() override { return cancel; }

  std::vector<std::string> calls, log;
  std::vector<std::pair<double, std::string>> progress;
  absl::Status train_status, checkpoint_status;
  std::function<void()> on_train;
  bool results_missing = false;
  bool cancel = false;

 private:
  std::string Text(int merge) const {
    const Range range = plan_.merges()[merge].range();
    return absl::StrCat(" ", range.first, "-", range.last);
  }
  static TrainResult Result() {
    TrainResult result;
    result.restored = true;
    result.updates = 320;
    result.initial_loss = 2;
    result.final_loss = 0.5;
    result.seconds = 0.125;
    return result;
  }

  const Plan& plan_;
};

}  // namespace mergeplan
