// LibTorch's CUDA graphs behind plain functions.
#include "adapters/network/cuda/graph_module.h"

#include <ATen/cuda/CUDAGraph.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include <cstdio>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

namespace mergeplan::network {
namespace {

thread_local std::string words;

bool Tried(const std::function<void()>& body) {
  try {
    body();
    return true;
  } catch (const c10::Error& error) {
    words = error.what_without_backtrace();
  } catch (const std::exception& error) {
    words = error.what();
  }
  return false;
}

// What all captures on a device share. Graphs are replayed one after the other, and nothing of one
// is read once another has begun, so they can have the same memory; a pool whose graphs are all
// gone is not taken again, since LibTorch's allocator may still hold pieces of it. One stream,
// because cuBLAS keeps a workspace for each that it has seen.
struct Shared {
  std::optional<c10::cuda::CUDAStream> stream;
  c10::MempoolId_t pool = {0, 0};
  int graphs = 0;
};
Shared& SharedOf(c10::DeviceIndex device) {
  static std::map<c10::DeviceIndex, Shared> all;
  return all[device];
}

struct Capture {
  explicit Capture(c10::DeviceIndex device) : device(device) { ++SharedOf(device).graphs; }
  ~Capture() { --SharedOf(device).graphs; }

  c10::DeviceIndex device;
  at::cuda::CUDAGraph graph;
  std::optional<c10::cuda::CUDAStreamGuard> guard;
};

void* Begin(int index) {
  const auto device = static_cast<c10::DeviceIndex>(index);
  std::unique_ptr<Capture> capture;
  const bool begun = Tried([&] {
    Shared& shared = SharedOf(device);
    if (!shared.stream) shared.stream = c10::cuda::getStreamFromPool(false, device);
    if (shared.graphs == 0) shared.pool = at::cuda::graph_pool_handle();
    capture = std::make_unique<Capture>(device);
    capture->guard.emplace(*shared.stream);
    c10::cuda::device_synchronize();
    // Other threads may use the device in the meantime.
    capture->graph.capture_begin(shared.pool, cudaStreamCaptureModeThreadLocal);
  });
  return begun ? capture.release() : nullptr;
}

void* End(void* opaque, int keep) {
  std::unique_ptr<Capture> capture(static_cast<Capture*>(opaque));
  const bool ended = Tried([&] { capture->graph.capture_end(); });
  if (!ended) {
    const std::string why = words;
    // What the end has left undone.
    Tried([&] {
      c10::cuda::CUDACachingAllocator::endAllocateToPool(capture->device,
                                                         SharedOf(capture->device).pool);
    });
    Tried([] { C10_CUDA_CLEAR_ERROR(); });
    words = why;
  }
  capture->guard.reset();
  return ended && keep != 0 ? capture.release() : nullptr;
}

int Replay(void* graph) {
  return Tried([&] { static_cast<Capture*>(graph)->graph.replay(); }) ? 0 : 1;
}

void Drop(void* graph) {
  Tried([&] { delete static_cast<Capture*>(graph); });
}

void Describe(char* text, std::size_t size) { std::snprintf(text, size, "%s", words.c_str()); }

}  // namespace
}  // namespace mergeplan::network

extern "C" __attribute__((visibility("default"))) const mergeplan::network::GraphFunctions*
mergeplan_graph_open() {
  using namespace mergeplan::network;  // NOLINT
  static const GraphFunctions functions = {Begin, End, Replay, Drop, Describe};
  return &functions;
}
