#pragma once

#include <vector>

#include "planner/operators/model.h"
#include "planner/search/search.h"

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
  double* operator[](std::size_t row) { return data_.data() + row * columns_; }
  const double* operator[](std::size_t row) const { return data_.data() + row * columns_; }

 private:
  std::size_t columns_ = 0;
  std::vector<double> data_;
};

// Which parts a plan of the space may be made of.
//   kNary    Q[i,j] = S[i,j] + Q[i,m] x S[m+1,j];  S[i,j] = merge(Q[i,m], S[m+1,j])
//   kBinary  Q[i,j] = S[i,j];                      S[i,j] = merge(Q[i,m], S[m+1,j]) + all steps at
//   once kDirect  S[i,j] = all steps at once
enum class Shape { kNary, kBinary, kDirect };

// One direction of one coordinate. The search works on columns: a coordinate in which no plan comes
// out on the other side of tau is one column (larger is better, or smaller is); any other
// coordinate is two columns, one of each kind, so that "no worse in every column" means equal there
// and a bound holds on both sides. Coordinates of equal lambda and tau are one column whose weights
// add up.
struct Columns {
  std::vector<int> coordinate;      // representative coordinate of the model
  std::vector<double> sign;         // +1: larger is better, -1: smaller is better
  std::vector<double> root_weight;  // sqrt of the weight in the objective
  std::vector<double> tau;
  bool dominance_everywhere = true;  // no coordinate needed two columns

  std::size_t size() const { return coordinate.size(); }
};

// The model's tables, gathered by columns (row t - 1 belongs to level t).
struct ColumnTables {
  ColumnTables(const Model& model, const Columns& columns);
  Rows leaf, omg, gamma;
  // Constant start of merges over [i,j] by column; empty where merges start from their noisiest
  // child.
  std::vector<double> ConstantStart(const Model& model, const Columns& columns, int i, int j) const;
};

}  // namespace mergeplan::search
