#pragma once

#include <vector>

#include "planner/operators/model.h"
#include "planner/search/search.h"
#include "planner/search/shape.h"

namespace mergeplan::search {

// The steps i..j, 1 <= i <= j <= T, numbered by rows.
class Intervals {
 public:
  explicit Intervals(int steps) : steps_(steps) {}
  int steps() const { return steps_; }
  std::size_t size() const { return static_cast<std::size_t>(steps_) * (steps_ + 1) / 2; }
  std::size_t operator()(int i, int j) const {
    return static_cast<std::size_t>(i - 1) * (2 * steps_ - i + 2) / 2 + (j - i);
  }

 private:
  int steps_;
};

// A dense table [rows][columns] of doubles.
class Rows {
 public:
  Rows() = default;
  Rows(std::size_t rows, std::size_t columns, double fill)
      : columns_(columns), data_(rows * columns, fill) {}
  std::size_t rows() const { return columns_ == 0 ? 0 : data_.size() / columns_; }
  double* operator[](std::size_t row) { return data_.data() + row * columns_; }
  const double* operator[](std::size_t row) const { return data_.data() + row * columns_; }

 private:
  std::size_t columns_ = 0;
  std::vector<double> data_;
};

// One coordinate of the model that the search works on (its own model, where dimensions are
// grouped), with the target that a plan's value V there is held against. Every plan's objective is
// at least the sum over targets of
//   weight max(0, tau_up - V)^2   and of   weight max(0, V - tau_down)^2,
// with equality in one of the two where nothing is grouped (tau_up = tau = tau_down).
struct Target {
  int coordinate = 0;
  double weight = 1;
  double tau = 0, tau_up = 0, tau_down = 0;
};

// One direction of one target. The search works on columns: a target whose tau no plan's value
// exceeds is one column (larger is better), one below which no plan's value comes is one column
// (smaller is better); any other target is two columns, one of each kind, so that "no worse in
// every column" means equal there and a bound holds on both sides.
struct Columns {
  std::vector<int> coordinate;      // of the model searched on
  std::vector<double> sign;         // +1: larger is better, -1: smaller is better
  std::vector<double> root_weight;  // sqrt of the weight in the objective
  std::vector<double> tau;
  bool dominance_everywhere = true;  // no target needed two columns

  std::size_t size() const { return coordinate.size(); }
};

// The model's tables, gathered by columns (row t - 1 belongs to level t).
struct ColumnTables {
  ColumnTables() = default;
  ColumnTables(const Model& model, const Columns& columns);
  Rows leaf, omg;
  // What a merge has of its start: gamma, of tables gamma p; and gamma q, no rows where that is 0.
  Rows slope, offset;
  // Constant start of merges over [i,j] by column; empty where merges start from their noisiest
  // child.
  std::vector<double> ConstantStart(const Model& model, const Columns& columns, int i, int j) const;
};

}  // namespace mergeplan::search
