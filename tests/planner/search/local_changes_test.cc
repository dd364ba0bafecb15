// No local change of a reported optimum is better: merges dissolved, neighbours merged, steps moved
// from child to child and from block to block, one change or two after each other.
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "planner/search/search.h"

namespace mergeplan {
namespace {

struct Node {
  int step = 0;  // of a single step
  std::vector<Node> children;
};
using Blocks = std::vector<Node>;

Node FromPlan(const Plan& plan, int node) {
  if (plan.is_step(node)) return {plan.range(node).first, {}};
  Node out;
  for (int child : plan.merges()[node - plan.teacher_steps()].children) {
    out.children.push_back(FromPlan(plan, child));
  }
  return out;
}

Range Build(PlanBuilder& builder, const Node& node) {
  if (node.children.empty()) return PlanBuilder::Step(node.step);
  std::vector<Range> children;
  for (const Node& child : node.children) children.push_back(Build(builder, child));
  return builder.Merge(std::move(children));
}

Plan ToPlan(const Blocks& blocks, int steps) {
  PlanBuilder builder(steps);
  std::vector<Range> ranges;
  for (const Node& block : blocks) ranges.push_back(Build(builder, block));
  return *builder.Finish(ranges);
}

// A merge of one child is that child.
void Simplify(Node& node) {
  if (node.children.size() == 1) node = Node(std::move(node.children[0]));
}

// All lists of nodes that one change inside this one makes.
std::vector<Node> Changes(const Node& node) {
  std::vector<Node> out;
  const int n = static_cast<int>(node.children.size());
  for (int k = 0; k < n; ++k) {
    for (Node& changed : Changes(node.children[k])) {  // further inside
      out.push_back(node);
      out.back().children[k] = std::move(changed);
    }
    const Node& child = node.children[k];
    if (!child.children.empty()) {  // dissolved
      out.push_back(node);
      std::vector<Node>& children = out.back().children;
      children.erase(children.begin() + k);
      children.insert(children.begin() + k, child.children.begin(), child.children.end());
      // Its first child to the neighbour before, its last to the one behind.
      for (const int to : {k - 1, k + 1}) {
        if (to < 0 || to >= n) continue;
        Node moved = node;
        Node& from = moved.children[k];
        Node& into = moved.children[to];
        if (into.children.empty()) into.children = {Node(into)};
        if (to < k) {
          into.children.push_back(from.children.front());
          from.children.erase(from.children.begin());
        } else {
          into.children.insert(into.children.begin(), from.children.back());
          from.children.pop_back();
        }
        Simplify(from);
        out.push_back(std::move(moved));
      }
    }
    for (int last = k + 1; last < n && last - k + 1 < n; ++last) {  // neighbours merged
      out.push_back(node);
      std::vector<Node>& children = out.back().children;
      Node merged;
      merged.children.assign(children.begin() + k, children.begin() + last + 1);
      children.erase(children.begin() + k, children.begin() + last + 1);
      children.insert(children.begin() + k, std::move(merged));
    }
  }
  return out;
}

std::vector<Blocks> Neighbours(const Blocks& blocks) {
  // The blocks together are like the children of one node, whose number stays.
  Node top;
  top.children = blocks;
  std::vector<Blocks> out;
  for (Node& changed : Changes(top)) {
    if (changed.children.size() == blocks.size()) out.push_back(std::move(changed.children));
  }
  return out;
}

Model SurrogateModel(std::vector<double> variances, int steps, double time) {
  ModelSpec spec;
  spec.schedule = CosineSchedule(steps);
  spec.variances = std::move(variances);
  spec.budget = Budget::Flow(time);
  return *Model::Create(std::move(spec));
}

TEST(LocalChanges, NoneIsBetterThanAReportedOptimum) {
  std::mt19937_64 random(10);
  const auto uniform = [&random](double low, double high) {
    return std::uniform_real_distribution<double>(low, high)(random);
  };
  int looked = 0;
  for (int trial = 0; trial < 60; ++trial) {
    const int steps = 9 + trial % 12, count = 1 + trial % 4;
    std::vector<double> variances;
    for (int k = 0; k < count; ++k) {
      variances.push_back(trial % 3 == 0 ? uniform(0.9, 1.6) : std::exp(uniform(-2, 2)));
    }
    const Model model = SurrogateModel(variances, steps, uniform(0.5, 6));
    SearchOptions options;
    options.gap = 0;
    options.student_steps = 1 + trial % 3;
    const SearchResult best = *Solve(model, options);
    ASSERT_EQ(best.status, SearchStatus::kOptimal) << best.guarantee;
    Blocks blocks;
    for (int block : best.plan.blocks()) blocks.push_back(FromPlan(best.plan, block));
    ASSERT_EQ(ToPlan(blocks, steps), best.plan);
    const auto check = [&](const Blocks& changed) {
      const Plan plan = ToPlan(changed, steps);
      ++looked;
      EXPECT_GE(model.Objective(plan), best.objective - 2 * best.tolerance)
          << best.plan.ToString() << " -> " << plan.ToString();
    };
    for (const Blocks& one : Neighbours(blocks)) {
      check(one);
      std::vector<Blocks> more = Neighbours(one);
      if (more.empty()) continue;
      for (int k = 0; k < 5; ++k) {
        check(more[std::uniform_int_distribution<std::size_t>(0, more.size() - 1)(random)]);
      }
    }
    if (testing::Test::HasFailure()) return;
  }
  EXPECT_GT(looked, 10'000);
}

}  // namespace
}  // namespace mergeplan
