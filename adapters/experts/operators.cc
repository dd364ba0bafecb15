#include "adapters/experts/operators.h"

#include <cmath>
#include <string>
#include <type_traits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "adapters/experts/kernel.h"
#include "adapters/experts/level.h"

namespace mergeplan::experts {
namespace {

class Teacher : public Operator {
 public:
  Teacher(std::shared_ptr<const MixtureTrajectory> teacher, int first, int last)
      : teacher_(std::move(teacher)), first_(first), last_(last) {}
  void Apply(const double* z, std::size_t rows, double* out, Workspace& work) const override {
    if (work.teacher.size() < teacher_->scratch_size()) {
      work.teacher.resize(teacher_->scratch_size());
    }
    teacher_->Composite(first_, last_, z, rows, out, absl::MakeSpan(work.teacher));
  }
  void Visit(OperatorVisitor& visitor) const override { visitor.Teacher(*teacher_, first_, last_); }
  int teacher_steps() const override { return last_ - first_ + 1; }

 private:
  std::shared_ptr<const MixtureTrajectory> teacher_;
  int first_, last_;
};

template <typename T>
class Student : public Operator {
 public:
  Student(const NetworkShape& shape, double time, const std::vector<double>& parameters)
      : level_(shape, time),
        scratch_(KernelScratch(shape.dimensions, shape.experts, shape.hidden)) {
    const std::vector<T> numbers(parameters.begin(), parameters.end());
    level_.Prepare(numbers.data());
  }
  void Apply(const double* z, std::size_t rows, double* out, Workspace& work) const override {
    AlignedVector<T>& scratch = Scratch(work);
    if (scratch.size() < scratch_) scratch.resize(scratch_);
    ForwardRows(level_.tables(), z, rows, out, scratch.data());
  }
  void Visit(OperatorVisitor& visitor) const override { visitor.Student(level_.tables()); }

 private:
  static AlignedVector<T>& Scratch(Workspace& work) {
    if constexpr (std::is_same_v<T, float>) {
      return work.float32;
    } else {
      return work.float64;
    }
  }
  LevelNetwork<T> level_;
  std::size_t scratch_;
};

class Composition : public Operator {
 public:
  explicit Composition(std::vector<OperatorPointer> operators) : operators_(std::move(operators)) {}
  void Apply(const double* z, std::size_t rows, double* out, Workspace& work) const override {
    for (const OperatorPointer& op : operators_) {
      op->Apply(z, rows, out, work);
      z = out;
    }
  }
  void Visit(OperatorVisitor& visitor) const override {
    for (const OperatorPointer& op : operators_) op->Visit(visitor);
  }
  int teacher_steps() const override {
    int steps = 0;
    for (const OperatorPointer& op : operators_) steps += op->teacher_steps();
    return steps;
  }

 private:
  std::vector<OperatorPointer> operators_;
};

}  // namespace

std::string_view ToString(Precision precision) {
  return precision == Precision::kFloat32 ? "float32" : "float64";
}

absl::StatusOr<Precision> ParsePrecision(std::string_view word) {
  if (word == "float32") return Precision::kFloat32;
  if (word == "float64") return Precision::kFloat64;
  return absl::InvalidArgumentError(absl::StrCat("number type '", std::string(word),
                                                 "' is unknown, expected float32 or float64"));
}

OperatorPointer MakeTeacher(std::shared_ptr<const MixtureTrajectory> teacher, int first, int last) {
  return std::make_shared<Teacher>(std::move(teacher), first, last);
}

OperatorPointer MakeStudent(const NetworkShape& shape, double time,
                            const std::vector<double>& parameters, Precision precision) {
  if (precision == Precision::kFloat32) {
    return std::make_shared<Student<float>>(shape, time, parameters);
  }
  return std::make_shared<Student<double>>(shape, time, parameters);
}

OperatorPointer MakeComposition(std::vector<OperatorPointer> operators) {
  if (operators.size() == 1) return std::move(operators.front());
  return std::make_shared<Composition>(std::move(operators));
}

ErrorEstimate SquaredDistance(const std::vector<double>& a, const std::vector<double>& b,
                              std::size_t d) {
  ErrorEstimate out;
  out.rows = a.size() / d;
  // Mean and sum of squared deviations, row by row (Welford).
  double deviations = 0;
  for (std::size_t r = 0; r < out.rows; ++r) {
    double distance = 0;
    for (std::size_t i = r * d; i < (r + 1) * d; ++i) distance += (a[i] - b[i]) * (a[i] - b[i]);
    const double before = distance - out.mean;
    out.mean += before / static_cast<double>(r + 1);
    deviations += before * (distance - out.mean);
  }
  const auto n = static_cast<double>(out.rows);
  if (out.rows > 1) out.standard_error = std::sqrt(deviations / (n - 1) / n);
  return out;
}

}  // namespace mergeplan::experts
