#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "adapters/runtime/bench_row.h"
#include "planner/plan/io/document.h"
#include "plugins/host/host.h"

namespace mergeplan {

// One strategy with its plan, ready to be trained: what RunBench knows of a kind of teacher.
class BenchCase {
 public:
  virtual ~BenchCase() = default;

  // The plan and the question that it was made for.
  virtual const PlanDocument& document() const = 0;
  // Samples per update.
  virtual int batch() const = 0;
  // Axes in which the teacher's data is seen, empty where nothing is known of it, and what is
  // trained how, for people.
  virtual std::string basis() const = 0;
  virtual std::string training() const = 0;

  // Updates of what all strategies start from, made once for each trial.
  virtual std::int64_t shared_updates() const { return 0; }

  // The same plan with the updates that BOOT would make in all, shared by its merges.
  virtual absl::StatusOr<std::shared_ptr<const BenchCase>> WithTotalBudget() const = 0;
  // What is known before training; the caller fills in `strategy` and `total_budget`.
  virtual BenchRow Row() const = 0;
  // How quick the machine is with these networks, in a few seconds; and what one trial of this
  // strategy needs then.
  virtual absl::StatusOr<BenchSpeed> Probe() const { return BenchSpeed{}; }
  virtual BenchNeeds Needs(const BenchSpeed& speed) const {
    (void)speed;
    return {};
  }
  // The teacher's own samples, where samples are judged.
  virtual absl::StatusOr<std::optional<JudgedSamples>> JudgeTeacher(const BenchWatch& watch) const {
    (void)watch;
    return std::optional<JudgedSamples>();
  }
  // Trains `trials` times and fills in what came out. CANCELLED when watch.stop said so.
  virtual absl::Status Run(int trials, const BenchWatch& watch, BenchRow* row) const = 0;
};

}  // namespace mergeplan
