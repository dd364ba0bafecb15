#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "adapters/runtime/event_file.h"
#include "adapters/runtime/training.h"
#include "planner/plan/plan.h"

namespace mergeplan {

// What a run tells other programs while it trains and when it is done:
//   events.out.tfevents.0.mergeplan   for TensorBoard: loss/[i, j] over the updates of every merge;
//                                     residual, updates, seconds over the number of merges trained
//   merges.csv                        a line a merge: what result.toml says of it
//   losses.csv                        first,last,update,loss
// They are for people; a run goes on without them.
class Recorder {
 public:
  // Into this folder; "": nowhere.
  Recorder(std::string folder, const Plan& plan);

  // Begins, with what an earlier part of the run has trained.
  absl::Status Begin(const Training& training);
  // These merges have been trained.
  absl::Status Trained(const Training& training, absl::Span<const int> merges);
  // The tables, of all merges, from FOLDER/result.toml.
  absl::Status Finish(const Training& training) const;

 private:
  void Add(const Training& training, int merge);

  std::string folder_;
  Plan plan_;
  EventFile events_;
  int merges_ = 0;
};

}  // namespace mergeplan
