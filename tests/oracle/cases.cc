#include "tests/oracle/cases.h"

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <utility>

namespace mergeplan::oracle {
namespace {

using nlohmann::json;

template <typename T>
T OrAbort(absl::StatusOr<T> value) {
  if (!value.ok()) {
    std::fprintf(stderr, "%s\n", value.status().ToString().c_str());
    std::abort();
  }
  return *std::move(value);
}

Range AddTo(PlanBuilder& builder, const json& node) {
  if (node.size() == 2) return {node[0].get<int>(), node[1].get<int>()};
  std::vector<Range> children;
  for (const json& child : node[2]) children.push_back(AddTo(builder, child));
  return builder.Merge(std::move(children));
}

Plan PlanOf(int T, const json& blocks) {
  PlanBuilder builder(T);
  std::vector<Range> tops;
  for (const json& block : blocks) tops.push_back(AddTo(builder, block));
  return OrAbort(builder.Finish(tops));
}

SmallCase::Optimum OptimumOf(int T, const json& o) {
  SmallCase::Optimum out;
  out.objective = o.at("objective");
  out.plan = PlanOf(T, o.at("plan"));
  out.value = o.at("value").get<std::vector<double>>();
  out.unique = o.at("unique");
  out.ties = o.at("ties");
  out.has_runner_up = !o.at("runner_up").is_null();
  if (out.has_runner_up) out.runner_up = o.at("runner_up");
  out.plans = o.at("plans");
  out.tolerance = o.at("tolerance");
  return out;
}

Reference ReferenceOf(const std::string& word) {
  if (word == "surrogate") return Reference::kSurrogate;
  if (word == "teacher") return Reference::kTeacher;
  if (word == "data") return Reference::kData;
  std::fprintf(stderr, "small_cases.json: unknown reference %s\n", word.c_str());
  std::abort();
}

}  // namespace

std::string SharedFolder() {
  if (const char* shared = std::getenv("MERGEPLAN_SHARED")) return shared;
  const char* source = std::getenv("MERGEPLAN_SOURCE_DIR");
  return std::string(source != nullptr ? source : ".") + "/../shared";
}

std::vector<SmallCase> LoadSmallCases(std::string* missing) {
  const std::string path = SharedFolder() + "/reference/plans/small_cases.json";
  std::ifstream file(path);
  if (!file) {
    *missing = path;
    return {};
  }
  const json document = json::parse(file);
  std::vector<SmallCase> out;
  for (const json& c : document.at("cases")) {
    SmallCase item;
    item.id = c.at("id");
    item.note = c.at("note");
    item.problem.alpha = c.at("alpha").get<std::vector<double>>();
    item.problem.sigma = c.at("sigma").get<std::vector<double>>();
    item.problem.lambda = c.at("lambda").get<std::vector<double>>();
    item.problem.weights = c.at("weights").get<std::vector<double>>();
    item.problem.train_time = c.at("s");
    item.problem.reference = ReferenceOf(c.at("reference"));
    item.blocks = c.at("N");
    item.tau = c.at("tau").get<std::vector<double>>();
    item.canonical = c.at("canonical").get<std::map<std::string, double>>();
    item.nary = OptimumOf(c.at("T"), c.at("nary"));
    item.binary = OptimumOf(c.at("T"), c.at("binary"));
    out.push_back(std::move(item));
  }
  return out;
}

}  // namespace mergeplan::oracle
