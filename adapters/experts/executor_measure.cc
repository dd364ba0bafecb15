// What a trained student is worth: on held-out rows, against its target and the teacher.
#include <algorithm>
#include <cmath>
#include <memory>

#include "adapters/experts/executor.h"
#include "planner/base/status_macros.h"
#include "planner/spectrum/parallel.h"

namespace mergeplan::experts {
namespace {

// Rows that go through an operator at a time when it is measured.
constexpr std::size_t kBlockRows = 1024;

// Applies an operator to all rows, on several threads.
absl::Status Map(const Operator& op, const std::vector<double>& z, std::size_t d, int threads,
                 std::vector<double>& out) {
  out.resize(z.size());
  const std::size_t rows = z.size() / d;
  const auto blocks = static_cast<int>((rows + kBlockRows - 1) / kBlockRows);
  return ParallelFor(blocks, threads, [&](int block) {
    Workspace work;
    const std::size_t begin = block * kBlockRows;
    op.Apply(z.data() + begin * d, std::min(kBlockRows, rows - begin), out.data() + begin * d,
             work);
    return true;
  });
}

ErrorEstimate Scaled(ErrorEstimate estimate, double factor) {
  estimate.mean *= factor;
  estimate.standard_error *= factor;
  return estimate;
}

}  // namespace

std::vector<double> Executor::HeldOut(int level, std::size_t rows) const {
  std::vector<double> z(rows * options_.shape.dimensions);
  inputs_.Draw(level, MixSeed(options_.held_out_seed, level, 0), Stream::kHeldOut, 0, rows,
               z.data());
  return z;
}

absl::StatusOr<ErrorEstimate> Executor::Evaluate(int trial) {
  const auto d = static_cast<std::size_t>(options_.shape.dimensions);
  if (held_out_.empty()) {
    held_out_ = HeldOut(plan_.teacher_steps(), options_.held_out_rows);
    MP_RETURN_IF_ERROR(Map(*MakeTeacher(teacher_, 1, plan_.teacher_steps()), held_out_, d,
                           options_.threads, held_out_composite_));
  }
  MP_ASSIGN_OR_RETURN(const OperatorPointer student, Student(trial));
  std::vector<double> out;
  MP_RETURN_IF_ERROR(Map(*student, held_out_, d, options_.threads, out));
  return Scaled(SquaredDistance(out, held_out_composite_, d),
                schedule_.data_scale * schedule_.data_scale);
}

// Fills the record of a student that has been trained.
void Executor::Measure(Job job, const TrainTask& task, const TaskState& end, double seconds) {
  StudentRecord& record = Record(job);
  const auto d = static_cast<std::size_t>(options_.shape.dimensions);
  const int T = plan_.teacher_steps(), threads = options_.threads;
  record.trained = true;
  record.curve = end.curve;
  record.updates = end.updates;
  record.seconds = seconds;
  record.parameters = std::make_shared<const std::vector<double>>(end.parameters);
  const auto rows = static_cast<std::size_t>(options_.held_out_rows);
  const double native = schedule_.data_scale * schedule_.data_scale;

  // The loss of these parameters at a level.
  const auto loss = [&](const std::vector<double>& parameters, int level,
                        const std::vector<double>& z, const std::vector<double>& target) {
    std::vector<double> out;
    Map(*MakeStudent(options_.shape, static_cast<double>(level) / T, parameters,
                     options_.precision),
        z, d, threads, out)
        .IgnoreError();  // its bodies do not fail
    return SquaredDistance(out, target, d);
  };
  const auto map = [&](const Operator& op, const std::vector<double>& z) {
    std::vector<double> out;
    Map(op, z, d, threads, out).IgnoreError();
    return out;
  };

  if (job.merge >= 0) {
    const Merge& merge = plan_.merges()[job.merge];
    const std::vector<double> z = HeldOut(merge.last, rows);
    const std::vector<double> target = map(*task.targets.front(), z);
    record.initial_loss = loss(task.start, merge.last, z, target).mean;
    record.own = loss(end.parameters, merge.last, z, target);
    record.final_loss = record.own.mean;
    const std::vector<double> composite = map(*MakeTeacher(teacher_, merge.first, merge.last), z);
    record.teacher = Scaled(loss(end.parameters, merge.last, z, composite), native);
    const std::int64_t fed =
        options_.inputs == InputKind::kPool ? options_.pool_rows : end.updates * options_.batch;
    record.teacher_calls = task.targets.front()->teacher_steps() * fed;
    return;
  }
  // The fit: equal shares of the rows at all levels, and all of them at level T.
  const std::size_t share = std::max<std::size_t>(2, rows / T);
  record.own = {};
  record.initial_loss = 0;
  double variance = 0;
  for (int t = 1; t <= T; ++t) {
    const std::vector<double> z = HeldOut(t, share);
    const std::vector<double> target = map(*task.targets[t - 1], z);
    record.initial_loss += loss(task.start, t, z, target).mean / T;
    const ErrorEstimate at_level = loss(end.parameters, t, z, target);
    record.own.mean += at_level.mean / T;
    variance += at_level.standard_error * at_level.standard_error / (1.0 * T * T);
    record.own.rows += at_level.rows;
  }
  record.own.standard_error = std::sqrt(variance);
  record.final_loss = record.own.mean;
  const std::vector<double> z = HeldOut(T, rows);
  record.teacher = Scaled(loss(end.parameters, T, z, map(*task.targets.back(), z)), native);
  record.teacher_calls = end.updates * options_.batch;
}

}  // namespace mergeplan::experts
