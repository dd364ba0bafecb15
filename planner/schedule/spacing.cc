#include "planner/schedule/spacing.h"

#include <algorithm>
#include <cmath>

#include "planner/schedule/beta_tables.h"

namespace mergeplan {
namespace {

// numpy.arange(first, 0, -step): the number of points and the increment are computed as numpy does.
std::vector<double> Descending(double first, double step) {
  const auto count = static_cast<int>(std::ceil(first / step));
  const double increment = (first - step) - first;
  std::vector<double> points(std::max(count, 0));
  for (int i = 0; i < count; ++i) points[i] = first + i * increment;
  return points;
}

}  // namespace

std::vector<double> LinspaceTimesteps(int train, int steps, bool rounded) {
  std::vector<double> t = DoubleLinspace(0, train - 1, steps);
  if (rounded) {
    for (double& x : t) x = std::nearbyint(x);
  } else {
    for (double& x : t) x = Single(x);
  }
  std::reverse(t.begin(), t.end());
  return t;
}

std::vector<double> LeadingTimesteps(int train, int steps, int offset) {
  const int stride = train / steps;
  std::vector<double> t(steps);
  for (int i = 0; i < steps; ++i) {
    t[i] = static_cast<double>(steps - 1 - i) * stride + offset;
  }
  return t;
}

std::vector<double> TrailingTimesteps(int train, int steps) {
  return MultistepTrailingTimesteps(train, train, steps);
}

std::vector<double> MultistepLinspaceTimesteps(int last, int steps) {
  std::vector<double> t = DoubleLinspace(0, last - 1, steps + 1);
  for (double& x : t) x = std::nearbyint(x);
  std::reverse(t.begin(), t.end());
  t.pop_back();
  return t;
}

std::vector<double> MultistepLeadingTimesteps(int last, int steps, int offset) {
  std::vector<double> t = LeadingTimesteps(last, steps + 1, offset);
  t.pop_back();
  return t;
}

std::vector<double> MultistepTrailingTimesteps(int train, int last, int steps) {
  std::vector<double> t = Descending(last, static_cast<double>(train) / steps);
  for (double& x : t) x = std::nearbyint(x) - 1;
  return t;
}

}  // namespace mergeplan
