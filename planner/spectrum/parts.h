#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace mergeplan {

// Some of the parts that a data set was cut into. All of it: one part of one.
struct SpectrumPart {
  std::string source;  // the data as it was named
  // Of the file; "quick:..." of what was only sampled (planner/data/fingerprint.h); empty where
  // neither is known.
  std::string sha256;
  std::string array;  // in the file; empty where none was named
  int of = 1;         // into so many parts
  // False: runs of neighbours, as many in each. True: every `of`-th sample (shard.h).
  bool every = false;
  std::vector<std::pair<int, int>> numbers = {{1, 1}};  // from, to; 1..of, rising, apart

  bool operator==(const SpectrumPart&) const = default;
};
inline constexpr int kMostParts = 1'000'000;

// "1-3,5", and back; INVALID_ARGUMENT unless rising numbers of 1..of.
std::string PartNumbersText(const SpectrumPart& part);
absl::StatusOr<std::vector<std::pair<int, int>>> ParsePartNumbers(const std::string& text, int of);

// "part 2 of 4 of x.npz, array z", for messages.
std::string Describe(const SpectrumPart& part);

// Of one file (by hash, where both have one of the same kind) and array, or of what has one name.
bool SameData(const SpectrumPart& a, const SpectrumPart& b);

// Adds `more` to `parts`, which hold no sample twice; parts of one data set cut in one way are put
// together, and all of them are one part of one. INVALID_ARGUMENT where they have samples in
// common, or may have because the data was cut in two ways.
absl::Status AddParts(const std::vector<SpectrumPart>& more, std::vector<SpectrumPart>& parts);

// What is missing of a data set that `parts` hold some parts of; empty where every one is whole.
// INVALID_ARGUMENT where there are parts of one data set beside another: these are no whole of
// anything, and most likely the wrong files.
absl::StatusOr<std::string> MissingParts(const std::vector<SpectrumPart>& parts);

}  // namespace mergeplan
