#include "planner/search/shared/proposals.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <string>
#include <utility>

namespace mergeplan::search {
namespace {

// A plan that can be changed.
struct Node {
  int first = 0, last = 0;
  double share = 0;
  std::vector<Node> children;
  bool single() const { return first == last; }
};

Node ToNode(const SharedPlan& from, int id) {
  const Range range = from.plan.range(id);
  Node node{range.first, range.last, 0, {}};
  if (from.plan.is_step(id)) return node;
  const int merge = id - from.plan.teacher_steps();
  node.share = from.shares[merge];
  for (int child : from.plan.merges()[merge].children) node.children.push_back(ToNode(from, child));
  return node;
}

void Collect(const Node& node, std::vector<MergeSpec>& specs,
             std::vector<std::pair<std::pair<int, int>, double>>& shares) {
  if (node.children.empty()) return;
  MergeSpec spec{{node.first, node.last}, {}};
  for (const Node& child : node.children) {
    Collect(child, specs, shares);
    spec.children.push_back({child.first, child.last});
  }
  shares.push_back({{node.first, node.last}, node.share});
  specs.push_back(std::move(spec));
}

// False where it is no plan.
bool FromNodes(int steps, const std::vector<Node>& blocks, SharedPlan* out) {
  std::vector<MergeSpec> specs;
  std::vector<std::pair<std::pair<int, int>, double>> shares;
  std::vector<Range> tops;
  for (const Node& block : blocks) {
    Collect(block, specs, shares);
    tops.push_back({block.first, block.last});
  }
  absl::StatusOr<Plan> plan = Plan::Create(steps, specs, tops);
  if (!plan.ok()) return false;
  std::sort(shares.begin(), shares.end());
  out->shares.clear();
  double sum = 0;
  for (const Merge& merge : plan->merges()) {
    const auto at = std::lower_bound(shares.begin(), shares.end(),
                                     std::pair(std::pair(merge.first, merge.last), -1.0));
    out->shares.push_back(at->second);
    sum += at->second;
  }
  for (double& share : out->shares) {
    share = sum > 0 ? share / sum : 1.0 / static_cast<double>(out->shares.size());
  }
  out->plan = *std::move(plan);
  return true;
}

// Takes the step at one end off a node; nothing is left of it where it was one step. A node of one
// child is that child.
bool TakeStep(Node& node, bool clean_end) {
  if (node.single()) return false;
  (clean_end ? node.first : node.last) += clean_end ? 1 : -1;
  Node& child = clean_end ? node.children.front() : node.children.back();
  if (!TakeStep(child, clean_end)) {
    node.children.erase(clean_end ? node.children.begin() : node.children.end() - 1);
  }
  if (node.children.size() == 1) {
    Node only = std::move(node.children.front());
    node = std::move(only);
  }
  return true;
}

void GiveStep(Node& node, bool clean_end) {
  const int step = clean_end ? node.first - 1 : node.last + 1;
  Node leaf{step, step, 0, {}};
  if (node.children.empty()) {
    Node old = node;
    node.children = clean_end ? std::vector<Node>{leaf, old} : std::vector<Node>{old, leaf};
  } else {
    node.children.insert(clean_end ? node.children.begin() : node.children.end(), leaf);
  }
  (clean_end ? node.first : node.last) = step;
}

// Calls `emit` after every change of the list of siblings, which is put back afterwards.
void ChangeSiblings(std::vector<Node>& siblings, bool of_a_merge,
                    const std::function<void()>& emit) {
  const std::vector<Node> saved = siblings;
  const std::size_t n = saved.size();
  for (std::size_t c = 0; c < n; ++c) {
    // Dissolved into its parent.
    if (of_a_merge && !saved[c].children.empty()) {
      siblings.erase(siblings.begin() + static_cast<std::ptrdiff_t>(c));
      siblings.insert(siblings.begin() + static_cast<std::ptrdiff_t>(c), saved[c].children.begin(),
                      saved[c].children.end());
      emit();
      siblings = saved;
    }
    // Borders.
    for (const bool towards_noise : {true, false}) {
      if (c + 1 >= n) break;
      Node& giver = siblings[towards_noise ? c + 1 : c];
      Node& taker = siblings[towards_noise ? c : c + 1];
      if (TakeStep(giver, towards_noise)) {
        GiveStep(taker, !towards_noise);
        emit();
      }
      siblings = saved;
    }
  }
  if (!of_a_merge) return;
  constexpr std::size_t kLong = 16;
  for (std::size_t a = 0; a < n; ++a) {
    for (std::size_t b = a + 1; b < n && b - a + 1 < n; ++b) {
      if (n > kLong && b != a + 1 && a != 0 && b != n - 1) continue;
      Node run{saved[a].first,
               saved[b].last,
               0,
               {saved.begin() + static_cast<std::ptrdiff_t>(a),
                saved.begin() + static_cast<std::ptrdiff_t>(b) + 1}};
      siblings.erase(siblings.begin() + static_cast<std::ptrdiff_t>(a),
                     siblings.begin() + static_cast<std::ptrdiff_t>(b) + 1);
      siblings.insert(siblings.begin() + static_cast<std::ptrdiff_t>(a), std::move(run));
      emit();
      siblings = saved;
    }
  }
}

void ChangeBelow(Node& node, const std::function<void()>& emit) {
  if (node.children.empty()) return;
  ChangeSiblings(node.children, true, emit);
  for (Node& child : node.children) ChangeBelow(child, emit);
}

// A root over the kept steps, each with the dropped ones on its clean side.
bool Dropping(const std::vector<bool>& dropped, int steps, Plan* out) {
  PlanBuilder builder(steps);
  std::vector<Range> children, group;
  for (int t = 1; t <= steps; ++t) {
    group.push_back(PlanBuilder::Step(t));
    if (t < steps && dropped[t]) continue;
    children.push_back(group.size() == 1 ? group[0] : builder.Merge(group));
    group.clear();
  }
  const Range root = children.size() == 1 ? children[0] : builder.Merge(std::move(children));
  absl::StatusOr<Plan> plan = builder.Finish({root});
  if (!plan.ok()) return false;
  *out = *std::move(plan);
  return true;
}

// All ways to cut i..j into n parts, every part in all its trees.
std::vector<std::vector<Node>> Forests(int i, int j, int n);

std::vector<Node> Trees(int i, int j) {
  if (i == j) return {Node{i, i, 0, {}}};
  std::vector<Node> out;
  for (int n = 2; n <= j - i + 1; ++n) {
    for (std::vector<Node>& children : Forests(i, j, n)) {
      out.push_back({i, j, 0, std::move(children)});
    }
  }
  return out;
}

std::vector<std::vector<Node>> Forests(int i, int j, int n) {
  std::vector<std::vector<Node>> out;
  if (n == 1) {
    for (Node& tree : Trees(i, j)) out.push_back({std::move(tree)});
    return out;
  }
  for (int m = i; m <= j - n + 1; ++m) {
    const std::vector<std::vector<Node>> rest = Forests(m + 1, j, n - 1);
    for (const Node& first : Trees(i, m)) {
      for (const std::vector<Node>& others : rest) {
        out.push_back({first});
        out.back().insert(out.back().end(), others.begin(), others.end());
      }
    }
  }
  return out;
}

}  // namespace

std::vector<Plan> EveryPlan(int steps, int blocks) {
  std::vector<Plan> out;
  for (const std::vector<Node>& forest : Forests(1, steps, blocks)) {
    SharedPlan plan;
    if (FromNodes(steps, forest, &plan)) out.push_back(std::move(plan.plan));
  }
  return out;
}

std::vector<Plan> DroppingPlans(const SharedProblem& problem, std::size_t most) {
  const int T = problem.steps();
  std::vector<Plan> out;
  std::set<std::vector<bool>> seen;
  const auto add = [&](const std::vector<bool>& dropped) {
    Plan plan;
    if (seen.insert(dropped).second && Dropping(dropped, T, &plan)) out.push_back(std::move(plan));
  };
  const std::size_t stride = problem.width() / std::max<std::size_t>(1, most) + 1;
  for (const bool small : {true, false}) {
    for (std::size_t c = 0; c < problem.width(); c += stride) {
      std::vector<bool> dropped(static_cast<std::size_t>(T) + 1, false);
      bool any = false, all = true;
      for (int t = 1; t < T; ++t) {
        const double a = problem.model->A(t)[problem.coordinate[c]];
        dropped[t] = small ? a < 1 : a > 1;
        any = any || dropped[t];
        all = all && dropped[t];
      }
      // Dropping all asks for a second merge that takes the total.
      if (any && !all) add(dropped);
    }
  }
  const int step = T / static_cast<int>(std::max<std::size_t>(1, most)) + 1;
  for (int k = 1; k + 1 < T; k += step) {
    std::vector<bool> dropped(static_cast<std::size_t>(T) + 1, false);
    std::fill_n(dropped.begin() + 1, k, true);
    add(dropped);
  }
  return out;
}

std::vector<SharedPlan> LocalChanges(const SharedPlan& from, std::size_t most) {
  std::vector<Node> blocks;
  for (int block : from.plan.blocks()) blocks.push_back(ToNode(from, block));
  std::vector<SharedPlan> all;
  std::set<std::string> seen = {from.plan.ToString()};
  const std::function<void()> emit = [&] {
    SharedPlan changed;
    if (FromNodes(from.plan.teacher_steps(), blocks, &changed) &&
        seen.insert(changed.plan.ToString()).second) {
      all.push_back(std::move(changed));
    }
  };
  ChangeSiblings(blocks, false, emit);
  for (Node& block : blocks) ChangeBelow(block, emit);
  if (all.size() <= most) return all;
  std::vector<SharedPlan> some;
  for (std::size_t c = 0; c < most; ++c) some.push_back(std::move(all[c * all.size() / most]));
  return some;
}

}  // namespace mergeplan::search
