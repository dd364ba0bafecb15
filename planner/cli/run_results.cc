#include "planner/cli/run_results.h"

#include <cmath>
#include <filesystem>
#include <limits>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "planner/base/file.h"
#include "planner/base/status_macros.h"
#include "planner/data/npz.h"
#include "planner/operators/law.h"
#include "planner/plan/io/evaluate.h"
#include "planner/runs/result_file.h"
#include "planner/runs/run_info.h"

namespace mergeplan::cli {
namespace {

// What the law of SGD says of the plan, besides its mean.
absl::Status FillLaw(const Model& model, StrategyResult& result) {
  const PlanDocument& document = result.document;
  result.expected_value = model.Value(document.plan);
  result.predicted_objective = model.Objective(result.expected_value, document.reference);
  result.predicted_with_noise = result.predicted_objective;
  if (!document.budget.sgd) return absl::OkStatus();
  result.has_law = true;
  MP_ASSIGN_OR_RETURN(const ValueLaw law, LawOfValue(model, document.plan));
  result.predicted_with_noise = ExpectedObjective(model, law, document.reference);
  for (double variance : law.variance) result.value_spread.push_back(std::sqrt(variance));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<RunResults> ReadRunResults(const std::string& folder) {
  RunResults out;
  StrategyResult& result = out.result;
  result.run_folder = folder;

  const std::string run_file = folder + "/run.toml";
  std::error_code ec;
  if (!std::filesystem::exists(run_file, ec)) {
    return absl::NotFoundError(absl::StrCat(
        folder,
        std::filesystem::exists(folder, ec) ? ": found no run.toml in it" : ": does not exist",
        ", expected the folder of a finished run, as mergeplan "
        "distill -o FOLDER makes it; give that one"));
  }
  MP_ASSIGN_OR_RETURN(const RunInfo info, ReadRunInfo(run_file));
  if (info.status != RunStatus::kFinished) {
    return absl::FailedPreconditionError(absl::StrCat(
        run_file, ": the run is ", ToString(info.status),
        ", expected finished; continue it with mergeplan distill --resume -o ", folder));
  }
  result.name = info.strategy;
  out.dtype = info.dtype;
  out.basis = info.basis;
  out.teacher = info.teacher;
  out.teacher_file = info.teacher_file;
  MP_ASSIGN_OR_RETURN(result.document, ReadPlan(folder + "/plan.toml"));
  MP_RETURN_IF_ERROR(CheckHasSchedule(result.document, folder + "/plan.toml"));
  MP_ASSIGN_OR_RETURN(RunResult finished, ReadRunResult(folder));
  result.achieved_objective = finished.summary.achieved;
  result.achieved_objective_teacher = finished.achieved_teacher;
  result.seconds = finished.summary.seconds;
  result.merges = std::move(finished.merges);
  result.standard_error = finished.summary.standard_error;
  const std::string arrays = folder + "/result.npz";
  if (info.student != kLinearStudent) {
    // The students are no linear operators: there is no value for each dimension.
    result.linear = false;
    result.predicted_objective = finished.summary.predicted;
    result.predicted_with_noise = std::numeric_limits<double>::quiet_NaN();
    for (const auto& [name, bytes] : {std::pair{"/samples.png", &result.picture},
                                      {"/teacher_samples.png", &result.teacher_picture}}) {
      if (!std::filesystem::exists(folder + name, ec)) continue;
      MP_ASSIGN_OR_RETURN(*bytes, ReadFile(folder + name));
    }
    for (const auto& [name, rows] :
         {std::pair{"samples", &result.samples}, {"teacher_samples", &result.teacher_samples}}) {
      MP_ASSIGN_OR_RETURN(NpyArray array, ReadNpzArray(arrays, name));
      const auto d = static_cast<std::size_t>(result.document.dimensions());
      if (array.values.size() % d != 0) {
        return absl::DataLossError(absl::StrCat(arrays, ": ", name, " has ", array.values.size(),
                                                " entries, no multiple of ", d, " dimensions"));
      }
      *rows = std::move(array.values);
    }
    return out;
  }
  MP_ASSIGN_OR_RETURN(NpyArray value, ReadNpzArray(arrays, "value"));
  if (static_cast<int>(value.values.size()) != result.document.dimensions()) {
    return absl::DataLossError(absl::StrCat(arrays, ": value has ", value.values.size(),
                                            " entries, the plan in ", folder, "/plan.toml ",
                                            result.document.dimensions(), " dimensions"));
  }
  result.value = std::move(value.values);
  MP_ASSIGN_OR_RETURN(const Model model, ModelOf(result.document));
  if (info.prediction == "law") {
    MP_RETURN_IF_ERROR(FillLaw(model, result));
    return out;
  }
  // Trained in another way than the law is about: what the run itself says, if anything.
  result.predicted_objective = finished.summary.predicted;
  result.predicted_with_noise = std::numeric_limits<double>::quiet_NaN();
  if (info.prediction == "mean") {
    MP_ASSIGN_OR_RETURN(NpyArray predicted, ReadNpzArray(arrays, "predicted"));
    result.expected_value = std::move(predicted.values);
  }
  return out;
}

}  // namespace mergeplan::cli
