#include "planner/plan/io/document_read.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <optional>
#include <system_error>
#include <tuple>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "planner/base/file_kind.h"
#include "planner/base/status_macros.h"
#include "planner/data/npz.h"
#include "planner/plan/io/document_check.h"
#include "planner/plan/io/document_parts.h"
#include "planner/plan/io/evaluate.h"
#include "planner/plan/io/plan_read.h"
#include "planner/plan/io/stored_arrays.h"
#include "planner/plan/io/tables_read.h"

namespace mergeplan::plan_io {
namespace {

constexpr int kMostSteps = kMaxTeacherSteps;

// clang-format off
constexpr std::string_view kQuestionKeys[] = {
    "format", "teacher_steps", "student_steps", "dimensions", "schedule", "alpha", "sigma",
    "data_scale", "input", "input_sha256", "basis", "variances", "weights", "train_time", "lr",
    "iterations", "batch", "feature_norm", "init", "reference", "space", "max_merges",
    "max_rounds", "blocks", "merges", "A", "gamma", "p", "q", "target"};
constexpr std::string_view kCertificateKeys[] = {
    "status", "guarantee", "objective", "objective_surrogate", "objective_teacher",
    "objective_equal_total_time", "lower_bound", "gap", "tolerance", "merges_trained", "rounds",
    "teacher_calls", "student_calls", "strategies", "value", "tau", "seconds", "fingerprint"};
// clang-format on

class DocumentReader {
 public:
  DocumentReader(const Node& root, const std::string& path, PlanForm form)
      : read_(path), root_(root), form_(form) {}

  absl::StatusOr<PlanDocument> Run() {
    MP_RETURN_IF_ERROR(CheckForm());
    MP_ASSIGN_OR_RETURN(arrays_, ReadStoredArrays(read_, root_));
    MP_RETURN_IF_ERROR(ReadQuestion());
    MP_ASSIGN_OR_RETURN(doc_.plan, ReadMerges(read_, root_, static_cast<int>(steps_)));
    MP_RETURN_IF_ERROR(CheckDerived());
    MP_RETURN_IF_ERROR(ReadCertificate());
    return std::move(doc_);
  }

 private:
  // ---- access

  // An optional member of a table, read into *out where it is there.
  template <typename T, typename Read>
  absl::Status Optional(const Node& table, std::string_view key, T* out, Read read) {
    if (const Node* node = table.Find(key)) {
      MP_ASSIGN_OR_RETURN(*out, read(*node, key));
    }
    return absl::OkStatus();
  }
  absl::Status OptionalNumber(const Node& table, std::string_view key, double* out) {
    return Optional(table, key, out,
                    [&](const Node& n, std::string_view k) { return read_.Number(n, k); });
  }
  absl::Status OptionalText(const Node& table, std::string_view key, std::string* out) {
    return Optional(table, key, out,
                    [&](const Node& n, std::string_view k) { return read_.String(n, k); });
  }
  // One of a few words; `parse` is ParseInit, …
  template <typename T, typename Parse>
  absl::Status Word(std::string_view key, T* out, Parse parse) {
    const Node* node = root_.Find(key);
    if (node == nullptr) return absl::OkStatus();
    MP_ASSIGN_OR_RETURN(const std::string word, read_.String(*node, key));
    const auto parsed = parse(word);
    if (!parsed.ok()) {
      // The message begins with the key as well.
      return read_.Error(node, key,
                         std::string(absl::StripPrefix(parsed.status().message(),
                                                       absl::StrCat(std::string(key), ": "))));
    }
    *out = *parsed;
    return absl::OkStatus();
  }
  // An array that stands in the table or in the .npz; nullopt where it is in neither.
  absl::StatusOr<std::optional<std::vector<double>>> Array(const Node& table,
                                                           std::string_view key) {
    const Node* node = table.Find(key);
    const std::string name = &table == &root_ ? std::string(key) : Name(key);
    const auto stored = arrays_.find(std::string(key));
    if (stored != arrays_.end()) {
      if (node != nullptr) {
        return read_.Error(node, name, "stands here and in the .npz that [arrays] names; keep one");
      }
      return std::optional(stored->second.values);
    }
    if (node == nullptr) return std::optional<std::vector<double>>();
    MP_ASSIGN_OR_RETURN(std::vector<double> numbers, read_.Numbers(*node, name));
    return std::optional(std::move(numbers));
  }
  // A key of the certificate with the table that it stands in.
  std::string Name(std::string_view key) const {
    return form_ == PlanForm::kToml ? absl::StrCat("certificate.", std::string(key))
                                    : std::string(key);
  }
  std::filesystem::path Beside(const std::string& name) const {
    return std::filesystem::path(read_.file()).parent_path() / name;
  }

