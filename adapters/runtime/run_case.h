#pragma once

#include <map>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
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

}  // namespace mergeplan
