#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "planner/plan/plan.h"
#include "plugins/host/host.h"

namespace mergeplan {

// The planner's work for plugins, done by planner/: Solve by planner/search, EvaluateTree by the
// linear-Gaussian model, ParsePlan by planner/plan/io.
class LinearPlannerServices : public PlannerServices {
 public:
  // `log` gets one line at a time and may be empty; `cancelled` may be empty: never. Both may be
  // called from any thread.
  using LogFunction = std::function<void(LogLevel, std::string_view)>;
  explicit LinearPlannerServices(LogFunction log = {}, std::function<bool()> cancelled = {});

  // FAILED_PRECONDITION when the request has no variances.
  absl::StatusOr<Solution> Solve(const PlanRequest& request,
                                 const SolveOverrides& overrides) override;
  absl::StatusOr<double> EvaluateTree(const PlanRequest& request, const Plan& plan) override;
  // Reads a plan file and checks that it was made for the schedule (alpha and sigma within 1e-9),
  // the student steps and the start of the request; the error names the file and the key.
  absl::StatusOr<Plan> ParsePlan(const PlanRequest& request, const std::string& path) override;
  void Log(LogLevel level, std::string_view text) override;
  bool Cancelled() override;

 private:
  LogFunction log_;
  std::function<bool()> cancelled_;
};

}  // namespace mergeplan
