#include "adapters/experts/kernel.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <limits>

#include "planner/base/exponential.h"

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define MP_VERSIONS 1
#else
#define MP_VERSIONS 0
#endif
#define MP_EACH inline __attribute__((always_inline))

namespace mergeplan::experts {
namespace {

// A register of kBytes bytes of T, and of the whole numbers of the same width. Written out, since
// the size in the attribute must not depend on a template's parameter.
template <typename T, int kBytes>
struct Register;
// NOLINTBEGIN(bugprone-macro-parentheses): types.
#define MP_REGISTER(T, Integer, kBytes)                                         \
  template <>                                                                   \
  struct Register<T, kBytes> {                                                  \
    using Type = T __attribute__((vector_size(kBytes), may_alias));             \
    using Whole = std::Integer __attribute__((vector_size(kBytes), may_alias)); \
  };
// NOLINTEND(bugprone-macro-parentheses)
MP_REGISTER(float, uint32_t, 16)
MP_REGISTER(double, uint64_t, 16)
#if MP_VERSIONS
MP_REGISTER(float, uint32_t, 32)
MP_REGISTER(double, uint64_t, 32)
MP_REGISTER(float, uint32_t, 64)
MP_REGISTER(double, uint64_t, 64)
#endif
#undef MP_REGISTER

// Pieces of the scratch, for kChunk rows each: coordinate i of row r at [i * kChunk + r].
template <typename T>
struct Pieces {
  T* z;       // d
  T* target;  // d; later the error
  T* y;       // d
  T* hidden;  // H: the activated hidden units of the gate; later their derivative
  T* weight;  // padded: the softmax
  T* logit;   // padded: the logits; later their derivative
  T* led;     // E x d: where each expert leads
  T* pulled;  // 1: the derivative by a hidden unit, over the blocks of experts

  Pieces(const LevelTables<T>& s, T* scratch) {
    const auto take = [&scratch](std::size_t count) {
      T* begin = scratch;
      scratch += count * kChunk;
      return begin;
    };
    z = take(s.d);
    target = take(s.d);
    y = take(s.d);
    hidden = take(s.H);
    weight = take(s.padded);
    logit = take(s.padded);
    led = take(s.E * s.d);
    pulled = take(1);
  }
};

// Rows to columns; the last row stands for those that are missing in the last tile.
template <typename T>
MP_EACH void Load(const double* rows, std::size_t count, std::size_t filled, std::size_t d,
                  T* columns) {
  for (std::size_t r = 0; r < filled; ++r) {
    const double* row = rows + std::min(r, count - 1) * d;
    for (std::size_t j = 0; j < d; ++j) columns[j * kChunk + r] = static_cast<T>(row[j]);
  }
}

template <typename T, int kBytes>
struct Loops {
  using V = typename Register<T, kBytes>::Type;
  using W = typename Register<T, kBytes>::Whole;
  static constexpr std::size_t kWidth = kBytes / sizeof(T);
  static_assert(sizeof(V) == kBytes && sizeof(W) == kBytes);
  static constexpr std::size_t B = kExpertBlock;

  static MP_EACH V* At(T* p) { return reinterpret_cast<V*>(p); }
  static MP_EACH const V* At(const T* p) { return reinterpret_cast<const V*>(p); }

