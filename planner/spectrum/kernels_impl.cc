// This file is compiled once per instruction set, with MERGEPLAN_KERNELS naming the namespace of
// the copy and with the macro Eigen renaming Eigen's own namespace (both set in CMakeLists.txt).
// Include nothing else here, neither of this project nor of the standard library: an inline
// function that both this file and others instantiate could be taken from the copy with AVX2 by the
// linker.
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

constexpr Index kTile = 64;  // columns whose sums stay in the first-level cache

void Moments(const double* samples, Index count, Index d, const double* shift, Index first,
             Index last, double* centred, double* mean, double* m2, double* m3, double* m4) {
  for (Index begin = first; begin < last; begin += kTile) {
    const Index width = last - begin < kTile ? last - begin : kTile;
    double sum[kTile] = {}, offset[kTile] = {};
    for (Index c = 0; c < width; ++c) offset[c] = shift[begin + c];
    for (Index r = 0; r < count; ++r) {
      const double* row = samples + r * d + begin;
      for (Index c = 0; c < width; ++c) sum[c] += double{row[c]} - offset[c];
    }
    double centre[kTile], second[kTile] = {}, third[kTile] = {}, fourth[kTile] = {};
    for (Index c = 0; c < width; ++c) centre[c] = sum[c] / static_cast<double>(count);
    for (Index r = 0; r < count; ++r) {
      const double* row = samples + r * d + begin;
      double deviation[kTile];
      for (Index c = 0; c < width; ++c) {
        const double x = (double{row[c]} - offset[c]) - centre[c];
        const double square = x * x;
        deviation[c] = x;
        second[c] += square;
        third[c] += square * x;
        fourth[c] += square * square;
      }
      if (centred != nullptr) {
        double* out = centred + r * d + begin;
        for (Index c = 0; c < width; ++c) out[c] = deviation[c];
      }
    }
    for (Index c = 0; c < width; ++c) {
      mean[begin + c] = centre[c];
      m2[begin + c] = second[c];
      m3[begin + c] = third[c];
      m4[begin + c] = fourth[c];
    }
  }
}

bool RankUpdate(const double* centred, Index count, Index d, Index first, Index last,
                double* comoment) {
  try {
    // Seen column-major, the row-major samples are d x count.
    const Eigen::Map<const MatrixXd> x(centred, d, count);
    Eigen::Map<MatrixXd> c(comoment, d, d);
    const Index width = last - first;
    const auto panel = x.middleRows(first, width);
    c.block(first, first, width, width).selfadjointView<Eigen::Lower>().rankUpdate(panel);
    if (last < d) {
      c.block(last, first, d - last, width).noalias() += x.bottomRows(d - last) * panel.transpose();
    }
    return true;
  } catch (const std::bad_alloc&) {
    return false;
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
bool MultiplyTransposed(const T* samples, Index count, Index d, const T* vectors, T* out) {
  try {
    Eigen::Map<RowMatrix<T>>(out, count, d).noalias() =
        InputMap<T>(samples, count, d) * InputMap<T>(vectors, d, d).transpose();
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

constexpr Kernels kTable = {
    MERGEPLAN_KERNELS_NAME,     Moments,    RankUpdate, SymmetricEigen, MultiplyTransposed<float>,
    MultiplyTransposed<double>, Accumulate, Multiply};

}  // namespace

const Kernels& Table() { return kTable; }

}  // namespace mergeplan::MERGEPLAN_KERNELS
