#include "adapters/cases/mixture_result.h"

#include <cstdint>
#include <utility>
#include <vector>

#include "adapters/cases/expert_options.h"
#include "adapters/cases/teacher_result.h"
#include "adapters/noise/noise.h"
#include "planner/base/file.h"
#include "planner/base/status_macros.h"
#include "planner/data/npz.h"
#include "planner/runs/curve_updates.h"

namespace mergeplan {
namespace {

using experts::StudentRecord;

// As many rows as show the modes of a few dimensions, and few of many.
std::int64_t SampleRows(std::int64_t d) { return d <= 64 ? 1024 : 16; }

void AddUpdates(NpzWriter& npz, const char* name, std::int64_t updates) {
  const std::vector<std::int64_t> at = CurveUpdates(updates);
  npz.Add(name, {static_cast<std::int64_t>(at.size())}, std::vector<double>(at.begin(), at.end()),
          NpzWriter::Type::kInt64);
}

void AddMerges(const Plan& plan, const experts::TrialRecord& trial, std::int64_t iterations,
               NpzWriter& npz) {
  const auto merges = static_cast<std::int64_t>(plan.size());
  const auto points = static_cast<std::int64_t>(CurveUpdates(iterations).size());
  std::vector<double> ranges, losses;
  for (int m = 0; m < plan.size(); ++m) {
    const Merge& merge = plan.merges()[m];
    ranges.insert(ranges.end(),
                  {static_cast<double>(merge.first), static_cast<double>(merge.last)});
    losses.insert(losses.end(), trial.merges[m].curve.begin(), trial.merges[m].curve.end());
  }
  npz.Add("merge_range", {merges, 2}, ranges, NpzWriter::Type::kInt64);
  AddUpdates(npz, "loss_update", iterations);
  npz.Add("loss", {merges, points}, losses);
  AddUpdates(npz, "fit_loss_update", trial.fit.updates);
  npz.Add("fit_loss", {static_cast<std::int64_t>(trial.fit.curve.size())}, trial.fit.curve);
}

// What is needed to run the student without this program.
void AddStudent(const Plan& plan, const experts::NetworkShape& shape,
                const experts::TrialRecord& trial, NpzWriter& npz) {
  const std::vector<Range> blocks = plan.BlockRanges();
  std::vector<double> ranges, trained, parameters;
  for (std::size_t b = 0; b < blocks.size(); ++b) {
    const int merge = plan.blocks()[b] - plan.teacher_steps();
    const StudentRecord* record = merge >= 0                  ? &trial.merges[merge]
                                  : plan.teacher_steps() == 1 ? &trial.fit
                                                              : nullptr;
    const bool known = record != nullptr && record->parameters != nullptr;
    ranges.insert(ranges.end(),
                  {static_cast<double>(blocks[b].first), static_cast<double>(blocks[b].last)});
    trained.push_back(known ? 1 : 0);
    if (known) {
      parameters.insert(parameters.end(), record->parameters->begin(), record->parameters->end());
    } else {
      parameters.resize(parameters.size() + static_cast<std::size_t>(shape.parameters()));
    }
  }
  const auto n = static_cast<std::int64_t>(blocks.size());
  npz.Add("student_shape", {4},
          {static_cast<double>(shape.dimensions), static_cast<double>(shape.experts),
           static_cast<double>(shape.hidden), static_cast<double>(shape.embedding)},
          NpzWriter::Type::kInt64);
  npz.Add("block_range", {n, 2}, ranges, NpzWriter::Type::kInt64);
  npz.Add("block_trained", {n}, trained, NpzWriter::Type::kInt64);
  npz.Add("parameters", {n, shape.parameters()}, parameters);
}

absl::Status AddSamples(const MixtureJob& job, const experts::Executor& executor, NpzWriter& npz) {
  const std::int64_t d = job.options.shape.dimensions, rows = SampleRows(d);
  std::vector<float> noise(static_cast<std::size_t>(rows * d));
  // No merge has the range [0, 0], so that this stream is used by nothing else.
  NoiseStream(job.seed, 0, 0, 0).Fill(noise.data(), rows * d);
  const std::vector<double> z(noise.begin(), noise.end());
  const int T = job.document.plan.teacher_steps();
  MP_ASSIGN_OR_RETURN(const experts::OperatorPointer student, executor.Student(0));
  const auto teacher =
      experts::MakeTeacher(std::make_shared<const MixtureTrajectory>(executor.teacher()), 1, T);
  experts::Workspace work;
  for (const auto& [name, op] : {std::pair{"samples", student}, {"teacher_samples", teacher}}) {
    std::vector<double> out(z.size());
    op->Apply(z.data(), static_cast<std::size_t>(rows), out.data(), work);
    for (double& x : out) x *= job.document.data_scale;
    npz.Add(name, {rows, d}, out);
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status WriteMixtureResult(const MixtureJob& job, const experts::Executor& executor,
                                const RunSummary& summary, const std::string& folder) {
  const Plan& plan = job.document.plan;
  const experts::TrialRecord& trial = executor.records(0);
  NpzWriter npz;
  AddMerges(plan, trial, job.options.iterations, npz);
  AddStudent(plan, job.options.shape, trial, npz);
  MP_RETURN_IF_ERROR(AddSamples(job, executor, npz));
  MP_ASSIGN_OR_RETURN(const std::string bytes, npz.Bytes());
  MP_RETURN_IF_ERROR(WriteFileAtomically(folder + "/result.npz", bytes));

  RunResult result = TeacherResult(summary, ToTexts(job.options), job.options.shape.dimensions);
  for (int m = 0; m < plan.size(); ++m) {
    const StudentRecord& record = trial.merges[m];
    result.merges.push_back(TeacherRecord(plan.merges()[m], record, record.teacher.mean,
                                          record.teacher.standard_error));
  }
  result.arrays_sha256 = Sha256(bytes);
  return WriteRunResult(result, folder);
}

}  // namespace mergeplan
