#include "planner/search/planes.h"

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

#include "planner/search/interval_loops.h"
#include "planner/search/parallel.h"

namespace mergeplan::search {
namespace {

// best_q[r] = best product, best_s[r] = best omg * product + slope * start, over the splits m in
// [begin, end) of the rows r; u[r] are cleaner parts by m, v the noisier parts by m + 1.
template <bool kMax, bool kJump, bool kChild>
MP_INLINE void Splits(const ColumnProblem& p, const int* rows, int j, const double* const* u,
                      const double* v, int begin, int end, double* best_q, double* best_s) {
  Vec q[kRows], s[kRows];
  double sigma[kRows], slope[kRows];
  for (int r = 0; r < kRows; ++r) {
    q[r] = All(Worst<kMax>());
    s[r] = All(Worst<kMax>());
    sigma[r] = kJump ? p.jump->sigma_before[rows[r]] : 0;
    slope[r] = p.slope[j] * (kJump ? p.jump->d_last[j][rows[r]] : 1);
  }
  const double level_slope = p.slope[j];
  const double omg = p.omg[j];
  const double* over_sigma = kJump ? p.jump->over_sigma_before.data() : nullptr;
  const double* over_d = kJump ? p.jump->over_d_last[j] : nullptr;
  int m = begin;
  for (; m + kLanes <= end; m += kLanes) {
    const Vec x = Load(v + m + 1);
    const Vec y = kJump ? x * Load(over_sigma + m + 1) : x;
    const Vec w = kJump ? x * Load(over_d + m + 1) : level_slope * x;
    for (int r = 0; r < kRows; ++r) {
      const Vec left = Load(u[r] + m);
      const Vec product = kJump ? left + (sigma[r] + left) * y : left * y;
      q[r] = Better<kMax>(q[r], product);
      if constexpr (kChild) {
        s[r] = Better<kMax>(s[r], omg * product + (kJump ? slope[r] * w : w));
      }
    }
  }
  for (int r = 0; r < kRows; ++r) {
    best_q[r] = Reduce<kMax>(q[r]);
    best_s[r] = Reduce<kMax>(s[r]);
  }
  for (; m < end; ++m) {
    const double x = v[m + 1];
    const double y = kJump ? x * over_sigma[m + 1] : x;
    const double w = kJump ? x * over_d[m + 1] : x;
    for (int r = 0; r < kRows; ++r) {
      const double left = u[r][m];
      const double product = kJump ? left + (sigma[r] + left) * y : left * y;
      best_q[r] = Better<kMax>(best_q[r], product);
      if constexpr (kChild) best_s[r] = Better<kMax>(best_s[r], omg * product + slope[r] * w);
    }
  }
}

// Which tiles of first levels a thread makes. Tiles go from the noisy end; at a last level j one
// needs what the tiles before it made of j.
class Walker {
 public:
  struct Shared {
    explicit Shared(int tiles) : done(tiles) {}
    std::vector<std::atomic<int>> done;  // last level that a tile has reached
    std::atomic<bool> stopped{false};
  };
  Walker(Shared* shared, int first, int stride) : first(first), stride(stride), shared_(shared) {}

  // Waits for the tile before; false where the run was stopped.
  MP_INLINE bool Await(int tile, int j) const {
    if (stride == 1 || tile == 0) return true;
    for (int spins = 0; shared_->done[tile - 1].load(std::memory_order_acquire) < j; ++spins) {
      if (shared_->stopped.load(std::memory_order_relaxed)) return false;
      if (spins % 64 == 63) std::this_thread::yield();
    }
    return true;
  }
  MP_INLINE void Reached(int tile, int j) const {
    if (stride > 1) shared_->done[tile].store(j, std::memory_order_release);
  }
  bool Stopped(const std::function<bool()>& stop) const {
    if (stop && stop()) shared_->stopped = true;
    return shared_->stopped;
  }

  int first, stride;

