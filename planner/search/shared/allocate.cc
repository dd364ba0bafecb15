#include "planner/search/shared/allocate.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

namespace mergeplan::search {
namespace {

double Dot(const std::vector<double>& a, const std::vector<double>& b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}

double FirstOrderGain(const std::vector<double>& x, const std::vector<double>& gradient) {
  return std::max(0.0, Dot(x, gradient) - *std::min_element(gradient.begin(), gradient.end()));
}

void Normalize(std::vector<double>& x) {
  const double sum = std::accumulate(x.begin(), x.end(), 0.0);
  for (double& v : x) v /= sum;
}

// The best of what comes of sharing anew what two merges have together: nothing for one of them, or
// 1, 1/2, 1/4, ... of the training that shrinks by e^-3, for all pairs. Descent alone stays where
// both have so much that a little less makes no difference. True where something is better.
bool ImproveByPairs(SharedTree& tree, Allocation& at, const std::function<bool()>& stop) {
  constexpr int kSizes = 9;
  const SharedProblem& problem = tree.problem();
  const std::size_t M = at.shares.size();
  std::vector<double> best;
  double objective = at.objective;
  for (std::size_t a = 0; a < M; ++a) {
    const double* rate = problem.Rate(tree.plan().merges()[a].last);
    const double fastest =
        problem.width() > 0 ? -*std::min_element(rate, rate + problem.width()) : 1;
    for (std::size_t b = 0; b < M; ++b) {
      if (a == b || (stop && stop())) continue;
      const double sum = at.shares[a] + at.shares[b];
      if (!(sum > 0)) continue;
      double size = std::min(sum, 3 / (fastest * problem.total));
      for (int n = 0; n <= kSizes; ++n, size /= 2) {
        std::vector<double> x = at.shares;
        x[a] = n < kSizes ? size : 0;
        x[b] = sum - x[a];
        const double here = tree.Objective(x, nullptr);
        if (!(here < objective * (1 - 1e-9))) continue;
        objective = here;
        best = std::move(x);
      }
    }
  }
  if (best.empty()) return false;
  at.shares = std::move(best);
  at.objective = objective;
  return true;
}

}  // namespace

void ProjectOntoSimplex(std::vector<double>& x) {
  std::vector<double> sorted = x;
  std::sort(sorted.begin(), sorted.end(), std::greater<>());
  double sum = 0, shift = 0;
  for (std::size_t k = 0; k < sorted.size(); ++k) {
    sum += sorted[k];
    const double here = (sum - 1) / static_cast<double>(k + 1);
    if (k > 0 && sorted[k] <= here) break;
    shift = here;
  }
  for (double& v : x) v = std::max(0.0, v - shift);
  Normalize(x);  // takes the rounding out
}

Allocation Descend(SharedTree& tree, std::vector<double> start, int evaluations, double tolerance,
                   double floor, const std::function<bool()>& stop) {
  const std::size_t M = start.size();
  if (M == 0) return {{}, tree.Objective({}, nullptr), 0};
  std::vector<double> x = std::move(start), gradient(M);
  double objective = tree.Objective(x, gradient.data());
  Allocation best{x, objective, FirstOrderGain(x, gradient)};
  if (M < 2) return best;
  constexpr std::size_t kMemory = 5;
  std::vector<double> recent, direction(M), trial(M), trial_gradient(M);
  double step = 0;
  for (int spent = 1; spent < evaluations && !(stop && stop());) {
    const double scale = 1 / (objective + floor);  // of the logarithm's gradient
    if (!std::isfinite(scale) || FirstOrderGain(x, gradient) * scale <= tolerance) break;
    if (step <= 0) {
      const double mean = std::accumulate(gradient.begin(), gradient.end(), 0.0) / M;
      double largest = 0;
      for (double g : gradient) largest = std::max(largest, std::abs(g - mean));
      step = 0.3 / (largest * scale);
    }
    for (std::size_t m = 0; m < M; ++m) trial[m] = x[m] - step * scale * gradient[m];
    ProjectOntoSimplex(trial);
    for (std::size_t m = 0; m < M; ++m) direction[m] = trial[m] - x[m];
    const double slope = Dot(gradient, direction) * scale;
    if (!(slope < 0)) break;
    const double value = std::log(objective + floor);
    recent.push_back(value);
    if (recent.size() > kMemory) recent.erase(recent.begin());
    const double reference = *std::max_element(recent.begin(), recent.end());
    double along = 1, next = 0;
    bool found = false;
    for (; spent < evaluations; ++spent) {
      for (std::size_t m = 0; m < M; ++m) trial[m] = x[m] + along * direction[m];
      next = tree.Objective(trial, trial_gradient.data());
      const double next_value = std::log(next + floor);
      if (next_value <= reference + 1e-4 * along * slope) {
        found = true;
        ++spent;
        break;
      }
      const double parabola =
          -0.5 * slope * along * along / std::max(1e-300, next_value - value - along * slope);
      along = std::clamp(parabola, 0.1 * along, 0.5 * along);
      if (along < 1e-14) break;
    }
    if (!found) break;
    // Barzilai and Borwein, for the gradient of the logarithm.
    const double next_scale = 1 / (next + floor);
    double ss = 0, sy = 0;
    for (std::size_t m = 0; m < M; ++m) {
      const double s = trial[m] - x[m];
      const double y = trial_gradient[m] * next_scale - gradient[m] * scale;
      ss += s * s;
      sy += s * y;
    }
    step = sy > 0 ? std::clamp(ss / sy, 1e-12, 1e6) : std::min(4 * step, 1e6);
    std::swap(x, trial);
    std::swap(gradient, trial_gradient);
    objective = next;
    if (objective < best.objective) best = {x, objective, FirstOrderGain(x, gradient)};
  }
  return best;
}

std::vector<std::vector<double>> StartingShares(const Plan& plan) {
  const std::size_t M = static_cast<std::size_t>(plan.size());
  std::vector<std::vector<double>> out(4, std::vector<double>(M, 0.0));
  for (int block : plan.blocks()) {
    if (plan.is_step(block)) continue;
    const Range range = plan.range(block);
    out[0][static_cast<std::size_t>(block - plan.teacher_steps())] = range.last - range.first;
  }
  for (std::size_t m = 0; m < M; ++m) {
    const Merge& merge = plan.merges()[m];
    out[1][m] = 1;
    out[2][m] = merge.last - merge.first;
    out[3][m] = merge.round == 1 ? 1.0 : 0.0;
  }
  for (std::vector<double>& shares : out) Normalize(shares);
  // In plans of few merges these coincide.
  std::vector<std::vector<double>> distinct;
  for (std::vector<double>& shares : out) {
    if (std::find(distinct.begin(), distinct.end(), shares) == distinct.end()) {
      distinct.push_back(std::move(shares));
    }
  }
  return distinct;
}

Allocation Allocate(SharedTree& tree, absl::Span<const std::vector<double>> more, int evaluations,
                    double floor, const std::function<bool()>& stop) {
  constexpr double kTolerance = 1e-9;
  std::vector<std::vector<double>> starts = StartingShares(tree.plan());
  starts.insert(starts.end(), more.begin(), more.end());
  Allocation best;
  best.objective = std::numeric_limits<double>::infinity();
  if (tree.merges() == 0) starts = {{}};
  for (std::vector<double>& start : starts) {
    Allocation found = Descend(tree, std::move(start), evaluations, kTolerance, floor, stop);
    if (found.objective < best.objective) best = std::move(found);
  }
  return Polish(tree, std::move(best), 10 * evaluations, kTolerance, floor, stop);
}

Allocation Polish(SharedTree& tree, Allocation best, int evaluations, double tolerance,
                  double floor, const std::function<bool()>& stop) {
  constexpr int kRounds = 8;
  best = Descend(tree, std::move(best.shares), evaluations, tolerance, floor, stop);
  const double M = tree.merges();
  for (int round = 0; round < kRounds && M * M <= evaluations; ++round) {
    Allocation other = best;
    if (!ImproveByPairs(tree, other, stop)) break;
    other = Descend(tree, std::move(other.shares), evaluations, tolerance, floor, stop);
    if (!(other.objective < best.objective)) break;
    best = std::move(other);
  }
  return best;
}

Updates RoundToUpdates(SharedTree& tree, absl::Span<const double> shares, std::int64_t total,
                       const std::function<bool()>& stop) {
  const int M = tree.merges();
  const auto K = static_cast<double>(total);
  Updates out;
  out.updates.resize(M);
  std::vector<std::pair<double, int>> remainder;
  std::int64_t left = total;
  for (int m = 0; m < M; ++m) {
    const double exact = shares[m] * K;
    out.updates[m] = std::min(left, static_cast<std::int64_t>(exact));
    left -= out.updates[m];
    remainder.emplace_back(static_cast<double>(out.updates[m]) - exact, m);
  }
  std::sort(remainder.begin(), remainder.end());
  for (int r = 0; left > 0 && M > 0; r = (r + 1) % M, --left) ++out.updates[remainder[r].second];

  std::vector<double> x(M), gradient(M);
  const auto evaluate = [&](double* by_share) {
    for (int m = 0; m < M; ++m) x[m] = static_cast<double>(out.updates[m]) / K;
    return tree.Objective(x, by_share);
  };
  out.objective = evaluate(gradient.data());
  if (M < 2) {
    out.exchanged = true;
    return out;
  }
  // All pairs, where that is affordable; else the givers and takers with the best derivatives.
  constexpr double kAffordable = 2e9;
  const bool all = static_cast<double>(M) * M * tree.Work() <= kAffordable;
  const int most = all ? M : std::min(M, 6);
  std::int64_t move = 1;
  while (move * 8 <= total) move *= 2;
  for (int rounds = 0; move > 0 && rounds < 4096; ++rounds) {
    if (stop && stop()) return out;
    std::vector<int> takers(M), givers(M);
    std::iota(takers.begin(), takers.end(), 0);
    std::stable_sort(takers.begin(), takers.end(),
                     [&](int a, int b) { return gradient[a] < gradient[b]; });
    std::reverse_copy(takers.begin(), takers.end(), givers.begin());
    // At larger moves only the best few pairs: they are for speed, the last size is for the claim.
    const int tried = move > 1 ? std::min(most, 4) : most;
    bool moved = false;
    for (int g = 0; g < tried && !moved; ++g) {
      for (int t = 0; t < tried && !moved; ++t) {
        const int giver = givers[g], taker = takers[t];
        if (giver == taker || out.updates[giver] < move) continue;
        out.updates[giver] -= move;
        out.updates[taker] += move;
        const double objective = evaluate(nullptr);
        if (objective < out.objective) {
          out.objective = objective;
          moved = true;
        } else {
          out.updates[giver] += move;
          out.updates[taker] -= move;
        }
      }
    }
    if (moved) {
      evaluate(gradient.data());
    } else if (move == 1) {
      out.exchanged = all;
      break;
    } else {
      move /= 2;
    }
  }
  return out;
}

}  // namespace mergeplan::search
