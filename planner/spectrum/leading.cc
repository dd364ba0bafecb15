#include "planner/spectrum/leading.h"

#include <Eigen/Core>
#include <Eigen/Eigenvalues>
#include <Eigen/QR>
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <new>
#include <numbers>
#include <utility>

#include "absl/strings/str_cat.h"
#include "planner/base/philox.h"
#include "planner/base/status_macros.h"
#include "planner/spectrum/batches.h"
#include "planner/spectrum/parallel.h"

namespace mergeplan {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using RowMatrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

RowMatrix Normals(Index rows, Index columns, std::uint64_t seed) {
  const PhiloxKey key = {
      {static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)}};
  RowMatrix out(rows, columns);
  for (Index k = 0; k < out.size(); k += 2) {
    const PhiloxWords w = Philox(
        {{static_cast<std::uint32_t>(k), static_cast<std::uint32_t>(k >> 32), 0, 0x6C656164u}},
        key);
    const double radius = std::sqrt(-2 * std::log((w.w[0] + 0.5) / 4294967296.0));
    const double angle = 2 * std::numbers::pi * (w.w[1] / 4294967296.0);
    out.data()[k] = radius * std::cos(angle);
    if (k + 1 < out.size()) out.data()[k + 1] = radius * std::sin(angle);
  }
  return out;
}

// Rows with the same span, the first of them most like the first.
void Orthonormalize(RowMatrix& rows) {
  const Eigen::HouseholderQR<MatrixXd> qr(rows.transpose());
  rows = (qr.householderQ() * MatrixXd::Identity(rows.cols(), rows.rows())).transpose();
}

void MakeLargestPositive(RowMatrix& rows, Index count) {
  for (Index i = 0; i < count; ++i) {
    const double largest = rows.row(i).cwiseAbs().maxCoeff();
    Index leader = 0;
    while (std::abs(rows(i, leader)) < largest * (1 - 1e-6)) ++leader;
    if (rows(i, leader) < 0) rows.row(i) *= -1;
  }
}

// Degree of the polynomial: the more the better, but where the variances in the subspace are far
// apart, what rounding leaves of the largest direction in the others must not outgrow them.
int DegreeFor(double largest, double smallest, int most) {
  constexpr double kDigits = 9;
  const double growth = std::log10(4 * largest / smallest);
  return std::clamp(static_cast<int>(kDigits / growth), 1, std::max(1, most));
}

class Iteration {
 public:
  Iteration(const TimesCovariance& times, const LeadingOptions& options, Index d)
      : times_(times),
        options_(options),
        count_(std::min<Index>(options.count, d)),
        basis_(Normals(std::min<Index>(d, count_ + count_ / 4 + 16), d, options.seed)),
        image_(basis_.rows(), d) {
    Orthonormalize(basis_);
  }

  absl::Status Run() {
    while (true) {
      MP_RETURN_IF_ERROR(Multiply(basis_, image_));
      Rotate();
      const int left = options_.most_products - products_;
      if (Done() || left < 1) return absl::OkStatus();
      MP_RETURN_IF_ERROR(Filter(left));
    }
  }

  void Take(Spectrum& spectrum) {
    MakeLargestPositive(basis_, count_);
    spectrum.leading.name = "leading";
    spectrum.leading_vectors.assign(basis_.data(), basis_.data() + count_ * basis_.cols());
    for (Index i = 0; i < count_; ++i) {
      spectrum.leading.variances.push_back(std::max(0.0, values_[i]));
      spectrum.leading_errors.push_back(errors_[i]);
    }
  }

 private:
  absl::Status Multiply(const RowMatrix& rows, RowMatrix& out) {
    if (options_.stop && options_.stop()) {
      return absl::CancelledError("stopped while the leading principal directions were computed");
    }
    ++products_;
    return times_(rows.data(), static_cast<int>(rows.rows()), out.data());
  }

  // To the best directions inside the subspace (Rayleigh and Ritz), largest variance first.
  void Rotate() {
    const MatrixXd inside = basis_ * image_.transpose();
    const Eigen::SelfAdjointEigenSolver<MatrixXd> solver((inside + inside.transpose()) / 2);
    const RowMatrix turn = solver.eigenvectors().rowwise().reverse().transpose();
    values_ = solver.eigenvalues().reverse();
    basis_ = turn * basis_;
    image_ = turn * image_;
    errors_ = (image_ - values_.asDiagonal() * basis_).rowwise().norm();
  }

  // What is too small to be told from rounding is done, too.
  bool Done() const {
    const double least = 1e-13 * values_[0];
    for (Index i = 0; i < count_; ++i) {
      if (errors_[i] > std::max(options_.tolerance * values_[i], least)) return false;
    }
    return true;
  }