 private:
  Shared* shared_;
};

int Tiles(int steps) { return (steps + kTile - 1) / kTile; }

template <bool kMax, bool kJump, bool kChild>
MP_INLINE void Pairs(const ColumnProblem& p, bool products, const Plane& all_steps,
                     const std::function<bool()>& stop, const Walker& walker, InsideEnd& e) {
  const int T = p.steps;
  for (int tile = walker.first; tile < Tiles(T); tile += walker.stride) {
    if (walker.Stopped(stop)) return;
    const int top = T - tile * kTile;
    const int count = std::min(kTile, top);
    int rows[kTile];
    const double* u[kTile];
    for (int r = 0; r < kTile; ++r) {
      rows[r] = top - std::min(r, count - 1);
      u[r] = e.q_first[rows[r]];
    }
    for (int j = top - count + 1; j <= T; ++j) {
      if (!walker.Await(tile, j)) return;
      double best_q[kTile], best_s[kTile];
      for (int r = 0; r < count; r += kRows) {
        Splits<kMax, kJump, kChild>(p, rows + r, j, u + r, e.s_last[j], top, std::max(top, j),
                                    best_q + r, best_s + r);
      }
      for (int r = 0; r < count; ++r) {
        const int i = rows[r];
        if (i > j) continue;
        double s, q;
        if (i == j) {
          s = q = p.leaf[j];
        } else {
          s = best_s[r];
          q = best_q[r];
          for (int m = i; m < std::min(top, j); ++m) {
            const double v = e.s_last[j][m + 1];
            const double product = Product(p, i, m, u[r][m], v);
            q = Better<kMax>(q, product);
            if constexpr (kChild) s = Better<kMax>(s, p.omg[j] * product + Slope(p, i, m, j) * v);
          }
          if constexpr (!kChild) s = p.omg[j] * q;
          s += Constant(p, i, j);
          if (!products) {
            s = Better<kMax>(s, Merge(p, i, j - 1, j, all_steps[i][j - 1], p.leaf[j]));
            q = s;
          }
          q = Better<kMax>(q, s);
        }
        e.s_first[i][j] = e.s_last[j][i] = s;
        e.q_first[i][j] = e.q_last[j][i] = q;
      }
      walker.Reached(tile, j);
    }
  }
}

void OneStrategy(const ColumnProblem& p, Shape shape, const Plane& all_steps, InsideEnd& e) {
  const int T = p.steps;
  for (int i = T; i >= 1; --i) {
    for (int j = i; j <= T; ++j) {
      double s = p.leaf[j];
      if (i < j && shape == Shape::kVanilla) {
        s = Merge(p, i, j - 1, j, all_steps[i][j - 1], p.leaf[j]);
      } else if (i < j && shape == Shape::kBoot) {
        s = Merge(p, i, i, j, p.leaf[i], e.s_last[j][i + 1]);
      } else if (i < j) {
        s = Merge(p, i, j - 1, j, e.s_first[i][j - 1], p.leaf[j]);
      }
      e.s_first[i][j] = e.s_last[j][i] = e.q_first[i][j] = e.q_last[j][i] = s;
    }
  }
}

template <bool kMax>
MP_INLINE void Layers(const ColumnProblem& p, int blocks, const std::function<bool()>& stop,
                      InsideEnd& e) {
  const int T = p.steps;
  for (int t = 1; t <= T; ++t) {
    e.prefix[1][t] = e.s_first[1][t];
    e.suffix[1][t] = e.s_last[T][t];
  }
  // Every other block has a step at least.
  for (int count = 2; count <= blocks; ++count) {
    if (stop && stop()) return;
    for (int j = count; j <= T - (blocks - count); ++j) {
      double best = Worst<kMax>();
      for (int m = count - 1; m < j; ++m) {
        best = Better<kMax>(best, Product(p, 1, m, e.prefix[count - 1][m], e.s_last[j][m + 1]));
      }
      e.prefix[count][j] = best;
    }
    for (int i = blocks - count + 1; T - i + 1 >= count; ++i) {
      double best = Worst<kMax>();
      for (int m = i; T - m >= count - 1; ++m) {
        best = Better<kMax>(best, Product(p, i, m, e.s_first[i][m], e.suffix[count - 1][m + 1]));
      }
      e.suffix[count][i] = best;
    }
  }
}

template <bool kMax>
MP_INLINE void RunInside(const ColumnProblem& p, Shape shape, const Plane& all_steps,
                         const std::function<bool()>& stop, const Walker& walker, InsideEnd& e) {
  if (p.jump != nullptr) {
    Pairs<kMax, true, true>(p, shape == Shape::kNary, all_steps, stop, walker, e);
  } else if (p.child) {
    Pairs<kMax, false, true>(p, shape == Shape::kNary, all_steps, stop, walker, e);
  } else {
    Pairs<kMax, false, false>(p, shape == Shape::kNary, all_steps, stop, walker, e);
  }
}

MP_CLONES void RunPairs(const ColumnProblem& column, Shape shape, bool largest,
                        const Plane& all_steps, const std::function<bool()>& stop,
                        const Walker& walker, InsideEnd& end) {
  if (largest) {
    RunInside<true>(column, shape, all_steps, stop, walker, end);
  } else {
    RunInside<false>(column, shape, all_steps, stop, walker, end);
  }
}

}  // namespace

double ProductValue(const ColumnProblem& column, int i, int m, double u, double v) {
  return Product(column, i, m, u, v);
}

double MergeValue(const ColumnProblem& column, int i, int m, int j, double u, double v) {
  return Merge(column, i, m, j, u, v);
}

void MultiplySteps(const ColumnProblem& column, Plane& all_steps) {
  for (int i = 1; i <= column.steps; ++i) {
    all_steps[i][i] = column.leaf[i];
    for (int j = i + 1; j <= column.steps; ++j) {
      all_steps[i][j] = Product(column, i, j - 1, all_steps[i][j - 1], column.leaf[j]);
    }
  }
}

InsideEnd::InsideEnd(int steps, int blocks)
    : s_first(steps),
      s_last(steps),
      q_first(steps),
      q_last(steps),
      prefix(Layer(steps, blocks)),
      suffix(Layer(steps, blocks)) {}

bool InsideEnd::Run(const ColumnProblem& column, Shape shape, bool largest, const Plane& all_steps,
                    int threads, const std::function<bool()>& stop) {
  const int T = column.steps;
  if (OneNodePerInterval(shape)) {
    OneStrategy(column, shape, all_steps, *this);
  } else {
    constexpr int kWorthThreads = 256;  // steps
    if (T < kWorthThreads) threads = 1;
    Walker::Shared shared(Tiles(T));
    for (int tile = 0; tile < Tiles(T); ++tile) shared.done[tile] = T - (tile + 1) * kTile;
    ParallelFor(threads, threads, [&](int k) {
      RunPairs(column, shape, largest, all_steps, stop, Walker(&shared, k, threads), *this);
    });
  }
  if (stop && stop()) return false;
  const int blocks = static_cast<int>(prefix.size()) - 1;
  if (largest) {
    Layers<true>(column, blocks, stop, *this);
  } else {
    Layers<false>(column, blocks, stop, *this);
  }
  return !(stop && stop());
}

InsidePlanes::InsidePlanes(int steps, int blocks)
    : steps(steps), blocks(blocks), lo(steps, blocks), hi(steps, blocks), all_steps(steps) {}

bool InsidePlanes::Run(const ColumnProblem& column, Shape shape,
                       const std::function<bool()>& stop) {
  if (shape != Shape::kNary) MultiplySteps(column, all_steps);
  return lo.Run(column, shape, false, all_steps, 1, stop) &&
         hi.Run(column, shape, true, all_steps, 1, stop);
}

}  // namespace mergeplan::search
