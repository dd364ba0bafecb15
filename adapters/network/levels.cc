#include "adapters/network/levels.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "planner/base/status_macros.h"

namespace mergeplan::network {
namespace {

// How far beyond the table's ends a level may lie, as an angle.
constexpr double kBeyond = 0.02;
// Places this near to an entry are that entry: tables in float32 leave a little.
constexpr double kSnap = 1e-3;

// A place in the table, between entries.
struct Place {
  std::size_t entry = 0;
  double share = 0;  // of entry + 1

  double Of(const std::vector<double>& values) const {
    if (share == 0) return values[entry];
    return (1 - share) * values[entry] + share * values[entry + 1];
  }
};

double LogRatio(double alpha, double sigma) { return std::log(alpha) - std::log(sigma); }

absl::StatusOr<Place> Find(const TrainingTable& table, double alpha, double sigma, int level) {
  const std::size_t last = table.alpha.size() - 1;
  const auto angle = [&](std::size_t s) { return std::atan2(table.sigma[s], table.alpha[s]); };
  const double here = std::atan2(sigma, alpha);
  if (here <= angle(0) || here >= angle(last)) {
    const std::size_t end = here <= angle(0) ? 0 : last;
    if (std::abs(here - angle(end)) <= kBeyond) return Place{end, 0};
    return absl::InvalidArgumentError(absl::StrCat(
        "level ", level, " of the schedule has alpha/sigma ", alpha / sigma, ", beyond the ",
        end == 0 ? "cleanest" : "noisiest", " level that the network was trained with (",
        table.alpha[end] / table.sigma[end],
        "); use the schedule of its training, or fewer steps"));
  }
  // The last entry that is not noisier.
  std::size_t low = 0, high = last;
  while (high - low > 1) {
    const std::size_t middle = (low + high) / 2;
    (angle(middle) <= here ? low : high) = middle;
  }
  const double from = LogRatio(table.alpha[low], table.sigma[low]);
  const double to = LogRatio(table.alpha[high], table.sigma[high]);
  double share = (from - LogRatio(alpha, sigma)) / (from - to);
  // An end of the table may be clean or pure noise; then the angle decides.
  if (!std::isfinite(from) || !std::isfinite(to)) {
    share = (here - angle(low)) / (angle(high) - angle(low));
  }
  if (share < kSnap) return Place{low, 0};
  if (share > 1 - kSnap) return Place{high, 0};
  return Place{low, share};
}

}  // namespace

absl::StatusOr<std::vector<LevelInput>> LevelInputs(const Signature& signature,
                                                    const Schedule& schedule) {
  const int T = schedule.steps();
  std::vector<LevelInput> out(T + 1);
  for (int t = 1; t <= T; ++t) {
    // The run's level in native units of the data.
    const double alpha = schedule.level_scale[t] * schedule.alpha[t] / schedule.data_scale;
    const double sigma = schedule.level_scale[t] * schedule.sigma[t];
    double network_alpha = alpha, network_sigma = sigma;
    Place place;
    if (signature.table) {
      MP_ASSIGN_OR_RETURN(place, Find(*signature.table, alpha, sigma, t));
      // The same ratio as the run's, the size of the state from the table.
      const double size =
          std::hypot(place.Of(signature.table->alpha), place.Of(signature.table->sigma));
      const double run = std::hypot(alpha, sigma);
      network_alpha = alpha / run * size;
      network_sigma = sigma / run * size;
    }
    LevelInput& level = out[t];
    if (signature.normalized_input) {
      level.scale = network_sigma /
                    std::hypot(network_alpha * signature.sigma_data, network_sigma) /
                    schedule.sigma[t];
    } else {
      level.scale = network_sigma / schedule.sigma[t];
    }
    double value = 0;
    switch (signature.time) {
      case TimeKind::kTimestep:
      case TimeKind::kFraction:
        if (signature.table) {
          value = place.Of(signature.table->timestep);
          if (signature.time == TimeKind::kFraction) value /= signature.table->steps;
        } else if (signature.time == TimeKind::kFraction) {
          value = static_cast<double>(t) / T;
        } else if (!schedule.timesteps.empty()) {
          value = schedule.timesteps[t];
        } else {
          return absl::InvalidArgumentError(absl::StrCat(
              "the network wants timesteps and the schedule '", schedule.spec,
              "' has none; say in the network's sidecar which [schedule] it was trained with, or "
              "use its scheduler_config.json as the schedule"));
        }
        break;
      case TimeKind::kSigma:
        value = network_sigma;
        break;
      case TimeKind::kLogSnr:
        value = 2 * LogRatio(alpha, sigma);
        break;
      case TimeKind::kTable:
        value = place.Of(signature.table->time);
        break;
    }
    level.time = signature.time_scale * value + signature.time_offset;
    if (signature.integer_time) level.time = std::round(level.time);
    if (!std::isfinite(level.time) || !std::isfinite(level.scale)) {
      return absl::InvalidArgumentError(
          absl::StrCat("level ", t, " of the schedule: the network's time (",
                       std::string(ToString(signature.time)), ") is ", level.time,
                       " there, expected a finite number; alpha is ", schedule.alpha[t],
                       ", use a schedule that does not end at alpha 0"));
    }
  }
  return out;
}

}  // namespace mergeplan::network
