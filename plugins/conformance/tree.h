#pragma once

// Inside plugins/conformance only: plans, and what makes one valid.

#include <cstdint>
#include <string>
#include <vector>

#include "mergeplan_plugin.h"

namespace mergeplan_conformance {

struct Range {
  std::int32_t first;
  std::int32_t last;
  friend bool operator==(const Range& a, const Range& b) {
    return a.first == b.first && a.last == b.last;
  }
  friend bool operator<(const Range& a, const Range& b) {
    return a.first != b.first ? a.first < b.first : a.last < b.last;
  }
};
std::string ToString(const Range& range);

struct Merge {
  Range range;
  std::vector<Range> children;
};

struct Tree {
  std::int32_t teacher_steps = 0;
  std::vector<Merge> merges;
  std::vector<Range> blocks;

  // The same text for the same plan, whatever the order of its merges.
  std::string Canonical() const;
};

// Is it a plan? Keeps a table of (T+1)^2 entries, so that T steps and M children cost O(T + M) each
// time.
class TreeChecker {
 public:
  // Empty for a valid plan, else what is wrong.
  std::string Check(const Tree& tree);

 private:
  std::int32_t& Mark(const Range& range);
  // Marks a child or block as used; else why that cannot be.
  const char* Use(const Range& range, std::int32_t given, std::int32_t used);

  std::int32_t teacher_steps_ = 0;
  std::int32_t stamp_ = 0;
  std::vector<std::int32_t> marks_;
};

// ---- plans for execute()

// One merge of all steps; one step after the other onto the noisy end; halves of halves.
Tree Flat(std::int32_t steps);
Tree Chain(std::int32_t steps);
Tree Halves(std::int32_t steps);
// Merges of 2 to 4 neighbours at random places until `blocks` are left.
Tree Random(std::int32_t steps, std::int32_t blocks, std::uint32_t seed);

// A plan as the border has it.
class TreeView {
 public:
  explicit TreeView(const Tree& tree);
  TreeView(const TreeView&) = delete;
  TreeView& operator=(const TreeView&) = delete;
  const mergeplan_plan* get() const { return &plan_; }
  // Everything that the pointers reach, to compare.
  std::string Bytes() const;

 private:
  std::vector<std::int32_t> children_, blocks_;
  std::vector<mergeplan_merge> merges_;
  std::vector<const mergeplan_merge*> pointers_;
  mergeplan_plan plan_;
};

}  // namespace mergeplan_conformance
