#include "planner/runs/result_file.h"

#include <toml++/toml.h>

#include <cmath>
#include <limits>
#include <sstream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "planner/base/file.h"
#include "planner/base/status_macros.h"
#include "planner/runs/table_reader.h"

namespace mergeplan {
namespace {

constexpr std::int64_t kFormat = 3;
constexpr char kArrays[] = "result.npz";
constexpr std::int64_t kLargest = std::numeric_limits<std::int64_t>::max();
constexpr int kLargestInt = std::numeric_limits<int>::max();

absl::Status ReadInt(TableReader& reader, const char* key, int least, int* out) {
  std::int64_t value = 0;
  MP_RETURN_IF_ERROR(reader.Integer(key, least, kLargestInt, &value));
  *out = static_cast<int>(value);
  return absl::OkStatus();
}

absl::Status ReadOptional(TableReader& reader, const char* key, std::optional<double>* out) {
  double value = 0;
  MP_RETURN_IF_ERROR(reader.OptionalNumber(key, &value));
  if (!std::isnan(value)) *out = value;
  return absl::OkStatus();
}

// TOML's nan would be a number to whoever reads it: a key that is not there is none.
void InsertIfNumber(toml::table& table, const char* key, double value) {
  if (!std::isnan(value)) table.insert(key, value);
}

toml::table ToToml(const MergeRecord& record) {
  toml::table table{{"first", record.first},
                    {"last", record.last},
                    {"round", record.round},
                    {"updates", record.updates},
                    {"teacher_calls", record.teacher_calls},
                    {"seconds", record.seconds},
                    {"initial_loss", record.initial_loss},
                    {"final_loss", record.final_loss},
                    {"residual", record.residual()},
                    {"achieved_error", record.achieved_error}};
  InsertIfNumber(table, "predicted_error", record.predicted_error);
  if (record.standard_error) table.insert("achieved_standard_error", *record.standard_error);
  if (record.effective_time) table.insert("effective_time", *record.effective_time);
  return table;
}

absl::StatusOr<MergeRecord> ReadMerge(const std::string& file, const toml::table& table) {
  TableReader reader(file, table, "merge.");
  MergeRecord record;
  double residual = 0;  // for readers of the file; follows from the losses
  MP_RETURN_IF_ERROR(ReadInt(reader, "first", 1, &record.first));
  MP_RETURN_IF_ERROR(ReadInt(reader, "last", record.first, &record.last));
  MP_RETURN_IF_ERROR(ReadInt(reader, "round", 1, &record.round));
  MP_RETURN_IF_ERROR(reader.Integer("updates", 0, kLargest, &record.updates));
  MP_RETURN_IF_ERROR(reader.Integer("teacher_calls", 0, kLargest, &record.teacher_calls));
  const std::pair<const char*, double*> numbers[] = {{"seconds", &record.seconds},
                                                     {"initial_loss", &record.initial_loss},
                                                     {"final_loss", &record.final_loss},
                                                     {"residual", &residual},
                                                     {"achieved_error", &record.achieved_error}};
  for (const auto& [key, out] : numbers) MP_RETURN_IF_ERROR(reader.Number(key, out));
  MP_RETURN_IF_ERROR(reader.OptionalNumber("predicted_error", &record.predicted_error));
  MP_RETURN_IF_ERROR(ReadOptional(reader, "achieved_standard_error", &record.standard_error));
  MP_RETURN_IF_ERROR(ReadOptional(reader, "effective_time", &record.effective_time));
  MP_RETURN_IF_ERROR(reader.NothingElse());
  return record;
}

}  // namespace

absl::Status WriteRunResult(const RunResult& result, const std::string& folder) {
  const RunSummary& summary = result.summary;
  toml::array merges;
  for (const MergeRecord& record : result.merges) merges.push_back(ToToml(record));
  toml::table training;
  for (const auto& [option, text] : result.training) training.insert(option, text);
  toml::table table{
      {"format", kFormat},
      {"strategy", summary.strategy},
      {"reference", summary.reference},
      {"achieved_error", summary.achieved},
      {"achieved_error_teacher", result.achieved_teacher},
      {"dimensions", result.dimensions},
      {"merges", summary.merges},
      {"updates", summary.updates},
      {"teacher_calls", summary.teacher_calls},
      {"seconds", summary.seconds},
      {"peak_memory_bytes", result.peak_memory_bytes},
      {"training", training},
      {"arrays", toml::table{{"file", kArrays}, {"sha256", result.arrays_sha256}}},
      {"merge", merges},
  };
  if (summary.standard_error) table.insert("achieved_standard_error", *summary.standard_error);
  InsertIfNumber(table, "achieved_error_surrogate", result.achieved_surrogate);
  InsertIfNumber(table, "predicted_error", summary.predicted);
  InsertIfNumber(table, "predicted_error_surrogate", result.predicted_surrogate);
  InsertIfNumber(table, "predicted_error_teacher", result.predicted_teacher);
  std::ostringstream text;
  text << table << '\n';
  return WriteFileAtomically(folder + "/result.toml", text.str());
}

absl::StatusOr<RunResult> ReadRunResult(const std::string& folder) {
  const std::string path = folder + "/result.toml";
  MP_ASSIGN_OR_RETURN(const toml::table table, ParseTomlFile(path));
  TableReader reader(path, table);
  std::int64_t format = 0;
  MP_RETURN_IF_ERROR(reader.Integer("format", 1, kLargest, &format));
  if (format != kFormat) {
    return reader.Error("format", absl::StrCat("is ", format, ", this version reads ", kFormat));
  }
  RunResult result;
  RunSummary& summary = result.summary;
  MP_RETURN_IF_ERROR(reader.Text("strategy", &summary.strategy));
  MP_RETURN_IF_ERROR(reader.Text("reference", &summary.reference));
  const std::pair<const char*, double*> predictions[] = {
      {"predicted_error", &summary.predicted},
      {"achieved_error_surrogate", &result.achieved_surrogate},
      {"predicted_error_surrogate", &result.predicted_surrogate},
      {"predicted_error_teacher", &result.predicted_teacher}};
  for (const auto& [key, out] : predictions) MP_RETURN_IF_ERROR(reader.OptionalNumber(key, out));
  MP_RETURN_IF_ERROR(ReadOptional(reader, "achieved_standard_error", &summary.standard_error));
  MP_RETURN_IF_ERROR(reader.Texts("training", &result.training));
  const std::pair<const char*, double*> numbers[] = {
      {"achieved_error", &summary.achieved},
      {"achieved_error_teacher", &result.achieved_teacher},
      {"seconds", &summary.seconds}};
  for (const auto& [key, out] : numbers) MP_RETURN_IF_ERROR(reader.Number(key, out));
  MP_RETURN_IF_ERROR(ReadInt(reader, "dimensions", 1, &result.dimensions));
  MP_RETURN_IF_ERROR(ReadInt(reader, "merges", 0, &summary.merges));
  MP_RETURN_IF_ERROR(reader.Integer("updates", 0, kLargest, &summary.updates));
  MP_RETURN_IF_ERROR(reader.Integer("teacher_calls", 0, kLargest, &summary.teacher_calls));
  MP_RETURN_IF_ERROR(reader.Integer("peak_memory_bytes", 0, kLargest, &result.peak_memory_bytes));

  MP_ASSIGN_OR_RETURN(const std::vector<const toml::table*> merges, reader.Tables("merge"));
  for (const toml::table* merge : merges) {
    MP_ASSIGN_OR_RETURN(MergeRecord record, ReadMerge(path, *merge));
    result.merges.push_back(record);
  }
  MP_ASSIGN_OR_RETURN(const toml::table* arrays, reader.Table("arrays"));
  TableReader of_arrays(path, *arrays, "arrays.");
  std::string file;
  MP_RETURN_IF_ERROR(of_arrays.Text("file", &file));
  MP_RETURN_IF_ERROR(of_arrays.Text("sha256", &result.arrays_sha256));
  MP_RETURN_IF_ERROR(of_arrays.NothingElse());
  MP_RETURN_IF_ERROR(reader.NothingElse());
  if (file != kArrays) {
    return of_arrays.Error("file", absl::StrCat("is '", file, "', expected ", kArrays));
  }
  const std::string npz = folder + "/" + kArrays;
  MP_ASSIGN_OR_RETURN(const std::string found, Sha256OfFile(npz));
  if (found != result.arrays_sha256) {
    return absl::DataLossError(absl::StrCat(
        npz, ": does not match the hash in ", path,
        "; one of the two was changed after the run: mergeplan distill --resume makes them again"));
  }
  return result;
}

}  // namespace mergeplan
