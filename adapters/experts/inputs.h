#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "adapters/experts/draws.h"
#include "planner/mixture/trajectory.h"

namespace mergeplan::experts {

// Where a merge's z_j come from.
enum class InputKind {
  kFresh,  // the mixture's law at level j, drawn afresh for every update
  kPool,   // the same law, drawn once (with its targets), taken in turn again and again
  kData,   // z = alpha x0 + sigma eps: a row of data at random and noise, afresh for every update
};
// "fresh", "pool", "data".
std::string_view ToString(InputKind kind);
absl::StatusOr<InputKind> ParseInputKind(std::string_view word);

// A seed for what `first` and `last` name: a merge of one trial.
std::uint64_t MixSeed(std::uint64_t seed, std::uint64_t first, std::uint64_t last);

// States at the levels of a teacher. Row i of a stream is the same whoever asks for it.
class Inputs {
 public:
  // The law of the teacher's mixture.
  explicit Inputs(std::shared_ptr<const MixtureTrajectory> teacher)
      : teacher_(std::move(teacher)) {}
  // Data, rows x d, row-major, in the schedule's coordinates (x0 / data_scale).
  // INVALID_ARGUMENT where there is no whole row, or a number is not finite.
  static absl::StatusOr<Inputs> FromData(std::shared_ptr<const MixtureTrajectory> teacher,
                                         std::vector<double> data);

  // Rows first_row .. first_row + rows - 1 at level t; z is rows x d.
  void Draw(int level, std::uint64_t seed, Stream stream, std::uint64_t first_row, std::size_t rows,
            double* z) const;

  const MixtureTrajectory& teacher() const { return *teacher_; }
  // Rows x d of the data; null: the mixture's law.
  const std::vector<double>* data() const { return data_.get(); }

 private:
  std::shared_ptr<const MixtureTrajectory> teacher_;
  std::shared_ptr<const std::vector<double>> data_;  // null: the mixture's law
};

}  // namespace mergeplan::experts