  // hidden, weight, led and y for `rows` rows, a multiple of kTile. kD is d, or 0 for any.
  template <std::size_t kD>
  static MP_EACH void Forward(const LevelTables<T>& s, const Pieces<T>& piece, std::size_t rows) {
    const std::size_t d = kD != 0 ? kD : s.d;
    for (std::size_t h = 0; h < s.H; ++h) {
      const T* w = s.w1 + h * d;
      for (std::size_t r = 0; r < rows; r += kWidth) {
        V pre = V{} + s.hidden[h];
        for (std::size_t j = 0; j < d; ++j) pre += w[j] * *At(piece.z + j * kChunk + r);
        // Not a maximum: a NaN has to pass.
        *At(piece.hidden + h * kChunk + r) = pre < T{0} ? V{} : pre;
      }
    }
    for (std::size_t e = 0; e < s.padded; e += B) {
      for (std::size_t r = 0; r < rows; r += kWidth) {
        V sum[B];
        for (std::size_t i = 0; i < B; ++i) sum[i] = V{} + s.b2[e + i];
        const T* w = s.w2 + e;
        for (std::size_t h = 0; h < s.H; ++h, w += s.padded) {
          const V unit = *At(piece.hidden + h * kChunk + r);
          for (std::size_t i = 0; i < B; ++i) sum[i] += w[i] * unit;
        }
        for (std::size_t i = 0; i < B; ++i) *At(piece.logit + (e + i) * kChunk + r) = sum[i];
      }
    }
    for (std::size_t r = 0; r < rows; r += kWidth) {
      V top = *At(piece.logit + r);
      for (std::size_t e = 1; e < s.E; ++e) {
        const V other = *At(piece.logit + e * kChunk + r);
        top = other > top ? other : top;
      }
      V sum{};
      for (std::size_t e = 0; e < s.padded; ++e) {
        V x = *At(piece.logit + e * kChunk + r) - top;
        ExpOfNegative<V, W>(x, T{});
        *At(piece.weight + e * kChunk + r) = x;
        sum += x;
      }
      const V share = T{1} / sum;
      for (std::size_t e = 0; e < s.E; ++e) *At(piece.weight + e * kChunk + r) *= share;
    }
    for (std::size_t r = 0; r < rows; r += kWidth) {
      const T* expert = s.expert;
      for (std::size_t i = 0; i < d; ++i) *At(piece.y + i * kChunk + r) = V{};
      for (std::size_t e = 0; e < s.E; ++e, expert += d * d + d) {
        const V weight = *At(piece.weight + e * kChunk + r);
        for (std::size_t i = 0; i < d; ++i) {
          V led = V{} + expert[d * d + i];
          for (std::size_t j = 0; j < d; ++j) {
            led += expert[i * d + j] * *At(piece.z + j * kChunk + r);
          }
          *At(piece.led + (e * d + i) * kChunk + r) = led;
          *At(piece.y + i * kChunk + r) += weight * led;
        }
      }
    }
  }

  template <std::size_t kD>
  static MP_EACH void ForwardAll(const LevelTables<T>& s, const double* z, std::size_t rows,
                                 double* out, T* scratch) {
    const std::size_t d = kD != 0 ? kD : s.d;
    const Pieces<T> piece(s, scratch);
    for (std::size_t begin = 0; begin < rows; begin += kChunk) {
      const std::size_t count = std::min(kChunk, rows - begin);
      const std::size_t filled = (count + kTile - 1) / kTile * kTile;
      Load(z + begin * d, count, filled, d, piece.z);
      Forward<kD>(s, piece, filled);
      for (std::size_t r = 0; r < count; ++r) {
        for (std::size_t i = 0; i < d; ++i) {
          out[(begin + r) * d + i] = static_cast<double>(piece.y[i * kChunk + r]);
        }
      }
    }
  }

  // lanes += sum over the tiles of `left`, and times `right`, for kCount columns `right` that are
  // kChunk apart.
  template <std::size_t kCount>
  static MP_EACH void AddProducts(const T* left, const T* right, std::size_t rows, T* lanes) {
    for (std::size_t part = 0; part < kTile; part += kWidth) {
      V sum[kCount];
      for (std::size_t j = 0; j < kCount; ++j) sum[j] = *At(lanes + j * kTile + part);
      for (std::size_t r = part; r < rows; r += kTile) {
        const V x = *At(left + r);
        for (std::size_t j = 0; j < kCount; ++j) sum[j] += x * *At(right + j * kChunk + r);
      }
      for (std::size_t j = 0; j < kCount; ++j) *At(lanes + j * kTile + part) = sum[j];
    }
  }

  static MP_EACH void AddProducts(std::size_t count, const T* left, const T* right,
                                  std::size_t rows, T* lanes) {
    std::size_t j = 0;
    for (; j + 4 <= count; j += 4) {
      AddProducts<4>(left, right + j * kChunk, rows, lanes + j * kTile);
    }
    for (; j + 2 <= count; j += 2) {
      AddProducts<2>(left, right + j * kChunk, rows, lanes + j * kTile);
    }
    if (j < count) AddProducts<1>(left, right + j * kChunk, rows, lanes + j * kTile);
  }

  static MP_EACH void AddColumn(const T* column, std::size_t rows, T* lanes) {
    for (std::size_t part = 0; part < kTile; part += kWidth) {
      V sum = *At(lanes + part);
      for (std::size_t r = part; r < rows; r += kTile) sum += *At(column + r);
      *At(lanes + part) = sum;
    }
  }

