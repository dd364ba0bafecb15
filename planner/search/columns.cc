#include "planner/search/columns.h"

namespace mergeplan::search {

ColumnTables::ColumnTables(const Model& model, const Columns& columns)
    : leaf(model.steps(), columns.size(), 0),
      omg(model.steps(), columns.size(), 0),
      gamma(model.steps(), columns.size(), 0) {
  for (int t = 1; t <= model.steps(); ++t) {
    for (std::size_t c = 0; c < columns.size(); ++c) {
      const int k = columns.coordinate[c];
      leaf[t - 1][c] = model.Leaf(t)[k];
      omg[t - 1][c] = model.one_minus_gamma(t)[k];
      gamma[t - 1][c] = model.gamma(t)[k];
    }
  }
}

std::vector<double> ColumnTables::ConstantStart(const Model& model, const Columns& columns, int i,
                                                int j) const {
  std::vector<double> start;
  if (model.starts_from_child()) return start;
  start.resize(columns.size());
  for (std::size_t c = 0; c < columns.size(); ++c) {
    start[c] = model.ConstantStart(i, j, columns.coordinate[c]);
  }
  return start;
}

}  // namespace mergeplan::search
