#include "planner/mixture/kernels.h"

#include <algorithm>
#include <limits>

#include "planner/base/clones.h"
#include "planner/base/exponential.h"
#include "planner/mixture/elements.h"

// Two versions of every loop: without contraction both give the same digits.
#define MP_EACH inline __attribute__((always_inline))

namespace mergeplan::mixture {
namespace {

constexpr std::size_t B = kTileRows;

// Four rows in one register, or two, as the version has it.
using Lanes = double __attribute__((vector_size(32), aligned(8), may_alias));
constexpr std::size_t kLanes = B / 4;

// Deviations of all components are kept between the passes where they take no more than this, and
// computed again where they would.
constexpr std::size_t kKeptNumbers = std::size_t{1} << 16;

// out = m x, or out += m x: m is rows x columns, x is columns x B.
template <bool kAdd>
MP_EACH void Multiply(std::size_t rows, std::size_t columns, const double* m, const double* x,
                      double* out) {
  std::size_t i = 0;
  for (; i + 2 <= rows; i += 2) {
    const double* first = m + i * columns;
    const double* second = first + columns;
    Lanes a[kLanes] = {}, b[kLanes] = {};
    for (std::size_t j = 0; j < columns; ++j) {
      const Lanes* in = reinterpret_cast<const Lanes*>(x + j * B);
      for (std::size_t l = 0; l < kLanes; ++l) a[l] += first[j] * in[l];
      for (std::size_t l = 0; l < kLanes; ++l) b[l] += second[j] * in[l];
    }
    Lanes* to = reinterpret_cast<Lanes*>(out + i * B);
    for (std::size_t l = 0; l < kLanes; ++l) to[l] = kAdd ? to[l] + a[l] : a[l];
    to += kLanes;
    for (std::size_t l = 0; l < kLanes; ++l) to[l] = kAdd ? to[l] + b[l] : b[l];
  }
  if (i == rows) return;
  Lanes a[kLanes] = {};
  for (std::size_t j = 0; j < columns; ++j) {
    const Lanes* in = reinterpret_cast<const Lanes*>(x + j * B);
    for (std::size_t l = 0; l < kLanes; ++l) a[l] += m[i * columns + j] * in[l];
  }
  Lanes* to = reinterpret_cast<Lanes*>(out + i * B);
  for (std::size_t l = 0; l < kLanes; ++l) to[l] = kAdd ? to[l] + a[l] : a[l];
}

// What a component sees of a vector x (a deviation from its centre, or a direction):
//   diagonal  x itself
//   full      x along the eigenvectors
//   low-rank  F F^T C^-1 x, what the low-rank part explains of it
// all d x B. `centre` is taken off first; null: nothing.
MP_EACH void See(const StepTables& s, std::size_t k, const double* x, const double* centre,
                 double* seen, double* work, double* small) {
  const std::size_t d = s.d;
  if (s.kind == CovarianceKind::kDiagonal) {
    for (std::size_t j = 0; j < d; ++j) {
      const double c = centre == nullptr ? 0.0 : centre[j];
      for (std::size_t b = 0; b < B; ++b) seen[j * B + b] = x[j * B + b] - c;
    }
    return;
  }
  const double* scale = s.kind == CovarianceKind::kFull ? nullptr : s.inverse_root + k * d;
  for (std::size_t j = 0; j < d; ++j) {
    const double c = centre == nullptr ? 0.0 : centre[j];
    const double e = scale == nullptr ? 1.0 : scale[j];
    for (std::size_t b = 0; b < B; ++b) work[j * B + b] = e * (x[j * B + b] - c);
  }
  if (s.kind == CovarianceKind::kFull) {
    Multiply<false>(d, d, s.axes + k * d * d, work, seen);
    return;
  }
  const std::size_t r = s.r;
  Multiply<false>(r, d, s.axes + k * r * d, work, small);
  for (std::size_t i = 0; i < r; ++i) {
    const double pull = s.pull[k * r + i];
    for (std::size_t b = 0; b < B; ++b) work[i * B + b] = pull * small[i * B + b];
  }
  Multiply<false>(d, r, s.axes_transposed + k * r * d, work, seen);
  for (std::size_t j = 0; j < d; ++j) {
    const double root = s.root[k * d + j];
    for (std::size_t b = 0; b < B; ++b) seen[j * B + b] *= root;
  }
}

// Squared distance of the tile from component k; `small` is as See left it.
MP_EACH void Distances(const StepTables& s, std::size_t k, const double* z, const double* seen,
                       const double* small, double* q) {
  const std::size_t d = s.d, r = s.r;
  double sum[B] = {};
  if (s.kind == CovarianceKind::kLowRank) {
    for (std::size_t j = 0; j < d; ++j) {
      const double c = s.centre[k * d + j], inverse = s.inverse[k * d + j];
      for (std::size_t b = 0; b < B; ++b) {
        sum[b] += Distance(inverse, (z[j * B + b] - c) - s.alpha2 * seen[j * B + b]);
      }
    }
    for (std::size_t i = 0; i < r; ++i) {
      const double share = s.share[k * r + i];
      for (std::size_t b = 0; b < B; ++b) sum[b] += Distance(share, small[i * B + b]);
    }
  } else {
    for (std::size_t j = 0; j < d; ++j) {
      const double inverse = s.inverse[k * d + j];
      for (std::size_t b = 0; b < B; ++b) sum[b] += Distance(inverse, seen[j * B + b]);
    }
  }
  for (std::size_t b = 0; b < B; ++b) q[b] = sum[b];
}

// Pieces of the scratch.
struct Pieces {
  double* work;   // d x B
  double* small;  // r x B
  double* r;      // K x B
  double* c;      // K x B
  double* seen;   // as many d x B as are kept
  double* other;  // the same, of the direction
  bool kept;
};

MP_EACH std::size_t Slots(const StepTables& s) {
  return 2 * s.K * s.d * B <= kKeptNumbers ? s.K : 1;
}

MP_EACH Pieces Cut(const StepTables& s, double* scratch) {
  Pieces p{};
  const std::size_t slots = Slots(s);
  p.kept = slots == s.K;
  p.work = scratch;
  p.small = p.work + s.d * B;
  p.r = p.small + s.r * B;
  p.c = p.r + s.K * B;
  p.seen = p.c + s.K * B;
  p.other = p.seen + slots * s.d * B;
  return p;
}

// Fills p.r with the weights; `top` and `sum` as in WeightTile.
MP_EACH void Weights(const StepTables& s, const double* z, const Pieces& p, double* r, double* top,
                     double* sum) {
  const std::size_t size = s.d * B;
  double most[B], total[B];
  for (std::size_t b = 0; b < B; ++b) most[b] = -std::numeric_limits<double>::infinity();
  for (std::size_t k = 0; k < s.K; ++k) {
    double* seen = p.seen + (p.kept ? k * size : 0);
    See(s, k, z, s.centre + k * s.d, seen, p.work, p.small);
    double q[B];
    Distances(s, k, z, seen, p.small, q);
    const double log_weight = s.log_weight[k];
    for (std::size_t b = 0; b < B; ++b) {
      const double log_density = log_weight - 0.5 * q[b];
      r[k * B + b] = log_density;
      most[b] = log_density > most[b] ? log_density : most[b];
    }
  }
  for (std::size_t b = 0; b < B; ++b) total[b] = 0;
  for (std::size_t k = 0; k < s.K; ++k) {
    for (std::size_t b = 0; b < B; ++b) {
      const double e = ExpOfNegative(r[k * B + b] - most[b]);
      r[k * B + b] = e;
      total[b] += e;
    }
  }
  for (std::size_t k = 0; k < s.K; ++k) {
    for (std::size_t b = 0; b < B; ++b) r[k * B + b] /= total[b];
  }
  if (top == nullptr) return;
  for (std::size_t b = 0; b < B; ++b) top[b] = most[b];
  for (std::size_t b = 0; b < B; ++b) sum[b] = total[b];
}

// Has no row of the tile any weight in the component? NaN counts as weight.
MP_EACH bool AllZero(const double* r) {
  int some = 0;
  for (std::size_t b = 0; b < B; ++b) some |= r[b] != 0.0 ? 1 : 0;
  return some == 0;
}

MP_EACH const double* Seen(const StepTables& s, std::size_t k, const double* z, const Pieces& p) {
  if (p.kept) return p.seen + k * s.d * B;
  See(s, k, z, s.centre + k * s.d, p.seen, p.work, p.small);
  return p.seen;
}

// out += weight (A_k z + b_k).
MP_EACH void AddExpert(const StepTables& s, std::size_t k, const double* z, const double* seen,
                       const double* weight, double* work, double* out) {
  const std::size_t d = s.d;
  const double* gain = s.gain + k * d;
  const double* target = s.target + k * d;
  const double* centre = s.centre + k * d;
  if (s.kind == CovarianceKind::kDiagonal) {
    for (std::size_t j = 0; j < d; ++j) {
      for (std::size_t b = 0; b < B; ++b) {
        out[j * B + b] += weight[b] * Expert(target[j], gain[j], seen[j * B + b]);
      }
    }
    return;
  }
  if (s.kind == CovarianceKind::kLowRank) {
    for (std::size_t j = 0; j < d; ++j) {
      for (std::size_t b = 0; b < B; ++b) {
        out[j * B + b] += weight[b] * LowRankExpert(target[j], gain[j], s.cross, s.alpha2,
                                                    z[j * B + b] - centre[j], seen[j * B + b]);
      }
    }
    return;
  }
  for (std::size_t j = 0; j < d; ++j) {
    for (std::size_t b = 0; b < B; ++b) {
      work[j * B + b] = weight[b] * (gain[j] * seen[j * B + b]);
      out[j * B + b] += weight[b] * target[j];
    }
  }
  Multiply<true>(d, d, s.axes_transposed + k * d * d, work, out);
}

// (C_k^-1 (z - centre)) . direction: half of how fast the squared distance grows along it.
MP_EACH void Growth(const StepTables& s, std::size_t k, const double* z, const double* direction,
                    const double* seen, const double* other, double* c) {
  const std::size_t d = s.d;
  double sum[B] = {};
  for (std::size_t j = 0; j < d; ++j) {
    const double inverse = s.inverse[k * d + j], centre = s.centre[k * d + j];
    if (s.kind == CovarianceKind::kLowRank) {
      for (std::size_t b = 0; b < B; ++b) {
        const double left = (z[j * B + b] - centre) - s.alpha2 * seen[j * B + b];
        sum[b] += inverse * (left * direction[j * B + b]);
      }
    } else {
      for (std::size_t b = 0; b < B; ++b) {
        sum[b] += inverse * (seen[j * B + b] * other[j * B + b]);
      }
    }
  }
  for (std::size_t b = 0; b < B; ++b) c[b] = sum[b];
}

// derivative += weight (A_k direction - change (A_k z + b_k)).
MP_EACH void AddChange(const StepTables& s, std::size_t k, const double* z, const double* direction,
                       const double* seen, const double* other, const double* weight,
                       const double* change, double* work, double* derivative) {
  const std::size_t d = s.d;
  const double* gain = s.gain + k * d;
  const double* target = s.target + k * d;
  const double* centre = s.centre + k * d;
  if (s.kind == CovarianceKind::kDiagonal) {
    for (std::size_t j = 0; j < d; ++j) {
      for (std::size_t b = 0; b < B; ++b) {
        derivative[j * B + b] += Change(weight[b], Expert(0.0, gain[j], other[j * B + b]),
                                        change[b], Expert(target[j], gain[j], seen[j * B + b]));
      }
    }
    return;
  }
  if (s.kind == CovarianceKind::kLowRank) {
    for (std::size_t j = 0; j < d; ++j) {
      for (std::size_t b = 0; b < B; ++b) {
        const double mapped =
            LowRankExpert(0.0, gain[j], s.cross, s.alpha2, direction[j * B + b], other[j * B + b]);
        const double expert = LowRankExpert(target[j], gain[j], s.cross, s.alpha2,
                                            z[j * B + b] - centre[j], seen[j * B + b]);
        derivative[j * B + b] += Change(weight[b], mapped, change[b], expert);
      }
    }
    return;
  }
  for (std::size_t j = 0; j < d; ++j) {
    for (std::size_t b = 0; b < B; ++b) {
      work[j * B + b] =
          Change(weight[b], gain[j] * other[j * B + b], change[b], gain[j] * seen[j * B + b]);
      derivative[j * B + b] += Change(weight[b], 0.0, change[b], target[j]);
    }
  }
  Multiply<true>(d, d, s.axes_transposed + k * d * d, work, derivative);
}

}  // namespace

std::size_t TileScratch(const StepTables& s) {
  return B * (s.d + s.r + 2 * s.K + 2 * Slots(s) * s.d);
}

MP_CLONES void StepTile(const StepTables& s, const double* z, double* out, double* scratch) {
  const Pieces p = Cut(s, scratch);
  Weights(s, z, p, p.r, nullptr, nullptr);
  std::fill(out, out + s.d * B, 0.0);
  for (std::size_t k = 0; k < s.K; ++k) {
    const double* weight = p.r + k * B;
    if (AllZero(weight)) continue;
    AddExpert(s, k, z, Seen(s, k, z, p), weight, p.work, out);
  }
}

MP_CLONES void WeightTile(const StepTables& s, const double* z, double* r, double* top, double* sum,
                          double* scratch) {
  Weights(s, z, Cut(s, scratch), r, top, sum);
}

MP_CLONES void DerivativeTile(const StepTables& s, const double* z, const double* direction,
                              double* out, double* derivative, double* scratch) {
  const Pieces p = Cut(s, scratch);
  const std::size_t size = s.d * B;
  Weights(s, z, p, p.r, nullptr, nullptr);
  std::fill(out, out + size, 0.0);
  std::fill(derivative, derivative + size, 0.0);
  // Growth of every component, less that of the heaviest one: for that one, what is left is small
  // where its weight is nearly 1, and must not come out of a difference of large numbers.
  double heaviest[B] = {}, of_heaviest[B] = {}, mean[B] = {};
  for (std::size_t k = 0; k < s.K; ++k) {
    const double* weight = p.r + k * B;
    if (AllZero(weight)) continue;
    double* other = p.other + (p.kept ? k * size : 0);
    const double* seen = Seen(s, k, z, p);
    See(s, k, direction, nullptr, other, p.work, p.small);
    double* c = p.c + k * B;
    Growth(s, k, z, direction, seen, other, c);
    for (std::size_t b = 0; b < B; ++b) {
      const bool heavier = weight[b] > heaviest[b];
      heaviest[b] = heavier ? weight[b] : heaviest[b];
      of_heaviest[b] = heavier ? c[b] : of_heaviest[b];
    }
  }
  for (std::size_t k = 0; k < s.K; ++k) {
    const double* weight = p.r + k * B;
    if (AllZero(weight)) continue;
    // A row without weight in k is left out by name: its growth may be infinite.
    for (std::size_t b = 0; b < B; ++b) {
      const double more = p.c[k * B + b] - of_heaviest[b];
      mean[b] += weight[b] == 0.0 ? 0.0 : weight[b] * more;
    }
  }
  for (std::size_t k = 0; k < s.K; ++k) {
    const double* weight = p.r + k * B;
    if (AllZero(weight)) continue;
    double change[B];
    for (std::size_t b = 0; b < B; ++b) {
      const double more = p.c[k * B + b] - of_heaviest[b];
      change[b] = weight[b] == 0.0 ? 0.0 : more - mean[b];
    }
    double* other = p.other + (p.kept ? k * size : 0);
    const double* seen = Seen(s, k, z, p);
    if (!p.kept) See(s, k, direction, nullptr, other, p.work, p.small);
    AddExpert(s, k, z, seen, weight, p.work, out);
    AddChange(s, k, z, direction, seen, other, weight, change, p.work, derivative);
  }
}

}  // namespace mergeplan::mixture
