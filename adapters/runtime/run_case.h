#pragma once

#include <map>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "adapters/runtime/arguments.h"
#include "adapters/runtime/run_folder.h"
#include "adapters/runtime/training.h"
#include "planner/plan/io/document.h"
#include "planner/runs/run_info.h"
#include "plugins/host/host.h"

namespace mergeplan {

// A run with everything found and checked: what `mergeplan distill` knows of a kind of teacher.
class RunCase {
 public:
  virtual ~RunCase() = default;

  virtual const Plugin& plugin() const = 0;
  virtual const std::map<std::string, std::string>& parameters() const = 0;  // of the plugin
  // The plan and the question that it was made for.
  virtual const PlanDocument& document() const = 0;
  // run.toml, but for the plan's hash, which is that of a file.
  virtual RunInfo Info() const = 0;
  virtual absl::StatusOr<std::unique_ptr<Training>> Begin(const TrainingWatch& watch) const = 0;
};

// A new run. With `strategy` its plugin makes the plan; with `plan` the plugin dp_custom reads it.
// Misuse for options that contradict the plan or have no meaning; FAILED_PRECONDITION when plan and
// teacher do not belong together.
absl::StatusOr<std::shared_ptr<const RunCase>> NewRun(const DistillArguments& arguments,
                                                      PlannerServices& services);
// The run in `folder` again, from its run.toml and plan.toml. Options that are given must say what
// the run says. The teacher must still be what it was.
absl::StatusOr<std::shared_ptr<const RunCase>> ResumedRun(const DistillArguments& arguments,
                                                          const RunFolder& folder);

// The same for the kinds of teachers.
absl::StatusOr<std::shared_ptr<const RunCase>> NewGaussianRun(const DistillArguments& arguments,
                                                              PlannerServices& services);
absl::StatusOr<std::shared_ptr<const RunCase>> ResumedGaussianRun(const DistillArguments& arguments,
                                                                  const RunFolder& folder);
absl::StatusOr<std::shared_ptr<const RunCase>> NewMixtureRun(const DistillArguments& arguments,
                                                             PlannerServices& services);
absl::StatusOr<std::shared_ptr<const RunCase>> ResumedMixtureRun(const DistillArguments& arguments,
                                                                 const RunFolder& folder);
absl::StatusOr<std::shared_ptr<const RunCase>> NewNetworkRun(const DistillArguments& arguments,
                                                             PlannerServices& services);
absl::StatusOr<std::shared_ptr<const RunCase>> ResumedNetworkRun(const DistillArguments& arguments,
                                                                 const RunFolder& folder);

}  // namespace mergeplan
