#include "plugins/conformance/tree.h"

#include <algorithm>
#include <map>
#include <random>

namespace mergeplan_conformance {

std::string ToString(const Range& range) {
  std::string text = "[";
  text.append(std::to_string(range.first)).append(", ");
  return text.append(std::to_string(range.last)).append("]");
}

std::string Tree::Canonical() const {
  std::vector<std::string> lines;
  for (const Merge& merge : merges) {
    std::string line = ToString(merge.range) + ":";
    for (const Range& child : merge.children) line += ToString(child);
    lines.push_back(line);
  }
  std::sort(lines.begin(), lines.end());
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  for (const Range& block : blocks) text += ToString(block);
  return text;
}

std::int32_t& TreeChecker::Mark(const Range& range) {
  return marks_[static_cast<std::size_t>(range.first) *
                    (static_cast<std::size_t>(teacher_steps_) + 1) +
                static_cast<std::size_t>(range.last)];
}

const char* TreeChecker::Use(const Range& range, std::int32_t given, std::int32_t used) {
  if (range.first == range.last) return nullptr;
  std::int32_t& mark = Mark(range);
  if (mark == used) return ", which is used already";
  if (mark != given) return ", but no merge with that range was added";
  mark = used;
  return nullptr;
}

std::string TreeChecker::Check(const Tree& tree) {
  if (tree.teacher_steps != teacher_steps_ || stamp_ > 1'000'000'000) {
    teacher_steps_ = tree.teacher_steps;
    stamp_ = 0;
    const auto side = static_cast<std::size_t>(teacher_steps_) + 1;
    marks_.assign(side * side, 0);
  }
  const std::int32_t given = ++stamp_;
  const std::int32_t used = ++stamp_;
  // Do the ranges cut `whole`? Empty, or where not.
  const auto cut = [&](const std::vector<Range>& ranges, const Range& whole) -> std::string {
    std::int64_t next = whole.first;
    for (const Range& range : ranges) {
      if (range.first != next || range.last < range.first || range.last > whole.last) {
        return ToString(range) + " stands where a range from " + std::to_string(next) + " within " +
               ToString(whole) + " was expected";
      }
      next = std::int64_t{range.last} + 1;
    }
    return next == std::int64_t{whole.last} + 1 ? ""
                                                : "step " + std::to_string(next) + " is missing";
  };
  for (const Merge& merge : tree.merges) {
    const Range& range = merge.range;
    const auto name = [&] { return "merge " + ToString(range) + ": "; };
    if (range.first < 1 || range.first >= range.last || range.last > teacher_steps_) {
      return name() + "expected two or more of the steps 1 to " + std::to_string(teacher_steps_);
    }
    if (merge.children.size() < 2) return name() + "has fewer than two children";
    const std::string wrong = cut(merge.children, range);
    if (!wrong.empty()) return name() + "children: " + wrong;
    std::int32_t& mark = Mark(range);
    if (mark == given) return name() + "was added twice";
    mark = given;
  }
  for (const Merge& merge : tree.merges) {
    for (const Range& child : merge.children) {
      if (const char* wrong = Use(child, given, used)) {
        return "merge " + ToString(merge.range) + " uses " + ToString(child) + wrong;
      }
    }
  }
  const std::string wrong = cut(tree.blocks, {1, teacher_steps_});
  if (!wrong.empty()) return "blocks: " + wrong;
  for (const Range& block : tree.blocks) {
    if (const char* misuse = Use(block, given, used)) {
      return "the list of blocks uses " + ToString(block) + misuse;
    }
  }
  for (const Merge& merge : tree.merges) {
    if (Mark(merge.range) != used) {
      return "merge " + ToString(merge.range) + " is neither a block nor a child of another merge";
    }
  }
  return "";
}

// ---- plans for execute()

namespace {

std::vector<Range> Steps(std::int32_t first, std::int32_t last) {
  std::vector<Range> out;
  for (std::int32_t t = first; t <= last; ++t) out.push_back({t, t});
  return out;
}

void AddHalves(Tree* tree, Range range) {
  if (range.first == range.last) return;
  const std::int32_t middle = range.first + (range.last - range.first) / 2;
  const Range left = {range.first, middle};
  const Range right = {middle + 1, range.last};
  AddHalves(tree, left);
  AddHalves(tree, right);
  tree->merges.push_back({range, {left, right}});
}

}  // namespace

Tree Flat(std::int32_t steps) {
  Tree tree;
  tree.teacher_steps = steps;
  if (steps > 1) tree.merges.push_back({{1, steps}, Steps(1, steps)});
  tree.blocks = {{1, steps}};
  return tree;
}

Tree Chain(std::int32_t steps) {
  Tree tree;
  tree.teacher_steps = steps;
  for (std::int32_t t = 2; t <= steps; ++t) tree.merges.push_back({{1, t}, {{1, t - 1}, {t, t}}});
  tree.blocks = {{1, steps}};
  return tree;
}

Tree Halves(std::int32_t steps) {
  Tree tree;
  tree.teacher_steps = steps;
  AddHalves(&tree, {1, steps});
  tree.blocks = {{1, steps}};
  return tree;
}

Tree Random(std::int32_t steps, std::int32_t blocks, std::uint32_t seed) {
  Tree tree;
  tree.teacher_steps = steps;
  tree.blocks = Steps(1, steps);
  std::minstd_rand random(seed);
  const auto wanted = static_cast<std::size_t>(blocks);
  while (tree.blocks.size() > wanted) {
    const std::size_t most = std::min<std::size_t>(4, tree.blocks.size() - wanted + 1);
    const std::size_t count = 2 + random() % (most - 1);
    const std::size_t at = random() % (tree.blocks.size() - count + 1);
    const auto begin = tree.blocks.begin() + static_cast<std::ptrdiff_t>(at);
    const auto end = begin + static_cast<std::ptrdiff_t>(count);
    tree.merges.push_back({{begin->first, (end - 1)->last}, {begin, end}});
    *begin = tree.merges.back().range;
    tree.blocks.erase(begin + 1, end);
  }
  return tree;
}

TreeView::TreeView(const Tree& tree) : plan_{} {
  std::size_t pairs = 0;
  for (const Merge& merge : tree.merges) pairs += merge.children.size();
  children_.reserve(2 * pairs);  // pointers into it must stay
  std::map<Range, std::int32_t> rounds;
  for (const Merge& merge : tree.merges) {
    const std::size_t begin = children_.size();
    std::int32_t round = 1;
    for (const Range& child : merge.children) {
      children_.push_back(child.first);
      children_.push_back(child.last);
      if (child.first != child.last) round = std::max(round, 1 + rounds[child]);
    }
    rounds[merge.range] = round;
    mergeplan_merge out = {};
    out.struct_size = sizeof(out);
    out.first = merge.range.first;
    out.last = merge.range.last;
    out.round = round;
    out.child_count = static_cast<std::int32_t>(merge.children.size());
    out.children = children_.data() + begin;
    merges_.push_back(out);
  }
  for (const mergeplan_merge& merge : merges_) pointers_.push_back(&merge);
  for (const Range& block : tree.blocks) {
    blocks_.push_back(block.first);
    blocks_.push_back(block.last);
  }
  plan_.struct_size = sizeof(plan_);
  plan_.teacher_steps = tree.teacher_steps;
  plan_.student_steps = static_cast<std::int32_t>(tree.blocks.size());
  plan_.merge_count = static_cast<std::int32_t>(tree.merges.size());
  plan_.merges = pointers_.data();
  plan_.blocks = blocks_.data();
}

std::string TreeView::Bytes() const {
  std::string bytes(reinterpret_cast<const char*>(&plan_), sizeof(plan_));
  const auto add = [&](const auto& list) {
    // The list's elements are what is meant, pointers too.
    const std::size_t size =
        list.size() * sizeof(*list.data());  // NOLINT(bugprone-sizeof-expression)
    bytes.append(reinterpret_cast<const char*>(list.data()), size);
  };
  add(children_);
  add(blocks_);
  add(merges_);
  add(pointers_);
  return bytes;
}

}  // namespace mergeplan_conformance