  // The sums of the chunk, after Forward; piece.target holds the error.
  template <std::size_t kD>
  static MP_EACH void Backward(const LevelTables<T>& s, const SumLayout& at, const Pieces<T>& piece,
                               std::size_t rows, T* lanes) {
    const std::size_t d = kD != 0 ? kD : s.d;
    const std::size_t numbers = d * d + d;
    // The derivative by a logit is w_e (error . led_e - error . y).
    for (std::size_t r = 0; r < rows; r += kWidth) {
      V mean{};
      for (std::size_t i = 0; i < d; ++i) {
        mean += *At(piece.target + i * kChunk + r) * *At(piece.y + i * kChunk + r);
      }
      for (std::size_t e = 0; e < s.E; ++e) {
        V along{};
        for (std::size_t i = 0; i < d; ++i) {
          along += *At(piece.target + i * kChunk + r) * *At(piece.led + (e * d + i) * kChunk + r);
        }
        *At(piece.logit + e * kChunk + r) = *At(piece.weight + e * kChunk + r) * (along - mean);
      }
      for (std::size_t e = s.E; e < s.padded; ++e) *At(piece.logit + e * kChunk + r) = V{};
    }
    for (std::size_t e = 0; e < s.E; ++e) {
      AddColumn(piece.logit + e * kChunk, rows, lanes + (at.b2 + e) * kTile);
      for (std::size_t i = 0; i < d; ++i) {
        // led is done with: the derivative by the offset takes its place.
        T* pull = piece.led + (e * d + i) * kChunk;
        for (std::size_t r = 0; r < rows; r += kWidth) {
          *At(pull + r) = *At(piece.weight + e * kChunk + r) * *At(piece.target + i * kChunk + r);
        }
        T* to = lanes + (at.expert + e * numbers) * kTile;
        AddColumn(pull, rows, to + (d * d + i) * kTile);
        AddProducts(d, pull, piece.z, rows, to + i * d * kTile);
      }
    }
    for (std::size_t h = 0; h < s.H; ++h) {
      T* unit = piece.hidden + h * kChunk;
      for (std::size_t e = 0; e < s.padded; e += B) {
        const T* w = s.w2 + h * s.padded + e;
        const bool first = e == 0, last = e + B == s.padded;
        T* to = lanes + (at.w2 + h * s.padded + e) * kTile;
        for (std::size_t part = 0; part < kTile; part += kWidth) {
          V sum[B];
          for (std::size_t i = 0; i < B; ++i) sum[i] = *At(to + i * kTile + part);
          for (std::size_t r = part; r < rows; r += kTile) {
            const V active = *At(unit + r);
            V pull = first ? V{} : *At(piece.pulled + r);
            for (std::size_t i = 0; i < B; ++i) {
              const V logit = *At(piece.logit + (e + i) * kChunk + r);
              pull += w[i] * logit;
              sum[i] += active * logit;
            }
            if (last) {
              *At(unit + r) = active > T{0} ? pull : V{};
            } else {
              *At(piece.pulled + r) = pull;
            }
          }
          for (std::size_t i = 0; i < B; ++i) *At(to + i * kTile + part) = sum[i];
        }
      }
      AddColumn(unit, rows, lanes + (at.hidden + h) * kTile);
      AddProducts(d, unit, piece.z, rows, lanes + (at.w1 + h * d) * kTile);
    }
  }

  template <std::size_t kD>
  static MP_EACH void AccumulateAll(const LevelTables<T>& s, const double* z, const double* target,
                                    std::size_t rows, T* lanes, T* scratch) {
    const std::size_t d = kD != 0 ? kD : s.d;
    const SumLayout at = SumLayout::Of(d, s.E, s.H);
    const Pieces<T> piece(s, scratch);
    for (std::size_t begin = 0; begin < rows; begin += kChunk) {
      const std::size_t count = std::min(kChunk, rows - begin);
      const std::size_t filled = (count + kTile - 1) / kTile * kTile;
      Load(z + begin * d, count, filled, d, piece.z);
      Load(target + begin * d, count, filled, d, piece.target);
      Forward<kD>(s, piece, filled);
      for (std::size_t i = 0; i < d; ++i) {
        T* error = piece.target + i * kChunk;
        for (std::size_t r = 0; r < filled; r += kWidth) {
          *At(error + r) = *At(piece.y + i * kChunk + r) - *At(error + r);
        }
        for (std::size_t r = count; r < filled; ++r) error[r] = 0;
        AddProducts<1>(error, error, filled, lanes + at.loss * kTile);
      }
      Backward<kD>(s, at, piece, filled, lanes);
    }
  }

