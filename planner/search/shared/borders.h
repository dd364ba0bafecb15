#pragma once

#include <functional>
#include <vector>

#include "planner/search/shared/allocate.h"
#include "planner/search/shared/ends.h"

namespace mergeplan::search {

// Students of N vanilla blocks: which borders, and how the blocks share the total.
//
// Theorem (one merge per block). Given the borders, let every column have side +1 or -1 in
// WhereVanillaIsExtreme. Then V_k(x) = prod_b (P_b + (C_b - P_b) exp(-x_b total a_b)), and the
// objective is convex in the shares x on the convex set K = {x : V_k(x) >= tau_k / 2 for the
// columns of side +1}. Proof. Side -1: C_b >= P_b >= 0, so log V_k is convex, hence V_k is, and
// (V_k - tau_k)^2 is a convex function that rises on V_k >= tau_k. Side +1: C_b <= P_b, so f = log
// V_k is concave in x, and K is convex. g(f) = (tau - e^f)^2 falls on e^f <= tau and g'' = 2 e^f (2
// e^f - tau) >= 0 on e^f >= tau / 2; a convex function that falls, of a concave one, is convex.
//
// More than that: a column with V_k(x) >= tau_k / 2 whose tangent of g at f = log V_k(x) is not
// above g at the value without any training, log prod_b C_b, which no f falls below, has g above
// that tangent everywhere (g less the tangent is concave where g is not convex, and not negative at
// both ends of that), so the first-order bound at x holds without any K.
//
// Outside of K some column has the error tau_k / 2 or more, and the others at least what they have
// when every block has the whole total. A column with prod_b C_b >= tau_k / 2 never leaves K. So at
// any x in K, objective(x) - stationarity(x) (see Allocation)
// or the least objective outside of K, whichever is less, bounds the objective of all allocations
// with these borders. It holds for real shares, so for whole updates too.
double VanillaLowerBound(SharedTree& tree, const Allocation& at, const VanillaSides& sides);

// What is known of all borders.
struct BordersResult {
  Plan plan;  // empty where no borders beat `incumbent`
  Allocation allocation;
  double lower_bound = 0;  // of all students, if `complete`
  int borders = 0;         // sets of borders in all
  bool complete = false;   // every set of borders was bounded
};

// The number of sets of borders, C(T-1, N-1), or `most` + 1 where it is larger.
double CountBorders(int steps, int blocks, double most);

// Plans of N vanilla blocks: all of them, or about `most`, evenly taken in lexicographic order.
std::vector<Plan> VanillaBlockPlans(int steps, int blocks, int most);

// Tries all borders; those for which already the whole total in every block is no better than
// `incumbent` are passed over. Sides must be everywhere. Deterministic, but for `stop`.
BordersResult BestBorders(const SharedProblem& problem, int blocks, const VanillaSides& sides,
                          double incumbent, double floor, int threads,
                          const std::function<bool()>& stop);

}  // namespace mergeplan::search
