// Ranks that torchrun started, over LibTorch's ProcessGroupNCCL: one CUDA device each. Numbers come
// from and go to the host's memory, by way of the device.
#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>
#include <c10/cuda/CUDAFunctions.h>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "adapters/parallel/engine.h"

namespace mergeplan {
namespace {

constexpr std::int64_t kAtOnce = std::int64_t{1} << 26;  // numbers on the device at one time

struct Nccl {
  c10::intrusive_ptr<c10d::Store> store;
  c10::intrusive_ptr<c10d::ProcessGroupNCCL> group;
  at::Device device = at::Device(at::kCPU);
  EngineFunctions functions;
  std::string error;
};
Nccl& Engine() {
  static Nccl engine;
  return engine;
}

// 0, or 1 with the words kept.
int Tried(const std::function<void()>& body) {
  try {
    const c10::InferenceMode no_autograd;
    body();
    return 0;
  } catch (const c10::Error& error) {
    Engine().error = error.what_without_backtrace();
  } catch (const std::exception& error) {
    Engine().error = error.what();
  }
  return 1;
}

// Pieces of host memory to the device, something done there by all ranks, and back.
int OnDevice(void* memory, std::int64_t n, at::ScalarType type,
             const std::function<void(std::vector<at::Tensor>&)>& together) {
  return Tried([&] {
    const auto size = static_cast<std::int64_t>(at::elementSize(type));
    for (std::int64_t begin = 0; begin < n; begin += kAtOnce) {
      const at::Tensor host =
          at::from_blob(static_cast<char*>(memory) + begin * size, {std::min(kAtOnce, n - begin)},
                        at::TensorOptions().dtype(type));
      std::vector<at::Tensor> there = {host.to(Engine().device)};
      together(there);
      host.copy_(there[0]);  // waits
    }
  });
}

void Add(std::vector<at::Tensor>& tensors) { Engine().group->allreduce(tensors)->wait(); }
void Send(std::vector<at::Tensor>& tensors) {
  Engine().group->broadcast(tensors, c10d::BroadcastOptions())->wait();
}

int SumDouble(double* numbers, std::int64_t n) { return OnDevice(numbers, n, at::kDouble, Add); }
int SumFloat(float* numbers, std::int64_t n) { return OnDevice(numbers, n, at::kFloat, Add); }
int Broadcast(void* bytes, std::int64_t n) { return OnDevice(bytes, n, at::kByte, Send); }
int Barrier() {
  double nothing = 0;
  return SumDouble(&nothing, 1);
}

void Describe(int /*error*/, char* text, std::size_t size) {
  std::snprintf(text, size, "%s", Engine().error.c_str());
}

// Ranks meet in the store, which needs no device. One that does not come has ended with an error,
// and torchrun ends the others.
void Finish(double seconds) {
  Nccl& engine = Engine();
  Tried([&] {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
    while (engine.store->add("ended", 0) < engine.functions.ranks &&
           std::chrono::steady_clock::now() < deadline) {
      static const std::int64_t mine = engine.store->add("ended", 1);
      if (mine < engine.functions.ranks) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  });
  engine.group.reset();
}

std::string Variable(const char* name) {
  const char* text = std::getenv(name);
  if (text == nullptr || *text == '\0') {
    throw std::runtime_error(std::string(name) + " is not set; start it with torchrun");
  }
  return text;
}

void Open() {
  Nccl& engine = Engine();
  const int rank = std::stoi(Variable("RANK")), ranks = std::stoi(Variable("WORLD_SIZE"));
  const int local = std::stoi(Variable("LOCAL_RANK"));
  const int devices = c10::cuda::device_count();
  if (local >= devices) {
    throw std::runtime_error("this machine has " + std::to_string(devices) +
                             " CUDA devices, expected one for each of its processes; start fewer, "
                             "or on the processor with mpirun");
  }
  engine.device = at::Device(at::kCUDA, static_cast<c10::DeviceIndex>(local));
  c10d::TCPStoreOptions options;
  options.port = static_cast<std::uint16_t>(std::stoi(Variable("MASTER_PORT")));
  // torchrun's own server stands there already, unless it says otherwise.
  const char* agent = std::getenv("TORCHELASTIC_USE_AGENT_STORE");
  options.isServer = rank == 0 && (agent == nullptr || std::string(agent) != "True");
  options.numWorkers = static_cast<std::size_t>(ranks);
  options.waitWorkers = false;
  const char* restart = std::getenv("TORCHELASTIC_RESTART_COUNT");
  engine.store = c10::make_intrusive<c10d::PrefixStore>(
      std::string("mergeplan/") + (restart == nullptr ? "0" : restart),
      c10::make_intrusive<c10d::TCPStore>(Variable("MASTER_ADDR"), options));
  engine.group = c10::make_intrusive<c10d::ProcessGroupNCCL>(engine.store, rank, ranks);
  engine.functions = {rank, ranks, SumDouble, SumFloat, Broadcast, Barrier, Describe, Finish};
}

}  // namespace
}  // namespace mergeplan

extern "C" __attribute__((visibility("default"))) const mergeplan::EngineFunctions*
mergeplan_engine_open(char* error, std::size_t size) {
  using namespace mergeplan;  // NOLINT(google-build-using-namespace)
  if (Tried(Open) != 0) {
    std::snprintf(error, size, "%s", Engine().error.c_str());
    return nullptr;
  }
  return &Engine().functions;
}
