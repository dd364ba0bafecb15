#include "tests/oracle/algorithm1_float64.h"

#include <algorithm>
#include <array>
#include <vector>

namespace mergeplan::oracle {
namespace {

using Value = std::array<double, 2>;

struct Frontier {
  std::array<bool, 2> larger_is_better;
  std::vector<Value> values;

  bool AtLeastAsGood(const Value& a, const Value& b) const {
    for (int k = 0; k < 2; ++k) {
      if (larger_is_better[k] ? a[k] < b[k] : a[k] > b[k]) return false;
    }
    return true;
  }

  void InsertAndPrune(const Value& value) {
    for (const Value& old : values) {
      if (AtLeastAsGood(old, value)) return;
    }
    std::erase_if(values, [&](const Value& old) { return AtLeastAsGood(value, old); });
    values.push_back(value);
  }
};

}  // namespace

PlainAlgorithm1Result PlainAlgorithm1(const Model& model) {
  const int T = model.steps();
  PlainAlgorithm1Result result;
  const std::array<bool, 2> up = {model.lambda()[0] > 1, model.lambda()[1] > 1};
  std::vector<std::vector<Frontier>> table(T + 1, std::vector<Frontier>(T + 1, {up, {}}));
  for (int t = 1; t <= T; ++t) table[t][t].values.push_back({model.A(t)[0], model.A(t)[1]});
  for (int length = 2; length <= T; ++length) {
    for (int i = 1; i + length - 1 <= T; ++i) {
      const int j = i + length - 1;
      Frontier& frontier = table[i][j];
      const auto merge = [&](const Value& product, const Value& last) {
        Value out;
        for (int k = 0; k < 2; ++k) {
          out[k] = model.one_minus_gamma(j)[k] * product[k] + model.gamma(j)[k] * last[k];
        }
        ++result.candidates;
        return out;
      };
      Value steps = {1, 1};
      for (int t = i; t <= j; ++t) {
        for (int k = 0; k < 2; ++k) steps[k] *= model.A(t)[k];
      }
      frontier.InsertAndPrune(merge(steps, {model.A(j)[0], model.A(j)[1]}));
      for (int m = i; m < j; ++m) {
        for (const Value& left : table[i][m].values) {
          for (const Value& right : table[m + 1][j].values) {
            frontier.InsertAndPrune(merge({left[0] * right[0], left[1] * right[1]}, right));
          }
        }
      }
    }
  }
  result.objective = -1;
  for (const Value& value : table[1][T].values) {
    const double objective = model.Objective(value, model.spec().reference);
    if (result.objective < 0 || objective < result.objective) result.objective = objective;
  }
  return result;
}

}  // namespace mergeplan::oracle
