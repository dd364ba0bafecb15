#pragma once

#include <cstddef>

namespace mergeplan::device {

constexpr unsigned kThreads = 256;  // of every block

// Runs body(at) for all threads in blocks of kThreads as launch.cuh has them, the last block first
// and in each the last thread first: what came out in order by luck does not come out so here.
template <class Body>
void Blocks(std::size_t threads, const Body& body) {
  const std::size_t blocks = (threads + kThreads - 1) / kThreads;
  for (std::size_t block = blocks; block-- > 0;) {
    for (std::size_t thread = kThreads; thread-- > 0;) {
      const std::size_t at = block * kThreads + thread;
      if (at < threads) body(at);
    }
  }
}

}  // namespace mergeplan::device
