#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "planner/search/cuda/engine.h"
#include "planner/search/search.h"

namespace mergeplan::search {

// Where a search's heavy intervals are worked on. The device is opened when the first of them
// comes, since that alone takes a part of a second. An error on the device ends its use and nothing
// else: what it was asked for is done on the processor. Safe to use from several threads, which
// wait for each other.
class Offload {
 public:
  // Pairs times columns from which on an interval goes to the device, where SearchOptions does not
  // say: about a tenth of a second of one processor core. An estimate; it has not been measured on
  // a device.
  static constexpr double kLeastWork = 1 << 28;
  // The filter's steps with slack follow one another, a few microseconds each on the device: with
  // fewer kept entries the processor is through before. An estimate as well.
  static constexpr std::size_t kLeastKept = 2048;

  // Null where everything is to stay on the processor. kCuda opens the device at once:
  // FAILED_PRECONDITION says what is missing. least_work: nothing for kLeastWork and kLeastKept.
  static absl::StatusOr<std::unique_ptr<Offload>> Make(SearchDevice device,
                                                       std::optional<double> least_work);
  // On a backend that is there.
  Offload(std::unique_ptr<device::Backend> backend, double least_work,
          device::EngineSizes sizes = {});

  // False after an error, or once it is known that there is no device.
  bool usable() const { return !failed_; }
  bool WorthPairs(double pairs, std::size_t columns) const;
  bool WorthFilter(std::size_t candidates, std::size_t kept, std::size_t columns) const;

  // Calls with the engine, if there is one. False: nothing was done, or not all.
  bool Use(const std::function<absl::Status(device::Engine&)>& call);
  // A pass ends or begins: the parts of the last one are gone.
  void NewPass();

  // "NVIDIA H100 PCIe, …" where some work was done there, else "cpu"; and what went wrong, if
  // something did.
  std::string Used() const;

 private:
  explicit Offload(double least_work) : least_work_(least_work) {}

  const double least_work_;
  std::size_t least_kept_ = 0;
  mutable std::mutex mutex_;
  std::unique_ptr<device::Engine> engine_;
  std::atomic<bool> failed_{false};
  bool used_ = false;
  std::string note_;
};

}  // namespace mergeplan::search
