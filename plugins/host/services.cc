#include "plugins/host/services.h"

#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "planner/base/status_macros.h"
#include "planner/operators/model.h"
#include "planner/plan/io/document.h"
#include "planner/plan/io/evaluate.h"
#include "planner/search/search.h"

namespace mergeplan {
namespace {

absl::StatusOr<Model> MakeModel(const PlanRequest& request, const SolveOverrides& overrides) {
  if (request.variances.empty()) {
    return absl::FailedPreconditionError(
        "the data's spectrum is not known, so nothing can be predicted; give variances");
  }
  ModelSpec spec;
  spec.schedule = request.schedule;
  spec.variances = request.variances;
  spec.weights = request.weights;
  spec.budget = request.budget;
  spec.init = overrides.init.value_or(request.init);
  spec.reference = overrides.reference.value_or(request.reference);
  return Model::Create(std::move(spec));
}

SolveOutcome ToOutcome(SearchStatus status) {
  switch (status) {
    case SearchStatus::kOptimal:
      return SolveOutcome::kOptimal;
    case SearchStatus::kWithinGap:
      return SolveOutcome::kWithinGap;
    case SearchStatus::kTimeLimit:
      return SolveOutcome::kTimeLimit;
    case SearchStatus::kInterrupted:
      break;
  }
  return SolveOutcome::kInterrupted;
}

absl::Status Mismatch(const std::string& path, std::string_view key, const std::string& found,
                      const std::string& expected) {
  return absl::InvalidArgumentError(absl::StrCat(path, ": ", std::string(key), ": found ", found,
                                                 ", expected ", expected,
                                                 " as this run has it; plan again for this run"));
}

absl::Status SameLevels(const std::string& path, std::string_view key,
                        const std::vector<double>& file, const std::vector<double>& run) {
  for (size_t t = 0; t < run.size(); ++t) {
    if (!(std::abs(file[t] - run[t]) <= 1e-9)) {
      return Mismatch(path, absl::StrCat(std::string(key), "[", t, "]"),
                      absl::StrFormat("%.12g", file[t]), absl::StrFormat("%.12g", run[t]));
    }
  }
  return absl::OkStatus();
}

}  // namespace

LinearPlannerServices::LinearPlannerServices(LogFunction log, std::function<bool()> cancelled)
    : log_(std::move(log)), cancelled_(std::move(cancelled)) {}

absl::StatusOr<Solution> LinearPlannerServices::Solve(const PlanRequest& request,
                                                      const SolveOverrides& overrides) {
  MP_ASSIGN_OR_RETURN(const Model model, MakeModel(request, overrides));
  SearchOptions options;
  options.student_steps = overrides.student_steps.value_or(request.student_steps);
  options.space = overrides.space.value_or(request.space);
  options.gap = overrides.gap.value_or(request.gap);
  options.time_limit_seconds = overrides.time_limit_seconds.value_or(request.time_limit_seconds);
  options.max_merges = overrides.max_merges.value_or(request.max_merges);
  options.max_rounds = overrides.max_rounds.value_or(request.max_rounds);
  options.interrupted = cancelled_;
  MP_ASSIGN_OR_RETURN(SearchResult found, mergeplan::Solve(model, options));
  return Solution{std::move(found.plan), ToOutcome(found.status), found.objective,
                  found.lower_bound};
}

absl::StatusOr<double> LinearPlannerServices::EvaluateTree(const PlanRequest& request,
                                                           const Plan& plan) {
  MP_ASSIGN_OR_RETURN(const Model model, MakeModel(request, {}));
  return model.Objective(plan);
}

absl::StatusOr<Plan> LinearPlannerServices::ParsePlan(const PlanRequest& request,
                                                      const std::string& path) {
  MP_ASSIGN_OR_RETURN(const PlanDocument document, ReadPlan(path));
  MP_RETURN_IF_ERROR(CheckHasSchedule(document, path));
  const int steps = request.schedule.steps();
  if (document.plan.teacher_steps() != steps) {
    return Mismatch(path, "teacher_steps", absl::StrCat(document.plan.teacher_steps()),
                    absl::StrCat(steps));
  }
  if (document.plan.student_steps() != request.student_steps) {
    return Mismatch(path, "student_steps", absl::StrCat(document.plan.student_steps()),
                    absl::StrCat(request.student_steps));
  }
  if (document.init != request.init) {
    return Mismatch(path, "init", std::string(ToString(document.init)),
                    std::string(ToString(request.init)));
  }
  if (document.alpha.size() != request.schedule.alpha.size() ||
      document.sigma.size() != request.schedule.sigma.size()) {
    return Mismatch(path, "alpha",
                    absl::StrCat(document.alpha.size(), " and ", document.sigma.size(), " values"),
                    absl::StrCat(request.schedule.alpha.size(), " each"));
  }
  MP_RETURN_IF_ERROR(SameLevels(path, "alpha", document.alpha, request.schedule.alpha));
  MP_RETURN_IF_ERROR(SameLevels(path, "sigma", document.sigma, request.schedule.sigma));
  return document.plan;
}

void LinearPlannerServices::Log(LogLevel level, std::string_view text) {
  if (log_) log_(level, text);
}

bool LinearPlannerServices::Cancelled() { return cancelled_ && cancelled_(); }

}  // namespace mergeplan
