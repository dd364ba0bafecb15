#pragma once

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "planner/cli/question.h"
#include "planner/spectrum/estimate.h"

namespace mergeplan::cli {

// "2/8" to part and parts of the flags. Misuse unless 1 <= part <= parts <= 1,000,000.
absl::Status ParseShard(const std::string& text, DataFlags& flags);

// Which of how many processes that do one job this is, as mpirun says in the environment (Open MPI,
// or a launcher with PMI); one alone without.
struct Ranks {
  int rank = 0, size = 1;
};
Ranks RanksOfEnvironment();

// Analyses the data in `shards` parts, one after another, each of which leaves its spectrum in
// `folder` (made if need be), and merges them. Parts that are there already from the same data are
// not read again: a run that was killed goes on where it was. Several ranks, which must all see the
// folder, take the parts in turn; rank 0 waits for those of the others and merges, the others have
// no result. Errors of EstimateSpectrum and MergeSpectra; CANCELLED on Ctrl-C, after the part at
// hand.
absl::StatusOr<std::optional<Spectrum>> EstimateInShards(const DataFlags& flags,
                                                         const EstimateOptions& options, int shards,
                                                         const std::string& folder,
                                                         const Ranks& ranks);

}  // namespace mergeplan::cli
