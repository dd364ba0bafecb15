#pragma once

#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace mergeplan::network {

// Takes work on a device down as a graph that is then done again in one launch.
class GraphEngine {
 public:
  class Graph {
   public:
    virtual ~Graph() = default;
    // The work once more, on what lies in the same memory now. Not waited for.
    virtual absl::Status Replay() = 0;
  };

  virtual ~GraphEngine() = default;
  // Runs `work`, whose launches are taken down and not done: what it computes is there after the
  // first Replay. Memory that it takes stays the graph's, or that of all graphs of this engine,
  // which may overwrite each other's. Where `work` fails or does what no graph can hold: its error,
  // and work goes on without.
  virtual absl::StatusOr<std::unique_ptr<Graph>> Capture(
      const std::function<absl::Status()>& work) = 0;
};

// LibTorch's graphs of a CUDA device, from the module mergeplan-graph.so beside the program.
// UNAVAILABLE where it is not there or does not load.
absl::StatusOr<std::shared_ptr<GraphEngine>> OpenCudaGraphs(int device);

}  // namespace mergeplan::network
