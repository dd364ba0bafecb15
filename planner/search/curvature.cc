#include "planner/search/curvature.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "planner/search/column_problem.h"
#include "planner/search/interval_loops.h"

namespace mergeplan::search {
namespace {

constexpr double kHuge = 1e300;

template <typename R>
MP_INLINE R Min(R a, R b) {
  return a < b ? a : b;
}
template <typename R>
MP_INLINE R Max(R a, R b) {
  return a > b ? a : b;
}

// [lo, hi] of doubles or vectors of them.
template <typename R>
struct Interval {
  R lo, hi;
};
template <typename R>
MP_INLINE Interval<R> operator+(Interval<R> a, Interval<R> b) {
  return {a.lo + b.lo, a.hi + b.hi};
}
template <typename R>
MP_INLINE Interval<R> operator-(Interval<R> a, Interval<R> b) {
  return {a.lo - b.hi, a.hi - b.lo};
}
// a >= 0.
template <typename R, typename A>
MP_INLINE Interval<R> Scale(Interval<A> a, Interval<R> b) {
  return {Min<R>(a.lo * b.lo, a.hi * b.lo), Max<R>(a.lo * b.hi, a.hi * b.hi)};
}
template <typename R>
MP_INLINE Interval<R> Times(Interval<R> a, Interval<R> b) {
  const R ll = a.lo * b.lo, lh = a.lo * b.hi, hl = a.hi * b.lo, hh = a.hi * b.hi;
  return {Min<R>(Min<R>(ll, lh), Min<R>(hl, hh)), Max<R>(Max<R>(ll, lh), Max<R>(hl, hh))};
}
template <typename R>
MP_INLINE Interval<R> Twice(Interval<R> a) {
  return {a.lo + a.lo, a.hi + a.hi};
}
template <typename R>
MP_INLINE Interval<R> Union(Interval<R> a, Interval<R> b) {
  return {Min<R>(a.lo, b.lo), Max<R>(a.hi, b.hi)};
}
template <typename R>
MP_INLINE Interval<R> Shifted(Interval<R> a, double by) {
  return {a.lo + by, a.hi + by};
}

// Value (>= 0), first and second derivative.
template <typename R>
struct Jet {
  Interval<R> v, d, h;
};
template <typename R>
MP_INLINE Jet<R> Union(Jet<R> a, Jet<R> b) {
  return {Union(a.v, b.v), Union(a.d, b.d), Union(a.h, b.h)};
}
template <typename R>
MP_INLINE Jet<R> Product(Jet<R> u, Jet<R> w) {
  return {Scale(u.v, w.v), Scale(w.v, u.d) + Scale(u.v, w.d),
          Scale(w.v, u.h) + Twice(Times(u.d, w.d)) + Scale(u.v, w.h)};
}
Jet<double> Point(double v, double d, double h) { return {{v, v}, {d, d}, {h, h}}; }

// Of one level j over [low, high]: 1 - gamma, gamma, -gamma', gamma''.
struct Level {
  Interval<double> omg, gamma, slope, bend;
};

// A value rises and bends down like (a lambda + b) / (c lambda + e), a e >= b c.
Jet<double> Moebius(double a, double b, double c, double e, double low, double high) {
  const auto at = [&](double x) {
    const double n = c * x + e;
    const double det = a * e - b * c;
    return Point((a * x + b) / n, det / (n * n), -2 * c * det / (n * n * n));
  };
  return Union(at(low), at(high));
}

// (1 - gamma) P + gamma c.
template <typename R>
MP_INLINE Jet<R> MergeOf(const Level& level, Jet<R> product, Jet<R> start) {
  const Interval<R> difference = product.v - start.v;
  Jet<R> out;
  out.v = Scale(level.omg, product.v) + Scale(level.gamma, start.v);
  out.d =
      Scale(level.omg, product.d) + Scale(level.gamma, start.d) + Scale(level.slope, difference);
  const Interval<R> bend = Scale(level.bend, difference);
  out.h = Scale(level.omg, product.h) + Scale(level.gamma, start.h) +
          Twice(Scale(level.slope, product.d - start.d)) + Interval<R>{-bend.hi, -bend.lo};
  return out;
}

// (1 - gamma) u w + gamma w = w R, R = 1 + (1 - gamma)(u - 1): tighter than the general form, since
// w occurs once.
template <typename R>
MP_INLINE Jet<R> ChildMerge(const Level& level, Jet<R> u, Jet<R> w) {
  const Interval<R> above = Shifted(u.v, -1.0);
  const Interval<R> bend = Scale(level.bend, above);
  Jet<R> r;
  r.v = Shifted(Scale(level.omg, above), 1.0);
  r.d = Scale(level.omg, u.d) + Scale(level.slope, above);
  r.h = Scale(level.omg, u.h) + Twice(Scale(level.slope, u.d)) + Interval<R>{-bend.hi, -bend.lo};
  return Product(r, w);
}

// Six planes of one kind of part.
struct JetPlanes {
  explicit JetPlanes(int steps) {
    for (Plane& p : plane) p = Plane(steps);
  }
  MP_INLINE Jet<double> At(int row, int entry) const {
    return {{plane[0][row][entry], plane[1][row][entry]},
            {plane[2][row][entry], plane[3][row][entry]},
            {plane[4][row][entry], plane[5][row][entry]}};
  }
  MP_INLINE Jet<Vec> VecAt(int row, int entry) const {
    return {{Load(plane[0][row] + entry), Load(plane[1][row] + entry)},
            {Load(plane[2][row] + entry), Load(plane[3][row] + entry)},
            {Load(plane[4][row] + entry), Load(plane[5][row] + entry)}};
  }
  MP_INLINE void Set(int row, int entry, const Jet<double>& jet) {
    const double values[] = {jet.v.lo, jet.v.hi, jet.d.lo, jet.d.hi, jet.h.lo, jet.h.hi};
    for (int k = 0; k < 6; ++k) plane[k][row][entry] = values[k];
  }
  Plane plane[6];
};

MP_INLINE Jet<double> Lane(const Jet<Vec>& jet, int l) {
  return {{jet.v.lo[l], jet.v.hi[l]}, {jet.d.lo[l], jet.d.hi[l]}, {jet.h.lo[l], jet.h.hi[l]}};
}

template <typename R>
MP_INLINE Jet<R> Nothing(R zero) {
  const R big = zero + kHuge;
  const Interval<R> none{big, -big};
  return {none, none, none};
}

enum class Start { kChild, kConstant, kJump };

struct Problem {
  const Model& model;
  double low, high;
  Shape shape;
  int blocks;
  const std::function<bool()>& stop;
  std::vector<Level> levels;  // 1..T
  std::vector<Jet<double>> leaves;

