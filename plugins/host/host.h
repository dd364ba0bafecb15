#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "planner/operators/budget.h"
#include "planner/operators/terms.h"
#include "planner/plan/plan.h"
#include "planner/schedule/schedule.h"
#include "plugins/host/manifest.h"
#include "plugins/host/runtime.h"

struct mergeplan_plugin;  // plugins/abi/mergeplan_plugin.h

namespace mergeplan {

// What a plugin is asked for (mergeplan_plan_request).
struct PlanRequest {
  Schedule schedule;              // T = schedule.steps()
  int student_steps = 1;          // N
  std::vector<double> variances;  // d, native; empty when the data's spectrum is not known
  std::vector<double> weights;    // d, or empty: all 1
  Budget budget;
  Init init = Init::kChild;
  Reference reference = Reference::kSurrogate;
  Space space = Space::kNary;
  double gap = 1e-3;
  double time_limit_seconds = 30;
  int max_merges = 0, max_rounds = 0;             // of the plan; 0: any number
  std::map<std::string, std::string> parameters;  // as the user gave them
};

// Changes to a request for one call of solve.
struct SolveOverrides {
  std::optional<int> student_steps;
  std::optional<Init> init;
  std::optional<Reference> reference;
  std::optional<Space> space;
  std::optional<double> gap;
  std::optional<double> time_limit_seconds;
  std::optional<int> max_merges, max_rounds;
};

enum class SolveOutcome { kOptimal = 0, kWithinGap = 1, kTimeLimit = 2, kInterrupted = 3 };

struct Solution {
  Plan plan;
  SolveOutcome outcome = SolveOutcome::kOptimal;
  double objective = 0;
  double lower_bound = 0;
};

// What the host's planner does for a plugin (the C++ side of mergeplan_planner). services.h has the
// implementation on top of planner/. Log and Cancelled may be called from any thread, the others
// come from the thread that called MakePlan.
class PlannerServices {
 public:
  virtual ~PlannerServices() = default;
  virtual absl::StatusOr<Solution> Solve(const PlanRequest& request,
                                         const SolveOverrides& overrides) = 0;
  // Objective of the plan for the request's reference.
  virtual absl::StatusOr<double> EvaluateTree(const PlanRequest& request, const Plan& plan) = 0;
  virtual absl::StatusOr<Plan> ParsePlan(const PlanRequest& request, const std::string& path) = 0;
  virtual void Log(LogLevel level, std::string_view text) = 0;
  virtual bool Cancelled() = 0;
};

// A loaded plugin. Its library stays loaded for the life of the process. Several MakePlan and
// Execute may run at the same time.
class Plugin {
 public:
  const Manifest& manifest() const { return manifest_; }
  const std::string& name() const { return manifest_.name; }

  // Asks the plugin for a plan. Checks the request before (finite, sizes, 1 <= N <= T, parameters
  // against the schema) and the answer after (Plan::Create, T and N as asked). Every error names
  // the plugin; its own errors keep their code, a thrown exception is INTERNAL.
  absl::StatusOr<Plan> MakePlan(const PlanRequest& request, PlannerServices& services) const;

  // Lets the plugin train the plan through `runtime`. OK only when every merge has been trained or
  // restored; CANCELLED when the plugin stopped because the user wanted to. Snapshots that the
  // plugin forgot are released. Errors as above.
  absl::Status Execute(const Plan& plan, RuntimeInterface& runtime,
                       const std::map<std::string, std::string>& parameters = {}) const;

 private:
  friend absl::StatusOr<std::shared_ptr<const Plugin>> LoadFromManifest(const Manifest& manifest);
  Plugin(Manifest manifest, const ::mergeplan_plugin* entry)
      : manifest_(std::move(manifest)), entry_(entry) {}
  absl::Status Annotate(const absl::Status& status, std::string_view call) const;

  Manifest manifest_;
  const ::mergeplan_plugin* entry_;
};

// One manifest that was found.
struct PluginListing {
  std::string manifest_path;
  std::string name;  // from the manifest, or its file name where it cannot be read
  // OK, or why it cannot be used. A manifest can be fine and the library not.
  absl::Status status;
  std::optional<Manifest> manifest;  // where it could be read
};

// Where plugins are looked for, in this order, folders that do not exist left out: `extra`
// (--plugin-dir), MERGEPLAN_PLUGIN_PATH (separated by ':'), and relative to the folder of the
// running program ../lib/mergeplan/plugins and ../../lib/mergeplan/plugins, so that a build tree
// and an installed tree both work.
std::vector<std::string> PluginSearchPath(absl::Span<const std::string> extra);

// All plugins on the search path, by name, each loaded in a child process of its own to see whether
// it can be used; one bad plugin does not hide the others. Of two with one name the first found
// counts, the later ones are listed with ALREADY_EXISTS. A folder of `extra` that cannot be read is
// an error of its own entry.
std::vector<PluginListing> ListPlugins(absl::Span<const std::string> extra);

// The manifest of a plugin by name from the search path, or by the path of its library or manifest
// (anything with a '/' or ending in ".so" or ".toml"). No code of the plugin runs. NOT_FOUND lists
// what there is.
absl::StatusOr<Manifest> FindManifest(const std::string& name_or_path,
                                      absl::Span<const std::string> extra);

// Can this host load the plugin, and does it agree with its manifest? Loading runs the plugin's
// code, so it is tried in a child process only: nothing of the plugin is left here.
absl::Status CheckLoads(const Manifest& manifest);

// Finds a plugin's manifest, checks it, opens the library (RTLD_NOW | RTLD_LOCAL) and compares the
// two, in a child process first: a library that crashes, exits or hangs while it is loaded is an
// error. With `teacher_gives` (bits of mergeplan_teacher_trait) a plugin that needs more of a
// teacher is refused before any of its code runs.
absl::StatusOr<std::shared_ptr<const Plugin>> LoadPlugin(
    const std::string& name_or_path, absl::Span<const std::string> extra,
    std::optional<std::uint64_t> teacher_gives = std::nullopt);

}  // namespace mergeplan
