#include "adapters/runtime/bench_row.h"

#include <cmath>
#include <cstddef>
#include <iterator>

namespace mergeplan {
namespace {

// 97.5 % points of Student's t for 1, 2, ... degrees of freedom.
constexpr double kStudent[] = {12.7062, 4.3027, 3.1824, 2.7764, 2.5706, 2.4469, 2.3646, 2.3060,
                               2.2622,  2.2281, 2.2010, 2.1788, 2.1604, 2.1448, 2.1314, 2.1199,
                               2.1098,  2.1009, 2.0930, 2.0860, 2.0796, 2.0739, 2.0687, 2.0639,
                               2.0595,  2.0555, 2.0518, 2.0484, 2.0452, 2.0423};

double Student(size_t degrees) {
  if (degrees <= std::size(kStudent)) return kStudent[degrees - 1];
  // Cornish-Fisher around the normal point; off by less than 1e-4 from here on.
  const double n = static_cast<double>(degrees);
  return 1.959964 + 2.37227 / n + 2.8225 / (n * n);
}

}  // namespace

Spread SpreadOf(const std::vector<double>& values) {
  Spread out;
  const auto n = static_cast<double>(values.size());
  for (const double value : values) out.mean += value / n;
  if (values.size() < 2) return out;
  double squares = 0;
  for (const double value : values) squares += (value - out.mean) * (value - out.mean);
  out.deviation = std::sqrt(squares / (n - 1));
  out.half_width = Student(values.size() - 1) * out.deviation / std::sqrt(n);
  return out;
}

}  // namespace mergeplan
