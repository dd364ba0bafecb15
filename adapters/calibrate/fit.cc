#include "adapters/calibrate/fit.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "adapters/calibrate/curve.h"
#include "planner/base/status_macros.h"

namespace mergeplan::calibrate {
namespace {

constexpr double kNormal = 1.959963984540054;

// Single-step merges that are fitted, with their replicates.
using Group = std::vector<const PilotResult*>;
struct Order {
  bool operator()(const Range& a, const Range& b) const {
    return std::pair(a.last - a.first, a.first) < std::pair(b.last - b.first, b.first);
  }
};
std::map<Range, Group, Order> Groups(const Measurements& m) {
  std::map<Range, Group, Order> out;
  for (const PilotResult& r : m.pilots) {
    if (!r.pilot.held_out && r.pilot.trained.empty()) out[r.pilot.range].push_back(&r);
  }
  return out;
}

// The mean share of the squared error that the replicates have left after each checkpoint, the
// geometric one: trainings differ by factors.
std::vector<double> MeanShares(const Group& group) {
  const std::size_t n = group.front()->updates.size();
  std::vector<double> out(n, 0.0);
  for (std::size_t k = 0; k < n; ++k) {
    double logs = 0;
    bool zero = false;
    for (const PilotResult* r : group) {
      const double share = r->start > 0 ? r->error[k] / r->start : 0.0;
      zero = zero || !(share > 0);
      if (share > 0) logs += std::log(share);
    }
    out[k] = zero ? 0.0 : std::exp(logs / static_cast<double>(group.size()));
  }
  return out;
}

// Standard deviation of log root-mean-square errors between replicates, pooled.
void PoolSpread(const std::map<Range, Group, Order>& groups, Fit* fit) {
  double squares = 0, weight = 0;
  for (const auto& [range, group] : groups) {
    if (group.size() < 2) continue;
    fit->spread_freedom += static_cast<int>(group.size()) - 1;
    for (std::size_t k = 0; k < group.front()->updates.size(); ++k) {
      double mean = 0;
      bool positive = true;
      for (const PilotResult* r : group) {
        positive = positive && r->error[k] > 0;
        if (positive) mean += std::log(r->error[k]) / 2 / static_cast<double>(group.size());
      }
      if (!positive) continue;
      for (const PilotResult* r : group) {
        const double off = std::log(r->error[k]) / 2 - mean;
        squares += off * off;
      }
      weight += static_cast<double>(group.size()) - 1;
    }
  }
  if (weight > 0) fit->spread = std::sqrt(squares / weight);
}

struct Parts {
  Range range;
  LossCurve curve;
  double distance = 0;   // native
  double sampling = 0;   // relative standard error of root mean squares over held-out rows
  double after = 0;      // native, at the end of the pilots
  double asymptote = 0;  // native
};

double RootMean(double mean, double scale) { return std::sqrt(std::max(0.0, mean)) * scale; }

// The residual that goes with an error and a floor.
double Residual(Combine combine, double error, double floor, double distance) {
  if (!(distance > 0)) return 0;
  const double left = combine == Combine::kSum
                          ? error - floor
                          : std::sqrt(std::max(0.0, error * error - floor * floor));
  return std::clamp(left / distance, 0.0, 1.0);
}
double Error(Combine combine, double residual, double distance, double floor) {
  return combine == Combine::kSum ? residual * distance + floor
                                  : std::hypot(residual * distance, floor);
}
// Not above the error itself, not below what keeps the residual within 1.
double FloorOf(Combine combine, const Parts& p, double share) {
  const double least = combine == Combine::kSum
                           ? p.after - p.distance
                           : std::sqrt(std::max(0.0, p.after * p.after - p.distance * p.distance));
  return std::max({0.0, std::min(share * p.asymptote, p.after), least});
}

// From merges that start from a trained one: which part of what a merge has not learnt stays when
// its start is nearer.
void FindFloorShare(const Measurements& m, Combine combine, const std::vector<Parts>& parts,
                    Fit* fit) {
  struct Sample {
    const Parts* parts;
    double distance, error;
    double at;  // updates
  };
  std::vector<Sample> samples;
  for (const PilotResult& r : m.pilots) {
    if (r.pilot.held_out || r.pilot.trained.empty()) continue;
    for (const Parts& p : parts) {
      if (!(p.range == r.pilot.range)) continue;
      // The later half of the curve: at first they are all near their starts.
      for (std::size_t k = r.updates.size() / 2; k < r.updates.size(); ++k) {
        samples.push_back({&p, RootMean(r.start, m.data_scale), RootMean(r.error[k], m.data_scale),
                           static_cast<double>(r.updates[k])});
      }
    }
  }
  if (samples.empty()) return;
  constexpr int kShares = 200;
  std::vector<double> costs;  // mean squared logs
  for (int k = 0; k <= kShares; ++k) {
    const double share = static_cast<double>(k) / kShares;
    double cost = 0;
    for (const Sample& s : samples) {
      const double floor = FloorOf(combine, *s.parts, share);
      const double error = s.parts->distance * std::sqrt(s.parts->curve.At(s.at));
      const double predicted =
          Error(combine, Residual(combine, error, floor, s.parts->distance), s.distance, floor);
      if (!(predicted > 0) || !(s.error > 0)) continue;
      const double off = std::log(predicted / s.error);
      cost += off * off / static_cast<double>(samples.size());
    }
    costs.push_back(cost);
  }
  const auto best = std::min_element(costs.begin(), costs.end());
  // As far as one training more or less could have led it, and it is only one.
  const double allowed = *best + std::pow(kNormal * fit->spread, 2) + 1e-12;
  int low = kShares, high = 0;
  for (int k = 0; k <= kShares; ++k) {
    if (costs[k] > allowed) continue;
    low = std::min(low, k);
    high = std::max(high, k);
  }
  fit->floor_share = static_cast<double>(best - costs.begin()) / kShares;
  fit->floor_share_low = static_cast<double>(low) / kShares;
  fit->floor_share_high = static_cast<double>(high) / kShares;
  fit->floor_share_measured = true;
}

void AddDistances(const Measurements& m, MeasuredTables* tables) {
  for (const Distance& d : m.distances) {
    const double value = RootMean(d.mean, m.data_scale);
    const double relative = d.mean > 0 ? kNormal * d.standard_error / d.mean / 2 : 0;
    tables->distance.push_back({d.first, d.last, d.start, 0, value,
                                value * std::max(0.0, 1 - relative), value * (1 + relative)});
  }
}

// Gains of the errors that starts make, corrected by what those of trained pilots show: on a log
// scale the difference grows with the number of steps, as there is none over no steps.
void AddGains(const Measurements& m, Fit* fit) {
  const int T = m.teacher_steps;
  if (T < 2) return;
  struct Mean {
    double logs = 0, squares = 0;
    int count = 0;
    double At() const { return logs / count; }
    double Spread() const {
      return count > 1 ? std::sqrt(std::max(0.0, (squares - logs * logs / count) / (count - 1)))
                       : 0.0;
    }
  };
  std::map<std::pair<int, int>, Mean> starts, trained;  // by (steps, level)
  for (const GainProbe& g : m.gains) {
    auto& into = g.trained ? trained : starts;
    for (int i = 1; i <= g.level; ++i) {
      const double log = std::log(std::max(g.squared[i - 1], 1e-300)) / 2;
      Mean& mean = into[{g.level - i + 1, g.level}];
      mean.logs += log;
      mean.squares += log * log;
      ++mean.count;
    }
  }
  double xy = 0, xx = 0;
  for (const auto& [key, mean] : trained) {
    const auto other = starts.find(key);
    if (other == starts.end()) continue;
    const double x = static_cast<double>(key.first) / (T - 1);
    xy += x * (mean.At() - other->second.At());
    xx += x * x;
  }
  if (xx > 0) fit->gain_slope = xy / xx;
  double squares = 0;
  int count = 0;
  for (const auto& [key, mean] : trained) {
    const auto other = starts.find(key);
    if (other == starts.end()) continue;
    const double off =
        mean.At() - other->second.At() - fit->gain_slope * static_cast<double>(key.first) / (T - 1);
    squares += off * off;
    ++count;
  }
  if (count > 0) fit->gain_spread = std::sqrt(squares / std::max(1, count - 1));
  // The model wants both ends of every length, so lengths that are levels themselves.
  std::set<int> levels;
  for (const auto& [key, mean] : starts) levels.insert(key.second);
  for (const auto& [key, mean] : starts) {
    const auto& [steps, level] = key;
    if (!levels.contains(steps)) continue;
    const double log = mean.At() + fit->gain_slope * static_cast<double>(steps) / (T - 1);
    // Between errors of different kinds, and what the correction does not explain.
    const double off = kNormal * std::hypot(mean.Spread(), fit->gain_spread);
    fit->tables.gain.push_back(
        {level - steps + 1, level, 0, 0, std::exp(log), std::exp(log - off), std::exp(log + off)});
  }
}

std::vector<std::int64_t> Knots(const Fit& fit, const FitOptions& options,
                                const std::vector<std::int64_t>& measured) {
  std::set<std::int64_t> out(measured.begin(), measured.end());
  const std::int64_t most = std::max({options.iterations, options.most_updates, fit.pilot_updates});
  out.insert(options.iterations);
  for (std::int64_t u = fit.pilot_updates; u < most; u = std::max(u + 1, u + u / 4)) out.insert(u);
  out.insert(most);
  return {out.begin(), out.end()};
}

// From the clean end, 0, to the noisy one, 1, on a log scale: what a merge leaves depends most on
// where it lands, and most of that is near the data.
double PlaceOf(int first, int steps, int T) {
  return T > steps ? std::log(static_cast<double>(first)) / std::log(T - steps + 1.0) : 0.5;
}

// Which fitted merges a merge lies between, with weights that add up to 1: next in length, on a log
// scale, and among those of one length next in place.
std::vector<std::pair<const Parts*, double>> Around(const std::vector<Parts>& parts, Range range,
                                                    int T) {
  std::map<int, std::vector<const Parts*>> by_steps;  // by place within
  for (const Parts& p : parts) by_steps[p.range.last - p.range.first + 1].push_back(&p);
  const int steps = range.last - range.first + 1;
  auto above = by_steps.lower_bound(steps);
  auto below = above;
  double share = 0;  // of the longer ones
  if (above->first != steps) {
    --below;
    share = std::log(static_cast<double>(steps) / below->first) /
            std::log(static_cast<double>(above->first) / below->first);
  }
  const double place = PlaceOf(range.first, steps, T);
  std::vector<std::pair<const Parts*, double>> out;
  const auto add = [&](const std::vector<const Parts*>& row, int length, double weight) {
    if (weight <= 0) return;
    const auto at = [&](std::size_t k) { return PlaceOf(row[k]->range.first, length, T); };
    if (row.size() == 1 || place <= at(0)) return out.emplace_back(row.front(), weight), void();
    std::size_t k = 0;
    while (k + 2 < row.size() && at(k + 1) <= place) ++k;
    const double on = std::min(1.0, (place - at(k)) / (at(k + 1) - at(k)));
    if (on < 1) out.emplace_back(row[k], weight * (1 - on));
    if (on > 0) out.emplace_back(row[k + 1], weight * on);
  };
  add(below->second, below->first, 1 - share);
  if (share > 0) add(above->second, above->first, share);
  return out;
}

// A merge between fitted ones: its own distance, which was measured, times what they have left of
// theirs, averaged on a log scale, since that differs by factors from one end to the other.
struct Between {
  double sampling = 0;
  std::vector<std::pair<const Parts*, double>> around;

