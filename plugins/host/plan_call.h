#pragma once

// Inside plugins/host only: plans on their way across the border.

#include <cstdint>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "planner/plan/plan.h"
#include "plugins/abi/mergeplan_plugin.h"
#include "plugins/host/runtime.h"

namespace mergeplan::border {

// The host's sink: collects what a plugin adds. The first failure is kept, so that a plugin that
// goes on after an error cannot hide it.
class PlanCollector {
 public:
  explicit PlanCollector(int teacher_steps);
  PlanCollector(const PlanCollector&) = delete;
  PlanCollector& operator=(const PlanCollector&) = delete;

  const mergeplan_plan_sink* sink() const { return &sink_; }
  // The plan that was collected, checked by Plan::Create.
  absl::StatusOr<Plan> Finish() const;

 private:
  absl::Status AddMerge(int first, int last, const std::int32_t* children, std::int32_t count);
  absl::Status SetBlocks(const std::int32_t* ranges, std::int32_t count);
  absl::Status Keep(const absl::Status& status);

  int teacher_steps_;
  std::thread::id thread_;
  std::size_t child_count_ = 0;
  std::vector<MergeSpec> merges_;
  std::vector<Range> blocks_;
  absl::Status first_error_;
  mergeplan_plan_sink sink_;
};

// Sends a plan into a sink (which may be the plugin's): merges with children before parents, then
// the blocks.
absl::Status Send(const Plan& plan, const mergeplan_plan_sink* sink);

// Pairs from the border; NULL and counts outside least..most are INVALID_ARGUMENT that names
// `what`.
absl::StatusOr<std::vector<Range>> ReadRanges(const char* what, const std::int32_t* pairs,
                                              std::int32_t count, std::int32_t least,
                                              std::int32_t most);

// Parameters as the border wants them; points into `values`, which must outlive it.
class ParameterList {
 public:
  explicit ParameterList(const std::map<std::string, std::string>& values);
  ParameterList(const ParameterList&) = delete;
  ParameterList& operator=(const ParameterList&) = delete;

  std::int32_t count() const { return static_cast<std::int32_t>(pointers_.size()); }
  const mergeplan_parameter* const* data() const { return pointers_.data(); }

 private:
  std::vector<mergeplan_parameter> values_;
  std::vector<const mergeplan_parameter*> pointers_;
};

// Numbers that are no level count as information.
LogLevel ToLogLevel(std::int32_t level);

// FAILED_PRECONDITION when called from another thread than `owner`.
absl::Status CheckThread(std::thread::id owner);

}  // namespace mergeplan::border