  // ---- the parts of the file, in the order in which they are read

  absl::Status CheckForm() {
    MP_RETURN_IF_ERROR(read_.ExpectTable(root_, ""));
    const Node* kind = root_.Find("kind");
    const std::string* word = kind == nullptr ? nullptr : std::get_if<std::string>(&kind->value);
    const std::string other =
        OtherKind("plan", word == nullptr ? "" : *word,
                  [&](std::string_view key) { return root_.Find(key) != nullptr; });
    if (!other.empty()) {
      return absl::InvalidArgumentError(absl::StrCat(read_.file(), ": ", other));
    }
    MP_ASSIGN_OR_RETURN(const Node* format, read_.Require(root_, "", "format"));
    MP_ASSIGN_OR_RETURN(const std::int64_t version,
                        read_.Integer(*format, "format", 0, std::int64_t{1} << 53));
    if (version != kPlanFormat) {
      return read_.Error(format, "format",
                         absl::StrCat("is ", version, ", but this program reads format ",
                                      kPlanFormat, "; use the version that wrote the file"));
    }
    std::vector<std::string_view> known(std::begin(kQuestionKeys), std::end(kQuestionKeys));
    if (form_ == PlanForm::kToml) {
      known.insert(known.end(), {"certificate", "arrays"});
    } else {
      known.insert(known.end(), std::begin(kCertificateKeys), std::end(kCertificateKeys));
      known.push_back("tree");
      known.insert(known.end(), std::begin(kRemarkKeys), std::end(kRemarkKeys));
    }
    return read_.CheckKeys(root_, "", known);
  }

  absl::Status ReadQuestion() {
    const Node* steps = root_.Find("teacher_steps");
    if (steps != nullptr) {
      MP_ASSIGN_OR_RETURN(steps_, read_.Integer(*steps, "teacher_steps", 1, kMostSteps));
    }
    MP_ASSIGN_OR_RETURN(doc_.tables, ReadTables(read_, root_, arrays_));
    if (doc_.tables) {
      if (steps != nullptr && steps_ != doc_.tables->steps) {
        return read_.Error(
            steps, "teacher_steps",
            absl::StrCat("is ", steps_, ", but A has ", doc_.tables->steps, " levels"));
      }
      steps_ = doc_.tables->steps;
      MP_RETURN_IF_ERROR(OptionalText(root_, "input", &doc_.input));
      return ReadSpace();
    }
    MP_RETURN_IF_ERROR(OptionalText(root_, "schedule", &doc_.schedule_spec));
    MP_ASSIGN_OR_RETURN(auto alpha, Array(root_, "alpha"));
    MP_ASSIGN_OR_RETURN(auto sigma, Array(root_, "sigma"));
    const Node* data_scale = root_.Find("data_scale");
    if (alpha.has_value() != sigma.has_value()) {
      return read_.Error(root_.Find(alpha ? "alpha" : "sigma"), alpha ? "alpha" : "sigma",
                         absl::StrCat("stands alone; ", alpha ? "sigma" : "alpha", " is missing"));
    }
    arrays_given_ = alpha.has_value();
    if (alpha) {
      doc_.alpha = *std::move(alpha);
      doc_.sigma = *std::move(sigma);
      if (steps_ == 0) steps_ = static_cast<std::int64_t>(doc_.alpha.size()) - 1;
      if (root_.Find("schedule") == nullptr) doc_.schedule_spec = "arrays";
      MP_RETURN_IF_ERROR(OptionalNumber(root_, "data_scale", &doc_.data_scale));
    } else {
      if (root_.Find("schedule") == nullptr) {
        return read_.Error(nullptr, "schedule",
                           "the key is missing; name a schedule, e.g. \"cosine\", or give the "
                           "arrays alpha and sigma");
      }
      if (data_scale != nullptr) {
        return read_.Error(
            data_scale, "data_scale",
            "stands without alpha and sigma; leave it out, the schedule has its own");
      }
      MP_ASSIGN_OR_RETURN(Schedule schedule, LoadNamedSchedule());
      doc_.alpha = std::move(schedule.alpha);
      doc_.sigma = std::move(schedule.sigma);
      doc_.data_scale = schedule.data_scale;
      steps_ = static_cast<std::int64_t>(doc_.alpha.size()) - 1;
    }
    if (steps_ < 1 || steps_ > kMostSteps) {
      return read_.Error(
          root_.Find("alpha"), "alpha",
          absl::StrCat("has ", doc_.alpha.size(), " numbers, expected 2..", kMostSteps + 1));
    }

    MP_RETURN_IF_ERROR(OptionalText(root_, "input", &doc_.input));
    MP_RETURN_IF_ERROR(OptionalText(root_, "input_sha256", &doc_.input_sha256));
    doc_.basis = "given";
    MP_RETURN_IF_ERROR(OptionalText(root_, "basis", &doc_.basis));
    MP_RETURN_IF_ERROR(ReadVariances());
    // A hash that does not fit is a sign that the variances were edited.
    const std::string hash = VariancesHash(doc_.variances);
    edited_ = !doc_.input_sha256.empty() && doc_.input_sha256 != hash;
    doc_.input_sha256 = hash;
    MP_ASSIGN_OR_RETURN(auto weights, Array(root_, "weights"));
    if (weights) doc_.weights = *std::move(weights);
    MP_ASSIGN_OR_RETURN(doc_.budget, ReadBudget(read_, root_));
    MP_RETURN_IF_ERROR(read_.Require(root_, "", "init").status());
    MP_RETURN_IF_ERROR(Word("init", &doc_.init, ParseInit));
    MP_RETURN_IF_ERROR(Word("reference", &doc_.reference, ParseReference));
    return ReadSpace();
  }

