#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace mergeplan {

// More steps than any teacher has; a larger number in a file is a slip, not a plan.
inline constexpr int kMaxTeacherSteps = 1'000'000;

// The steps first..last of the teacher, 1 <= first <= last <= T. Step t takes noise level t to
// level t-1; step 1 is the cleanest.
struct Range {
  int first = 0;
  int last = 0;

  friend bool operator==(const Range&, const Range&) = default;
  bool single() const { return first == last; }
};

// One merge: the jump from level `last` to level `first - 1`, trained against the product of its
// children.
struct Merge {
  int first = 0;
  int last = 0;
  int round = 0;              // 1 + the largest round of the children; single steps have round 0
  std::vector<int> children;  // node ids (see Plan), two or more, from the cleanest to the noisiest

  Range range() const { return {first, last}; }
  friend bool operator==(const Merge&, const Merge&) = default;
};

// A merge as people write it: no rounds, no ids.
struct MergeSpec {
  Range range;
  std::vector<Range> children;
};

// A merge schedule: an ordered tree over the steps 1..T with N top nodes (blocks). A value:
// immutable, comparable, in one canonical form, so that two equal schedules are equal objects. The
// paper calls this a merge plan (eq:recursive_merge); N = 1 there.
//
// Nodes are numbered: step t is node t-1, the k-th merge is node T+k. `merges()` is in post-order
// (children before parents, from the clean end), which is the canonical order.
class Plan {
 public:
  Plan() = default;

  // Checks that 1 <= T <= kMaxTeacherSteps, that the blocks cut 1..T, that the children of every
  // merge cut its range into two or more parts and that every merge is used exactly once. The order
  // of `merges` does not matter. O(T) expected time. INVALID_ARGUMENT names the merge and the gap,
  // overlap or wrong number; `faulty_merge`, where given, then holds the index into `merges` of the
  // merge that the error is about, -1 where it is about the blocks.
  static absl::StatusOr<Plan> Create(int teacher_steps, absl::Span<const MergeSpec> merges,
                                     absl::Span<const Range> blocks, int* faulty_merge = nullptr);

  int teacher_steps() const { return teacher_steps_; }
  int student_steps() const { return static_cast<int>(blocks_.size()); }
  // Number of merges; each costs one training.
  int size() const { return static_cast<int>(merges_.size()); }
  int rounds() const;

  absl::Span<const Merge> merges() const { return merges_; }
  // Node ids of the N blocks, from the clean end.
  absl::Span<const int> blocks() const { return blocks_; }

  bool is_step(int node) const { return node < teacher_steps_; }
  Range range(int node) const;
  // Ids of the merges (0..size()-1) of each round, 1..rounds(); entry 0 is empty.
  std::vector<std::vector<int>> MergesByRound() const;

  std::vector<MergeSpec> Specs() const;
  std::vector<Range> BlockRanges() const;

  // One line: "(1 (2 3..32))". Runs of three or more single steps are written a..b. O(T).
  std::string ToString() const;

  friend bool operator==(const Plan&, const Plan&) = default;

 private:
  int teacher_steps_ = 0;
  std::vector<Merge> merges_;
  std::vector<int> blocks_;
};

// Builds a plan bottom-up without naming ranges twice: Step(t), then Merge({children}). The result
// of Finish is checked by Plan::Create.
class PlanBuilder {
 public:
  explicit PlanBuilder(int teacher_steps) : teacher_steps_(teacher_steps) {}

  // A handle to hand to Merge or Finish: the node's range.
  static Range Step(int t) { return {t, t}; }
  // Children from the cleanest to the noisiest.
  Range Merge(std::vector<Range> children);
  absl::StatusOr<Plan> Finish(absl::Span<const Range> blocks) const;

 private:
  int teacher_steps_;
  std::vector<MergeSpec> merges_;
};

}  // namespace mergeplan
