#pragma once

#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "adapters/linear/recipe.h"
#include "adapters/runtime/arguments.h"

namespace mergeplan {

// The word of an option that the machine is to be asked about (adapters/cases/choose.h), which puts
// what was found in its place before anything else reads it.
inline constexpr char kAuto[] = "auto";

// How network students are trained, apart from batch, seed, start and device. No LibTorch here;
// network_job.cc hands it to adapters/network.
struct NetworkOptions {
  Recipe recipe;                      // optimizer adam unless told otherwise
  double lr = 1e-4;                   // lr
  std::int64_t iterations = 1000;     // iterations: updates per merge
  std::int64_t total_updates = 0;     // total-updates: of all merges together; 0: iterations each
  std::int64_t fit_updates = -1;      // fit-iterations: of single steps; -1: 0 for a copy of the
                                      // teacher, else 1000
  double gain_bound = 0;              // gain-bound: stop where less of the gain is left; 0: never
  std::string loss = "z";             // loss: z, x0, epsilon, v
  std::string weighting = "uniform";  // weighting: uniform, snr, truncated-snr, min-snr-gamma
  double gamma = 5;                   // gamma, of min-snr-gamma
  std::string precision = "full";     // precision: full, bf16, fp16, auto
  std::string layout = "contiguous";  // layout: contiguous, channels_last, auto
  bool shared = true;                 // weights: shared (one network a round) or separate
  std::string inputs;                 // inputs: data, analytic, rollout; empty: what there is
  std::int64_t pool_rows = 0;         // pool-rows: rollouts that are kept; 0: fresh ones
  std::int64_t held_out_rows = 256;   // held-out-rows
  bool deterministic = false;         // deterministic: yes, no
  bool checkpointing = false;         // gradient-checkpointing: yes, no
  bool cuda_graph = true;             // cuda-graph: yes, no

  friend bool operator==(const NetworkOptions&, const NetworkOptions&) = default;

  // Of the options by their names; those left out have their defaults. INVALID_ARGUMENT names the
  // option, what was found and what is expected.
  static absl::StatusOr<NetworkOptions> Parse(const std::map<std::string, std::string>& texts);
  // All of them, such that Parse gives the same.
  std::map<std::string, std::string> Texts() const;
};

// Names of options that network students alone have.
bool IsNetworkOption(const std::string& name);

// What the arguments say of it. Misuse names an option that these students do not have.
absl::StatusOr<std::map<std::string, std::string>> NetworkTexts(const DistillArguments& arguments);

}  // namespace mergeplan