  absl::Status ReadSpace() {
    for (const auto& [key, out] :
         {std::pair{"max_merges", &doc_.max_merges}, {"max_rounds", &doc_.max_rounds}}) {
      const Node* node = root_.Find(key);
      if (node == nullptr) continue;
      MP_ASSIGN_OR_RETURN(const std::int64_t most, read_.Integer(*node, key, 0, kMostInt));
      *out = static_cast<int>(most);
    }
    return Word("space", &doc_.space, ParseSpace);
  }

  // A schedule that is a file is looked for beside the plan first.
  absl::StatusOr<Schedule> LoadNamedSchedule() {
    std::string spec = doc_.schedule_spec;
    std::error_code ec;
    const bool may_be_file = absl::StrContains(spec, "/") || absl::EndsWith(spec, ".json") ||
                             absl::EndsWith(spec, ".npz");
    if (may_be_file && std::filesystem::exists(Beside(spec), ec)) spec = Beside(spec).string();
    auto loaded = LoadSchedule(
        spec, steps_ > 0 ? std::optional<int>(static_cast<int>(steps_)) : std::nullopt);
    if (!loaded.ok()) {
      return read_.Error(root_.Find("schedule"), "schedule",
                         std::string(loaded.status().message()));
    }
    return loaded;
  }

  absl::Status ReadVariances() {
    MP_ASSIGN_OR_RETURN(auto variances, Array(root_, "variances"));
    if (variances) {
      doc_.variances = *std::move(variances);
      return absl::OkStatus();
    }
    const Node* input = root_.Find("input");
    if (input == nullptr || !absl::EndsWith(doc_.input, ".npy")) {
      return read_.Error(nullptr, "variances",
                         "the key is missing; give a list of numbers, or input = an .npy file with "
                         "one number per dimension");
    }
    auto array = ReadNpy(Beside(doc_.input).string());
    if (!array.ok()) return read_.Error(input, "input", std::string(array.status().message()));
    if (array->shape.size() != 1) {
      return read_.Error(input, "input",
                         absl::StrCat(doc_.input, " has ", array->shape.size(),
                                      " axes, expected one with a variance per dimension"));
    }
    doc_.variances = std::move(array->values);
    return absl::OkStatus();
  }

  // Keys that say again what others say may be left out, but not contradict them.
  absl::Status CheckDerived() {
    for (const auto& [key, expected] : {std::pair{"student_steps", doc_.plan.student_steps()},
                                        {"dimensions", doc_.dimensions()}}) {
      const Node* node = root_.Find(key);
      if (node == nullptr) continue;
      MP_ASSIGN_OR_RETURN(const std::int64_t number, read_.Integer(*node, key, 0, kMostInt));
      if (number != expected) {
        return read_.Error(node, key,
                           absl::StrCat("is ", number, ", but ",
                                        key[0] == 's' ? "blocks"
                                        : doc_.tables ? "A"
                                                      : "variances",
                                        " has ", expected));
      }
    }
    const Node* tree = root_.Find("tree");
    return tree == nullptr ? absl::OkStatus() : CheckTree(read_, *tree, doc_.plan);
  }

