#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "planner/search/columns.h"

namespace mergeplan::search {

// Which steps [i,j] can be the n-th of the N blocks of a plan whose objective is below a threshold:
// all columns together, before anything is known of the inside of blocks. Each column by itself
// would like other borders, so bounds in which every column has its own are far below every plan.
//
// Values are V itself (not the carried form of child-jump): a plan is the product of its blocks,
// and its objective at least F(V) = sum_c max(0, a_c + b_c V_c)^2, which no better value in a
// column makes larger.
//
// Proof. Replace every block of a plan by the best node over its steps, column by column: F does
// not rise. So with heads[n][j] no worse in any column than the first n blocks, over 1..j, of any
// plan below the threshold (their blocks so replaced), and tails[n][i] the same of the last n, over
// i..T,
//   F(heads[n-1][i-1] node[i,j] tails[N-n][j+1]) >= threshold
// means that no plan below the threshold has [i,j] as its n-th block. Then heads and tails that are
// made of the other blocks only are right, too (Sweep). Pass goes through all borders: prefixes of
// n blocks by where they end, as rows of values; one stands for another, with the better value of
// both in every column, where that lowers its bound F(prefix tail) by little. Whatever stands for a
// prefix is no worse in any column than it, so the least F of the whole rows bounds every plan, and
// what no whole row below the threshold was made of is in no plan below it (as Pass::Left,
// frontier.h). Rounding: a value is a product of at most T numbers here as in the plan, which the
// certificate's tolerance covers.
class BlockBorders {
 public:
  // `best_node`: the best value of every node, by interval. root_a + root_b V is the error by
  // column. All of these are asked for until Forget().
  BlockBorders(int steps, int blocks, const Columns& columns, const double* root_a,
               const double* root_b, const Rows& best_node, int threads);
  // How many triples (n, i, j) there are at first; every round of Sweep looks at those left.
  static double Count(int steps, int blocks);

  // Drops blocks and makes heads and tails of the others, again and again while that drops many.
  // False where `stop` (may be empty) said true, after which nothing here may be asked for; so
  // below.
  bool Sweep(double threshold, const std::function<bool()>& stop);
  // Goes through the borders that are left. False also, with nothing done, after so many
  // candidates.
  bool Pass(double threshold, double slack, std::int64_t most, const std::function<bool()>& stop);

  // After Pass() gave true: no plan has an objective below it, or below the threshold.
  double LowerBound() const { return lower_bound_; }
  // Frees what Promising() needs; after it no call asks for the columns, the root or the nodes.
  void Forget() { frontiers_.clear(); }
  // The last steps of the N blocks of the up to `count` whole rows with the least bounds.
  std::vector<std::vector<int>> Promising(int count) const;

  bool left(int n, int i, int j) const { return left_[n - 1][at_(i, j)] != 0; }
  // Null where there are none.
  const double* head(int n, int j) const;
  const double* tail(int n, int i) const;
  // The largest j with [i,j] in a block that is left, 0: none. And the least i, T + 1: none. So
  // [i,j] is in one exactly where j <= last(i), and exactly where first(j) <= i.
  int last(int i) const { return last_[i]; }
  int first(int j) const { return first_[j]; }
  int steps() const { return steps_; }
  int blocks() const { return blocks_; }

 private:
  struct Origin {
    int first;  // of the last block
    int left;   // entry of the blocks before it
  };
  struct Candidate {
    double bound;
    Origin origin;
  };
  struct Record {
    Origin origin;
    int kept;
    double bound;
  };
  // Prefixes of n blocks over 1..j.
  struct Frontier {
    std::vector<double> values, squares, losses, reach;
    std::vector<Origin> origins;
    std::vector<Record> records;
    int size() const { return static_cast<int>(origins.size()); }
  };

  std::size_t Layer(int n, int j) const {
    return static_cast<std::size_t>(n - 1) * steps_ + (j - 1);
  }
  int LastEnd(int n) const { return steps_ - (blocks_ - n); }
  bool Forward(double threshold, const std::function<bool()>& stop);
  bool Backward(double threshold, const std::function<bool()>& stop);
  void Limits();
  std::int64_t Extend(int n, int j, double threshold, double slack);
  void Select(int n, std::vector<Candidate>& candidates, const double* b, double slack, int j,
              std::int64_t& looked);
  void TraceBack(double threshold);

  const int steps_, blocks_;
  const Intervals at_;
  const Columns& columns_;
  const std::size_t n_;
  const double* const root_a_;
  const double* const root_b_;
  const Rows& node_;
  const int threads_;
  std::vector<std::vector<char>> left_;  // by n - 1 and interval
  std::int64_t count_ = 0;
  Rows heads_, tails_;
  std::vector<char> has_head_, has_tail_;
  std::vector<int> last_, first_;
  std::vector<Frontier> frontiers_;
  double lower_bound_ = 0;
};

}  // namespace mergeplan::search
