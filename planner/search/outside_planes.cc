#include "planner/search/planes.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "planner/search/interval_loops.h"

namespace mergeplan::search {
namespace {

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
  const BlockLimits& limits;

  // The blocks that are left reach from step i to Last(i), and from First(j) to step j.
  int Last(int i) const { return limits.borders == nullptr ? p.steps : limits.borders->last(i); }
  int First(int j) const { return limits.borders == nullptr ? 1 : limits.borders->first(j); }
  bool MayBe(int count, int i, int j) const {
    return limits.borders == nullptr || limits.borders->left(count, i, j);
  }
  // The best of so many blocks before step j, and behind step i; those that are left have them.
  double Head(int count, int j) const {
    if (limits.borders == nullptr) return best.prefix[count][j];
    return limits.borders->head(count, j)[limits.column];
  }
  double Tail(int count, int i) const {
    if (limits.borders == nullptr) return best.suffix[count][i];
    return limits.borders->tail(count, i)[limits.column];
  }
};

// The errors of the noisier parts [rows[r], j] at both their ends, through the merges and products
// over [h,j], h in [begin, end): their cleaner part is Q[h, rows[r]-1] at its best.
template <bool kJump, bool kChild, bool kConstant>
MP_INLINE void AsNoisierPart(const Context& c, const int* rows, int j, int begin, int end,
                             const double* x_lo, const double* x_hi, double* e_lo, double* e_hi) {
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
  int h = begin;
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
// [i,m], j < m <= last: the noisier part is S[j+1,m] at its best.
template <bool kJump, bool kChild, bool kConstant>
MP_INLINE void AsCleanerPart(const Context& c, int i, int j, int last, double x_lo, double x_hi,
                             double& e_lo, double& e_hi) {
  const ColumnProblem& p = c.p;
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
  for (; m + kLanes <= last + 1; m += kLanes) through(Load, m, lo, hi);
  e_lo = std::min(e_lo, Reduce<false>(lo));
  e_hi = std::min(e_hi, Reduce<false>(hi));
  const auto one = [](const double* at) __attribute__((always_inline)) { return *at; };
  for (; m <= last; ++m) through(one, m, e_lo, e_hi);
}

// A node as one of the N blocks: the best blocks before and after it.
void AsBlock(const Context& c, int i, int j, double root_a, double root_b, double x_lo, double x_hi,
             double& e_lo, double& e_hi) {
  const int T = c.p.steps;
  const int blocks = c.in.blocks;
  for (int count = 1; count <= blocks; ++count) {  // as the count-th block
    if ((i == 1) != (count == 1) || (j == T) != (count == blocks)) continue;
    if (i - 1 < count - 1 || T - j < blocks - count || !c.MayBe(count, i, j)) continue;
    const double head = i > 1 ? c.Head(count - 1, i - 1) : 0;
    const double tail = j < T ? c.Tail(blocks - count, j + 1) : 0;
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
    int last[kRows], most = 0;
    for (int r = 0; r < kRows; ++r) most = std::max(most, last[r] = c.Last(rows[r]));
    for (int j = most; j >= base; --j) {
      double x_lo[kRows], x_hi[kRows], e_lo[kRows], e_hi[kRows];
      for (int r = 0; r < kRows; ++r) {
        const int i = std::min(rows[r], j);
        x_lo[r] = c.in.lo.s_last[j][i];
        x_hi[r] = c.in.hi.s_last[j][i];
        e_lo[r] = e_hi[r] = kNothing;
      }
      if (pairs && base > 1) {
        AsNoisierPart<kJump, kChild, kConstant>(c, rows, j, std::min(c.First(j), base), base, x_lo,
                                                x_hi, e_lo, e_hi);
      }
      for (int r = 0; r < count; ++r) {
        const int i = rows[r];
        if (i > j) break;
        if (j > last[r]) continue;
        Line product = {kNothing, 0};
        if (products && j < T) {
          const double q_lo = c.in.lo.q_first[i][j], q_hi = c.in.hi.q_first[i][j];
          double lo = kNothing, hi = kNothing;
          AsCleanerPart<kJump, kChild, kConstant>(c, i, j, last[r], q_lo, q_hi, lo, hi);
          product = Chord(q_lo, q_hi, lo, hi);
          e_lo[r] = std::min(e_lo[r], product.a + product.b * x_lo[r]);  // first of a product
          e_hi[r] = std::min(e_hi[r], product.a + product.b * x_hi[r]);
        } else if (pairs && !products && j < T) {
          AsCleanerPart<kJump, kChild, kConstant>(c, i, j, last[r], x_lo[r], x_hi[r], e_lo[r],
                                                  e_hi[r]);
        }
        out.q_a_first[i][j] = out.q_a_last[j][i] = product.a;
        out.q_b_first[i][j] = out.q_b_last[j][i] = product.b;
        if (pairs)
          AsNoisierPartOf(c, i, j, std::max(base, c.First(j)), x_lo[r], x_hi[r], e_lo[r], e_hi[r]);
        if (c.in.blocks > 1 || (i == 1 && j == T))
          AsBlock(c, i, j, root_a, root_b, x_lo[r], x_hi[r], e_lo[r], e_hi[r]);
        const Line node = Chord(x_lo[r], x_hi[r], e_lo[r], e_hi[r]);
        out.s_a_first[i][j] = out.s_a_last[j][i] = node.a;
        out.s_b_first[i][j] = out.s_b_last[j][i] = node.b;
      }
    }
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

OutsidePlanes::OutsidePlanes(int steps, int blocks)
    : steps(steps), blocks(blocks), prefix_a(Layer(steps, blocks)), prefix_b(Layer(steps, blocks)) {
  for (Plane* plane : {&s_a_first, &s_b_first, &q_a_first, &q_b_first, &s_a_last, &s_b_last,
                       &q_a_last, &q_b_last}) {
    *plane = Plane(steps);
  }
}

bool OutsidePlanes::Run(const ColumnProblem& column, Shape shape, const InsidePlanes& inside,
                        bool larger_is_better, double root_a, double root_b,
                        const BlockLimits& limits, const std::function<bool()>& stop) {
  const Context c{column, inside, larger_is_better ? inside.hi : inside.lo, *this, limits};
  for (int count = 1; count < blocks; ++count) {
    for (int j = count; j <= steps - (blocks - count); ++j) {
      if (limits.borders != nullptr && limits.borders->tail(blocks - count, j + 1) == nullptr) {
        prefix_a[count][j] = kNothing;
        prefix_b[count][j] = 0;
        continue;
      }
      const double tail = c.Tail(blocks - count, j + 1);
      const double lo = inside.lo.prefix[count][j], hi = inside.hi.prefix[count][j];
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
