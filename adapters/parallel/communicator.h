#pragma once

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace mergeplan {

// The processes (ranks) that train together. Collective calls: every rank makes the same ones in
// the same order, from one thread at a time. Their errors are those of the engine (INTERNAL) and
// leave nothing that could go on.
class Communicator {
 public:
  virtual ~Communicator() = default;

  virtual int rank() const = 0;  // 0..ranks() - 1
  virtual int ranks() const = 0;
  bool first() const { return rank() == 0; }

  // n numbers, added over the ranks in an order that depends on their number only; all get the sum.
  virtual absl::Status Sum(double* numbers, std::int64_t n) const = 0;
  virtual absl::Status Sum(float* numbers, std::int64_t n) const = 0;
  // All get what the first rank has.
  virtual absl::Status Broadcast(void* bytes, std::int64_t n) const = 0;
  virtual absl::Status Barrier() const = 0;

  // Does any rank say yes?
  absl::StatusOr<bool> Any(bool mine) const;
  // This rank's share of n things in a row: first, and one behind the last.
  std::int64_t ShareBegin(std::int64_t n) const { return n * rank() / ranks(); }
  std::int64_t ShareEnd(std::int64_t n) const { return n * (rank() + 1) / ranks(); }

  // The last call. Waits until all ranks have come here, some seconds at most, and ends those that
  // have not.
  virtual void Finish() const = 0;
};

// One process: sums are what they are.
std::shared_ptr<const Communicator> Alone();

}  // namespace mergeplan
