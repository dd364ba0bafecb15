#include "planner/plan/io/document_check.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <set>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "planner/base/file.h"
#include "planner/base/utf8.h"

namespace mergeplan::plan_io {
namespace {

using MaybeComplaint = std::optional<Complaint>;

void AppendWord(std::uint64_t word, std::string* out) {
  for (int byte = 0; byte < 8; ++byte) out->push_back(static_cast<char>(word >> (8 * byte)));
}

void AppendNumber(double number, std::string* out) {
  AppendWord(std::bit_cast<std::uint64_t>(number), out);
}

// Fields with name and length, so that no two documents have the same bytes.
class Sealer {
 public:
  void Text(std::string_view key, std::string_view text) {
    Name(key, text.size());
    bytes_ += text;
  }
  void Number(std::string_view key, double number) {
    Name(key, 1);
    AppendNumber(number, &bytes_);
  }
  void Numbers(std::string_view key, const std::vector<double>& numbers) {
    Name(key, numbers.size());
    for (const double number : numbers) AppendNumber(number, &bytes_);
  }
  void Ranges(std::string_view key, const std::vector<Range>& ranges) {
    Name(key, ranges.size());
    for (const Range& range : ranges) {
      AppendWord(static_cast<std::uint64_t>(range.first), &bytes_);
      AppendWord(static_cast<std::uint64_t>(range.last), &bytes_);
    }
  }
  std::string Hex() const { return Sha256(bytes_); }

