#include "planner/plan/io/document_parts.h"

#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "planner/base/status_macros.h"

namespace mergeplan::plan_io {
namespace {

constexpr std::int64_t kMostExact = std::int64_t{1} << 53;
constexpr std::string_view kStrategyKeys[] = {"objective",      "objective_equal_total_time",
                                              "merges_trained", "rounds",
                                              "teacher_calls",  "student_calls"};

}  // namespace

absl::StatusOr<Budget> ReadBudget(const NodeReader& read, const Node& root) {
  Budget budget;
  const Node* time = root.Find("train_time");
  const Node* lr = root.Find("lr");
  const Node* iterations = root.Find("iterations");
  if (time != nullptr && (lr != nullptr || iterations != nullptr)) {
    return read.Error(time, "train_time",
                      "stands beside lr or iterations; keep train_time, or lr and iterations");
  }
  if (time == nullptr && lr == nullptr && iterations == nullptr) {
    return read.Error(nullptr, "train_time",
                      "the key is missing; give train_time, or lr and iterations");
  }
  budget.sgd = time == nullptr;
  if (budget.sgd) {
    MP_ASSIGN_OR_RETURN(lr, read.Require(root, "", "lr"));
    MP_ASSIGN_OR_RETURN(iterations, read.Require(root, "", "iterations"));
    MP_ASSIGN_OR_RETURN(budget.lr, read.Number(*lr, "lr"));
    MP_ASSIGN_OR_RETURN(budget.iterations, read.Integer(*iterations, "iterations", 1, kMostExact));
  } else {
    MP_ASSIGN_OR_RETURN(budget.train_time, read.Number(*time, "train_time"));
  }
  if (const Node* batch = root.Find("batch")) {
    MP_ASSIGN_OR_RETURN(const std::int64_t size, read.Integer(*batch, "batch", 1, kMostInt));
    budget.batch = static_cast<int>(size);
  }
  if (const Node* norm = root.Find("feature_norm")) {
    MP_ASSIGN_OR_RETURN(budget.feature_norm, read.Number(*norm, "feature_norm"));
  }
  return budget;
}

absl::StatusOr<std::optional<double>> ReadBudgetedFigure(const NodeReader& read, const Node& table,
                                                         std::string_view prefix,
                                                         std::string_view key, bool of_tables) {
  const std::string name =
      absl::StrCat(std::string(prefix), prefix.empty() ? "" : ".", std::string(key));
  if (of_tables) {
    const Node* node = table.Find(key);
    if (node == nullptr) return std::optional<double>();
    return read.Error(node, name, "has no meaning for a plan of tables; leave it out");
  }
  MP_ASSIGN_OR_RETURN(const Node* node, read.Require(table, prefix, key));
  MP_ASSIGN_OR_RETURN(const double number, read.Number(*node, name));
  return std::optional(number);
}

absl::StatusOr<std::vector<StrategyFigures>> ReadStrategies(const NodeReader& read,
                                                            const Node& strategies,
                                                            const std::string& name,
                                                            bool of_tables) {
  MP_RETURN_IF_ERROR(read.ExpectTable(strategies, name));
  std::vector<StrategyFigures> out;
  for (const auto& [strategy, node] : *strategies.table()) {
    const std::string key = absl::StrCat(name, ".", strategy);
    MP_RETURN_IF_ERROR(read.ExpectTable(node, key));
    MP_RETURN_IF_ERROR(read.CheckKeys(node, key, kStrategyKeys));
    StrategyFigures figures;
    figures.name = strategy;
    MP_ASSIGN_OR_RETURN(const Node* objective, read.Require(node, key, "objective"));
    MP_ASSIGN_OR_RETURN(figures.objective, read.Number(*objective, key + ".objective"));
    MP_ASSIGN_OR_RETURN(
        figures.objective_equal_total_time,
        ReadBudgetedFigure(read, node, key, "objective_equal_total_time", of_tables));
    MP_ASSIGN_OR_RETURN(const Node* trained, read.Require(node, key, "merges_trained"));
    MP_ASSIGN_OR_RETURN(const std::int64_t count,
                        read.Integer(*trained, key + ".merges_trained", 0, kMostInt));
    figures.merges_trained = static_cast<int>(count);
    if (node.Find("rounds") != nullptr) {
      figures.costs.emplace();
      for (const auto& [part, out] : {std::pair{"rounds", &figures.costs->rounds},
                                      {"teacher_calls", &figures.costs->teacher_calls},
                                      {"student_calls", &figures.costs->student_calls}}) {
        MP_ASSIGN_OR_RETURN(const Node* found, read.Require(node, key, part));
        MP_ASSIGN_OR_RETURN(const std::int64_t number,
                            read.Integer(*found, absl::StrCat(key, ".", part), 0, kMostInt));
        *out = static_cast<int>(number);
      }
    }
    out.push_back(std::move(figures));
  }
  return out;
}

}  // namespace mergeplan::plan_io