  // A polynomial in the covariance that is at most 1 in size up to the smallest variance inside
  // the subspace, and grows fast above it.
  absl::Status Filter(int most_products) {
    const double smallest = values_[values_.size() - 1], largest = values_[0];
    const double half = smallest / 2;
    if (!(smallest > 1e-13 * largest)) {
      basis_ = image_;  // fewer directions have any variance
      Orthonormalize(basis_);
      return absl::OkStatus();
    }
    RowMatrix before = basis_, next(basis_.rows(), basis_.cols());
    basis_ = (image_ - half * before) / half;
    const int degree = DegreeFor(largest, smallest, std::min(most_products, 8));
    for (int k = 1; k < degree; ++k) {
      MP_RETURN_IF_ERROR(Multiply(basis_, next));
      next = (next - half * basis_) * (2 / half) - before;
      before.swap(basis_);
      basis_.swap(next);
    }
    basis_.rowwise().normalize();
    Orthonormalize(basis_);
    return absl::OkStatus();
  }

  const TimesCovariance& times_;
  const LeadingOptions& options_;
  Index count_;
  RowMatrix basis_, image_;  // directions as rows, and those times the covariance
  Eigen::VectorXd values_, errors_;
  int products_ = 0;
};

}  // namespace

TimesCovariance TimesKeptCovariance(const Spectrum& spectrum, const Kernels& kernels, int threads) {
  return [&spectrum, &kernels, threads](const double* rows, int count, double* out) {
    // As many rows as share one pass over the covariance; not a matter of threads.
    constexpr int kRows = 80;
    const std::ptrdiff_t d = spectrum.dimensions();
    return ParallelFor((count + kRows - 1) / kRows, threads, [&](int task) {
      const std::ptrdiff_t first = task * kRows,
                           some = std::min<std::ptrdiff_t>(kRows, count - first);
      return kernels.multiply_f64(rows + first * d, some, d, spectrum.covariance.data(),
                                  out + first * d);
    });
  };
}

TimesCovariance TimesCovarianceOfData(
    std::function<absl::StatusOr<std::unique_ptr<SampleSource>>()> reopen, std::vector<double> mean,
    double multiply, std::int64_t samples, const Kernels& kernels, int threads) {
  return [=, &kernels](const double* rows, int count, double* out) -> absl::Status {
    constexpr int kRows = 64, kColumns = 768;
    const std::ptrdiff_t d = static_cast<std::ptrdiff_t>(mean.size()), k = count;
    std::fill(out, out + k * d, 0.0);
    MP_ASSIGN_OR_RETURN(const std::unique_ptr<SampleSource> source, reopen());
    if (source->dimensions() != d) {
      return absl::DataLossError("a later pass found samples of another shape; run it again");
    }
    BatchReader<double> reader(*source, static_cast<int>(d), threads);
    std::vector<double> centred(static_cast<std::size_t>(reader.capacity() * d));
    std::vector<double> along(static_cast<std::size_t>(reader.capacity() * k));
    const double weight = multiply * multiply / static_cast<double>(samples - 1);
    std::int64_t seen = 0;
    while (true) {
      MP_ASSIGN_OR_RETURN(const int got, reader.Next());
      if (got == 0) break;
      seen += got;
      const double* stored = reader.samples(got).data();
      MP_RETURN_IF_ERROR(ParallelFor((got + kRows - 1) / kRows, threads, [&](int task) {
        const std::ptrdiff_t first = task * kRows,
                             some = std::min<std::ptrdiff_t>(kRows, got - first);
        for (std::ptrdiff_t r = first; r < first + some; ++r) {
          for (std::ptrdiff_t i = 0; i < d; ++i) {
            centred[static_cast<std::size_t>(r * d + i)] =
                stored[r * d + i] - mean[static_cast<std::size_t>(i)];
          }
        }
        double* to = along.data() + first * k;
        if (!kernels.multiply_transposed_f64(centred.data() + first * d, some, d, rows, k, to)) {
          return false;
        }
        for (std::ptrdiff_t i = 0; i < some * k; ++i) to[i] *= weight;
        return true;
      }));
      MP_RETURN_IF_ERROR(
          ParallelFor(static_cast<int>((d + kColumns - 1) / kColumns), threads, [&](int task) {
            const std::ptrdiff_t first = std::ptrdiff_t{kColumns} * task;
            return kernels.accumulate(along.data(), centred.data(), got, k, d, first,
                                      std::min(d, first + kColumns), out);
          }));
    }
    if (seen == samples) return absl::OkStatus();
    return absl::DataLossError(absl::StrCat("a later pass read ", seen, " samples, the first ",
                                            samples, "; the data changed meanwhile, run it again"));
  };
}

absl::Status SetLeadingDirections(Spectrum& spectrum, const TimesCovariance& times,
                                  const LeadingOptions& options) {
  try {
    Iteration iteration(times, options, spectrum.dimensions());
    MP_RETURN_IF_ERROR(iteration.Run());
    iteration.Take(spectrum);
    return absl::OkStatus();
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError(
        absl::StrCat("out of memory for ", options.count, " leading directions of ",
                     spectrum.dimensions(), " dimensions; ask for fewer"));
  }
}

}  // namespace mergeplan