  absl::Status ReadCertificate() {
    const Node* table = form_ == PlanForm::kToml ? root_.Find("certificate") : &root_;
    const bool present =
        table != nullptr && std::any_of(std::begin(kCertificateKeys), std::end(kCertificateKeys),
                                        [&](std::string_view k) { return table->Find(k); });
    if (!present && table != nullptr && form_ == PlanForm::kToml) {
      MP_RETURN_IF_ERROR(read_.ExpectTable(*table, "certificate"));
      MP_RETURN_IF_ERROR(read_.CheckKeys(*table, "certificate", kCertificateKeys));
    }
    if (!present) {
      return Uncertify(root_,
                       "nothing is proven: the file holds a plan without a certificate; "
                       "`mergeplan plan` searches for one with it");
    }
    MP_RETURN_IF_ERROR(ReadCertificateKeys(*table));

    const bool lacks_values = doc_.value.empty() && doc_.tau.empty() && MayLackValues();
    if (lacks_values) {
      doc_.value.assign(static_cast<size_t>(doc_.dimensions()), 0.0);
      doc_.tau = doc_.value;
    }
    MP_RETURN_IF_ERROR(Check(*table));
    if (const Node* gap = table->Find("gap")) {
      MP_ASSIGN_OR_RETURN(const double given, read_.Number(*gap, Name("gap")));
      if (!(std::abs(given - doc_.gap()) <= 1e-9)) {
        return read_.Error(
            gap, Name("gap"),
            absl::StrCat("is ", given, ", but objective and lower_bound give ", doc_.gap()));
      }
    }
    std::string fingerprint;
    if (const Node* node = table->Find("fingerprint")) {
      MP_ASSIGN_OR_RETURN(fingerprint, read_.String(*node, Name("fingerprint")));
    }
    if (edited_ || fingerprint != Fingerprint(doc_)) {
      return Uncertify(*table,
                       "nothing is proven: the file was edited after it was planned; `mergeplan "
                       "plan` gives a new certificate");
    }
    MP_RETURN_IF_ERROR(CheckCosts(*table));
    if (lacks_values) {
      MP_ASSIGN_OR_RETURN(const Model model, CheckedModel());
      doc_.value = model.Value(doc_.plan);
      doc_.tau.assign(model.tau().begin(), model.tau().end());
    }
    return absl::OkStatus();
  }

  // Counts that the plan itself says.
  absl::Status CheckCosts(const Node& table) const {
    const PlanCosts costs = CostsOf(doc_.plan);
    for (const auto& [key, expected, what] :
         {std::tuple{"merges_trained", doc_.plan.size(), "merges"},
          {"rounds", costs.rounds, "rounds"},
          {"teacher_calls", costs.teacher_calls, "single steps to merge"},
          {"student_calls", costs.student_calls, "merges to merge"}}) {
      const Node* node = table.Find(key);
      if (node == nullptr) continue;
      MP_ASSIGN_OR_RETURN(const std::int64_t number, read_.Integer(*node, Name(key), 0, kMostInt));
      if (number == expected) continue;
      return read_.Error(node, Name(key),
                         absl::StrCat("is ", number, ", but there are ", expected, " ", what));
    }
    return absl::OkStatus();
  }

  // JSON leaves out value and tau of many dimensions.
  bool MayLackValues() const {
    return form_ == PlanForm::kJson && static_cast<size_t>(doc_.dimensions()) > kMostValues;
  }

  absl::Status ReadCertificateKeys(const Node& table) {
    if (form_ == PlanForm::kToml) {
      MP_RETURN_IF_ERROR(read_.CheckKeys(table, "certificate", kCertificateKeys));
    }
    const auto require = [&](std::string_view key) -> absl::StatusOr<const Node*> {
      if (const Node* node = table.Find(key)) return node;
      return read_.Error(&table == &root_ ? nullptr : &table, Name(key),
                         "the key is missing; delete the whole certificate to have it computed");
    };
    for (const auto& [key, out] :
         {std::pair{"status", &doc_.status}, {"guarantee", &doc_.guarantee}}) {
      MP_ASSIGN_OR_RETURN(const Node* node, require(key));
      MP_ASSIGN_OR_RETURN(*out, read_.String(*node, Name(key)));
    }
    for (const auto& [key, out] : {std::pair{"objective", &doc_.objective},
                                   {"objective_teacher", &doc_.objective_teacher},
                                   {"lower_bound", &doc_.lower_bound},
                                   {"tolerance", &doc_.tolerance},
                                   {"seconds", &doc_.seconds}}) {
      MP_ASSIGN_OR_RETURN(const Node* node, require(key));
      MP_ASSIGN_OR_RETURN(*out, read_.Number(*node, Name(key)));
    }
    for (const auto& [key, out] :
         {std::pair{"objective_surrogate", &doc_.objective_surrogate},
          {"objective_equal_total_time", &doc_.objective_equal_total_time}}) {
      const std::string prefix = form_ == PlanForm::kToml ? "certificate" : "";
      if (!doc_.tables) MP_RETURN_IF_ERROR(require(key).status());
      MP_ASSIGN_OR_RETURN(*out,
                          ReadBudgetedFigure(read_, table, prefix, key, doc_.tables.has_value()));
    }
    MP_ASSIGN_OR_RETURN(const Node* strategies, require("strategies"));
    MP_ASSIGN_OR_RETURN(doc_.strategies, ReadStrategies(read_, *strategies, Name("strategies"),
                                                        doc_.tables.has_value()));
    for (const auto& [key, out] : {std::pair{"value", &doc_.value}, {"tau", &doc_.tau}}) {
      MP_ASSIGN_OR_RETURN(auto numbers, Array(table, key));
      if (numbers) *out = *std::move(numbers);
      if (!numbers && !MayLackValues()) return require(key).status();
    }
    return absl::OkStatus();
  }

