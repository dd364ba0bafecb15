#pragma once

#include <algorithm>
#include <memory>
#include <vector>

#include "planner/operators/model.h"

namespace mergeplan::search {

// A square table of doubles, rows and entries 0..T+1; rows are contiguous. Tables over intervals
// [i,j] are kept by their first level (row i, entry j) or by their last (row j, entry i), whichever
// the loop that reads them runs along. Not filled at first.
class Plane {
 public:
  Plane() = default;
  explicit Plane(int steps)
      : stride_(static_cast<std::size_t>(steps) + 2),
        data_(std::make_unique_for_overwrite<double[]>(stride_ * stride_)) {}
  double* operator[](int row) { return data_.get() + static_cast<std::size_t>(row) * stride_; }
  const double* operator[](int row) const {
    return data_.get() + static_cast<std::size_t>(row) * stride_;
  }
  void Fill(double value) { std::fill_n(data_.get(), stride_ * stride_, value); }
  std::size_t bytes() const { return stride_ * stride_ * sizeof(double); }

 private:
  std::size_t stride_ = 0;
  std::unique_ptr<double[]> data_;
};

// What the carried form of the start `child-jump` needs of the schedule; the same for all columns.
// Parts are carried as X[i,j] = x D(i-1,j) (x: the implied x0 coefficient, see Model), in which two
// neighbours have the product X_u + (sigma_{i-1} + X_u) X_v / sigma_m.
struct JumpForm {
  explicit JumpForm(const Schedule& schedule);
  std::vector<double> sigma_before;       // sigma_{i-1} at entry i = 1..T
  std::vector<double> over_sigma_before;  // 1 / sigma_{i-1} at entry i = 2..T, 0 at 1
  Plane d_first, d_last;                  // D(i-1,j) by first and by last level
  Plane over_d_first, over_d_last;        // 1 / D(i-1,j)
};

// One coordinate of a model as the tables over intervals need it: level t at entry t, entry 0
// unused. In the value form (all starts but child-jump) two neighbours have the product u v and a
// merge over [i,j] with product P and noisiest child v is
//   omg_j P + slope_j v + px_i cx_j + py_i cy_j
// (slope and constant both for tables with q), in the carried form it is omg_j P + slope_j D(i-1,j)
// x_v.
struct ColumnProblem {
  ColumnProblem(const Model& model, int coordinate, const JumpForm* jump);

  int steps;
  const JumpForm* jump;  // null: value form
  bool child;            // slope is not zero everywhere
  bool constant;         // px cx + py cy is not zero everywhere
  std::vector<double> leaf, omg, slope;
  std::vector<double> px, py, cx, cy;  // empty where !constant
};

}  // namespace mergeplan::search
