#include "adapters/network/stopping.h"

#include <algorithm>
#include <cmath>

namespace mergeplan::network {
namespace {

struct Part {
  double mean = 0, variance = 0;  // of the mean
};

Part PartOf(absl::Span<const double> losses) {
  Part part;
  const auto n = static_cast<double>(losses.size());
  for (const double loss : losses) part.mean += loss / n;
  for (const double loss : losses) {
    part.variance += (loss - part.mean) * (loss - part.mean) / (n - 1) / n;
  }
  return part;
}

}  // namespace

double RemainingGain(absl::Span<const double> losses, std::int64_t updates) {
  const auto made = static_cast<std::int64_t>(losses.size());
  if (made < kFewestUpdates) return 1;
  if (made >= updates) return 0;
  const std::size_t quarter = losses.size() / 4;
  const auto last = [&](std::size_t k) {
    return PartOf(losses.subspan(losses.size() - k * quarter, quarter));
  };
  const Part middle = last(2), late = last(1);
  const double noise = std::sqrt(middle.variance + late.variance);
  const double now = std::max(0.0, middle.mean - late.mean) + noise;
  // A fall with the logarithm of the update: from the middle of one quarter to that of the next it
  // gains log(7/5) of what it gains per factor e.
  const double remaining =
      now / std::log(1.4) * std::log(static_cast<double>(updates) / static_cast<double>(made));
  const Part first = PartOf(losses.first(std::max<std::size_t>(2, quarter / 4)));
  const double gained = first.mean - late.mean;
  if (!(gained > 0) || !std::isfinite(remaining)) return 1;
  return remaining / (gained + remaining);
}

}  // namespace mergeplan::network
