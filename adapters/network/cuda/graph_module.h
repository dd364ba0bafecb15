#pragma once

#include <cstddef>

// What the module mergeplan-graph.so gives: LibTorch's CUDA graphs, which live in the library that
// the program does not link. Program and module are built together, so there are no versions.
namespace mergeplan::network {

struct GraphFunctions {
  // What this thread does on the device goes into a capture from now on, by way of a stream of its
  // own; memory comes from a pool that all captures on it share. Null where it does not begin.
  void* (*begin)(int device) = nullptr;
  // Ends the capture, however far it came, and brings the thread's stream back. A graph, or null
  // where there is none: something was done that no graph can hold, or `keep` is 0.
  void* (*end)(void* capture, int keep) = nullptr;
  // Into the thread's stream of now. 0, or 1.
  int (*replay)(void* graph) = nullptr;
  void (*drop)(void* graph) = nullptr;
  // Why the last call on this thread failed, cut to `size` bytes.
  void (*describe)(char* text, std::size_t size) = nullptr;
};

// The module's one symbol.
using GraphOpen = const GraphFunctions* (*)();
inline constexpr char kGraphOpenSymbol[] = "mergeplan_graph_open";

}  // namespace mergeplan::network
