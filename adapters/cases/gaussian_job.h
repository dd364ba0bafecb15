#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "adapters/analytic/gaussian.h"
#include "adapters/linear/dtype.h"
#include "adapters/linear/recipe.h"
#include "adapters/runtime/arguments.h"
#include "adapters/runtime/device.h"
#include "adapters/runtime/run_folder.h"
#include "planner/operators/model.h"
#include "planner/plan/io/document.h"
#include "plugins/host/host.h"

namespace mergeplan {

// Everything that a run needs, found and checked.
struct Job {
  std::shared_ptr<const Plugin> plugin;
  std::map<std::string, std::string> parameters;  // of the plugin, as given
  GaussianTeacher teacher;
  PlanDocument document;  // the plan; its budget's batch is the run's
  Model model;
  std::uint64_t seed = 0;
  DType dtype = DType::kFloat64;
  Device device;
  Recipe recipe;
  int threads = 0;  // 0: all processors

  // SHA-256 over everything that determines the numbers: plan, schedule, variances, budget, start,
  // seed, dtype, kind of device, recipe.
  std::string Fingerprint() const;
  // RunInfo::prediction.
  std::string Prediction() const;
};

// A new run. With `strategy` its plugin makes the plan; with `plan` the plugin dp_custom reads it.
// Misuse for options that contradict the plan or have no meaning; FAILED_PRECONDITION when plan and
// spectrum do not belong together.
absl::StatusOr<Job> NewJob(const DistillArguments& arguments, PlannerServices& services);

// The run in `folder` again, from its run.toml and plan.toml. Options that are given must say what
// the run says. The spectrum must still be what it was.
absl::StatusOr<Job> ResumedJob(const DistillArguments& arguments, const RunFolder& folder);

}  // namespace mergeplan
