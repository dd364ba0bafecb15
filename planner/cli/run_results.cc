#include "planner/cli/run_results.h"

#include <toml++/toml.h>

#include <cmath>
#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "planner/base/file.h"
#include "planner/base/status_macros.h"
#include "planner/data/npz.h"
#include "planner/operators/law.h"
#include "planner/plan/io/evaluate.h"

namespace mergeplan::cli {
namespace {

absl::StatusOr<toml::table> ParseToml(const std::string& path) {
  MP_ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  try {
    return toml::parse(text);
  } catch (const toml::parse_error& error) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": line ", error.source().begin.line, ": ",
                                                   std::string(error.description())));
  }
}

// Typed look-ups in one table of one file.
class Reader {
 public:
  Reader(const std::string& file, const toml::table& table) : file_(file), table_(table) {}

  absl::StatusOr<std::string> Text(const char* key) const {
    return Get<std::string>(key, "a string");
  }
  absl::StatusOr<double> Number(const char* key) const { return Get<double>(key, "a number"); }
  absl::StatusOr<std::int64_t> Integer(const char* key) const {
    return Get<std::int64_t>(key, "an integer");
  }

 private:
  template <typename T>
  absl::StatusOr<T> Get(const char* key, const char* what) const {
    if (const std::optional<T> value = table_[key].value<T>()) return *value;
    return absl::InvalidArgumentError(
        absl::StrCat(file_, ": key \"", key, "\" is ",
                     table_.contains(key) ? "of another type" : "missing", ", expected ", what));
  }

  const std::string& file_;
  const toml::table& table_;
};

absl::StatusOr<MergeRecord> ReadMerge(const std::string& file, const toml::table& table) {
  const Reader read(file, table);
  MergeRecord record;
  MP_ASSIGN_OR_RETURN(const std::int64_t first, read.Integer("first"));
  MP_ASSIGN_OR_RETURN(const std::int64_t last, read.Integer("last"));
  MP_ASSIGN_OR_RETURN(const std::int64_t round, read.Integer("round"));
  MP_ASSIGN_OR_RETURN(record.loss_first, read.Number("initial_loss"));
  MP_ASSIGN_OR_RETURN(record.loss_last, read.Number("final_loss"));
  MP_ASSIGN_OR_RETURN(record.residual_fraction, read.Number("residual"));
  MP_ASSIGN_OR_RETURN(record.updates, read.Integer("updates"));
  MP_ASSIGN_OR_RETURN(record.seconds, read.Number("seconds"));
  MP_ASSIGN_OR_RETURN(record.teacher_calls, read.Integer("teacher_calls"));
  record.first = static_cast<int>(first);
  record.last = static_cast<int>(last);
  record.round = static_cast<int>(round);
  return record;
}

// What the law of SGD says of the plan, besides its mean.
absl::Status FillLaw(const Model& model, StrategyResult& result) {
  const PlanDocument& document = result.document;
  result.expected_value = model.Value(document.plan);
  result.predicted_objective = model.Objective(result.expected_value, document.reference);
  result.predicted_with_noise = result.predicted_objective;
  if (!document.budget.sgd) return absl::OkStatus();
  MP_ASSIGN_OR_RETURN(const ValueLaw law, LawOfValue(model, document.plan));
  result.predicted_with_noise = ExpectedObjective(model, law, document.reference);
  for (double variance : law.variance) result.value_spread.push_back(std::sqrt(variance));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<RunResults> ReadRunResults(const std::string& folder) {
  RunResults out;
  StrategyResult& result = out.result;
  result.run_folder = folder;

  const std::string run_file = folder + "/run.toml";
  MP_ASSIGN_OR_RETURN(const toml::table run, ParseToml(run_file));
  const Reader read_run(run_file, run);
  MP_ASSIGN_OR_RETURN(result.name, read_run.Text("strategy"));
  MP_ASSIGN_OR_RETURN(out.dtype, read_run.Text("dtype"));
  MP_ASSIGN_OR_RETURN(out.basis, read_run.Text("basis"));
  MP_ASSIGN_OR_RETURN(out.spectrum, read_run.Text("spectrum"));
  MP_ASSIGN_OR_RETURN(const std::string status, read_run.Text("status"));
  if (status != "finished") {
    return absl::FailedPreconditionError(absl::StrCat(
        run_file, ": the run is ", status,
        ", expected finished; continue it with mergeplan distill ... --resume -o ", folder));
  }
  MP_ASSIGN_OR_RETURN(result.document, ReadPlan(folder + "/plan.toml"));

  const std::string result_file = folder + "/result.toml";
  MP_ASSIGN_OR_RETURN(const toml::table table, ParseToml(result_file));
  const Reader read(result_file, table);
  MP_ASSIGN_OR_RETURN(const std::int64_t format, read.Integer("format"));
  if (format != 1) {
    return absl::InvalidArgumentError(
        absl::StrCat(result_file, ": format ", format, ", expected 1"));
  }
  MP_ASSIGN_OR_RETURN(result.achieved_objective, read.Number("achieved_error"));
  MP_ASSIGN_OR_RETURN(result.achieved_objective_teacher, read.Number("achieved_error_teacher"));
  MP_ASSIGN_OR_RETURN(result.seconds, read.Number("seconds"));
  if (const toml::array* merges = table["merge"].as_array()) {
    for (const toml::node& node : *merges) {
      if (!node.is_table())
        return absl::InvalidArgumentError(absl::StrCat(result_file, ": merge: expected tables"));
      MP_ASSIGN_OR_RETURN(MergeRecord record, ReadMerge(result_file, *node.as_table()));
      result.merges.push_back(record);
    }
  }
  const std::string arrays = folder + "/result.npz";
  const std::optional<std::string> hash = table["arrays"]["sha256"].value<std::string>();
  MP_ASSIGN_OR_RETURN(const std::string found, Sha256OfFile(arrays));
  if (!hash || *hash != found) {
    return absl::DataLossError(absl::StrCat(arrays, ": does not match the hash in ", result_file,
                                            "; one of the two was changed after the run"));
  }
  MP_ASSIGN_OR_RETURN(NpyArray value, ReadNpzArray(arrays, "value"));
  if (static_cast<int>(value.values.size()) != result.document.dimensions()) {
    return absl::DataLossError(absl::StrCat(arrays, ": value has ", value.values.size(),
                                            " entries, the plan in ", folder, "/plan.toml ",
                                            result.document.dimensions(), " dimensions"));
  }
  result.value = std::move(value.values);
  MP_ASSIGN_OR_RETURN(const Model model, ModelOf(result.document));
  MP_RETURN_IF_ERROR(FillLaw(model, result));
  return out;
}

}  // namespace mergeplan::cli
