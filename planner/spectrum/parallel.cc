#include "planner/spectrum/parallel.h"

#include <algorithm>
#include <atomic>
#include <system_error>
#include <thread>
#include <vector>

namespace mergeplan {

int ThreadCount(int requested) {
  if (requested > 0) return requested;
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

absl::Status ParallelFor(int tasks, int threads, absl::FunctionRef<bool(int)> body) {
  std::atomic<int> next = 0;
  std::atomic<bool> failed = false;
  const auto work = [&] {
    for (int task = next++; task < tasks && !failed; task = next++) {
      if (!body(task)) failed = true;
    }
  };
  std::vector<std::thread> helpers;
  helpers.reserve(std::max(0, std::min(threads, tasks) - 1));
  for (int i = 1; i < std::min(threads, tasks); ++i) {
    try {
      helpers.emplace_back(work);
    } catch (const std::system_error&) {
      break;  // The system grants no more threads: the ones there are do the work.
    }
  }
  work();
  for (std::thread& helper : helpers) helper.join();
  if (failed) return absl::ResourceExhaustedError("out of memory in a matrix computation");
  return absl::OkStatus();
}

}  // namespace mergeplan
