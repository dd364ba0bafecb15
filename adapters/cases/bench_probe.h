#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "adapters/cases/network_job.h"
#include "adapters/runtime/bench_row.h"

namespace mergeplan {

// A few steps of the teacher and three updates of the plan's first merge, timed. Nothing of the job
// changes.
absl::StatusOr<BenchSpeed> ProbeNetworks(const NetworkJob& job);

// What one trial of the job needs: every update, the steps and jumps of its target, rollouts that
// make its inputs, and the fit. A student's jump is taken to cost what a step of the teacher does.
BenchNeeds NeedsOf(const NetworkJob& job, const BenchSpeed& speed);
// Single steps of the teacher for single rows that training asks for in one trial, rollouts that
// make inputs included, the fit and held-out rows not: as many as the records of a run say, but for
// merges that `gain-bound` stops, and at most as many with a pool, whose targets are made when they
// are needed. O(T).
std::int64_t TeacherCallsOf(const NetworkJob& job);
// Of drawing samples of the student.
double SecondsOfSamples(const NetworkJob& job, const BenchSpeed& speed, std::int64_t samples);

// The most weights that are frozen at a time, in bytes: those that merges start from, and of every
// round those that untrained merges still need.
std::int64_t SnapshotBytes(const NetworkJob& job);

}  // namespace mergeplan
