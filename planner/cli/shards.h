#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "planner/cli/question.h"
#include "planner/spectrum/estimate.h"

namespace mergeplan::cli {

// "2/8" to part and parts of the flags. Misuse unless 1 <= part <= parts <= 1,000,000.
absl::Status ParseShard(const std::string& text, DataFlags& flags);

// Analyses the data in `shards` parts, one after another, each of which leaves its spectrum in
// `folder` (made if need be), and merges them. Parts that are there already from the same data are
// not read again: a run that was killed goes on where it was. Errors of EstimateSpectrum and
// MergeSpectra; CANCELLED on Ctrl-C, after the part at hand.
absl::StatusOr<Spectrum> EstimateInShards(const DataFlags& flags, const EstimateOptions& options,
                                          int shards, const std::string& folder);

}  // namespace mergeplan::cli