 private:
  void Name(std::string_view key, size_t length) {
    bytes_ += key;
    bytes_ += '\0';
    AppendWord(length, &bytes_);
  }
  std::string bytes_;
};

MaybeComplaint NotNegative(std::string_view key, double number) {
  if (std::isfinite(number) && number >= 0) return std::nullopt;
  return Complaint{std::string(key),
                   absl::StrCat("is ", number, ", expected a finite number, 0 or more")};
}

MaybeComplaint NotNegative(std::string_view key, const std::vector<double>& numbers) {
  for (size_t k = 0; k < numbers.size(); ++k) {
    if (std::isfinite(numbers[k]) && numbers[k] >= 0) continue;
    return Complaint{std::string(key), absl::StrCat("number ", k + 1, " is ", numbers[k],
                                                    ", expected a finite number, 0 or more")};
  }
  return std::nullopt;
}

MaybeComplaint HasLength(std::string_view key, const std::vector<double>& numbers, size_t expected,
                         std::string_view why) {
  if (numbers.size() == expected) return std::nullopt;
  return Complaint{std::string(key), absl::StrCat("has ", numbers.size(), " numbers, expected ",
                                                  expected, ", ", std::string(why))};
}

MaybeComplaint CheckTablesOf(const PlanDocument& d) {
  const ModelTables& tables = *d.tables;
  if (d.plan.teacher_steps() != tables.steps) {
    return Complaint{"A", absl::StrCat("has ", tables.steps, " levels, but the plan ",
                                       d.plan.teacher_steps(), " steps")};
  }
  if (const absl::Status s = CheckTableNumbers(tables); !s.ok()) {
    return Complaint{"A", std::string(s.message())};
  }
  if (tables.tau.empty()) return Complaint{"target", "is empty, expected one per coordinate"};
  if (!d.alpha.empty() || !d.sigma.empty() || !d.variances.empty() || !d.weights.empty()) {
    return Complaint{"A", "stands beside a schedule, variances or weights; keep one of the two"};
  }
  if (d.objective_surrogate || d.objective_equal_total_time) {
    return Complaint{d.objective_surrogate ? "objective_surrogate" : "objective_equal_total_time",
                     "has no meaning for tables; leave it out"};
  }
  return std::nullopt;
}

MaybeComplaint CheckQuestion(const PlanDocument& d) {
  const size_t levels = static_cast<size_t>(d.plan.teacher_steps()) + 1;
  const std::string per_level = "one per level 0..teacher_steps";
  if (d.plan.teacher_steps() < 1) return Complaint{"merges", "the document holds no plan"};
  for (const auto& [key, most] :
       {std::pair{"max_merges", d.max_merges}, {"max_rounds", d.max_rounds}}) {
    if (most < 0) return Complaint{key, absl::StrCat("is ", most, ", expected 0 or more")};
  }
  if (d.tables) return CheckTablesOf(d);
  if (auto c = HasLength("alpha", d.alpha, levels, per_level)) return c;
  if (auto c = HasLength("sigma", d.sigma, levels, per_level)) return c;
  Schedule schedule;
  schedule.alpha = d.alpha;
  schedule.sigma = d.sigma;
  schedule.level_scale.assign(levels, 1.0);
  if (const absl::Status s = ValidateSchedule(schedule); !s.ok()) {
    return Complaint{"alpha", std::string(s.message())};
  }
  if (!std::isfinite(d.data_scale) || d.data_scale <= 0) {
    return Complaint{"data_scale",
                     absl::StrCat("is ", d.data_scale, ", expected a positive, finite number")};
  }
  if (d.variances.empty()) return Complaint{"variances", "is empty, expected one per dimension"};
  if (auto c = NotNegative("variances", d.variances)) return c;
  const std::string per_dimension = "one per variance";
  if (!d.weights.empty()) {
    if (auto c = HasLength("weights", d.weights, d.variances.size(), per_dimension)) return c;
    if (auto c = NotNegative("weights", d.weights)) return c;
  }
  if (!d.input_sha256.empty() && d.input_sha256 != VariancesHash(d.variances)) {
    return Complaint{"input_sha256", "is not the hash of the variances"};
  }
  if (const absl::Status s = d.budget.Validate(0); !s.ok()) {
    return Complaint{d.budget.sgd ? "lr" : "train_time", std::string(s.message())};
  }
  if (d.budget.batch < 1) {
    return Complaint{"batch", absl::StrCat("is ", d.budget.batch, ", expected 1 or more")};
  }
  if (!std::isfinite(d.budget.feature_norm) || d.budget.feature_norm <= 0) {
    return Complaint{"feature_norm", absl::StrCat("is ", d.budget.feature_norm,
                                                  ", expected a positive, finite number")};
  }
  return std::nullopt;
}

MaybeComplaint CheckLimits(const PlanDocument& d) {
  for (const auto& [key, most, has] : {std::tuple{"max_merges", d.max_merges, d.plan.size()},
                                       {"max_rounds", d.max_rounds, d.plan.rounds()}}) {
    if (most == 0 || has <= most) continue;
    return Complaint{key, absl::StrCat("is ", most, ", but the plan has ", has)};
  }
  return std::nullopt;
}

MaybeComplaint CheckCertificate(const PlanDocument& d) {
  static const std::set<std::string_view> kStatus = {"optimal", "within_gap", "time_limit",
                                                     "interrupted", kUnchecked};
  if (!kStatus.contains(d.status)) {
    return Complaint{"status",
                     absl::StrCat("is \"", d.status, "\", expected optimal, within_gap, ",
                                  "time_limit, interrupted or ", std::string(kUnchecked))};
  }
  const auto required = [&](std::string_view key, std::optional<double> number) -> MaybeComplaint {
    if (number) return NotNegative(key, *number);
    if (d.tables) return std::nullopt;
    return Complaint{std::string(key), "is missing, expected a number"};
  };
  if (auto c = required("objective_surrogate", d.objective_surrogate)) return c;
  if (auto c = required("objective_equal_total_time", d.objective_equal_total_time)) return c;
  const std::pair<std::string_view, double> figures[] = {{"objective", d.objective},
                                                         {"objective_teacher", d.objective_teacher},
                                                         {"lower_bound", d.lower_bound},
                                                         {"tolerance", d.tolerance},
                                                         {"seconds", d.seconds}};
  for (const auto& [key, number] : figures) {
    if (auto c = NotNegative(key, number)) return c;
  }
  if (d.lower_bound > d.objective + d.tolerance) {
    return Complaint{"lower_bound",
                     absl::StrFormat("is %.17g, which is above the objective %.17g by more than "
                                     "the tolerance %g; no plan can be that good",
                                     d.lower_bound, d.objective, d.tolerance)};
  }
  if (d.status == kUnchecked && d.lower_bound > 0) {
    return Complaint{"lower_bound", absl::StrCat("is ", d.lower_bound,
                                                 ", expected 0 where the status is unchecked")};
  }
  if (d.status == "optimal" &&
      d.objective - d.lower_bound > 2 * d.tolerance + 0x1p-50 * d.objective) {
    return Complaint{"status", absl::StrFormat("is optimal, but objective - lower_bound is %g and "
                                               "the tolerance only %g",
                                               d.objective - d.lower_bound, d.tolerance)};
  }
  std::set<std::string_view> names;
  for (const StrategyFigures& s : d.strategies) {
    if (s.name.empty() || !names.insert(s.name).second) {
      return Complaint{"strategies",
                       absl::StrCat("the name \"", s.name, "\" is empty or occurs twice")};
    }
    const std::string key = absl::StrCat("strategies.", s.name);
    if (auto c = NotNegative(key, s.objective)) return c;
    if (d.tables && s.objective_equal_total_time) {
      return Complaint{key, "objective_equal_total_time has no meaning for tables; leave it out"};
    }
    if (auto c = required(key, s.objective_equal_total_time)) return c;
    if (s.merges_trained < 0) {
      return Complaint{
          key, absl::StrCat("merges_trained is ", s.merges_trained, ", expected 0 or more")};
    }
  }
  const std::string per_dimension = d.tables ? "one per coordinate" : "one per variance";
  for (const auto& [key, numbers] : {std::pair{"value", &d.value}, {"tau", &d.tau}}) {
    if (auto c = HasLength(key, *numbers, static_cast<size_t>(d.dimensions()), per_dimension))
      return c;
    if (auto c = NotNegative(key, *numbers)) return c;
  }
  return std::nullopt;
}

}  // namespace

std::optional<Complaint> FindComplaint(const PlanDocument& document) {
  if (auto c = CheckQuestion(document)) return c;
  return CheckCertificate(document);
}

absl::Status CheckForWriting(const PlanDocument& document, const std::string& path) {
  std::optional<Complaint> complaint = FindComplaint(document);
  // Files may be edited to break the limits; then nothing is proven.
  if (!complaint && document.status != kUnchecked) complaint = CheckLimits(document);
  if (!complaint) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(path, ": not written, ", complaint->key, ": ", complaint->message));
}