  // exp of the mean log of a share.
  template <typename Share>
  double Mean(const Share& share) const {
    double logs = 0;
    for (const auto& [parts, weight] : around) {
      logs += weight * std::log(std::max(share(*parts), 1e-30));
    }
    return std::exp(logs);
  }
  // Standard deviation of the same logs: how far apart the neighbours are. 0 at a fitted merge.
  template <typename Share>
  double Spread(const Share& share) const {
    const double mean = std::log(Mean(share));
    double squares = 0;
    for (const auto& [parts, weight] : around) {
      const double off = std::log(std::max(share(*parts), 1e-30)) - mean;
      squares += weight * off * off;
    }
    return around.size() > 1 ? std::sqrt(squares) : 0.0;
  }
};

void AddResiduals(const Measurements& m, Combine combine, const FitOptions& options,
                  const std::vector<Parts>& parts, const std::map<Range, Group, Order>& groups,
                  Fit* fit) {
  const double quantile = StudentQuantile(fit->spread_freedom);
  const std::vector<std::int64_t> knots =
      Knots(*fit, options, groups.begin()->second.front()->updates);
  const auto pilot_updates = static_cast<double>(fit->pilot_updates);
  for (const Distance& d : m.distances) {
    if (d.start != 0 && d.start != d.last) continue;  // the start of single steps
    const Range range{d.first, d.last};
    const double distance = RootMean(d.mean, m.data_scale);
    Between b;
    b.around = Around(parts, range, m.teacher_steps);
    double least = 1e300;
    for (const auto& [p, weight] : b.around) {
      b.sampling = std::max(b.sampling, p->sampling);
      least = std::min(least, static_cast<double>(groups.at(p->range).size()));
    }
    const auto after = [](const Parts& p) { return p.distance > 0 ? p.after / p.distance : 0.0; };
    // Of one more training, which is what a plan will be; and between fitted merges.
    const double off = std::hypot(quantile * fit->spread * std::sqrt(1 + 1 / least),
                                  std::hypot(kNormal * b.sampling, b.Spread(after)));
    const auto error_at = [&](double u) {
      return distance * b.Mean([u](const Parts& p) { return std::sqrt(p.curve.At(u)); });
    };
    Parts own;
    own.distance = distance;
    own.after = error_at(pilot_updates);
    own.asymptote = distance * b.Mean([](const Parts& p) { return std::sqrt(p.curve.Unlearnt()); });
    const double floor = FloorOf(combine, own, fit->floor_share);
    const double floor_low = FloorOf(combine, own, fit->floor_share_low) * std::exp(-off);
    const double floor_high = FloorOf(combine, own, fit->floor_share_high) * std::exp(off);
    fit->tables.floor.push_back({range.first, range.last, 0, 0, floor, floor_low, floor_high});
    double value_before = 1, low_before = 1, high_before = 1;
    for (const std::int64_t u : knots) {
      const double error = error_at(static_cast<double>(u));
      const double value = Residual(combine, error, floor, distance);
      // What is not the merge's is the start's: the two go against each other.
      const double low = Residual(combine, error * std::exp(-off), floor_high, distance);
      // Beyond what was trained nothing more is certain to be learnt.
      const double reached = u > fit->pilot_updates ? own.after : error;
      const double high = Residual(combine, reached * std::exp(off), floor_low, distance);
      // Numbers that must not rise, whatever rounding and limits did to them.
      value_before = std::min(value_before, value);
      low_before = std::min({low_before, low, value_before});
      high_before = std::min(high_before, std::max(high, value_before));
      fit->tables.residual.push_back(
          {range.first, range.last, 0, u, value_before, low_before, high_before});
    }
  }
}

}  // namespace

double StudentQuantile(int freedom) {
  constexpr double kTable[] = {12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262,
                               2.228,  2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101};
  if (freedom < 1) return kNormal;
  const auto n = static_cast<std::size_t>(freedom);
  return n <= std::size(kTable) ? kTable[n - 1] : kNormal + 2.5 / static_cast<double>(freedom);
}

bool CanFit(const Measurements& m) {
  const auto groups = Groups(m);
  const int T = m.teacher_steps;
  std::map<int, int> places;
  for (const auto& [range, group] : groups) ++places[range.last - range.first + 1];
  const auto has = [&](int first, int last) { return groups.contains({first, last}); };
  if (m.distances.empty() || (T > 1 && m.gains.empty())) return false;
  if (!has(1, 2) || !has(T - 1, T) || !has(1, T)) return false;
  return std::all_of(places.begin(), places.end(), [&](const auto& entry) {
    return has(1, entry.first) && has(T - entry.first + 1, T);
  });
}

absl::StatusOr<Fit> FitTables(const Measurements& m, Combine combine, const FitOptions& options) {
  if (!CanFit(m)) {
    return absl::FailedPreconditionError(
        "too little has been measured for the model: the merges [1, 2], [T-1, T], [1, T] and both "
        "ends of every measured length are needed; go on with --resume, or allow more");
  }
  const auto groups = Groups(m);
  Fit fit;
  MeasuredTables& tables = fit.tables;
  tables.teacher_steps = m.teacher_steps;
  tables.combine = combine;
  PoolSpread(groups, &fit);
  std::vector<Parts> parts;
  double scatter = 0;
  for (const auto& [range, group] : groups) {
    const PilotResult& first = *group.front();
    Parts p;
    p.range = range;
    p.distance = RootMean(first.start, m.data_scale);
    p.curve = LossCurve::Fit(first.updates, MeanShares(group));
    const auto last = static_cast<double>(first.updates.back());
    p.after = p.distance * std::sqrt(p.curve.At(last));
    p.asymptote = p.distance * std::sqrt(p.curve.Unlearnt());
    for (const PilotResult* r : group) {
      if (r->error.back() > 0) {
        p.sampling = std::max(p.sampling, r->standard_error.back() / r->error.back() / 2);
      }
    }
    fit.pilot_updates = std::max(fit.pilot_updates, first.updates.back());
    scatter = std::max(scatter, p.curve.scatter() / 2);
    parts.push_back(std::move(p));
  }
  if (fit.spread_freedom == 0) fit.spread = scatter;
  FindFloorShare(m, combine, parts, &fit);

  for (const Parts& p : parts) {
    fit.merges.push_back({p.range, p.distance, p.after, p.asymptote,
                          FloorOf(combine, p, fit.floor_share),
                          static_cast<int>(groups.at(p.range).size()), p.curve.scatter() / 2});
  }
  AddResiduals(m, combine, options, parts, groups, &fit);
  AddDistances(m, &tables);
  AddGains(m, &fit);
  return fit;
}

}  // namespace mergeplan::calibrate
