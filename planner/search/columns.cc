#include "planner/search/columns.h"

namespace mergeplan::search {

ColumnTables::ColumnTables(const Model& model, const Columns& columns)
    : leaf(model.steps(), columns.size(), 0),
      omg(model.steps(), columns.size(), 0),
      slope(model.steps(), columns.size(), 0),
      offset(model.StartOffset(1).empty() ? 0 : model.steps(), columns.size(), 0) {
  for (int t = 1; t <= model.steps(); ++t) {
    for (std::size_t c = 0; c < columns.size(); ++c) {
      const int k = columns.coordinate[c];
      leaf[t - 1][c] = model.Leaf(t)[k];
      omg[t - 1][c] = model.one_minus_gamma(t)[k];
      slope[t - 1][c] = model.StartSlope(t)[k];
      if (offset.rows() > 0) offset[t - 1][c] = model.StartOffset(t)[k];
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
