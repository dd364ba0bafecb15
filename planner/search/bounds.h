#pragma once

#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <vector>

#include "absl/types/span.h"
#include "planner/search/block_borders.h"
#include "planner/search/columns.h"
#include "planner/search/kernels.h"

namespace mergeplan::search {

// The best values that a pass of the search has left of every part, by column: every plan whose
// objective is below the pass's threshold is made of parts that are no better. Null where no such
// plan has the part.
struct Survivors {
  std::function<const double*(int i, int j)> node, product;
  std::function<const double*(int n, int j)> prefix;
  // The splits m, ascending, at which such plans make the merges and the products over [i,j] of two
  // parts, and n blocks over 1..j of n - 1 blocks and the block [m+1,j]. Empty functions: any.
  std::function<absl::Span<const int>(int i, int j)> merges, products;
  std::function<absl::Span<const int>(int n, int j)> borders;
  // Shows the values of the kept nodes over [i,j] that such plans have.
  std::function<void(int i, int j, const std::function<void(const double*)>& look)> rows;
};

struct Bounds;

// Told good borders of N blocks, each as the last steps of the blocks, looks for good plans from
// there on and gives the threshold: plans whose objective is not below it need not be bounded. Of
// the bounds the columns, the tables, the shape and the root are there.
using BorderGuide =
    std::function<double(const Bounds&, const std::vector<std::vector<int>>& borders)>;

// The problem by columns, and what each part's value means for the whole plan: for every part
// (node, product, prefix) and column, a + b x is a lower bound of sqrt(w) * (signed error of any
// whole plan that contains the part with carried value x), x within the values that such a part can
// have.
//
// Proof. Fix all of a plan but the part. The plan's value is increasing and affine in x, so the
// signed error e (tau - V where larger is better, V - tau where smaller is) is affine in x, and the
// least e over all plans that contain the part is a minimum of affine functions: concave. A concave
// function lies above its chord. The chord through the values at the two ends of x is therefore a
// lower bound in between, and so is the chord through lower bounds of these values. The values at
// the ends come from the chords of the larger parts that the part can be put into, with the sibling
// at its best end (e decreases with the sibling's better value, which does not depend on x). Hence
//   objective of any plan containing parts with values x  >=  sum_c max(0, a_c + b_c x_c)^2,
// up to rounding, which the certificate's tolerance covers.
//
// The tables are made column by column (planes.h) and kept by rows, all columns of a part together.
// O((T^3 + N T^2) d) time, O(T^2 d) memory.
struct Bounds {
  // Of all plans of the shape with so many blocks. Where every best part over every interval is of
  // one strategy, in every column, and N > 1, `shape` becomes that strategy and only the borders of
  // blocks are open; only if `narrow`. Nothing where `stop` (may be empty) said true on the way.
  //
  // With a `guide` (may be empty), N > 1, more than two columns and the value form, blocks that no
  // plan below the guide's last threshold has are left out (block_borders.h): no part is inside
  // them, and siblings are at the best of the others. The bounds then hold for the plans below that
  // threshold only, and no other plan is below border_bound.
  static std::optional<Bounds> Make(const Model& model, const std::vector<Target>& targets,
                                    Shape shape, int blocks, bool narrow, int threads,
                                    const std::function<bool()>& stop,
                                    const BorderGuide& guide = nullptr);
  // Makes the bounds anew from what a pass with that threshold has left: the siblings in the proof
  // above are then at the best of what is left, and parts of which nothing is left make no context.
  // They hold for the plans whose objective is below the pass's threshold, no longer for all. False
  // where `stop` said true; the bounds are then of no use. The time is that of the parts that are
  // left and of the pairs of them (tighten.cc).
  bool Tighten(const Model& model, const Survivors& survivors, double threshold, int threads,
               const std::function<bool()>& stop);
  // Bytes that Make will need.
  static double Bytes(int steps, std::size_t targets, int blocks, int threads);

  std::size_t Layer(int n, int j) const {
    return static_cast<std::size_t>(n - 1) * steps + (j - 1);
  }
  // Is [i,j] inside a block that is left?
  bool InBlock(int i, int j) const { return !borders || j <= borders->last(i); }
  std::size_t root() const { return Layer(blocks, steps); }

  int steps = 0, blocks = 1;
  Shape shape = Shape::kNary;
  Columns columns;  // the widest weighted range of values first: it ends most bounds early
  ColumnTables tables;
  Rows s_a, s_b, q_a, q_b;  // by interval
  Rows prefix_a, prefix_b;  // n blocks over 1..j, by Layer; at the root the exact error
  Rows best_node;           // by interval; only for the search of borders
  std::shared_ptr<BlockBorders> borders;  // null: all blocks
  // The bounds hold for plans below it.
  double ceiling = std::numeric_limits<double>::infinity();
  // What can be added to the bound of a node or product by interval, and of a prefix by Layer
  // (surplus.h). Empty: nothing.
  std::vector<double> part_surplus, prefix_surplus;
  double border_bound = 0;  // of every plan
  Rows all_steps;           // carried product of the steps i..j; shapes kBinary, kVanilla
  // Carried values of the best and the worst plan of each column by itself.
  std::vector<double> best_end, worst_end;
  // By column, the least and the largest value of the products that end at level t or before, at
  // row t - 1; shape kNary, in the value form (no rows for others).
  Rows least_product, most_product;
};

// The rule that combines [i,m] and [m+1,j]. `start` may be empty (merges start from their noisiest
// child).
CandidateRule RuleFor(const Model& model, const ColumnTables& tables, int i, int m, int j,
                      bool merge, const std::vector<double>& start);

}  // namespace mergeplan::search
