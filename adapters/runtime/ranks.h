#pragma once

#include <atomic>
#include <memory>

#include "absl/status/status.h"
#include "adapters/parallel/communicator.h"

namespace mergeplan {

// What one command on several processes has to agree on. With one process everything is as it is.
class Ranks {
 public:
  explicit Ranks(std::shared_ptr<const Communicator> communicator)
      : communicator_(std::move(communicator)) {}

  const std::shared_ptr<const Communicator>& communicator() const { return communicator_; }
  bool first() const { return communicator_->first(); }
  bool several() const { return communicator_->ranks() > 1; }

  // Collective. OK when it is for all; else every rank gets an error, which only the first one that
  // had it should tell (see IsToldElsewhere).
  absl::Status Agree(const absl::Status& mine) const;
  // Collective among several: has any of them been asked to stop?
  bool Stop();
  // What the last Stop said; with one process: has it been asked to stop? Any thread.
  bool stopped() const;

 private:
  std::shared_ptr<const Communicator> communicator_;
  std::atomic<bool> stopped_ = false;
};

// An error that another rank tells people about.
bool IsToldElsewhere(const absl::Status& status);

}  // namespace mergeplan
