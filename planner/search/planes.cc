#include "planner/search/planes.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <thread>

#include "planner/search/parallel.h"

// The loops run along contiguous rows of planes in vectors of four and keep four neighbouring first
// levels in registers, so that what they read of a last level is read once for the four. This file
// is compiled with finite-math-only (there is no infinity and no NaN in it: kNothing stands for
// "no context"), which lets a comparison become one instruction; least and largest are the same in
// whatever order they are taken, so both versions give the same digits.
#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__)
#define MP_CLONES __attribute__((target_clones("arch=x86-64-v3", "default")))
#else
#define MP_CLONES
#endif
#define MP_INLINE inline __attribute__((always_inline))

namespace mergeplan::search {
namespace {

constexpr double kNothing = 1e307;
// Magnitudes beyond it stand for parts of which no plan is made. (The ends of a part that can have
// one value only come from different sums and may be the wrong way round by a rounding.)
constexpr double kAlive = 1e90;
constexpr int kRows = 4;  // first levels in registers
constexpr int kTile = 8;  // first levels for which a row of the noisier parts is read once
constexpr int kLanes = 4;
using Vec = double __attribute__((vector_size(kLanes * sizeof(double))));

MP_INLINE Vec Load(const double* p) {
  Vec v;
  __builtin_memcpy(&v, p, sizeof v);
  return v;
}
MP_INLINE Vec All(double x) { return Vec{x, x, x, x}; }
template <bool kMax>
MP_INLINE Vec Better(Vec a, Vec b) {
  if constexpr (kMax) return a > b ? a : b;
  return a < b ? a : b;
}
template <bool kMax>
MP_INLINE double Better(double a, double b) {
  if constexpr (kMax) return a > b ? a : b;
  return a < b ? a : b;
}
template <bool kMax>
MP_INLINE double Reduce(Vec v) {
  return Better<kMax>(Better<kMax>(v[0], v[1]), Better<kMax>(v[2], v[3]));
}
template <bool kMax>
constexpr double Worst() {
  return kMax ? -kNothing : kNothing;
}

// ---- single values

MP_INLINE bool Alive(double x) { return std::abs(x) <= kAlive; }

MP_INLINE double Product(const ColumnProblem& p, int i, int m, double u, double v) {
  if (p.jump == nullptr) return u * v;
  return u + (p.jump->sigma_before[i] + u) * (v * p.jump->over_sigma_before[m + 1]);
}

MP_INLINE double Constant(const ColumnProblem& p, int i, int j) {
  return p.constant ? p.px[i] * p.cx[j] + p.py[i] * p.cy[j] : 0.0;
}

// Factor of the noisiest child [m+1,j] as start of a merge over [i,j].
MP_INLINE double Slope(const ColumnProblem& p, int i, int m, int j) {
  if (p.jump == nullptr) return p.slope[j];
  return p.slope[j] * p.jump->d_last[j][i] * p.jump->over_d_last[j][m + 1];
}

MP_INLINE double Merge(const ColumnProblem& p, int i, int m, int j, double u, double v) {
  return p.omg[j] * Product(p, i, m, u, v) + Slope(p, i, m, j) * v + Constant(p, i, j);
}

// ---- inside

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
MP_INLINE void Layers(const ColumnProblem& p, int blocks, InsideEnd& e) {
  const int T = p.steps;
  for (int t = 1; t <= T; ++t) {
    e.prefix[1][t] = e.s_first[1][t];
    e.suffix[1][t] = e.s_last[T][t];
  }
  for (int count = 2; count <= blocks; ++count) {
    for (int j = count; j <= T; ++j) {
      double best = Worst<kMax>();
      for (int m = count - 1; m < j; ++m) {
        best = Better<kMax>(best, Product(p, 1, m, e.prefix[count - 1][m], e.s_last[j][m + 1]));
      }
      e.prefix[count][j] = best;
    }
    for (int i = 1; T - i + 1 >= count; ++i) {
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

// ---- outside

struct Line {
  double a, b;
};

// The line through (x_lo, e_lo) and (x_hi, e_hi); a constant where the ends are too near for a
// slope.
Line Chord(double x_lo, double x_hi, double e_lo, double e_hi) {
  const double width = x_hi - x_lo;
  const double least = std::min(e_lo, e_hi);
  if (!(width > 1e-13 * std::abs(x_hi)) || std::max(e_lo, e_hi) >= kNothing) return {least, 0};
  const double b = (e_hi - e_lo) / width;
  if (std::abs(b) >= kNothing) return {least, 0};
  return {e_lo - b * x_lo, b};
}

// Everything that the outside pass reads of the problem.
struct Context {
  const ColumnProblem& p;
  const InsidePlanes& in;
  const InsideEnd& best;  // the end that is better for the whole
  OutsidePlanes& out;
};

// The errors of the noisier parts [rows[r], j] at both their ends, through the merges and products
// over [h,j], h in [1, end): their cleaner part is Q[h, rows[r]-1] at its best.
template <bool kJump, bool kChild, bool kConstant>
MP_INLINE void AsNoisierPart(const Context& c, const int* rows, int j, int end, const double* x_lo,
                             const double* x_hi, double* e_lo, double* e_hi) {
  const ColumnProblem& p = c.p;
  const double* a_s = c.out.s_a_last[j];
  const double* b_s = c.out.s_b_last[j];
  const double* a_q = c.out.q_a_last[j];
  const double* b_q = c.out.q_b_last[j];
  const double* d = kJump ? p.jump->d_last[j] : nullptr;
  const double* sigma = kJump ? p.jump->sigma_before.data() : nullptr;
  const double omg = p.omg[j];
  const double cx = kConstant ? p.cx[j] : 0;
  const double cy = kConstant ? p.cy[j] : 0;
  const double* left[kRows];
  double slope[kRows], over_sigma[kRows];
  Vec lo[kRows], hi[kRows];
  for (int r = 0; r < kRows; ++r) {
    left[r] = c.best.q_last[rows[r] - 1];
    slope[r] = kChild ? p.slope[j] * (kJump ? p.jump->over_d_last[j][rows[r]] : 1) : 0;
    over_sigma[r] = kJump ? p.jump->over_sigma_before[rows[r]] : 0;
    lo[r] = hi[r] = All(kNothing);
  }
  const auto through = [&](auto load, int h, auto* low, auto* high) __attribute__((always_inline)) {
    const auto as = load(a_s + h), bs = load(b_s + h), aq = load(a_q + h), bq = load(b_q + h);
    auto base = as;
    if constexpr (kConstant)
      base = as + bs * (load(p.px.data() + h) * cx + load(p.py.data() + h) * cy);
    for (int r = 0; r < kRows; ++r) {
      const auto u = load(left[r] + h);
      auto per_product = u;
      auto offset_merge = base;
      auto offset_product = aq;
      auto per_merge = omg * u;
      if constexpr (kJump) {
        per_product = (load(sigma + h) + u) * over_sigma[r];
        per_merge = omg * per_product + slope[r] * load(d + h);
        offset_merge = base + bs * (omg * u);
        offset_product = aq + bq * u;
      } else if constexpr (kChild) {
        per_merge = omg * u + slope[r];
      }
      const auto merge = bs * per_merge;
      const auto product = bq * per_product;
      low[r] = Better<false>(low[r], offset_merge + merge * x_lo[r]);
      high[r] = Better<false>(high[r], offset_merge + merge * x_hi[r]);
      low[r] = Better<false>(low[r], offset_product + product * x_lo[r]);
      high[r] = Better<false>(high[r], offset_product + product * x_hi[r]);
    }
  };
  int h = 1;
  for (; h + kLanes <= end; h += kLanes) through(Load, h, lo, hi);
  for (int r = 0; r < kRows; ++r) {
    e_lo[r] = Reduce<false>(lo[r]);
    e_hi[r] = Reduce<false>(hi[r]);
  }
  const auto one = [](const double* at) __attribute__((always_inline)) { return *at; };
  for (; h < end; ++h) through(one, h, e_lo, e_hi);
}

// The same for one part [i,j] and h in [begin, i), in plain form.
MP_INLINE void AsNoisierPartOf(const Context& c, int i, int j, int begin, double x_lo, double x_hi,
                               double& e_lo, double& e_hi) {
  const ColumnProblem& p = c.p;
  for (int h = begin; h < i; ++h) {
    const double u = c.best.q_last[i - 1][h];
    const double as = c.out.s_a_last[j][h], bs = c.out.s_b_last[j][h];
    const double aq = c.out.q_a_last[j][h], bq = c.out.q_b_last[j][h];
    const auto error = [&](double x) {
      const double product = Product(p, h, i - 1, u, x);
      const double merge = p.omg[j] * product + Slope(p, h, i - 1, j) * x + Constant(p, h, j);
      return std::min(as + bs * merge, aq + bq * product);
    };
    e_lo = std::min(e_lo, error(x_lo));
    e_hi = std::min(e_hi, error(x_hi));
  }
}

// The errors of the cleaner part [i,j] at both its ends, through the merges and products over
// [i,m], m > j: the noisier part is S[j+1,m] at its best.
template <bool kJump, bool kChild, bool kConstant>
MP_INLINE void AsCleanerPart(const Context& c, int i, int j, double x_lo, double x_hi, double& e_lo,
                             double& e_hi) {
  const ColumnProblem& p = c.p;
  const int T = p.steps;
  const double* a_s = c.out.s_a_first[i];
  const double* b_s = c.out.s_b_first[i];
  const double* a_q = c.out.q_a_first[i];
  const double* b_q = c.out.q_b_first[i];
  const double* right = c.best.s_first[j + 1];
  const double* omg = p.omg.data();
  const double* slope = p.slope.data();
  const double* d = kJump ? p.jump->d_first[i] : nullptr;
  const double* over_d = kJump ? p.jump->over_d_first[j + 1] : nullptr;
  const double sigma = kJump ? p.jump->sigma_before[i] : 0;
  const double over_sigma = kJump ? p.jump->over_sigma_before[j + 1] : 0;
  const double px = kConstant ? p.px[i] : 0;
  const double py = kConstant ? p.py[i] : 0;
  const auto through = [&](auto load, int m, auto& low, auto& high) __attribute__((always_inline)) {
    const auto v = load(right + m);
    const auto as = load(a_s + m), bs = load(b_s + m), aq = load(a_q + m), bq = load(b_q + m);
    const auto w = load(omg + m);
    auto per_product = v;
    auto offset_merge = as;
    auto offset_product = aq;
    if constexpr (kJump) {
      const auto y = v * over_sigma;
      per_product = 1 + y;
      const auto fixed = sigma * y;
      offset_product = aq + bq * fixed;
      offset_merge =
          as + bs * (w * fixed + load(slope + m) * (load(d + m) * (v * load(over_d + m))));
    } else if constexpr (kChild && kConstant) {
      offset_merge = as + bs * (load(slope + m) * v +
                                (px * load(p.cx.data() + m) + py * load(p.cy.data() + m)));
    } else if constexpr (kChild) {
      offset_merge = as + bs * (load(slope + m) * v);
    } else if constexpr (kConstant) {
      offset_merge = as + bs * (px * load(p.cx.data() + m) + py * load(p.cy.data() + m));
    }
    const auto merge = bs * (w * per_product);
    const auto product = bq * per_product;
    low = Better<false>(
        low, Better<false>(offset_merge + merge * x_lo, offset_product + product * x_lo));
    high = Better<false>(
        high, Better<false>(offset_merge + merge * x_hi, offset_product + product * x_hi));
  };
  Vec lo = All(kNothing), hi = All(kNothing);
  int m = j + 1;
  for (; m + kLanes <= T + 1; m += kLanes) through(Load, m, lo, hi);
  e_lo = std::min(e_lo, Reduce<false>(lo));
  e_hi = std::min(e_hi, Reduce<false>(hi));
  const auto one = [](const double* at) __attribute__((always_inline)) { return *at; };
  for (; m <= T; ++m) through(one, m, e_lo, e_hi);
}

// A node as one of the N blocks: the best blocks before and after it.
void AsBlock(const Context& c, int i, int j, double root_a, double root_b, double x_lo, double x_hi,
             double& e_lo, double& e_hi) {
  const int T = c.p.steps;
  const int blocks = c.in.blocks;
  for (int count = 1; count <= blocks; ++count) {  // as the count-th block
    if ((i == 1) != (count == 1) || (j == T) != (count == blocks)) continue;
    if (i - 1 < count - 1 || T - j < blocks - count) continue;
    const double head = i > 1 ? c.best.prefix[count - 1][i - 1] : 0;
    const double tail = j < T ? c.best.suffix[blocks - count][j + 1] : 0;
    if (!Alive(head) || !Alive(tail)) continue;
    const auto error = [&](double x) {
      if (i > 1) x = Product(c.p, 1, i - 1, head, x);
      if (j < T) x = Product(c.p, 1, j, x, tail);
      return root_a + root_b * x;
    };
    e_lo = std::min(e_lo, error(x_lo));
    e_hi = std::min(e_hi, error(x_hi));
  }
}

template <bool kJump, bool kChild, bool kConstant>
MP_INLINE void RunOutside(const Context& c, Shape shape, double root_a, double root_b,
                          const std::function<bool()>& stop) {
  const int T = c.p.steps;
  const bool pairs = !OneNodePerInterval(shape);
  const bool products = shape == Shape::kNary;
  OutsidePlanes& out = c.out;
  for (int base = 1; base <= T; base += kRows) {
    if (stop && stop()) return;
    const int count = std::min(kRows, T - base + 1);
    int rows[kRows];
    for (int r = 0; r < kRows; ++r) rows[r] = base + std::min(r, count - 1);
    for (int j = T; j >= base; --j) {
      double x_lo[kRows], x_hi[kRows], e_lo[kRows], e_hi[kRows];
      for (int r = 0; r < kRows; ++r) {
        const int i = std::min(rows[r], j);
        x_lo[r] = c.in.lo.s_last[j][i];
        x_hi[r] = c.in.hi.s_last[j][i];
        e_lo[r] = e_hi[r] = kNothing;
      }
      if (pairs && base > 1) {
        AsNoisierPart<kJump, kChild, kConstant>(c, rows, j, base, x_lo, x_hi, e_lo, e_hi);
      }
      for (int r = 0; r < count; ++r) {
        const int i = rows[r];
        if (i > j) break;
        Line product = {kNothing, 0};
        if (products && j < T) {
          const double q_lo = c.in.lo.q_first[i][j], q_hi = c.in.hi.q_first[i][j];
          double lo = kNothing, hi = kNothing;
          AsCleanerPart<kJump, kChild, kConstant>(c, i, j, q_lo, q_hi, lo, hi);
          if (Alive(q_lo) && Alive(q_hi)) product = Chord(q_lo, q_hi, lo, hi);
          e_lo[r] = std::min(e_lo[r], product.a + product.b * x_lo[r]);  // first of a product
          e_hi[r] = std::min(e_hi[r], product.a + product.b * x_hi[r]);
        } else if (pairs && !products && j < T) {
          AsCleanerPart<kJump, kChild, kConstant>(c, i, j, x_lo[r], x_hi[r], e_lo[r], e_hi[r]);
        }
        out.q_a_first[i][j] = out.q_a_last[j][i] = product.a;
        out.q_b_first[i][j] = out.q_b_last[j][i] = product.b;
        if (pairs) AsNoisierPartOf(c, i, j, base, x_lo[r], x_hi[r], e_lo[r], e_hi[r]);
        AsBlock(c, i, j, root_a, root_b, x_lo[r], x_hi[r], e_lo[r], e_hi[r]);
        Line node = {kNothing, 0};  // of parts of which no plan is made
        if (Alive(x_lo[r]) && Alive(x_hi[r])) node = Chord(x_lo[r], x_hi[r], e_lo[r], e_hi[r]);
        out.s_a_first[i][j] = out.s_a_last[j][i] = node.a;
        out.s_b_first[i][j] = out.s_b_last[j][i] = node.b;
      }
    }
  }
}

std::vector<std::vector<double>> Layer(int steps, int blocks) {
  return std::vector<std::vector<double>>(blocks + 1, std::vector<double>(steps + 2, 0.0));
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

MP_CLONES void RunOutsideByStart(const Context& c, Shape shape, double root_a, double root_b,
                                 const std::function<bool()>& stop) {
  if (c.p.jump != nullptr) {
    RunOutside<true, true, false>(c, shape, root_a, root_b, stop);
  } else if (c.p.child && c.p.constant) {
    RunOutside<false, true, true>(c, shape, root_a, root_b, stop);
  } else if (c.p.child) {
    RunOutside<false, true, false>(c, shape, root_a, root_b, stop);
  } else {
    RunOutside<false, false, true>(c, shape, root_a, root_b, stop);
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
    Layers<true>(column, blocks, *this);
  } else {
    Layers<false>(column, blocks, *this);
  }
  return true;
}

InsidePlanes::InsidePlanes(int steps, int blocks)
    : steps(steps), blocks(blocks), lo(steps, blocks), hi(steps, blocks), all_steps(steps) {}

double NoPart(bool largest) { return largest ? -1e100 : 1e100; }

void SuffixLayers(const ColumnProblem& column, bool largest, InsideEnd& end) {
  const int T = column.steps;
  const int blocks = static_cast<int>(end.suffix.size()) - 1;
  for (int i = 1; i <= T; ++i) end.suffix[1][i] = end.s_first[i][T];
  for (int count = 2; count <= blocks; ++count) {
    for (int i = 1; T - i + 1 >= count; ++i) {
      double best = NoPart(largest);
      for (int m = i; T - m >= count - 1; ++m) {
        const double head = end.s_first[i][m], tail = end.suffix[count - 1][m + 1];
        if (!Alive(head) || !Alive(tail)) continue;
        const double value = Product(column, i, m, head, tail);
        best = !Alive(best) ? value : largest ? std::max(best, value) : std::min(best, value);
      }
      end.suffix[count][i] = best;
    }
  }
}

bool InsidePlanes::Run(const ColumnProblem& column, Shape shape,
                       const std::function<bool()>& stop) {
  if (shape != Shape::kNary) MultiplySteps(column, all_steps);
  return lo.Run(column, shape, false, all_steps, 1, stop) &&
         hi.Run(column, shape, true, all_steps, 1, stop);
}

OutsidePlanes::OutsidePlanes(int steps, int blocks)
    : steps(steps), blocks(blocks), prefix_a(Layer(steps, blocks)), prefix_b(Layer(steps, blocks)) {
  for (Plane* plane : {&s_a_first, &s_b_first, &q_a_first, &q_b_first, &s_a_last, &s_b_last,
                       &q_a_last, &q_b_last}) {
    *plane = Plane(steps);
  }
}

bool OutsidePlanes::Run(const ColumnProblem& column, Shape shape, const InsidePlanes& inside,
                        bool larger_is_better, double root_a, double root_b,
                        const std::function<bool()>& stop) {
  const Context c{column, inside, larger_is_better ? inside.hi : inside.lo, *this};
  for (int count = 1; count < blocks; ++count) {
    for (int j = count; j <= steps - (blocks - count); ++j) {
      const double tail = c.best.suffix[blocks - count][j + 1];
      const double lo = inside.lo.prefix[count][j], hi = inside.hi.prefix[count][j];
      prefix_a[count][j] = kNothing;
      prefix_b[count][j] = 0;
      if (!Alive(lo) || !Alive(hi) || !Alive(tail)) continue;
      const Line line = Chord(lo, hi, root_a + root_b * Product(column, 1, j, lo, tail),
                              root_a + root_b * Product(column, 1, j, hi, tail));
      prefix_a[count][j] = line.a;
      prefix_b[count][j] = line.b;
    }
  }
  prefix_a[blocks][steps] = root_a;
  prefix_b[blocks][steps] = root_b;
  RunOutsideByStart(c, shape, root_a, root_b, stop);
  return !(stop && stop());
}

}  // namespace mergeplan::search
