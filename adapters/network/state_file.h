#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "adapters/network/executor.h"

namespace mergeplan::network {

// The state of an executor as one .safetensors, exactly, so that a run goes on bit by bit;
// snapshots are files of their own (Snapshots::Persist). Its texts: format, fingerprint, sha256.
//
// Tensors. M merges:
//   next_snapshot; records [M + 1, 17] float64, the fit first (state_file.cc has the columns);
//   curve.<r> of record r (0: the fit) where there is one
// and for the a-th training in progress: active.<a>.
//   merges, initial_losses, seconds, counts (updates, skipped, good, optimizer steps), scale,
//   calls, losses.<task>, parameter.<i>, first.<i>, second.<i>, average.<i>

absl::Status WriteState(const ExecutorState& state, const std::string& fingerprint,
                        const std::string& path);
// NOT_FOUND where there is none yet; DATA_LOSS names the tensor of a damaged one;
// FAILED_PRECONDITION for one of another run or format. Executor::ReadState checks that it fits.
absl::StatusOr<ExecutorState> ReadState(const std::string& fingerprint, const std::string& path);

}  // namespace mergeplan::network
