#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "adapters/calibrate/measurements.h"

namespace mergeplan::calibrate {

// What a calibration may spend; what is absent is not limited.
struct SpendLimits {
  std::optional<std::int64_t> updates, calls;
  std::optional<double> minutes;

  // Reads "updates=2000,calls=1e6,minutes=10", any of them. INVALID_ARGUMENT says what is wrong.
  static absl::StatusOr<SpendLimits> Parse(const std::string& text);
};

struct DesignQuestion {
  int teacher_steps = 0;
  int student_steps = 1;
  bool starts_from_child = true;  // do students start from their noisiest child?
  std::int64_t iterations = 0;    // updates per merge of the run that is planned
  std::int64_t rows = 0;          // of one update: batch times accumulated batches
  std::int64_t held_out_rows = 0;
  std::int64_t fit_updates = 0;  // of the student to single steps, before everything else
  bool rollout = false;          // every row is rolled out by the teacher from level T
  std::int64_t pool_rows = 0;    // rollouts that are made once, in place of that
  int replicates = 2;            // trainings of each fitted merge
  // Updates of a pilot; 0: `iterations`.
  std::int64_t pilot_updates = 0;
  SpendLimits limits;
};

// Updates, teacher calls (single steps of single rows) and, where known, seconds.
struct Spend {
  std::int64_t updates = 0, calls = 0;
  double seconds = 0;
};

// What is measured where.
struct Design {
  // Last steps of merges whose distances are measured, and their numbers of steps: 2 and T among
  // them, so that the model's tables have their corners.
  std::vector<int> ends;
  // Levels at which errors are followed down; 1 and T-1 among them, none for T = 2... of one step.
  std::vector<int> levels;
  // In the order in which they are trained: what a fit needs, what judges it, replicates.
  std::vector<Pilot> pilots;
  std::int64_t pilot_updates = 0;
  std::vector<std::int64_t> checkpoints;  // updates after which a pilot is measured
  int replicates = 1;
  Spend spend;                     // of all of it
  std::vector<std::string> notes;  // what the limits left out
};

// Rows that gains are measured on.
inline constexpr std::int64_t kGainRows = 64;

// Seconds that updates of this many teacher steps each, and held-out calls, take; empty functions
// know nothing.
struct Speed {
  std::function<double(int steps)> update;  // seconds of one update of a merge of so many steps
  double call = 0;                          // of one step of the teacher for one row
};

// Which numbers of starts a merge of `steps` steps is measured with: steps of the noisiest child
// beyond one, rising, 0 and steps-2 among them.
std::vector<int> StartDepths(int steps, int teacher_steps);

// Within the limits: replicates are left out first, then merges that only judge, then pilots get
// shorter (at least 1/8 of `iterations`, 16 or more). INVALID_ARGUMENT where there is nothing to
// merge; RESOURCE_EXHAUSTED where the least does not fit: it says what that takes.
absl::StatusOr<Design> MakeDesign(const DesignQuestion& question, const Speed& speed);

// What the pilots cost, probes of distances and gains included.
Spend SpendOf(const DesignQuestion& question, const Design& design, const Speed& speed);

}  // namespace mergeplan::calibrate
