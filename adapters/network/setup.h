#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "adapters/network/inputs.h"
#include "adapters/network/module.h"
#include "adapters/network/precision.h"
#include "adapters/network/steps.h"
#include "adapters/network/teachers.h"
#include "planner/schedule/schedule.h"

namespace mergeplan::network {

// A network from a file or folder, on the CPU.
struct LoadedNetwork {
  std::unique_ptr<Module> module;
  Signature signature;
  std::string sha256;  // of what it was read from
};
using NetworkLoader = std::function<absl::StatusOr<LoadedNetwork>(const std::string& path)>;
// "script": TorchScript with its sidecar. Formats that live elsewhere add theirs.
std::map<std::string, NetworkLoader> NetworkLoaders();

// What a run on networks is made of, in words.
struct SetupOptions {
  std::string teacher;  // KIND:PATH; analytic (spectrum.toml), mixture, or a kind of network
  std::string basis;    // of analytic; empty: the recommended one
  // KIND:PATH of a network to begin with; empty: the teacher's own, where it has one.
  std::string student;
  // "analytic", "data", "rollout"; empty: data where there are some, else analytic where the
  // teacher is, else rollout.
  std::string inputs;
  std::string data;            // of "data": what planner/data reads
  std::string array;           // of it
  std::string scaling;         // of it; empty: what the student's signature says
  std::int64_t pool_rows = 0;  // of "rollout"
  std::uint64_t seed = 0;
  Precision precision = Precision::kFull;
  at::Device device = at::Device(at::kCPU);
  std::map<std::string, NetworkLoader> loaders = NetworkLoaders();
};

// The parts that Executor::Create takes.
struct Setup {
  std::shared_ptr<Teacher> teacher;
  std::unique_ptr<Module> student;
  NetworkSteps steps;  // the student's
  std::shared_ptr<Inputs> inputs;
  // The student does not begin as the teacher's network: it needs a fit (fit_updates).
  bool needs_fit = false;
  std::string identity;  // hash of the teacher, the student's file and the data, for fingerprints
  std::string words;     // "rollout", …: the inputs that were taken
};

// Reads it all for a schedule. A student of half precision is turned to float32, in which it is
// trained. INVALID_ARGUMENT names the option, what was found and what is expected; errors of the
// files.
absl::StatusOr<Setup> MakeSetup(const SetupOptions& options, const Schedule& schedule);

}  // namespace mergeplan::network