  static MP_EACH void ForwardAny(const LevelTables<T>& s, const double* z, std::size_t rows,
                                 double* out, T* scratch) {
    s.d == 2 ? ForwardAll<2>(s, z, rows, out, scratch) : ForwardAll<0>(s, z, rows, out, scratch);
  }
  static MP_EACH void AccumulateAny(const LevelTables<T>& s, const double* z, const double* target,
                                    std::size_t rows, T* lanes, T* scratch) {
    s.d == 2 ? AccumulateAll<2>(s, z, target, rows, lanes, scratch)
             : AccumulateAll<0>(s, z, target, rows, lanes, scratch);
  }
};

#if MP_VERSIONS
// The functions of one version for one type of number.
#define MP_VERSION(name, T, bytes, arch)                                                        \
  __attribute__((target(arch))) void Forward##name(const LevelTables<T>& s, const double* z,    \
                                                   std::size_t rows, double* out, T* scratch) { \
    Loops<T, bytes>::ForwardAny(s, z, rows, out, scratch);                                      \
  }                                                                                             \
  __attribute__((target(arch))) void Accumulate##name(const LevelTables<T>& s, const double* z, \
                                                      const double* target, std::size_t rows,   \
                                                      T* lanes, T* scratch) {                   \
    Loops<T, bytes>::AccumulateAny(s, z, target, rows, lanes, scratch);                         \
  }
MP_VERSION(V3, float, 32, "arch=x86-64-v3")
MP_VERSION(V3, double, 32, "arch=x86-64-v3")
MP_VERSION(V4, float, 64, "arch=x86-64-v4")
MP_VERSION(V4, double, 64, "arch=x86-64-v4")
#undef MP_VERSION
#endif

int Supported() {
#if MP_VERSIONS
  __builtin_cpu_init();
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) return 1;
  const bool v4 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
                  __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw");
  return v4 ? 3 : 2;
#else
  return 1;
#endif
}

std::atomic<int>& Used() {
  static std::atomic<int> used = Supported() - 1;
  return used;
}

}  // namespace

int KernelVersions() { return Supported(); }

void UseKernelVersion(int version) { Used() = std::clamp(version, 0, Supported() - 1); }

SumLayout SumLayout::Of(std::size_t d, std::size_t E, std::size_t H) {
  const std::size_t padded = (E + kExpertBlock - 1) / kExpertBlock * kExpertBlock;
  SumLayout at;
  at.w1 = at.hidden + H;
  at.w2 = at.w1 + H * d;
  at.b2 = at.w2 + H * padded;
  at.expert = at.b2 + padded;
  at.loss = at.expert + E * (d * d + d);
  at.count = at.loss + 1;
  return at;
}

std::size_t KernelScratch(std::size_t d, std::size_t E, std::size_t H) {
  const std::size_t padded = (E + kExpertBlock - 1) / kExpertBlock * kExpertBlock;
  return (3 * d + H + 2 * padded + E * d + 1) * kChunk;
}

template <typename T>
void ForwardRows(const LevelTables<T>& tables, const double* z, std::size_t rows, double* out,
                 T* scratch) {
#if MP_VERSIONS
  const int version = Used();
  if (version == 2) return ForwardV4(tables, z, rows, out, scratch);
  if (version == 1) return ForwardV3(tables, z, rows, out, scratch);
#endif
  Loops<T, 16>::ForwardAny(tables, z, rows, out, scratch);
}

template <typename T>
void AccumulateRows(const LevelTables<T>& tables, const double* z, const double* target,
                    std::size_t rows, T* lanes, T* scratch) {
#if MP_VERSIONS
  const int version = Used();
  if (version == 2) return AccumulateV4(tables, z, target, rows, lanes, scratch);
  if (version == 1) return AccumulateV3(tables, z, target, rows, lanes, scratch);
#endif
  Loops<T, 16>::AccumulateAny(tables, z, target, rows, lanes, scratch);
}

template <typename T>
void SumLanes(const T* lanes, std::size_t count, T* sums) {
  for (std::size_t i = 0; i < count; ++i) {
    T half[kTile / 2];
    for (std::size_t l = 0; l < kTile / 2; ++l) {
      half[l] = lanes[i * kTile + l] + lanes[i * kTile + kTile / 2 + l];
    }
    for (std::size_t l = 0; l < kTile / 4; ++l) half[l] += half[l + kTile / 4];
    sums[i] = (half[0] + half[2]) + (half[1] + half[3]);
  }
}

template void ForwardRows(const LevelTables<float>&, const double*, std::size_t, double*, float*);
template void ForwardRows(const LevelTables<double>&, const double*, std::size_t, double*, double*);
template void AccumulateRows(const LevelTables<float>&, const double*, const double*, std::size_t,
                             float*, float*);
template void AccumulateRows(const LevelTables<double>&, const double*, const double*, std::size_t,
                             double*, double*);
template void SumLanes(const float*, std::size_t, float*);
template void SumLanes(const double*, std::size_t, double*);

}  // namespace mergeplan::experts
