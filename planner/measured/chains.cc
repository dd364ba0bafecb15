#include "planner/measured/chains.h"

#include <cstddef>
#include <utility>

namespace mergeplan {
namespace {

// A block: its merges begin at starts[0] = first < starts[1] < … < last, each inside the one before
// it and all ending at `last`. No starts: a single step.
struct Chain {
  int first, last;
  std::vector<int> starts;
};

// False where the block is no chain.
bool ReadChain(const Plan& plan, int block, Chain& chain) {
  chain.first = plan.range(block).first;
  chain.last = plan.range(block).last;
  for (int node = block; !plan.is_step(node);) {
    const Merge& merge = plan.merges()[node - plan.teacher_steps()];
    chain.starts.push_back(merge.first);
    for (std::size_t k = 0; k + 1 < merge.children.size(); ++k) {
      if (!plan.is_step(merge.children[k])) return false;
    }
    node = merge.children.back();
  }
  return true;
}

// Adds the plan of the chains where they are one.
void AddPlan(int steps, const std::vector<Chain>& chains, std::vector<Plan>& out) {
  std::vector<MergeSpec> merges;
  std::vector<Range> blocks;
  for (const Chain& chain : chains) {
    blocks.push_back({chain.first, chain.last});
    for (std::size_t k = 0; k < chain.starts.size(); ++k) {
      const int inner = k + 1 < chain.starts.size() ? chain.starts[k + 1] : chain.last;
      MergeSpec spec{{chain.starts[k], chain.last}, {}};
      for (int t = chain.starts[k]; t < inner; ++t) spec.children.push_back({t, t});
      spec.children.push_back({inner, chain.last});
      merges.push_back(std::move(spec));
    }
  }
  absl::StatusOr<Plan> plan = Plan::Create(steps, merges, blocks);
  if (plan.ok()) out.push_back(*std::move(plan));
}

// Is every start before the next one, and a merge at least two steps long?
bool IsChain(const Chain& chain) {
  if (chain.first > chain.last) return false;
  if (chain.starts.empty()) return chain.first == chain.last;
  int before = chain.first - 1;
  for (const int start : chain.starts) {
    if (start <= before || start >= chain.last) return false;
    before = start;
  }
  return chain.starts.front() == chain.first;
}

// Gives the block other ends.
void Resize(Chain& chain, int first, int last) {
  chain.first = first;
  chain.last = last;
  if (first >= last) {
    chain.starts.clear();
  } else if (chain.starts.empty()) {
    chain.starts.push_back(first);
  } else {
    chain.starts.front() = first;
  }
}

}  // namespace

std::vector<Plan> NeighboursOf(const Plan& plan) {
  std::vector<Plan> out;
  std::vector<Chain> chains(plan.student_steps());
  for (int b = 0; b < plan.student_steps(); ++b) {
    if (!ReadChain(plan, plan.blocks()[b], chains[b])) return out;
  }
  const int steps = plan.teacher_steps();
  const auto with = [&](std::size_t b, Chain chain) {
    if (!IsChain(chain)) return;
    std::vector<Chain> changed = chains;
    changed[b] = std::move(chain);
    AddPlan(steps, changed, out);
  };
  for (std::size_t b = 0; b < chains.size(); ++b) {
    const Chain& chain = chains[b];
    for (std::size_t k = 1; k < chain.starts.size(); ++k) {
      Chain without = chain;
      without.starts.erase(without.starts.begin() + static_cast<std::ptrdiff_t>(k));
      with(b, std::move(without));
      for (int by = 1; by < steps; by *= 2) {
        for (const int move : {-by, by}) {
          Chain moved = chain;
          moved.starts[k] += move;
          with(b, std::move(moved));
        }
      }
    }
    for (std::size_t k = 0; k < chain.starts.size(); ++k) {
      const int next = k + 1 < chain.starts.size() ? chain.starts[k + 1] : chain.last;
      Chain more = chain;
      more.starts.insert(more.starts.begin() + static_cast<std::ptrdiff_t>(k) + 1,
                         (chain.starts[k] + next) / 2);
      with(b, std::move(more));
    }
    if (b + 1 == chains.size()) continue;
    for (int by = 1; by < steps; by *= 2) {
      for (const int move : {-by, by}) {
        std::vector<Chain> changed = chains;
        Resize(changed[b], chain.first, chain.last + move);
        Resize(changed[b + 1], chain.last + 1 + move, chains[b + 1].last);
        if (IsChain(changed[b]) && IsChain(changed[b + 1])) AddPlan(steps, changed, out);
      }
    }
  }
  return out;
}

}  // namespace mergeplan
