#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "planner/operators/terms.h"
#include "planner/plan/plan.h"

namespace mergeplan::calibrate {

// One merge that is trained to learn what merges do: over `range`, its children being the ranges in
// `trained` (pilots themselves, from the clean end, none overlapping) and single steps elsewhere.
struct Pilot {
  Range range;
  std::vector<Range> trained;
  int replicate = 0;      // trained with the run's seed plus this
  bool held_out = false;  // kept from the fit, to judge it

  // The first step of the noisiest child, from which students of `child` and `child-jump` start.
  int start() const {
    return !trained.empty() && trained.back().last == range.last ? trained.back().first
                                                                 : range.last;
  }
  bool SameTraining(const Pilot& other) const {
    return range == other.range && trained == other.trained && replicate == other.replicate;
  }
  friend bool operator==(const Pilot&, const Pilot&) = default;
  // "[1, 8] over [5, 8]".
  std::string ToString() const;
};

// What came of it. All errors are E |.|^2 over held-out rows, in the schedule's coordinates.
struct PilotResult {
  Pilot pilot;
  double start = 0;                           // of the untrained student against its target
  std::vector<std::int64_t> updates;          // rising, 1 or more
  std::vector<double> error, standard_error;  // against its target after so many
  double teacher = 0, teacher_error = 0;      // against the teacher's steps at the end; its error
  std::int64_t teacher_calls = 0;
  double seconds = 0;
  std::int64_t peak_memory = 0;  // bytes

  friend bool operator==(const PilotResult&, const PilotResult&) = default;
};

// E |start - target|^2 of a merge over [first, last] whose noisiest child, taken as perfect, begins
// at `start`; 0: the distance does not depend on it.
struct Distance {
  int first = 0, start = 0, last = 0;
  double mean = 0, standard_error = 0;

  friend bool operator==(const Distance&, const Distance&) = default;
};

// How an error at `level`, the one that a merge over level+1..last makes, grows on the teacher's
// steps below: squared[i-1] = E |after the steps i..level|^2 / E |before|^2.
struct GainProbe {
  int level = 0, last = 0;
  bool trained = false;  // the error that a trained pilot has left; false: that of its start
  std::vector<double> squared;

  friend bool operator==(const GainProbe&, const GainProbe&) = default;
};

// Everything that a calibration measures: numbers only, from which the tables follow.
struct Measurements {
  std::string fingerprint;  // of all that determines the numbers
  // Options that were left to a probe of the machine, and what it chose (adapters/cases/choose.h).
  std::map<std::string, std::string> chosen;
  int teacher_steps = 0;
  double data_scale = 1;
  std::int64_t dimensions = 0;
  // Of the teacher's samples, native, by dimension; used where no spectrum is known.
  std::vector<double> variances;
  std::vector<Distance> distances;
  std::vector<GainProbe> gains;
  std::vector<PilotResult> pilots;
  std::int64_t probe_calls = 0;  // single steps of the teacher for distances and gains
  double probe_seconds = 0;

  friend bool operator==(const Measurements&, const Measurements&) = default;
};

const PilotResult* FindPilot(const Measurements& m, const Pilot& pilot);

// JSON with all digits, replaced at once, so that a calibration can be taken up. Reading gives an
// equal value; DATA_LOSS for what is damaged.
absl::Status WriteMeasurements(const Measurements& m, const std::string& path);
absl::StatusOr<Measurements> ReadMeasurements(const std::string& path);
// The same numbers as arrays for people, in an .npz.
absl::StatusOr<std::string> MeasurementsNpz(const Measurements& m);

}  // namespace mergeplan::calibrate