std::string Fingerprint(const PlanDocument& d) {
  Sealer seal;
  seal.Text("format", "mergeplan plan 1");
  seal.Text("schedule", d.schedule_spec);
  seal.Numbers("alpha", d.alpha);
  seal.Numbers("sigma", d.sigma);
  seal.Number("data_scale", d.data_scale);
  seal.Text("input_sha256", d.input_sha256);
  seal.Text("basis", d.basis);
  seal.Numbers("variances", d.variances);
  seal.Numbers("weights", d.weights);
  if (d.tables) {
    seal.Numbers("A", d.tables->a);
    seal.Numbers("gamma", d.tables->gamma);
    seal.Numbers("p", d.tables->p);
    seal.Numbers("q", d.tables->q);
    seal.Numbers("target", d.tables->tau);
    seal.Numbers("table weights", d.tables->weights);
  }
  seal.Number("sgd", d.budget.sgd ? 1 : 0);
  seal.Number("train_time", d.budget.train_time);
  seal.Number("lr", d.budget.lr);
  seal.Number("iterations", static_cast<double>(d.budget.iterations));
  seal.Number("batch", d.budget.batch);
  seal.Number("feature_norm", d.budget.feature_norm);
  seal.Text("init", ToString(d.init));
  seal.Text("reference", ToString(d.reference));
  seal.Text("space", ToString(d.space));
  // Keys that older files lack are sealed only where they say something.
  if (d.max_merges > 0) seal.Number("max_merges", d.max_merges);
  if (d.max_rounds > 0) seal.Number("max_rounds", d.max_rounds);
  seal.Number("teacher_steps", d.plan.teacher_steps());
  seal.Ranges("blocks", d.plan.BlockRanges());
  for (const MergeSpec& merge : d.plan.Specs()) {
    seal.Ranges("merge", {merge.range});
    seal.Ranges("children", merge.children);
  }
  seal.Text("status", d.status);
  seal.Text("guarantee", d.guarantee);
  seal.Number("objective", d.objective);
  if (d.objective_surrogate) seal.Number("objective_surrogate", *d.objective_surrogate);
  seal.Number("objective_teacher", d.objective_teacher);
  if (d.objective_equal_total_time)
    seal.Number("objective_equal_total_time", *d.objective_equal_total_time);
  seal.Number("lower_bound", d.lower_bound);
  seal.Number("tolerance", d.tolerance);
  for (const StrategyFigures& s : d.strategies) {
    seal.Text("strategy", s.name);
    seal.Number("objective", s.objective);
    if (s.objective_equal_total_time)
      seal.Number("objective_equal_total_time", *s.objective_equal_total_time);
    seal.Number("merges_trained", s.merges_trained);
    if (s.costs) {
      seal.Number("rounds", s.costs->rounds);
      seal.Number("teacher_calls", s.costs->teacher_calls);
      seal.Number("student_calls", s.costs->student_calls);
    }
  }
  if (static_cast<size_t>(d.dimensions()) <= kMostValues) {
    seal.Numbers("value", d.value);
    seal.Numbers("tau", d.tau);
  }
  return seal.Hex();
}

PlanDocument Normalized(const PlanDocument& document) {
  PlanDocument out = document;
  if (out.tables) {
    // What has no meaning is as it is read back.
    const PlanDocument none;
    out.schedule_spec = none.schedule_spec;
    out.data_scale = none.data_scale;
    out.basis = none.basis;
    out.budget = none.budget;
    out.init = none.init;
    out.reference = none.reference;
  }
  if (out.budget.sgd) {
    out.budget.train_time = 0;
  } else {
    out.budget.lr = 0;
    out.budget.iterations = 0;
  }
  for (std::string* text :
       {&out.schedule_spec, &out.input, &out.input_sha256, &out.basis, &out.guarantee}) {
    *text = ReplaceInvalidUtf8(*text);
  }
  for (StrategyFigures& s : out.strategies) s.name = ReplaceInvalidUtf8(s.name);
  if (out.tables) {
    out.input_sha256.clear();
  } else if (out.input_sha256.empty()) {
    out.input_sha256 = VariancesHash(out.variances);
  }
  return out;
}

}  // namespace mergeplan::plan_io

std::string mergeplan::VariancesHash(const std::vector<double>& variances) {
  std::string bytes;
  bytes.reserve(8 * variances.size());
  for (const double v : variances) plan_io::AppendNumber(v, &bytes);
  return Sha256(bytes);
}
