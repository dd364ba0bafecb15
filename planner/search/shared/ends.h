#pragma once

#include <functional>
#include <vector>

#include "planner/search/shared/tree.h"

namespace mergeplan::search {

// Between which values every student lies, coordinate by coordinate, whatever its plan and however
// the merges share the total. All that follows holds for any numbers s_m >= 0 of merges m with
// sum s_m <= S, and gamma_m = exp(-s_m a_j), a_j >= 0 depending on the noisy level j of the merge.
//
// Chance. A value is multi-affine in the gamma_m: it is the mean of the values of the plan in which
// every merge, independently, is either `skipped` (gamma = 1, with probability gamma_m) or `done`
// (gamma = 0). In such an outcome, follow the noisiest child from the top of a part of [i,j] down
// to step j. If all merges on this way, all of which end in level j, are skipped, the part is where
// merges start: A_j (child, teacher), the jump J(i,j) (jump), the jump that A_j implies, J(i,j)
// again (child-jump). The probability of that is prod gamma_m = exp(-a_j sum s_m) >= G := exp(-a_j
// s), where s is what the part's merges have together. So, with C that value and all other outcomes
// between `least` and `largest`, C between these too,
//   (1-G) least + G C  <=  V  <=  (1-G) largest + G C.
//
// child, teacher. An outcome's value is A_j times the product of the A_t of some of the steps t < j
// of the part (a skipped merge drops steps: for child all but those of its noisiest child, for
// teacher all but step j). Hence least = A_j prod_{i<=t<j} min(1,A_t), largest = A_j prod
// max(1,A_t). Both are reached (up to G) with one block: drop the steps with A_t > 1 (< 1) by
// merges without training and give all to the root. jump, child-jump. In the terms of theorem 1 of
// planner/operators/THEOREMS.md (W = 1 + w (r_{i-1} - r_j)), every outcome of a part of [i,j] has
// h_j <= w <= w*(i,j). By induction: a step has w = h_j = w*. A forest of parts has at most the
// teacher's product w*, as the product increases in each w; and at least the w of its noisiest
// part: putting a part over [b,m] with w_F >= h_m in front of w gives w' (r_{b-1} - r_j) = w (r_m -
// r_j) + w_F (1 + w (r_m - r_j)) (r_{b-1} - r_m), and h_m (1 + w (r_m - r_j)) >= w for w <=
// w*(m+1,j), as (c) of theorem 1 shows. A skipped merge is h_j (jump), or the w of its noisiest
// child, which is between h_j and w*(i,j) by (d) (child-jump). w = h_j is J(i,j). Hence largest =
// prod A_t, least = C = J(i,j).
//
// Theorem (one block, shared total). The bounds are vanilla with the whole total, from above for
// jump and child-jump; from below for child and teacher where A_t <= 1 for all t < T, from above
// where A_t >= 1. So where in every dimension of positive weight tau lies beyond vanilla's value on
// that side, vanilla with the whole total is the best plan with the best allocation: always for
// jump and child-jump with the references surrogate and teacher, and for child and teacher where
// every variance is <= 1 or above max lambda_0 (variance preserving; mixed as they like).
//
// N blocks. A student is a product of N parts, all >= 0. With one total the parts have s_1 + ... +
// s_N <= S, so for every price u >= 0 of training
//   log V >= sum_b log((1-G_b) least_b + G_b C_b) >= sum_b min_s [log(...) + u s] - u S,
// and the least over all borders is a shortest path. Any u gives a bound, u = 0 gives every block
// the whole total; a few are tried. Likewise from above. (Both logarithms are convex and concave in
// s: log(P + D e^{-as}) with D >= 0 and D <= 0.)
struct Ends {
  std::vector<double> low, high;  // by column; every student's V lies in [low, high]
};

// O(T d) for one block, else O(T^2 N d) for each price. Where `stop` (may be empty) says true the
// ends of what is left are 0 and infinity.
Ends EndsOfValues(const SharedProblem& problem, int blocks, int threads,
                  const std::function<bool()>& stop);

// sum_k w_k (distance of tau_k to [low_k, high_k])^2: no student's objective is below it.
double DistanceToEnds(const SharedProblem& problem, const Ends& ends);

// Which vanilla blocks are proven to have the extreme values, in every column of positive weight,
// with tau beyond them? Then, given the borders and what the blocks have together, no blocks are
// better than vanilla ones (each with all that its block has).
struct VanillaSides {
  bool everywhere = false;
  std::vector<signed char>
      side;  // by column: +1 vanilla has the largest value, tau above; -1 least
};
VanillaSides WhereVanillaIsExtreme(const SharedProblem& problem);

}  // namespace mergeplan::search
