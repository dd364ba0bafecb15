#include "tests/oracle/enumerate.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <memory>
#include <tuple>
#include <utility>

namespace mergeplan::oracle {
namespace {

struct Tree;
using TreePtr = std::shared_ptr<const Tree>;
using Forest = std::vector<TreePtr>;  // neighbours, from the clean end

struct Tree {
  Range range;
  Forest children;
};

std::vector<TreePtr> Trees(int i, int j, Space space);

// Every sequence of exactly `count` trees over i..j.
std::vector<Forest> Forests(int i, int j, int count, Space space) {
  std::vector<Forest> out;
  if (count == 1) {
    for (TreePtr& tree : Trees(i, j, space)) out.push_back({std::move(tree)});
    return out;
  }
  for (int m = i; m <= j - count + 1; ++m) {
    const std::vector<Forest> rests = Forests(m + 1, j, count - 1, space);
    for (const TreePtr& first : Trees(i, m, space)) {
      for (const Forest& rest : rests) {
        Forest forest = {first};
        forest.insert(forest.end(), rest.begin(), rest.end());
        out.push_back(std::move(forest));
      }
    }
  }
  return out;
}

// Every tree over i..j.
std::vector<TreePtr> Trees(int i, int j, Space space) {
  if (i == j) return {std::make_shared<Tree>(Tree{{i, i}, {}})};
  std::vector<TreePtr> out;
  if (space == Space::kNary) {
    for (int count = 2; count <= j - i + 1; ++count) {
      for (Forest& forest : Forests(i, j, count, space)) {
        out.push_back(std::make_shared<Tree>(Tree{{i, j}, std::move(forest)}));
      }
    }
    return out;
  }
  // Binary: all single steps at once, or two children. Over two steps these are the same tree.
  for (Forest& forest : Forests(i, j, 2, space)) {
    out.push_back(std::make_shared<Tree>(Tree{{i, j}, std::move(forest)}));
  }
  if (j - i >= 2) {
    Forest steps;
    for (int t = i; t <= j; ++t) steps.push_back(std::make_shared<Tree>(Tree{{t, t}, {}}));
    out.push_back(std::make_shared<Tree>(Tree{{i, j}, std::move(steps)}));
  }
  return out;
}

Range AddTo(PlanBuilder& builder, const Tree& tree) {
  if (tree.children.empty()) return tree.range;
  std::vector<Range> children;
  for (const TreePtr& child : tree.children) children.push_back(AddTo(builder, *child));
  return builder.Merge(std::move(children));
}

}  // namespace

const std::vector<Plan>& AllPlans(int teacher_steps, int blocks, Space space) {
  static auto& cache = *new std::map<std::tuple<int, int, Space>, std::vector<Plan>>();
  const auto [it, is_new] = cache.try_emplace({teacher_steps, blocks, space});
  if (!is_new) return it->second;
  if (teacher_steps < 1 || blocks < 1 || blocks > teacher_steps) std::abort();
  for (const Forest& forest : Forests(1, teacher_steps, blocks, space)) {
    PlanBuilder builder(teacher_steps);
    std::vector<Range> tops;
    for (const TreePtr& tree : forest) tops.push_back(AddTo(builder, *tree));
    absl::StatusOr<Plan> plan = builder.Finish(tops);
    if (!plan.ok()) std::abort();
    it->second.push_back(*std::move(plan));
  }
  return it->second;
}

Solution Solve(const Problem& problem, int blocks, Space space) {
  const std::vector<Plan>& plans = AllPlans(problem.steps(), blocks, space);
  std::vector<Wide> objectives;
  objectives.reserve(plans.size());
  for (const Plan& plan : plans) objectives.push_back(problem.Objective(plan));

  Solution out;
  const auto best = std::min_element(objectives.begin(), objectives.end());
  out.plan = plans[best - objectives.begin()];
  out.objective = *best;
  out.value = problem.Value(out.plan);
  out.tolerance = problem.Tolerance(out.plan);
  out.plans = plans.size();
  const Wide limit = *best * (1 + Wide(1) / 1000000000000LL);
  for (const Wide& objective : objectives) {
    if (objective <= limit) {
      ++out.ties;
    } else if (!out.has_runner_up || objective < out.runner_up) {
      out.has_runner_up = true;
      out.runner_up = objective;
    }
  }
  return out;
}

ValueRange RangeOfValues(const Problem& problem, int blocks, Space space) {
  ValueRange out;
  for (const Plan& plan : AllPlans(problem.steps(), blocks, space)) {
    const std::vector<Wide> value = problem.Value(plan);
    if (out.least.empty()) out.least = out.largest = value;
    for (size_t k = 0; k < value.size(); ++k) {
      out.least[k] = std::min(out.least[k], value[k]);
      out.largest[k] = std::max(out.largest[k], value[k]);
    }
  }
  return out;
}

}  // namespace mergeplan::oracle
