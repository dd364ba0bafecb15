#pragma once

#include <atomic>
#include <chrono>

#include "absl/status/status.h"
#include "planner/search/search.h"

namespace mergeplan::search {

// INVALID_ARGUMENT for student steps, gap, limits, groups or a time limit out of range.
absl::Status CheckOptions(const Model& model, const SearchOptions& options);

// When a search has to end: its time is over, it was interrupted, or it gave up by itself. May be
// asked by several threads. Holds a reference to the options.
class Deadline {
 public:
  explicit Deadline(const SearchOptions& options)
      : options_(options), begin_(std::chrono::steady_clock::now()) {}

  double Seconds() const;  // since it was made
  // Looks at the clock and asks options.interrupted; true for good once it was true.
  bool Stop();
  void GiveUp() { stopped_ = true; }
  bool interrupted() const { return interrupted_; }
  bool stopped() const { return stopped_; }

 private:
  const SearchOptions& options_;
  const std::chrono::steady_clock::time_point begin_;
  std::atomic<bool> interrupted_{false}, stopped_{false};
};

}  // namespace mergeplan::search
