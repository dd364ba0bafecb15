#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "planner/schedule/schedule.h"

namespace mergeplan::network {

// What a network's output is, with z = alpha x0 + sigma eps.
enum class Prediction {
  kEpsilon,      // eps
  kSample,       // x0
  kVPrediction,  // a eps - s x0 / sigma_data with a : s = alpha sigma_data : sigma, a^2 + s^2 = 1
  kFlow,         // eps - x0
};
// "epsilon", "sample", "v_prediction", "flow"; "flow_prediction" is read too.
std::string_view ToString(Prediction prediction);
absl::StatusOr<Prediction> ParsePrediction(std::string_view word);

// What a network is told about the noise of its input: time_scale * value + time_offset.
enum class TimeKind {
  kTimestep,  // number of the level in the table it was trained with, or what the run's says
  kFraction,  // that number over the number of steps; without a table t / T of the run
  kSigma,     // sigma of the state as the network gets it in its native coordinates
  kLogSnr,    // log(alpha^2 / sigma^2)
  kTable,     // an array beside alpha and sigma of the table
};
// "timestep", "level/T", "sigma", "log-snr", "table".
std::string_view ToString(TimeKind kind);
absl::StatusOr<TimeKind> ParseTimeKind(std::string_view word);

// The noise levels that a network was trained with, in its native coordinates, alpha/sigma falling
// strictly.
struct TrainingTable {
  std::vector<double> alpha, sigma;
  std::vector<double> timestep;  // the numbers of the entries
  std::vector<double> time;      // of kTable, else empty
  double steps = 0;              // what kFraction divides by
};

// Everything that has to be known about a network besides its weights.
struct Signature {
  Prediction prediction = Prediction::kEpsilon;
  std::vector<std::int64_t> shape;  // of one sample: [C, H, W] or [d]
  std::string dtype = "float32";    // of its input: float32, float64, float16, bfloat16
  // Of forward, in their order; "label" among them where there are classes.
  std::vector<std::string> arguments = {"z", "time"};
  std::int64_t classes = 0;  // labels 0..classes-1; 0: the network is told none
  // Does the network see alpha x0 + sigma eps as its schedule has it ("native"), or divided by
  // sqrt(alpha^2 sigma_data^2 + sigma^2) ("normalized"; EDM's c_in)?
  bool normalized_input = false;
  double sigma_data = 1;
  TimeKind time = TimeKind::kTimestep;
  double time_scale = 1, time_offset = 0;
  bool integer_time = false;  // int64, rounded
  std::optional<TrainingTable> table;
  std::string
      scaling;  // how stored pixels become its data, "-1:1" (planner/spectrum); may be empty

  std::int64_t dimensions() const;
};

// How pixels are read where a signature says nothing.
inline constexpr char kPixelScaling[] = "-1:1";
inline std::string PixelScaling(const std::string& scaling) {
  return scaling.empty() ? kPixelScaling : scaling;
}

// Sizes, words and the table. INVALID_ARGUMENT names the key; `where` begins the message.
absl::Status Validate(const Signature& signature, const std::string& where);

// The table of a network that was trained with all levels of this schedule; `steps` is what
// kFraction divides by.
TrainingTable TableOf(const Schedule& schedule, int steps);
// The same of a schedule's name or scheduler_config.json, with `steps` levels. Errors of
// LoadSchedule.
absl::StatusOr<TrainingTable> TableOfSchedule(const std::string& spec, int steps);

// A signature and the file that it is about.
struct Sidecar {
  Signature signature;
  std::string file;  // of the network, as it can be opened
};

// Reads model.toml (README.md has its keys). Names of files in it are relative to its folder.
// INVALID_ARGUMENT names the file and the key, an unknown one too; errors of the files it names.
absl::StatusOr<Sidecar> ReadSidecar(const std::string& path);
// Writes one that reads back as this signature, for the network in `file`; a table's arrays go into
// an .npz beside it (model.toml, model.npz).
absl::Status WriteSidecar(const Signature& signature, const std::string& file,
                          const std::string& path);

}  // namespace mergeplan::network
