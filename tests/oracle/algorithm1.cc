#include "tests/oracle/algorithm1.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <utility>

namespace mergeplan::oracle {
namespace {

struct Element {
  std::vector<Wide> value;
  // How it was made: split = 0 for a single step or the direct merge, else the last step of the
  // left part, with the positions of both parts in their frontiers.
  int split = 0;
  size_t left = 0, right = 0;
};

using Frontier = std::vector<Element>;

class Runner {
 public:
  explicit Runner(const Problem& problem) : problem_(problem), d_(problem.dimensions()) {}

  Algorithm1Result Run() {
    const int T = problem_.steps();
    for (int t = 1; t <= T; ++t) {
      Element step;
      for (int k = 0; k < d_; ++k) step.value.push_back(problem_.A(t, k));
      table_[{t, t}].push_back(std::move(step));
    }
    for (int length = 2; length <= T; ++length) {
      for (int i = 1; i + length - 1 <= T; ++i) Fill(i, i + length - 1);
    }

    const Frontier& top = table_.at({1, T});
    size_t best = 0;
    for (size_t e = 1; e < top.size(); ++e) {
      if (problem_.Objective(top[e].value) < problem_.Objective(top[best].value)) best = e;
    }
    Algorithm1Result out;
    PlanBuilder builder(T);
    const Range tops[] = {Build(builder, 1, T, best)};
    absl::StatusOr<Plan> plan = builder.Finish(tops);
    if (!plan.ok()) std::abort();
    out.plan = *std::move(plan);
    out.value = top[best].value;
    out.objective = problem_.Objective(out.value);
    out.candidates = candidates_;
    out.frontier = top.size();
    return out;
  }

 private:
  void Fill(int i, int j) {
    Frontier& frontier = table_[{i, j}];
    Element direct;
    for (int k = 0; k < d_; ++k) {
      Wide product = 1;
      for (int t = i; t <= j; ++t) product *= problem_.A(t, k);
      direct.value.push_back(problem_.Merge(i, j - 1, j, product, problem_.A(j, k), k));
    }
    InsertAndPrune(frontier, std::move(direct));
    for (int m = i; m < j; ++m) {
      const Frontier& lefts = table_.at({i, m});
      const Frontier& rights = table_.at({m + 1, j});
      for (size_t left = 0; left < lefts.size(); ++left) {
        for (size_t right = 0; right < rights.size(); ++right) {
          Element split;
          split.split = m;
          split.left = left;
          split.right = right;
          for (int k = 0; k < d_; ++k) {
            const Wide u = lefts[left].value[k], v = rights[right].value[k];
            split.value.push_back(problem_.Merge(i, m, j, u * v, v, k));
          }
          InsertAndPrune(frontier, std::move(split));
        }
      }
    }
  }

  // a is at least as good as b in every dimension: it dominates b or equals it.
  bool AtLeastAsGood(const Element& a, const Element& b) const {
    for (int k = 0; k < d_; ++k) {
      const bool larger_is_better = problem_.spec().lambda[k] > 1;
      if (larger_is_better ? a.value[k] < b.value[k] : a.value[k] > b.value[k]) return false;
    }
    return true;
  }

  void InsertAndPrune(Frontier& frontier, Element element) {
    ++candidates_;
    for (const Element& old : frontier) {
      if (AtLeastAsGood(old, element)) return;
    }
    std::erase_if(frontier, [&](const Element& old) { return AtLeastAsGood(element, old); });
    frontier.push_back(std::move(element));
  }

  Range Build(PlanBuilder& builder, int i, int j, size_t position) const {
    if (i == j) return {i, i};
    const Element& element = table_.at({i, j})[position];
    std::vector<Range> children;
    if (element.split == 0) {
      for (int t = i; t <= j; ++t) children.push_back({t, t});
    } else {
      children.push_back(Build(builder, i, element.split, element.left));
      children.push_back(Build(builder, element.split + 1, j, element.right));
    }
    return builder.Merge(std::move(children));
  }

  const Problem& problem_;
  const int d_;
  std::map<std::pair<int, int>, Frontier> table_;  // S[i,j]
  size_t candidates_ = 0;
};

}  // namespace

Algorithm1Result Algorithm1(const Problem& problem) {
  if (problem.steps() == 1) {
    Algorithm1Result out;
    const Range tops[] = {{1, 1}};
    out.plan = *PlanBuilder(1).Finish(tops);
    out.value = problem.Value(out.plan);
    out.objective = problem.Objective(out.value);
    out.frontier = 1;
    return out;
  }
  return Runner(problem).Run();
}

}  // namespace mergeplan::oracle
