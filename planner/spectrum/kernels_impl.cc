// This file is compiled once per instruction set, with MERGEPLAN_KERNELS naming the namespace of
// the copy and with the macro Eigen renaming Eigen's own namespace (both set in CMakeLists.txt).
// Include nothing else here, neither of this project nor of the standard library: an inline
// function that both this file and others instantiate could be taken from the copy with AVX2 by the
// linker.

// Small products coefficient by coefficient would be summed in an order that depends on where their
// operands lie in memory, and no result here may.
#define EIGEN_GEMM_TO_COEFFBASED_THRESHOLD 0
#include <Eigen/Core>
#include <Eigen/Eigenvalues>

#include "planner/spectrum/kernels.h"

#if !defined(MERGEPLAN_KERNELS) || !defined(MERGEPLAN_KERNELS_NAME) || !defined(Eigen)
#error "build this file through planner/spectrum/CMakeLists.txt"
#endif

namespace mergeplan::MERGEPLAN_KERNELS {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;

template <typename T>
using RowMatrix = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
template <typename T>
using InputMap = Eigen::Map<const RowMatrix<T>>;

// Vectors of the width that this copy is compiled for, and a tile of the product: kPanel rows times
// kAcross columns of sums stay in registers.
#ifdef __AVX512F__
constexpr Index kVector = 8, kVectors = 3, kAcross = 8;
#elif defined(__AVX2__)
constexpr Index kVector = 4, kVectors = 3, kAcross = 4;
#else
constexpr Index kVector = 2, kVectors = 2, kAcross = 4;
#endif
constexpr Index kPanel = kVector * kVectors;
using Vector = double __attribute__((vector_size(kVector * sizeof(double))));
using InMemory =
    double __attribute__((vector_size(kVector * sizeof(double)), aligned(8), may_alias));
static_assert(kPanel % kAcross == 0 && 96 % kPanel == 0 && 96 % kAcross == 0);

using NarrowInMemory =
    float __attribute__((vector_size(kVector * sizeof(float)), aligned(4), may_alias));

inline Vector Wide(const float* values) {
  return __builtin_convertvector(*reinterpret_cast<const NarrowInMemory*>(values), Vector);
}
inline Vector Wide(const double* values) { return *reinterpret_cast<const InMemory*>(values); }

// The moments of kPanel columns; the rows are `stride` apart, everything else stands side by side.
template <typename T>
void PanelMoments(const T* samples, Index count, Index stride, const double* shift, double* packed,
                  double* mean, double* m2, double* m3, double* m4) {
  Vector offset[kVectors], centre[kVectors] = {};
  for (Index v = 0; v < kVectors; ++v) offset[v] = Wide(shift + v * kVector);
  const T* row = samples;
  for (Index r = 0; r < count; ++r, row += stride) {
    for (Index v = 0; v < kVectors; ++v) centre[v] += Wide(row + v * kVector) - offset[v];
  }
  for (Index v = 0; v < kVectors; ++v) centre[v] /= static_cast<double>(count);
  Vector second[kVectors] = {}, third[kVectors] = {}, fourth[kVectors] = {};
  row = samples;
  for (Index r = 0; r < count; ++r, row += stride) {
    for (Index v = 0; v < kVectors; ++v) {
      const Vector x = (Wide(row + v * kVector) - offset[v]) - centre[v], square = x * x;
      second[v] += square;
      third[v] += square * x;
      fourth[v] += square * square;
      if (packed != nullptr) *reinterpret_cast<InMemory*>(packed + r * kPanel + v * kVector) = x;
    }
  }
  for (Index v = 0; v < kVectors; ++v) {
    *reinterpret_cast<InMemory*>(mean + v * kVector) = centre[v];
    *reinterpret_cast<InMemory*>(m2 + v * kVector) = second[v];
    *reinterpret_cast<InMemory*>(m3 + v * kVector) = third[v];
    *reinterpret_cast<InMemory*>(m4 + v * kVector) = fourth[v];
  }
}

template <typename T>
void Moments(const T* samples, Index count, Index d, const double* shift, double* packed,
             double* mean, double* m2, double* m3, double* m4) {
  const Index whole = d / kPanel * kPanel, rest = d - whole;
  const auto panel_of = [&](Index c) { return packed == nullptr ? nullptr : packed + c * count; };
  for (Index c = 0; c < whole; c += kPanel) {
    PanelMoments(samples + c, count, d, shift + c, panel_of(c), mean + c, m2 + c, m3 + c, m4 + c);
  }
  if (rest == 0) return;
  // The last columns, filled up with zeros.
  T copy[kPackedRows * kPanel];
  double from[kPanel] = {}, out[4][kPanel];
  for (Index r = 0; r < count; ++r) {
    const T* row = samples + r * d + whole;
    for (Index c = 0; c < kPanel; ++c) copy[r * kPanel + c] = c < rest ? row[c] : T{0};
  }
  for (Index c = 0; c < rest; ++c) from[c] = shift[whole + c];
  PanelMoments(copy, count, kPanel, from, panel_of(whole), out[0], out[1], out[2], out[3]);
  for (Index c = 0; c < rest; ++c) {
    mean[whole + c] = out[0][c];
    m2[whole + c] = out[1][c];
    m3[whole + c] = out[2][c];
    m4[whole + c] = out[3][c];
  }
}

// Columns whose sums stay in registers: as many as one line of the cache holds, or more.
constexpr Index kSumVectors = 2;

template <typename T>
void AddPowers(const T* rows, Index count, Index stride, Index width, const T* about,
               double* sums) {
  constexpr Index kGroup = kSumVectors * kVector;
  double *first = sums, *second = sums + width, *third = second + width, *fourth = third + width;
  Index c = 0;
  for (; c + kGroup <= width; c += kGroup) {
    Vector a[kSumVectors], s1[kSumVectors], s2[kSumVectors], s3[kSumVectors], s4[kSumVectors];
    for (Index v = 0; v < kSumVectors; ++v) {
      const Index at = c + v * kVector;
      a[v] = Wide(about + at);
      s1[v] = *reinterpret_cast<const InMemory*>(first + at);
      s2[v] = *reinterpret_cast<const InMemory*>(second + at);
      s3[v] = *reinterpret_cast<const InMemory*>(third + at);
      s4[v] = *reinterpret_cast<const InMemory*>(fourth + at);
    }
    const T* row = rows + c;
    for (Index r = 0; r < count; ++r, row += stride) {
      for (Index v = 0; v < kSumVectors; ++v) {
        // A hint only, which reads nothing: any address will do.
        if (v * kVector * static_cast<Index>(sizeof(T)) % 64 == 0) {
          __builtin_prefetch(row + count * stride + v * kVector, 0, 2);
        }
        const Vector x = Wide(row + v * kVector) - a[v], square = x * x;
        s1[v] += x;
        s2[v] += square;
        s3[v] += square * x;
        s4[v] += square * square;
      }
    }
    for (Index v = 0; v < kSumVectors; ++v) {
      const Index at = c + v * kVector;
      *reinterpret_cast<InMemory*>(first + at) = s1[v];
      *reinterpret_cast<InMemory*>(second + at) = s2[v];
      *reinterpret_cast<InMemory*>(third + at) = s3[v];
      *reinterpret_cast<InMemory*>(fourth + at) = s4[v];
    }
  }
  for (; c < width; ++c) {
    const double a = static_cast<double>(about[c]);
    double s1 = first[c], s2 = second[c], s3 = third[c], s4 = fourth[c];
    for (Index r = 0; r < count; ++r) {
      const double x = static_cast<double>(rows[r * stride + c]) - a, square = x * x;
      s1 += x;
      s2 += square;
      s3 += square * x;
      s4 += square * square;
    }
    first[c] = s1;
    second[c] = s2;
    third[c] = s3;
    fourth[c] = s4;
  }
}

// out (kPanel x kAcross, column by column) = a^T b over `height` rows of two panels; `b` begins at
// the column that is meant.
inline void Product(const double* a, const double* b, Index height, double* out) {
  Vector sums[kAcross][kVectors] = {};
  for (Index r = 0; r < height; ++r, a += kPanel, b += kPanel) {
    Vector left[kVectors];
    for (Index v = 0; v < kVectors; ++v) {
      left[v] = *reinterpret_cast<const InMemory*>(a + v * kVector);
    }
    for (Index j = 0; j < kAcross; ++j) {
      for (Index v = 0; v < kVectors; ++v) sums[j][v] += left[v] * b[j];
    }
  }
  for (Index j = 0; j < kAcross; ++j) {
    for (Index v = 0; v < kVectors; ++v) {
      *reinterpret_cast<InMemory*>(out + j * kPanel + v * kVector) = sums[j][v];
    }
  }
}

void RankUpdate(const double* packed, Index rows, Index d, Index first, Index last,
                double* comoment) {
  double tile[kPanel * kAcross];
  for (Index i = first; i < d; i += kPanel) {
    // The columns up to the diagonal's, of those that are wanted.
    const Index end = i + kPanel < last ? i + kPanel : last;
    for (Index j = first; j < end; j += kAcross) {
      const Index panel = j / kPanel * kPanel;
      // The sums that the product is added to: they arrive while it is computed.
      for (Index n = 0; n < kAcross && j + n < end; ++n) {
        const double* column = comoment + (j + n) * d + i;
        for (Index k = 0; k < kPanel + 8; k += 8) __builtin_prefetch(column + k, 1, 3);
      }
      Product(packed + i * rows, packed + panel * rows + (j - panel), rows, tile);
      for (Index n = 0; n < kAcross && j + n < end; ++n) {
        double* column = comoment + (j + n) * d;
        const double* sums = tile + n * kPanel;
        if (i >= j + n && i + kPanel <= d) {
          for (Index k = 0; k < kPanel; ++k) column[i + k] += sums[k];
        } else {
          for (Index k = j + n > i ? j + n - i : 0; k < kPanel && i + k < d; ++k) {
            column[i + k] += sums[k];
          }
        }
      }
    }
  }
}

bool SymmetricEigen(const double* matrix, Index d, double* values, double* vectors,
                    bool* converged) {
  try {
    const Eigen::SelfAdjointEigenSolver<MatrixXd> solver(Eigen::Map<const MatrixXd>(matrix, d, d));
    *converged = solver.info() == Eigen::Success;
    if (*converged) {
      Eigen::Map<Eigen::VectorXd>(values, d) = solver.eigenvalues();
      // Column-major columns are row-major rows.
      Eigen::Map<MatrixXd>(vectors, d, d) = solver.eigenvectors();
    }
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

template <typename T>
bool MultiplyTransposed(const T* samples, Index count, Index d, const T* vectors, Index k, T* out) {
  try {
    Eigen::Map<RowMatrix<T>>(out, count, k).noalias() =
        InputMap<T>(samples, count, d) * InputMap<T>(vectors, k, d).transpose();
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

bool Accumulate(const double* weights, const double* values, Index count, Index b, Index d,
                Index first, Index last, double* out) {
  try {
    Eigen::Map<RowMatrix<double>>(out, b, d).middleCols(first, last - first).noalias() +=
        InputMap<double>(weights, count, b).transpose() *
        InputMap<double>(values, count, d).middleCols(first, last - first);
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

bool Multiply(const double* samples, Index count, Index d, const double* matrix, double* out) {
  try {
    Eigen::Map<RowMatrix<double>>(out, count, d).noalias() =
        InputMap<double>(samples, count, d) * InputMap<double>(matrix, d, d);
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

constexpr Kernels kTable = {MERGEPLAN_KERNELS_NAME,
                            kPanel,
                            Moments<float>,
                            Moments<double>,
                            AddPowers<float>,
                            AddPowers<double>,
                            RankUpdate,
                            SymmetricEigen,
                            MultiplyTransposed<float>,
                            MultiplyTransposed<double>,
                            Accumulate,
                            Multiply};

}  // namespace

const Kernels& Table() { return kTable; }

}  // namespace mergeplan::MERGEPLAN_KERNELS