  // `table` is the one that holds the certificate, or the root where there is none.
  absl::Status Check(const Node& table) const {
    const std::optional<Complaint> complaint = FindComplaint(doc_);
    if (!complaint) return absl::OkStatus();
    const std::string first = complaint->key.substr(0, complaint->key.find('.'));
    const bool certificate = std::find(std::begin(kCertificateKeys), std::end(kCertificateKeys),
                                       first) != std::end(kCertificateKeys);
    return read_.Error(certificate ? table.Find(first) : root_.Find(first),
                       certificate ? Name(complaint->key) : complaint->key, complaint->message);
  }

  absl::StatusOr<Model> CheckedModel() const {
    auto model = ModelOf(doc_);
    if (model.ok()) return model;
    const absl::Status error = read_.Error(nullptr, "", std::string(model.status().message()));
    return absl::Status(model.status().code(), error.message());
  }

  // Computes every figure afresh and leaves nothing proven.
  absl::Status Uncertify(const Node& at, const std::string& guarantee) {
    doc_.status = std::string(kUnchecked);
    doc_.guarantee = guarantee;
    doc_.objective = doc_.objective_teacher = doc_.lower_bound = doc_.tolerance = doc_.seconds = 0;
    doc_.objective_surrogate = doc_.objective_equal_total_time =
        doc_.tables ? std::nullopt : std::optional(0.0);
    doc_.strategies.clear();
    doc_.value.assign(static_cast<size_t>(doc_.dimensions()), 0.0);
    doc_.tau = doc_.value;
    MP_RETURN_IF_ERROR(Check(at));
    MP_RETURN_IF_ERROR(CheckScheduleFits());
    MP_ASSIGN_OR_RETURN(const Model model, CheckedModel());
    if (const absl::Status s = ComputeFigures(model, &doc_); !s.ok()) {
      return read_.Error(nullptr, "", std::string(s.message()));
    }
    return Check(at);
  }

  // Somebody who edits the schedule's name but not the arrays would otherwise get the old ones. A
  // schedule that cannot be loaded here (its file may be gone) does not matter, the arrays count.
  absl::Status CheckScheduleFits() {
    if (!arrays_given_ || doc_.schedule_spec == "arrays") return absl::OkStatus();
    const auto loaded = LoadNamedSchedule();
    if (!loaded.ok()) return absl::OkStatus();
    const auto close = [](const std::vector<double>& a, const std::vector<double>& b) {
      return a.size() == b.size() &&
             std::equal(a.begin(), a.end(), b.begin(), [](double x, double y) {
               return std::abs(x - y) <= 1e-9 * std::max(std::abs(x), std::abs(y)) + 1e-15;
             });
    };
    if (close(loaded->alpha, doc_.alpha) && close(loaded->sigma, doc_.sigma)) {
      return absl::OkStatus();
    }
    return read_.Error(root_.Find("schedule"), "schedule",
                       absl::StrCat("is \"", doc_.schedule_spec,
                                    "\", but alpha and sigma are not "
                                    "that schedule's; delete the two arrays (and their names in "
                                    "[arrays]), or correct the name"));
  }

  NodeReader read_;
  const Node& root_;
  PlanForm form_;
  StoredArrays arrays_;
  std::int64_t steps_ = 0;
  bool arrays_given_ = false;
  bool edited_ = false;
  PlanDocument doc_;
};

}  // namespace

absl::StatusOr<PlanDocument> ReadDocument(const Node& root, const std::string& path,
                                          PlanForm form) {
  return DocumentReader(root, path, form).Run();
}

}  // namespace mergeplan::plan_io
