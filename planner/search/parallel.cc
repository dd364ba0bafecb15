#include "planner/search/parallel.h"

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

namespace mergeplan::search {

int ThreadCount(int threads) {
  if (threads > 0) return threads;
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

void ParallelFor(int threads, int count, const std::function<void(int)>& body) {
  std::atomic<int> next{0};
  const auto work = [&] {
    for (int k = next.fetch_add(1); k < count; k = next.fetch_add(1)) body(k);
  };
  const int helpers = std::min(threads, count) - 1;
  std::vector<std::thread> pool;
  for (int h = 0; h < helpers; ++h) pool.emplace_back(work);
  work();
  for (std::thread& thread : pool) thread.join();
}

}  // namespace mergeplan::search
