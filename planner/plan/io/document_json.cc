#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "planner/base/file.h"
#include "planner/base/status_macros.h"
#include "planner/plan/io/document.h"
#include "planner/plan/io/document_check.h"
#include "planner/plan/io/document_read.h"
#include "planner/plan/io/node.h"

namespace mergeplan {

using namespace plan_io;  // what these files share

namespace {

using Json = nlohmann::ordered_json;

Json Pair(Range range) { return Json::array({range.first, range.last}); }

Json Pairs(const std::vector<Range>& ranges) {
  Json out = Json::array();
  for (const Range& range : ranges) out.push_back(Pair(range));
  return out;
}

// The tree of one node; recursion is as deep as the plan, at most kLargestTree.
Json Tree(const Plan& plan, int node) {
  Json out = Pair(plan.range(node));
  if (plan.is_step(node)) return out;
  Json children = Json::array();
  for (const int child : plan.merges()[node - plan.teacher_steps()].children) {
    children.push_back(Tree(plan, child));
  }
  out.push_back(std::move(children));
  return out;
}

// T rows of d numbers.
Json Rows(const ModelTables& tables, const std::vector<double>& numbers) {
  const auto d = static_cast<std::ptrdiff_t>(tables.dimensions);
  Json out = Json::array();
  for (auto row = numbers.begin(); row != numbers.end(); row += d) {
    out.push_back(std::vector<double>(row, row + d));
  }
  return out;
}

void AddCosts(const PlanCosts& costs, Json* out) {
  (*out)["rounds"] = costs.rounds;
  (*out)["teacher_calls"] = costs.teacher_calls;
  (*out)["student_calls"] = costs.student_calls;
}

Json Figures(const StrategyFigures& figures) {
  Json out = Json::object();
  out["objective"] = figures.objective;
  if (figures.objective_equal_total_time) {
    out["objective_equal_total_time"] = *figures.objective_equal_total_time;
  }
  out["merges_trained"] = figures.merges_trained;
  if (figures.costs) AddCosts(*figures.costs, &out);
  return out;
}

Json Certificate(const PlanDocument& d) {
  Json out = Json::object();
  out["status"] = d.status;
  out["guarantee"] = d.guarantee;
  out["objective"] = d.objective;
  out["lower_bound"] = d.lower_bound;
  out["gap"] = d.gap();
  out["tolerance"] = d.tolerance;
  if (d.objective_surrogate) out["objective_surrogate"] = *d.objective_surrogate;
  out["objective_teacher"] = d.objective_teacher;
  if (d.objective_equal_total_time) {
    out["objective_equal_total_time"] = *d.objective_equal_total_time;
  }
  out["merges_trained"] = d.plan.size();
  AddCosts(CostsOf(d.plan), &out);
  out["strategies"] = Json::object();
  for (const StrategyFigures& s : d.strategies) {
    out["strategies"][s.name] = Figures(s);
  }
  out["seconds"] = d.seconds;
  out["fingerprint"] = Fingerprint(d);
  return out;
}

void AddLimits(const PlanDocument& d, Json* out) {
  if (d.max_merges > 0) (*out)["max_merges"] = d.max_merges;
  if (d.max_rounds > 0) (*out)["max_rounds"] = d.max_rounds;
}

Json Question(const PlanDocument& d) {
  Json out = Json::object();
  out["teacher_steps"] = d.plan.teacher_steps();
  out["student_steps"] = d.plan.student_steps();
  out["dimensions"] = d.dimensions();
  if (d.tables) {
    const ModelTables& tables = *d.tables;
    out["space"] = ToString(d.space);
    AddLimits(d, &out);
    out["input"] = d.input;
    out["A"] = Rows(tables, tables.a);
    out["gamma"] = Rows(tables, tables.gamma);
    if (!tables.p.empty()) out["p"] = Rows(tables, tables.p);
    if (!tables.q.empty()) out["q"] = Rows(tables, tables.q);
    out["target"] = tables.tau;
    if (!tables.weights.empty()) out["weights"] = tables.weights;
    return out;
  }
  out["schedule"] = d.schedule_spec;
  out["data_scale"] = d.data_scale;
  out["init"] = ToString(d.init);
  out["reference"] = ToString(d.reference);
  out["space"] = ToString(d.space);
  AddLimits(d, &out);
  if (d.budget.sgd) {
    out["lr"] = d.budget.lr;
    out["iterations"] = d.budget.iterations;
  } else {
    out["train_time"] = d.budget.train_time;
  }
  out["batch"] = d.budget.batch;
  out["feature_norm"] = d.budget.feature_norm;
  out["input"] = d.input;
  out["input_sha256"] = d.input_sha256;
  out["basis"] = d.basis;
  out["variances"] = d.variances;
  if (!d.weights.empty()) out["weights"] = d.weights;
  out["alpha"] = d.alpha;
  out["sigma"] = d.sigma;
  return out;
}

Json Answer(const PlanDocument& d) {
  Json out = Json::object();
  out["blocks"] = Pairs(d.plan.BlockRanges());
  Json merges = Json::array();
  for (const Merge& merge : d.plan.merges()) {
    std::vector<Range> children;
    children.reserve(merge.children.size());
    for (const int child : merge.children) children.push_back(d.plan.range(child));
    Json entry = Json::object();
    entry["first"] = merge.first;
    entry["last"] = merge.last;
    entry["round"] = merge.round;
    entry["children"] = Pairs(children);
    merges.push_back(std::move(entry));
  }
  out["merges"] = std::move(merges);
  if (d.plan.teacher_steps() <= kLargestTree) {
    Json tree = Json::array();
    for (const int block : d.plan.blocks()) tree.push_back(Tree(d.plan, block));
    out["tree"] = std::move(tree);
  }
  if (static_cast<size_t>(d.dimensions()) <= kMostValues) {
    out["value"] = d.value;
    out["tau"] = d.tau;
  }
  return out;
}

std::string Dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// One key per line; merges and strategies one per line too.
std::string Lines(const Json& object) {
  std::string out = "{";
  for (auto it = object.begin(); it != object.end(); ++it) {
    absl::StrAppend(&out, it == object.begin() ? "\n" : ",\n", "  ", Dump(Json(it.key())), ": ");
    const Json& value = it.value();
    if ((it.key() != "merges" && it.key() != "strategies") || value.empty()) {
      out += Dump(value);
      continue;
    }
    out += value.is_array() ? '[' : '{';
    for (auto item = value.begin(); item != value.end(); ++item) {
      absl::StrAppend(&out, item == value.begin() ? "\n    " : ",\n    ");
      if (value.is_object()) absl::StrAppend(&out, Dump(Json(item.key())), ": ");
      out += Dump(item.value());
    }
    absl::StrAppend(&out, "\n  ", value.is_array() ? "]" : "}");
  }
  out += "\n}\n";
  return out;
}

}  // namespace

std::string PlanJson(const PlanDocument& document) { return PlanJson(document, {}); }

std::string PlanJson(const PlanDocument& document,
                     const std::vector<std::pair<std::string, std::string>>& remarks) {
  const PlanDocument d = Normalized(document);
  Json out = Json::object();
  out["format"] = kPlanFormat;
  out.update(Certificate(d));
  out.update(Question(d));
  out.update(Answer(d));
  for (const auto& [key, text] : remarks) out[key] = Json::parse(text, nullptr, false);
  return Lines(out);
}

absl::Status WritePlanJson(const PlanDocument& document, const std::string& path) {
  MP_RETURN_IF_ERROR(CheckForWriting(document, path));
  return WriteFileAtomically(path, PlanJson(document));
}

absl::StatusOr<PlanDocument> ReadPlanJson(const std::string& path) {
  MP_ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  MP_ASSIGN_OR_RETURN(const Node root, ParseJson(text, path));
  return ReadDocument(root, path, PlanForm::kJson);
}

absl::Status WritePlan(const PlanDocument& document, const std::string& path) {
  return absl::EndsWithIgnoreCase(path, ".json") ? WritePlanJson(document, path)
                                                 : WritePlanToml(document, path);
}

absl::StatusOr<PlanDocument> ReadPlan(const std::string& path) {
  return absl::EndsWithIgnoreCase(path, ".json") ? ReadPlanJson(path) : ReadPlanToml(path);
}

}  // namespace mergeplan
