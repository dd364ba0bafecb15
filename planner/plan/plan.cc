#include "planner/plan/plan.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace mergeplan {
namespace {

std::string Text(Range r) { return absl::StrFormat("[%d, %d]", r.first, r.last); }

absl::Status Bad(const std::string& message) { return absl::InvalidArgumentError(message); }

std::string MissingSteps(int first, int last) {
  return first == last ? absl::StrCat("step ", first, " is")
                       : absl::StrCat("steps ", first, "..", last, " are");
}

// Do `parts` cut `whole` into consecutive ranges? `what()` says whose parts they are: searches make
// very many plans, and words only for those that are wrong.
template <typename What>
absl::Status CheckCut(absl::Span<const Range> parts, Range whole, const What& what) {
  int next = whole.first;
  for (const Range& part : parts) {
    if (part.first > part.last) {
      return Bad(absl::StrCat(what(), ": ", Text(part), " ends before it begins"));
    }
    if (part.first < whole.first || part.last > whole.last) {
      return Bad(absl::StrCat(what(), ": ", Text(part), " lies outside ", Text(whole)));
    }
    if (part.first > next) {
      return Bad(absl::StrCat(what(), ": gap, ", MissingSteps(next, part.first - 1),
                              " missing before ", Text(part)));
    }
    if (part.first < next) {
      return Bad(absl::StrCat(what(), ": overlap, ", Text(part), " begins at or before step ",
                              next - 1, ", which the part before it covers"));
    }
    next = part.last + 1;
  }
  if (next <= whole.last) {
    return Bad(absl::StrCat(what(), ": gap, ", MissingSteps(next, whole.last),
                            " missing at the end of ", Text(whole)));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Plan> Plan::Create(int teacher_steps, absl::Span<const MergeSpec> merges,
                                  absl::Span<const Range> blocks, int* faulty_merge) {
  int unused = -1;
  int& faulty = faulty_merge != nullptr ? *faulty_merge : unused;
  faulty = -1;
  if (teacher_steps < 1 || teacher_steps > kMaxTeacherSteps) {
    return Bad(
        absl::StrCat("teacher_steps is ", teacher_steps, ", expected 1..", kMaxTeacherSteps));
  }
  const Range all{1, teacher_steps};
  if (blocks.empty()) return Bad("blocks: none given, expected at least one");
  if (absl::Status s = CheckCut(blocks, all, [] { return "blocks"; }); !s.ok()) return s;

  absl::flat_hash_map<std::pair<int, int>, int> index;
  index.reserve(merges.size());
  for (size_t k = 0; k < merges.size(); ++k) {
    const MergeSpec& merge = merges[k];
    faulty = static_cast<int>(k);
    const auto what = [&merge] { return absl::StrCat("merge ", Text(merge.range)); };
    if (merge.range.first >= merge.range.last) {
      return Bad(absl::StrCat(what(), ": expected first < last; a single step needs no merge"));
    }
    if (merge.range.first < 1 || merge.range.last > teacher_steps) {
      return Bad(absl::StrCat(what(), ": lies outside the teacher's steps ", Text(all)));
    }
    if (merge.children.size() < 2) {
      return Bad(
          absl::StrCat(what(), ": ", merge.children.size(), " children, expected two or more"));
    }
    if (absl::Status s = CheckCut(merge.children, merge.range, what); !s.ok()) return s;
    if (!index.emplace(std::pair{merge.range.first, merge.range.last}, static_cast<int>(k))
             .second) {
      return Bad(absl::StrCat(what(), ": given twice"));
    }
  }
  faulty = -1;

  Plan plan;
  plan.teacher_steps_ = teacher_steps;
  plan.merges_.reserve(merges.size());
  std::vector<bool> used(merges.size(), false);
  // Post-order without recursion: a BOOT plan over 1000 steps is 999 levels deep.
  struct Frame {
    int spec;
    size_t next_child = 0;
    std::vector<int> children;
    int round = 0;
  };
  std::vector<Frame> stack;
  int done = -1;  // node id of the node that was finished last
  const auto round_of = [&plan](int node) {
    return plan.is_step(node) ? 0 : plan.merges_[node - plan.teacher_steps_].round;
  };
  for (const Range& block : blocks) {
    Range want = block;
    while (true) {
      if (want.single()) {
        done = want.first - 1;
      } else {
        const auto found = index.find({want.first, want.last});
        if (found == index.end()) {
          faulty = stack.empty() ? -1 : stack.back().spec;
          const std::string user =
              stack.empty() ? "the blocks"
                            : absl::StrCat("merge ", Text(merges[stack.back().spec].range));
          return Bad(absl::StrCat(user, " use", stack.empty() ? "" : "s", " ", Text(want),
                                  ", but no merge with that range is given"));
        }
        used[found->second] = true;
        stack.push_back({found->second, 0, {}, 0});
        want = merges[found->second].children.front();
        continue;
      }
      // Hand the finished node upwards until some merge still lacks a child.
      bool block_finished = stack.empty();
      while (!stack.empty()) {
        Frame& top = stack.back();
        top.children.push_back(done);
        top.round = std::max(top.round, round_of(done));
        ++top.next_child;
        const MergeSpec& spec = merges[top.spec];
        if (top.next_child < spec.children.size()) {
          want = spec.children[top.next_child];
          break;
        }
        done = teacher_steps + static_cast<int>(plan.merges_.size());
        plan.merges_.push_back(
            {spec.range.first, spec.range.last, top.round + 1, std::move(top.children)});
        stack.pop_back();
        block_finished = stack.empty();
      }
      if (block_finished) break;
    }
    plan.blocks_.push_back(done);
  }
  const auto stray = std::find(used.begin(), used.end(), false);
  if (stray != used.end()) {
    faulty = static_cast<int>(stray - used.begin());
    return Bad(absl::StrCat("merge ", Text(merges[faulty].range),
                            ": no other merge and no block uses it"));
  }
  return plan;
}

int Plan::rounds() const {
  int rounds = 0;
  for (const Merge& merge : merges_) rounds = std::max(rounds, merge.round);
  return rounds;
}

Range Plan::range(int node) const {
  if (is_step(node)) return {node + 1, node + 1};
  return merges_[node - teacher_steps_].range();
}

std::vector<std::vector<int>> Plan::MergesByRound() const {
  std::vector<std::vector<int>> out(rounds() + 1);
  for (int k = 0; k < size(); ++k) out[merges_[k].round].push_back(k);
  return out;
}

std::vector<MergeSpec> Plan::Specs() const {
  std::vector<MergeSpec> out;
  out.reserve(merges_.size());
  for (const Merge& merge : merges_) {
    MergeSpec spec{merge.range(), {}};
    spec.children.reserve(merge.children.size());
    for (int child : merge.children) spec.children.push_back(range(child));
    out.push_back(std::move(spec));
  }
  return out;
}

std::vector<Range> Plan::BlockRanges() const {
  std::vector<Range> out;
  out.reserve(blocks_.size());
  for (int block : blocks_) out.push_back(range(block));
  return out;
}

std::string Plan::ToString() const {
  struct Level {
    absl::Span<const int> nodes;
    size_t next;
  };
  std::string out;
  std::vector<Level> stack{{blocks_, 0}};
  while (true) {
    const absl::Span<const int> nodes = stack.back().nodes;
    const size_t k = stack.back().next;
    if (k == nodes.size()) {
      stack.pop_back();
      if (stack.empty()) return out;
      out += ')';
      continue;
    }
    if (k > 0) out += ' ';
    if (!is_step(nodes[k])) {
      ++stack.back().next;
      out += '(';
      stack.push_back({merges_[nodes[k] - teacher_steps_].children, 0});
      continue;
    }
    size_t end = k;
    while (end + 1 < nodes.size() && is_step(nodes[end + 1])) ++end;
    if (end - k < 2) end = k;  // two neighbours are as short written out
    absl::StrAppend(&out, nodes[k] + 1);
    if (end > k) absl::StrAppend(&out, "..", nodes[end] + 1);
    stack.back().next = end + 1;
  }
}

Range PlanBuilder::Merge(std::vector<Range> children) {
  Range range{0, 0};  // no children: refused by Finish
  if (!children.empty()) range = {children.front().first, children.back().last};
  merges_.push_back({range, std::move(children)});
  return range;
}

absl::StatusOr<Plan> PlanBuilder::Finish(absl::Span<const Range> blocks) const {
  return Plan::Create(teacher_steps_, merges_, blocks);
}

}  // namespace mergeplan
