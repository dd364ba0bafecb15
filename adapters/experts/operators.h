#pragma once

#include <cstddef>
#include <memory>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "adapters/experts/aligned.h"
#include "adapters/experts/network.h"
#include "planner/mixture/trajectory.h"

namespace mergeplan::experts {

// The numbers inside a student; states are double outside.
enum class Precision { kFloat32, kFloat64 };
// "float32", "float64".
std::string_view ToString(Precision precision);
absl::StatusOr<Precision> ParsePrecision(std::string_view word);

// Memory for the functions below, one per thread. It grows to what they need and is kept.
struct Workspace {
  std::vector<double> teacher;
  AlignedVector<float> float32;
  AlignedVector<double> float64;
};

template <typename T>
struct LevelTables;

// Is shown what an operator is made of, in the order in which states go through it.
class OperatorVisitor {
 public:
  virtual ~OperatorVisitor() = default;
  // Steps last, last - 1, ..., first.
  virtual void Teacher(const MixtureTrajectory& teacher, int first, int last) = 0;
  virtual void Student(const LevelTables<float>& tables) = 0;
  virtual void Student(const LevelTables<double>& tables) = 0;
};

// A frozen map of states, from one level to a cleaner one. Const and without memory of its own:
// threads may share it.
class Operator {
 public:
  virtual ~Operator() = default;
  // `rows` states of d numbers, row-major; `out` may be `z`. A row's result depends on that row
  // only.
  virtual void Apply(const double* z, std::size_t rows, double* out, Workspace& work) const = 0;
  // What it shows is valid as long as the operator is there.
  virtual void Visit(OperatorVisitor& visitor) const = 0;
  // How many single steps of the teacher it takes per row.
  virtual int teacher_steps() const { return 0; }
};
using OperatorPointer = std::shared_ptr<const Operator>;

// The teacher's DDIM steps first..last, exactly (def:composite_teacher_operator).
OperatorPointer MakeTeacher(std::shared_ptr<const MixtureTrajectory> teacher, int first, int last);
// The student of these parameters at the time t/T; `parameters` has shape.parameters() numbers.
OperatorPointer MakeStudent(const NetworkShape& shape, double time,
                            const std::vector<double>& parameters, Precision precision);
// One after the other, the first one first; not empty.
OperatorPointer MakeComposition(std::vector<OperatorPointer> operators);

// The mean over rows of a squared distance, summed over the dimensions, with the standard error of
// that mean.
struct ErrorEstimate {
  double mean = 0, standard_error = 0;
  std::size_t rows = 0;

  bool operator==(const ErrorEstimate&) const = default;
};
// Of E |a - b|^2 between two lists of rows x d states.
ErrorEstimate SquaredDistance(const std::vector<double>& a, const std::vector<double>& b,
                              std::size_t d);

}  // namespace mergeplan::experts