  Jet<double> ConstantStart(int i, int j) const {
    const Schedule& s = model.schedule();
    const int t = model.init() == Init::kTeacher ? j : i;
    return Moebius(s.alpha[t - 1] * s.alpha[j], s.sigma[t - 1] * s.sigma[j],
                   s.alpha[j] * s.alpha[j], s.sigma[j] * s.sigma[j], low, high);
  }
};

template <typename R, typename F>
MP_INLINE Jet<R> Scaled(F factor, Jet<R> jet) {
  return {{factor * jet.v.lo, factor * jet.v.hi},
          {factor * jet.d.lo, factor * jet.d.hi},
          {factor * jet.h.lo, factor * jet.h.hi}};
}

// What a split [i,m] + [m+1,j] needs of the schedule in the carried form (see JumpForm): 1 /
// sigma_m and D(i-1,j) / D(m,j).
template <typename R>
struct JumpFactors {
  R over_sigma, ratio;
};

MP_INLINE JumpFactors<double> FactorsAt(const Problem& p, int i, int m, int j) {
  const Schedule& s = p.model.schedule();
  return {1 / s.sigma[m], SignalNoiseDeterminant(s, i - 1, j) / SignalNoiseDeterminant(s, m, j)};
}

// The product of [i,m] and [m+1,j].
template <Start kStart, typename R>
MP_INLINE Jet<R> Joined(const Problem& p, int i, const JumpFactors<R>& factors, Jet<R> u,
                        Jet<R> w) {
  if constexpr (kStart != Start::kJump) return Product(u, w);
  // u + (sigma_{i-1} + u) w / sigma_m
  Jet<R> shifted = u;
  shifted.v = Shifted(u.v, p.model.schedule().sigma[i - 1]);
  const Jet<R> product = Product(shifted, Scaled(factors.over_sigma, w));
  return {product.v + u.v, product.d + u.d, product.h + u.h};
}

// The merge over [i,j] of that product; starts that are no constant only.
template <Start kStart, typename R>
MP_INLINE Jet<R> Merged(const Level& level, const JumpFactors<R>& factors, const Jet<R>& product,
                        const Jet<R>& u, const Jet<R>& w) {
  if constexpr (kStart == Start::kJump) return MergeOf(level, product, Scaled(factors.ratio, w));
  return ChildMerge(level, u, w);
}

// Products and merges over [i,j] of all splits m in [i, j).
template <Start kStart>
MP_INLINE void Splits(const Problem& p, const JetPlanes& left, const JetPlanes& s_last, int i,
                      int j, Jet<double>& product, Jet<double>& merge) {
  const Level& level = p.levels[j];
  const auto add = [&](const auto& factors, const auto& u, const auto& w, auto& products,
                       auto& merges) __attribute__((always_inline)) {
    const auto joined = Joined<kStart>(p, i, factors, u, w);
    products = Union(products, joined);
    if constexpr (kStart != Start::kConstant)
      merges = Union(merges, Merged<kStart>(level, factors, joined, u, w));
  };
  product = Nothing(0.0);
  merge = Nothing(0.0);
  int m = i;
  if (j - i >= kLanes) {
    const Vec zero = {};
    Jet<Vec> products = Nothing(zero), merges = Nothing(zero);
    for (; m + kLanes <= j; m += kLanes) {
      JumpFactors<Vec> factors{zero, zero};
      for (int l = 0; l < kLanes && kStart == Start::kJump; ++l) {
        const JumpFactors<double> at = FactorsAt(p, i, m + l, j);
        factors.over_sigma[l] = at.over_sigma;
        factors.ratio[l] = at.ratio;
      }
      add(factors, left.VecAt(i, m), s_last.VecAt(j, m + 1), products, merges);
    }
    for (int l = 0; l < kLanes; ++l) {
      product = Union(product, Lane(products, l));
      merge = Union(merge, Lane(merges, l));
    }
  }
  for (; m < j; ++m) {
    JumpFactors<double> factors{0, 0};
    if (kStart == Start::kJump) factors = FactorsAt(p, i, m, j);
    add(factors, left.At(i, m), s_last.At(j, m + 1), product, merge);
  }
  if constexpr (kStart == Start::kConstant) merge = MergeOf(level, product, p.ConstantStart(i, j));
}

template <Start kStart>
MP_INLINE Jet<double> Run(const Problem& p) {
  const int T = p.model.steps();
  JetPlanes q_first(T), s_first(T), s_last(T);
  for (int i = T; i >= 1; --i) {
    if (p.stop && p.stop()) return Nothing(0.0);
    Jet<double> all_steps = p.leaves[i];
    for (int j = i; j <= T; ++j) {
      Jet<double> node = p.leaves[j], product = p.leaves[j];
      if (j > i) {
        Splits<kStart>(p, q_first, s_last, i, j, product, node);
        if (p.shape == Shape::kNary) {
          product = Union(product, node);
        } else {  // two blocks, or all single steps at once
          JumpFactors<double> factors{0, 0};
          if (kStart == Start::kJump) factors = FactorsAt(p, i, j - 1, j);
          const Jet<double> joined = Joined<kStart>(p, i, factors, all_steps, p.leaves[j]);
          if constexpr (kStart == Start::kConstant) {
            node = Union(node, MergeOf(p.levels[j], joined, p.ConstantStart(i, j)));
          } else {
            node =
                Union(node, Merged<kStart>(p.levels[j], factors, joined, all_steps, p.leaves[j]));
          }
          all_steps = joined;
          product = node;
        }
      }
      s_first.Set(i, j, node);
      s_last.Set(j, i, node);
      q_first.Set(i, j, product);
    }
  }
  std::vector<Jet<double>> prefix(T + 1, Nothing(0.0));
  for (int j = 1; j <= T; ++j) prefix[j] = s_first.At(1, j);
  for (int count = 2; count <= p.blocks; ++count) {
    std::vector<Jet<double>> longer(T + 1, Nothing(0.0));
    for (int j = count; j <= T; ++j) {
      for (int m = count - 1; m < j; ++m) {
        JumpFactors<double> factors{0, 0};
        if (kStart == Start::kJump) factors = FactorsAt(p, 1, m, j);
        longer[j] = Union(longer[j], Joined<kStart>(p, 1, factors, prefix[m], s_last.At(j, m + 1)));
      }
    }
    prefix = std::move(longer);
  }
  return prefix[T];
}

MP_CLONES void RunByStart(const Problem& p, Start start, Jet<double>& out) {
  switch (start) {
    case Start::kChild:
      out = Run<Start::kChild>(p);
      break;
    case Start::kConstant:
      out = Run<Start::kConstant>(p);
      break;
    case Start::kJump:
      out = Run<Start::kJump>(p);
      break;
  }
}

// gamma of an input of variance n = alpha^2 lambda + sigma^2, and its derivatives by lambda, at one
// lambda: all three fall in magnitude as lambda grows.
struct Gamma {
  double omg, gamma, slope, bend;
};

Gamma GammaAt(const Budget& budget, double n, double alpha2) {
  const double gamma = budget.Gamma(n);
  if (!budget.sgd) {
    const double rate = 2 * budget.train_time * alpha2;
    return {budget.OneMinusGamma(n), gamma, rate * gamma, rate * rate * gamma};
  }
  const double rate = budget.StepSize(1) * alpha2;
  const double k = static_cast<double>(budget.iterations);
  const double left = std::log1p(-budget.StepSize(n));
  return {budget.OneMinusGamma(n), gamma, k * rate * std::exp((k - 1) * left),
          k > 1 ? k * (k - 1) * rate * rate * std::exp((k - 2) * left) : 0.0};
}

}  // namespace

Curvature BoundCurvature(const Model& model, double low, double high, Shape shape, int blocks,
                         const std::function<bool()>& stop) {
  const Schedule& s = model.schedule();
  const int T = model.steps();
  Problem p{model,
            low,
            high,
            shape,
            blocks,
            stop,
            std::vector<Level>(T + 1),
            std::vector<Jet<double>>(T + 1)};
  const bool jump = model.init() == Init::kChildJump;
  for (int t = 1; t <= T; ++t) {
    const double alpha2 = s.alpha[t] * s.alpha[t];
    const double sigma2 = s.sigma[t] * s.sigma[t];
    const Gamma first = GammaAt(model.budget(), alpha2 * low + sigma2, alpha2);
    const Gamma last = GammaAt(model.budget(), alpha2 * high + sigma2, alpha2);
    p.levels[t] = {{first.omg, last.omg},
                   {last.gamma, first.gamma},
                   {last.slope, first.slope},
                   {last.bend, first.bend}};
    p.leaves[t] = Moebius(s.alpha[t - 1] * s.alpha[t], s.sigma[t - 1] * s.sigma[t], alpha2, sigma2,
                          low, high);
    if (jump) {
      p.leaves[t] = Scaled(SignalNoiseDeterminant(s, t - 1, t),
                           Moebius(s.alpha[t], 0, alpha2, sigma2, low, high));
    }
  }
  Jet<double> whole;
  RunByStart(p,
             jump                        ? Start::kJump
             : model.starts_from_child() ? Start::kChild
                                         : Start::kConstant,
             whole);
  if (jump) whole = Scaled(1 / s.sigma[T], whole);
  const double widen = 1e-9 * std::max(std::abs(whole.h.lo), std::abs(whole.h.hi));
  return {whole.h.lo - widen, whole.h.hi + widen};
}

}  // namespace mergeplan::search
