#include "planner/runs/curve_updates.h"

#include <cmath>

namespace mergeplan {
namespace {

constexpr std::int64_t kCurvePoints = 64;

}  // namespace

std::vector<std::int64_t> CurveUpdates(std::int64_t updates) {
  std::vector<std::int64_t> out;
  if (updates <= kCurvePoints) {
    for (std::int64_t u = 0; u < updates; ++u) out.push_back(u);
    return out;
  }
  const double last = static_cast<double>(updates - 1);
  for (std::int64_t i = 0; i < kCurvePoints; ++i) {
    const double share = static_cast<double>(i) / (kCurvePoints - 1);
    const auto u = static_cast<std::int64_t>(std::llround(std::pow(last + 1, share))) - 1;
    if (out.empty() || u > out.back()) out.push_back(u);
  }
  return out;
}

}  // namespace mergeplan
