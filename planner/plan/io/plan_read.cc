#include "planner/plan/io/plan_read.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "planner/base/status_macros.h"

namespace mergeplan::plan_io {
namespace {

constexpr std::string_view kMergeKeys[] = {"first", "last", "round", "children"};

// A merge as it stands in the file.
struct MergeEntry {
  MergeSpec spec;
  const Node* round = nullptr;
};

absl::StatusOr<Range> ReadRange(const NodeReader& read, const Node& node, const std::string& key) {
  const Node::Items* items = node.list();
  if (items == nullptr || items->size() != 2) {
    return read.Error(&node, key,
                      absl::StrCat("is ",
                                   items == nullptr ? std::string(node.Kind())
                                                    : absl::StrCat("a list of ", items->size()),
                                   ", expected a range [first, last]"));
  }
  Range range;
  for (const auto& [at, out] : {std::pair{0, &range.first}, {1, &range.last}}) {
    MP_ASSIGN_OR_RETURN(const std::int64_t step,
                        read.Integer((*items)[at], key, -kMostInt, kMostInt));
    *out = static_cast<int>(step);
  }
  return range;
}

absl::StatusOr<std::vector<Range>> ReadRanges(const NodeReader& read, const Node& node,
                                              const std::string& key) {
  MP_RETURN_IF_ERROR(read.ExpectList(node, key));
  std::vector<Range> out;
  out.reserve(node.list()->size());
  for (const Node& item : *node.list()) {
    MP_ASSIGN_OR_RETURN(const Range range,
                        ReadRange(read, item, absl::StrCat(key, "[", out.size(), "]")));
    out.push_back(range);
  }
  return out;
}

absl::StatusOr<MergeEntry> ReadMerge(const NodeReader& read, const Node& node,
                                     const std::string& key) {
  MP_RETURN_IF_ERROR(read.ExpectTable(node, key));
  MP_RETURN_IF_ERROR(read.CheckKeys(node, key, kMergeKeys));
  MergeEntry out;
  for (const auto& [word, target] :
       {std::pair{"first", &out.spec.range.first}, {"last", &out.spec.range.last}}) {
    MP_ASSIGN_OR_RETURN(const Node* step, read.Require(node, key, word));
    MP_ASSIGN_OR_RETURN(const std::int64_t number,
                        read.Integer(*step, absl::StrCat(key, ".", word), -kMostInt, kMostInt));
    *target = static_cast<int>(number);
  }
  MP_ASSIGN_OR_RETURN(const Node* children, read.Require(node, key, "children"));
  MP_ASSIGN_OR_RETURN(out.spec.children, ReadRanges(read, *children, key + ".children"));
  out.round = node.Find("round");
  return out;
}

// Is `tree` the node of the plan? Its depth is at most kMaxDepth, by the parser.
bool TreeIs(const Node& tree, const Plan& plan, int node) {
  const Node::Items* items = tree.list();
  const bool step = plan.is_step(node);
  if (items == nullptr || items->size() != (step ? 2U : 3U)) return false;
  const Range range = plan.range(node);
  const auto* first = std::get_if<std::int64_t>(&(*items)[0].value);
  const auto* last = std::get_if<std::int64_t>(&(*items)[1].value);
  if (first == nullptr || last == nullptr || *first != range.first || *last != range.last) {
    return false;
  }
  if (step) return true;
  const Node::Items* children = (*items)[2].list();
  const Merge& merge = plan.merges()[node - plan.teacher_steps()];
  if (children == nullptr || children->size() != merge.children.size()) return false;
  for (size_t k = 0; k < children->size(); ++k) {
    if (!TreeIs((*children)[k], plan, merge.children[k])) return false;
  }
  return true;
}

}  // namespace

absl::StatusOr<Plan> ReadMerges(const NodeReader& read, const Node& root, int teacher_steps) {
  MP_ASSIGN_OR_RETURN(const Node* merges, read.Require(root, "", "merges"));
  MP_RETURN_IF_ERROR(read.ExpectList(*merges, "merges"));
  const Node::Items& items = *merges->list();
  std::vector<MergeSpec> specs;
  std::vector<const Node*> rounds;
  for (const Node& item : items) {
    MP_ASSIGN_OR_RETURN(MergeEntry entry,
                        ReadMerge(read, item, absl::StrCat("merges[", specs.size(), "]")));
    specs.push_back(std::move(entry.spec));
    rounds.push_back(entry.round);
  }
  const Node* given = root.Find("blocks");
  std::vector<Range> blocks{{1, teacher_steps}};
  if (given != nullptr) {
    MP_ASSIGN_OR_RETURN(blocks, ReadRanges(read, *given, "blocks"));
  }
  int faulty = -1;
  auto plan = Plan::Create(teacher_steps, specs, blocks, &faulty);
  if (!plan.ok()) {
    std::string message(plan.status().message());
    if (faulty < 0 && given == nullptr) message += " (one block, since no blocks are given)";
    return read.Error(faulty >= 0        ? &items[faulty]
                      : given != nullptr ? given
                                         : merges,
                      "", message);
  }

  absl::flat_hash_map<std::pair<int, int>, int> round_of;
  for (const Merge& merge : plan->merges()) {
    round_of[{merge.first, merge.last}] = merge.round;
  }
  for (size_t k = 0; k < specs.size(); ++k) {
    if (rounds[k] == nullptr) continue;
    const std::string key = absl::StrCat("merges[", k, "].round");
    MP_ASSIGN_OR_RETURN(const std::int64_t round, read.Integer(*rounds[k], key, 0, kMostInt));
    const int expected = round_of[{specs[k].range.first, specs[k].range.last}];
    if (round != expected) {
      return read.Error(rounds[k], key,
                        absl::StrCat("is ", round, ", but merge [", specs[k].range.first, ", ",
                                     specs[k].range.last, "] can only train in round ", expected,
                                     "; correct it or leave it out"));
    }
  }
  return plan;
}

absl::Status CheckTree(const NodeReader& read, const Node& tree, const Plan& plan) {
  const Node::Items* tops = tree.list();
  bool same = tops != nullptr && tops->size() == static_cast<size_t>(plan.student_steps());
  for (int k = 0; same && k < plan.student_steps(); ++k) {
    same = TreeIs((*tops)[k], plan, plan.blocks()[k]);
  }
  if (same) return absl::OkStatus();
  return read.Error(&tree, "tree", "is not the tree that merges and blocks give; leave it out");
}

}  // namespace mergeplan::plan_io
