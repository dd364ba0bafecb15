#include "adapters/runtime/result.h"

#include <sys/resource.h>
#include <toml++/toml.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <sstream>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "adapters/runtime/noise.h"
#include "planner/base/file.h"
#include "planner/base/status_macros.h"
#include "planner/data/npz.h"

namespace mergeplan {
namespace {

constexpr std::int64_t kFormat = 1;
constexpr int kSamples = 16;

std::int64_t PeakMemoryBytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<std::int64_t>(usage.ru_maxrss) * 1024;
}

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
  summary.predicted = job.model.Objective(executor.plan());
  summary.achieved = job.model.Objective(value, job.document.reference);
  for (const TrainedMerge& record : executor.records()) {
    summary.seconds += record.seconds;
    summary.updates += record.updates;
    summary.teacher_calls += record.teacher_calls;
    summary.merges += record.trained ? 1 : 0;
  }
  return summary;
}

absl::Status WriteResult(const Job& job, const Executor& executor, const RunFolder& folder) {
  const Plan& plan = executor.plan();
  const Model& model = job.model;
  const auto d = static_cast<std::int64_t>(model.dimensions());
  const auto merges = static_cast<std::int64_t>(plan.size());
  const std::vector<double> value = executor.Value();
  const std::vector<double> predicted = model.Value(plan);
  const absl::Span<const double> tau = model.tau(job.document.reference);
  const std::vector<std::int64_t> curve_updates = CurveUpdates(model.budget().iterations);

  std::vector<double> ranges, values, predictions, losses;
  toml::array table;
  for (int m = 0; m < plan.size(); ++m) {
    const Merge& merge = plan.merges()[m];
    const TrainedMerge& record = executor.records()[m];
    const absl::Span<const double> expected = executor.predicted(plan.teacher_steps() + m);
    ranges.insert(ranges.end(),
                  {static_cast<double>(merge.first), static_cast<double>(merge.last)});
    values.insert(values.end(), record.value.begin(), record.value.end());
    predictions.insert(predictions.end(), expected.begin(), expected.end());
    losses.insert(losses.end(), record.curve.begin(), record.curve.end());
    table.push_back(toml::table{
        {"first", merge.first},
        {"last", merge.last},
        {"round", merge.round},
        {"updates", record.updates},
        {"teacher_calls", record.teacher_calls},
        {"seconds", record.seconds},
        {"initial_loss", record.initial_loss},
        {"final_loss", record.final_loss},
        {"residual", record.residual()},
        {"predicted_error", executor.MergeError(m, expected)},
        {"achieved_error", executor.MergeError(m, record.value)},
    });
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
  MP_RETURN_IF_ERROR(WriteFileAtomically(folder.File("result.npz"), bytes));

  const RunSummary summary = Summarize(job, executor);
  const toml::table result{
      {"format", kFormat},
      {"strategy", summary.strategy},
      {"reference", summary.reference},
      {"predicted_error", summary.predicted},
      {"achieved_error", summary.achieved},
      {"predicted_error_surrogate", model.Objective(predicted, Reference::kSurrogate)},
      {"achieved_error_surrogate", model.Objective(value, Reference::kSurrogate)},
      {"predicted_error_teacher", model.Objective(predicted, Reference::kTeacher)},
      {"achieved_error_teacher", model.Objective(value, Reference::kTeacher)},
      {"dimensions", d},
      {"merges", static_cast<std::int64_t>(summary.merges)},
      {"updates", summary.updates},
      {"teacher_calls", summary.teacher_calls},
      {"seconds", summary.seconds},
      {"peak_memory_bytes", PeakMemoryBytes()},
      {"arrays", toml::table{{"file", "result.npz"}, {"sha256", Sha256(bytes)}}},
      {"merge", table},
  };
  std::ostringstream text;
  text << result << '\n';
  return WriteFileAtomically(folder.File("result.toml"), text.str());
}

absl::StatusOr<RunSummary> ReadSummary(const std::string& path) {
  MP_ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  toml::table table;
  try {
    table = toml::parse(text);
  } catch (const toml::parse_error& error) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": line ", error.source().begin.line, ": ",
                                                   std::string(error.description())));
  }
  const std::string arrays = path.substr(0, path.rfind('/') + 1) + "result.npz";
  MP_ASSIGN_OR_RETURN(const std::string sha256, Sha256OfFile(arrays));
  if (table["arrays"]["sha256"].value<std::string>() != sha256) {
    return absl::DataLossError(absl::StrCat(arrays, ": does not match the hash in ", path));
  }
  const auto strategy = table["strategy"].value<std::string>();
  const auto reference = table["reference"].value<std::string>();
  const auto predicted = table["predicted_error"].value<double>();
  const auto achieved = table["achieved_error"].value<double>();
  const auto seconds = table["seconds"].value<double>();
  const auto merges = table["merges"].value<std::int64_t>();
  const auto updates = table["updates"].value<std::int64_t>();
  const auto calls = table["teacher_calls"].value<std::int64_t>();
  if (!strategy || !reference || !predicted || !achieved || !seconds || !merges || !updates ||
      !calls) {
    return absl::InvalidArgumentError(
        absl::StrCat(path,
                     ": a key is missing; expected strategy, reference, predicted_error, "
                     "achieved_error, seconds, merges, updates and teacher_calls"));
  }
  return RunSummary{*strategy, *reference, *predicted,
                    *achieved, *seconds,   static_cast<int>(*merges),
                    *updates,  *calls};
}

}  // namespace mergeplan
