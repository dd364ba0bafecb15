#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace mergeplan {

// Tables are dense in ranges once they are read; a teacher with more steps is planned by the linear
// model.
inline constexpr int kMostMeasuredSteps = 1024;
inline constexpr std::int64_t kMostUpdates = 1'000'000'000'000;

// How the errors that come together in a merge add up.
enum class Combine {
  kSum,  // as they are: a bound, whatever the errors have to do with each other
  kRms,  // root of the sum of squares: what independent errors have on average
};
// "sum", "rms". Parsing another word is INVALID_ARGUMENT and lists both.
std::string_view ToString(Combine combine);
absl::StatusOr<Combine> ParseCombine(std::string_view word);

// One measured number and the interval it is known to lie in: 0 <= low <= value <= high.
struct MeasuredEntry {
  // The steps that it was measured for: the merge; of a gain, the operators passed through.
  int first = 0;
  int last = 0;
  // Distance only: the first step of the merge's noisiest child, from which its student starts.
  // 0: the distance is the same for every start.
  int start = 0;
  std::int64_t updates = 0;  // residual only: after so many updates
  double value = 0;
  double low = 0;
  double high = 0;

  friend bool operator==(const MeasuredEntry&, const MeasuredEntry&) = default;
};

// What a calibration measures on the user's own network, at a few ranges of steps: the second model
// of the design, for what the linear one lacks. All numbers are >= 0; errors are root mean squares
// over the inputs z_last of the merge, in one unit of the user's choice. See README.md for the
// model, and for how numbers between the measured ones are found.
struct MeasuredTables {
  int teacher_steps = 0;            // T, 2..kMostMeasuredSteps
  Combine combine = Combine::kSum;  // the rule that predicted held-out merges better
  std::string source;               // where they come from, in the user's words

  // Lambda(i, m): by how much the operators of steps i..m (level m to level i-1) enlarge an error
  // at level m. 1 <= i <= m <= T-1.
  std::vector<MeasuredEntry> gain;
  // g(i, a, j): distance between what the merge [i,j] starts as and its target.
  std::vector<MeasuredEntry> distance;
  // r(i, j, u): what is left of that distance after u updates. r(i, j, 0) = 1 is known.
  std::vector<MeasuredEntry> residual;
  // f(i, j): the error that training does not get below.
  std::vector<MeasuredEntry> floor;

  friend bool operator==(const MeasuredTables&, const MeasuredTables&) = default;
};

// What holds for single entries: finite numbers, their order and sizes, ranges within 1..T, keys
// that go with the table. MeasuredModel::Create calls it and checks the rest. INVALID_ARGUMENT
// names the table and the entry, as "distance[3]". O(entries).
absl::Status CheckEntries(const MeasuredTables& tables);

// A number with its interval, as a function gives it.
struct MeasuredValue {
  double value = 0;
  double low = 0;
  double high = 0;

  static MeasuredValue Exactly(double value) { return {value, value, value}; }
};

// The model given by functions in place of tables. Each must be defined wherever the tables are.
struct MeasuredFunctions {
  std::function<MeasuredValue(int i, int m)> gain;
  std::function<MeasuredValue(int i, int a, int j)> distance;
  std::function<MeasuredValue(int i, int j, std::int64_t u)> residual;
  std::function<MeasuredValue(int i, int j)> floor;
};

// Tables that hold the functions' values at every range, every start and the given numbers of
// updates, so that a model of them reproduces the functions there exactly. Where `start_matters` is
// false the distance is asked for at a = j only. O(T^2), with starts O(T^3) entries. Errors as
// CheckEntries gives them.
absl::StatusOr<MeasuredTables> TablesOfFunctions(int teacher_steps,
                                                 const MeasuredFunctions& functions,
                                                 absl::Span<const std::int64_t> updates,
                                                 bool start_matters);

// TOML, format version 1 (see README.md). Reading back gives an equal value. Errors begin with the
// file and, where something stands in it, with the line; an unknown key is an error that names it.
// Writing refuses what reading would refuse.
absl::Status WriteMeasured(const MeasuredTables& tables, const std::string& path);
absl::StatusOr<MeasuredTables> ReadMeasured(const std::string& path);

}  // namespace mergeplan
