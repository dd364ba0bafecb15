#include "adapters/cases/gaussian_result.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "adapters/noise/noise.h"
#include "planner/base/file.h"
#include "planner/base/memory.h"
#include "planner/base/status_macros.h"
#include "planner/data/npz.h"
#include "planner/runs/curve_updates.h"

namespace mergeplan {
namespace {

constexpr int kSamples = 16;

// What a diagonal operator on unit noise gives, in the data's units.
std::vector<double> Samples(const Job& job, absl::Span<const double> value,
                            const std::vector<float>& noise) {
  const size_t d = value.size();
  std::vector<double> rows(noise.size());
  for (size_t i = 0; i < noise.size(); ++i) {
    rows[i] = job.document.data_scale * value[i % d] * noise[i];
  }
  return job.teacher.Decode(rows);
}

}  // namespace

RunSummary Summarize(const Job& job, const Executor& executor) {
  const std::vector<double> value = executor.Value();
  RunSummary summary;
  summary.strategy = job.plugin->name();
  summary.reference = std::string(ToString(job.document.reference));
  summary.predicted = job.model.Objective(executor.PredictedValue(), job.document.reference);
  summary.achieved = job.model.Objective(value, job.document.reference);
  for (const TrainedMerge& record : executor.records()) {
    summary.seconds += record.seconds;
    summary.updates += record.updates;
    summary.teacher_calls += record.teacher_calls;
    summary.merges += record.trained ? 1 : 0;
  }
  return summary;
}

absl::Status WriteResult(const Job& job, const Executor& executor, const std::string& folder) {
  const Plan& plan = executor.plan();
  const Model& model = job.model;
  const auto d = static_cast<std::int64_t>(model.dimensions());
  const auto merges = static_cast<std::int64_t>(plan.size());
  const std::vector<double> value = executor.Value();
  const std::vector<double> predicted = executor.PredictedValue();
  const absl::Span<const double> tau = model.tau(job.document.reference);
  const std::vector<std::int64_t> curve_updates = CurveUpdates(model.budget().iterations);

  std::vector<double> ranges, values, predictions, losses;
  std::vector<MergeRecord> records;
  for (int m = 0; m < plan.size(); ++m) {
    const Merge& merge = plan.merges()[m];
    const TrainedMerge& record = executor.records()[m];
    const absl::Span<const double> expected = executor.predicted(plan.teacher_steps() + m);
    ranges.insert(ranges.end(),
                  {static_cast<double>(merge.first), static_cast<double>(merge.last)});
    values.insert(values.end(), record.value.begin(), record.value.end());
    predictions.insert(predictions.end(), expected.begin(), expected.end());
    losses.insert(losses.end(), record.curve.begin(), record.curve.end());
    MergeRecord entry;
    static_cast<MergeFigures&>(entry) = record;
    entry.first = merge.first;
    entry.last = merge.last;
    entry.round = merge.round;
    entry.predicted_error = executor.MergeError(m, expected);
    entry.achieved_error = executor.MergeError(m, record.value);
    entry.effective_time = executor.EffectiveTime(m);
    records.push_back(entry);
  }

  std::vector<float> noise(static_cast<size_t>(kSamples * d));
  // No merge has the range [0, 0], so that this stream is used by nothing else.
  NoiseStream(job.seed, 0, 0, 0).Fill(noise.data(), kSamples * d);
  const std::vector<double> teacher = executor.TeacherComposite({1, plan.teacher_steps()});

  NpzWriter npz;
  npz.Add("value", {d}, value);
  npz.Add("predicted", {d}, predicted);
  npz.Add("tau", {d}, tau);
  npz.Add("merge_range", {merges, 2}, ranges, NpzWriter::Type::kInt64);
  npz.Add("merge_value", {merges, d}, values);
  npz.Add("merge_predicted", {merges, d}, predictions);
  const auto points = static_cast<std::int64_t>(curve_updates.size());
  npz.Add("loss_update", {points}, std::vector<double>(curve_updates.begin(), curve_updates.end()),
          NpzWriter::Type::kInt64);
  npz.Add("loss", {merges, points}, losses);
  npz.Add("samples", {kSamples, d}, Samples(job, value, noise));
  npz.Add("teacher_samples", {kSamples, d}, Samples(job, teacher, noise));
  MP_ASSIGN_OR_RETURN(const std::string bytes, npz.Bytes());
  MP_RETURN_IF_ERROR(WriteFileAtomically(folder + "/result.npz", bytes));

  RunResult result;
  result.summary = Summarize(job, executor);
  result.predicted_surrogate = model.Objective(predicted, Reference::kSurrogate);
  result.achieved_surrogate = model.Objective(value, Reference::kSurrogate);
  result.predicted_teacher = model.Objective(predicted, Reference::kTeacher);
  result.achieved_teacher = model.Objective(value, Reference::kTeacher);
  result.training = job.recipe.Options();
  result.dimensions = model.dimensions();
  result.peak_memory_bytes = PeakMemoryBytes();
  result.merges = std::move(records);
  result.arrays_sha256 = Sha256(bytes);
  return WriteRunResult(result, folder);
}

}  // namespace mergeplan
