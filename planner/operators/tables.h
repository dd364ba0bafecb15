#pragma once

#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace mergeplan {

// A planning problem as bare tables: what a merge keeps and starts as, per level and coordinate,
// with no schedule, variances or budget behind it. So measured shrinkage is planned for. A step has
// the value A; a merge over [i,j] of children c_1 (cleanest) .. c_k (noisiest) has
//   V = (1 - gamma_j) V(c_1)...V(c_k) + gamma_j (p_j V(c_k) + q_j)             eq:recursive_merge
// The start `child` is p = 1, q = 0; `teacher` is p = 0, q_j = A_j. (Starts that depend on the
// clean end of the merge, `jump` and `child-jump`, are no such tables.)
//
// Tables hold T x d numbers, level by level: level t = 1..T and coordinate k = 0..d-1 at entry
// (t - 1) d + k. No merge ends in level 1, so gamma, p and q are not used there.
struct ModelTables {
  int steps = 0;       // T
  int dimensions = 0;  // d
  std::vector<double> a;
  std::vector<double> gamma;    // 0..1: what a merge keeps of where it started
  std::vector<double> p;        // or empty: all 1
  std::vector<double> q;        // or empty: all 0
  std::vector<double> tau;      // d values >= 0 to come near to, or empty: the products of the A
  std::vector<double> weights;  // d values >= 0 of the squared errors, or empty: all 1

  size_t at(int t, int k) const {
    return static_cast<size_t>(t - 1) * static_cast<size_t>(dimensions) + static_cast<size_t>(k);
  }
  double P(int t, int k) const { return p.empty() ? 1.0 : p[at(t, k)]; }
  double Q(int t, int k) const { return q.empty() ? 0.0 : q[at(t, k)]; }

  friend bool operator==(const ModelTables&, const ModelTables&) = default;
};

// Checks what a look at each number tells: sizes as said, finite numbers, A, p, tau, weights >= 0,
// 0
// <= gamma <= 1. Errors as CheckTables. O(T d).
absl::Status CheckTableNumbers(const ModelTables& tables);

// Checks that the tables make a problem:
//   sizes as said; all numbers finite; A, p, tau, weights >= 0; 0 <= gamma <= 1;
//   p_j V + q_j >= 0 for every value V that a node over [a,j], a >= 2, can have (merges of any
//   number of blocks), so that no value is negative and every plan's value increases in all of its
//   parts'; nothing overflows: no part of a plan is above 1e60.
// INVALID_ARGUMENT names the level and the coordinate (both from 1), what was found and what was
// expected.
//
// What it gives: per coordinate, the magnitude that rounding errors of values are relative to
// besides the values themselves: where some q is negative, the largest value of any part with |q|
// in the place of q; 0 elsewhere.
//
// O(T d), and O(T^3) for a coordinate in which some q is negative or p V + q with p >= 1 amplifies
// so much that only the exact largest value can tell (refused above 2048 levels).
absl::StatusOr<std::vector<double>> CheckTables(const ModelTables& tables);

}  // namespace mergeplan
