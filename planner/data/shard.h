#pragma once

#include <cstdint>
#include <memory>

#include "planner/data/samples.h"

namespace mergeplan {

// Part `index` (1..count) of the samples of `source`: where their number is known, the samples
// floor(n (index-1) / count) .. floor(n index / count) - 1, of which those before are passed over
// (not read, where the file can be wound forward) and those behind never read; else every count-th.
// The parts are disjoint, and together they are all. With `every` it is every count-th in any case,
// as it must be where samples are left out. Samples left out are counted by the first part only.
std::unique_ptr<SampleSource> ShardOf(std::unique_ptr<SampleSource> source, int index, int count,
                                      bool every);
// Is it every count-th?
bool CutsEvery(const SampleSource& source, bool every);
// The first sample behind part `index` of n samples cut into `count` parts: floor(n index / count).
std::int64_t EndOfShard(std::int64_t n, std::int64_t index, std::int64_t count);

}  // namespace mergeplan
