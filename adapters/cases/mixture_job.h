#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "adapters/analytic/mixture.h"
#include "adapters/experts/executor.h"
#include "adapters/runtime/arguments.h"
#include "adapters/runtime/device.h"
#include "adapters/runtime/run_folder.h"
#include "planner/operators/model.h"
#include "planner/plan/io/document.h"
#include "planner/schedule/schedule.h"
#include "plugins/host/host.h"

namespace mergeplan {

// Everything that training a plan on a mixture needs, found and checked.
struct MixtureJob {
  std::shared_ptr<const Plugin> plugin;
  std::map<std::string, std::string> parameters;  // of the plugin, as given
  std::shared_ptr<const MixtureTeacher> teacher;
  Schedule schedule;
  // The plan. Its question is about the Gaussian with the mixture's moments (linear students that
  // know nothing of modes), trained for the time s of the budget; its reference is the teacher.
  PlanDocument document;
  std::shared_ptr<const Model> model;  // of that Gaussian
  experts::ExecutorOptions options;    // without seeds and functions, but for where to train
  std::uint64_t seed = 0;
  Device device;

  // SHA-256 over everything that determines the numbers.
  std::string Fingerprint() const;
};

// A new run. With `strategy` its plugin makes the plan; with `plan` the plugin dp_custom reads the
// file, of which merges, schedule, start and time s are taken (for updates of linear students the
// time is --train-time's), whatever variances it was made for.
// Misuse for options that contradict the plan or have no meaning.
absl::StatusOr<MixtureJob> NewMixtureJob(const DistillArguments& arguments,
                                         PlannerServices& services);
// The run in `folder` again. Options that are given must say what the run says; the mixture must
// still be what it was.
absl::StatusOr<MixtureJob> ResumedMixtureJob(const DistillArguments& arguments,
                                             const RunFolder& folder);

}  // namespace mergeplan
