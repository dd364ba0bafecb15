#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "planner/search/bounds.h"

namespace mergeplan::search {

// What the bounds of a part miss of the other blocks of its plan: there every column has the blocks
// it likes most, and no plan has all of these together.
//
// Proof. The bounds of a part over [i,j] inside the n-th block hold for plans whose other blocks
// are at their best in every column: heads p and tails s of what a pass left. Take a plan below the
// pass's threshold with others P and S, no better in any column, and B as its n-th block. Its
// signed error is, with the root's slope b,
//   e_c = e_c(p B s) + |b_c| |p B s - P B S|_c  >=  max(line_c(x_c), G_c) + d_c,
// G_c >= 0 being the least error of all whole plans that are left. So its objective is at least
//   sum_c (max(line, G) + d)^2  >=  sum_c max(0, line)^2 + 2 sum_c G_c d_c,
// the bound of the part and a surplus that does not depend on it. With K_c the least of |b V|_c,
// V = p B s, over plans below the threshold, d_c >= K_c |1 - P S / (p s)|_c. P S / (p s) is a
// product of ratios, one for every other block (its value in a node that a pass kept, which is no
// worse than it, against the best node over its steps) and one for every border (the best with that
// border against the best with any), 1 - x_1, 1 - x_2, ... (1 + x where smaller is better), x >= 0.
// Of k ratios, with x' = min(x, 0.3 / (k - 1)), the product differs from 1 by at least 0.85 sum x'
// (1 - prod (1 - x') >= sum x' - sum of the x'_i x'_j). So the surplus is at least
//   sum_c 2 G_c K_c 0.85 (sum over blocks and borders of x'_c),
// a sum over blocks and borders, whose least value over all borders is a shortest path. Heads that
// are better known than as products of best nodes (1 - z of them; 1 + z) are worth 2 z less.
struct Surplus {
  // By interval, for nodes and products: the least of all blocks that contain it; infinite where
  // none is left. And of n blocks over 1..j, by Bounds::Layer: what those behind them miss.
  std::vector<double> part, prefix;
};

// N > 1 blocks in the value form, after a pass that traced; `threshold` is the pass's. O(N T^2 d)
// and the kept parts. Nothing where `stop` (may be empty) said true.
std::optional<Surplus> MakeSurplus(const Bounds& bounds, const Survivors& survivors,
                                   double threshold, const std::function<bool()>& stop);

}  // namespace mergeplan::search
