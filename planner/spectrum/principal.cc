#include "planner/spectrum/principal.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <future>
#include <memory>
#include <new>
#include <system_error>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "planner/base/status_macros.h"
#include "planner/spectrum/parallel.h"

namespace mergeplan {

double SquaredNorm(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value * value;
  return sum;
}

namespace {

// What the eigenvectors are computed from and into: owned by two threads, of which one may be gone.
struct Decomposition {
  std::vector<double> matrix, values, vectors;
  bool in_memory = false, converged = false;
  std::promise<void> done;
};

// On a thread of its own, since there is no way to stop it from within.
absl::Status Decompose(const std::shared_ptr<Decomposition>& work, const Kernels& kernels,
                       const std::function<bool()>& stop) {
  const auto run = [work, &kernels] {
    work->in_memory =
        kernels.eigen(work->matrix.data(), static_cast<std::ptrdiff_t>(work->values.size()),
                      work->values.data(), work->vectors.data(), &work->converged);
    work->done.set_value();
  };
  if (!stop) {
    run();
    return absl::OkStatus();
  }
  const std::future<void> done = work->done.get_future();
  try {
    std::thread(run).detach();
  } catch (const std::system_error&) {
    run();  // The system grants no more threads.
  }
  while (done.wait_for(std::chrono::milliseconds(20)) != std::future_status::ready) {
    if (stop()) {
      return absl::CancelledError(
          "stopped while the principal directions were computed; the diagonal and dct bases do "
          "without them");
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status SetPrincipalDirections(Spectrum& spectrum, const Kernels& kernels,
                                    const std::function<bool()>& stop) {
  const std::size_t d = spectrum.dimensions();
  auto work = std::make_shared<Decomposition>();
  work->values.resize(d);
  work->vectors.resize(d * d);
  work->matrix = std::move(spectrum.covariance);
  MP_RETURN_IF_ERROR(Decompose(work, kernels, stop));
  spectrum.covariance = std::move(work->matrix);
  std::vector<double>& values = spectrum.pca.variances;
  std::vector<double>& vectors = spectrum.vectors;
  values = std::move(work->values);
  vectors = std::move(work->vectors);
  if (!work->in_memory) {
    return absl::ResourceExhaustedError(
        absl::StrCat("out of memory in the eigenvectors of a ", d, " x ", d, " covariance"));
  }
  if (!work->converged) {
    return absl::InternalError(absl::StrCat("the eigenvalue iteration of the ", d, " x ", d,
                                            " covariance did not converge"));
  }
  std::reverse(values.begin(), values.end());
  for (double& value : values) value = std::max(0.0, value);
  for (std::size_t i = 0; i < d / 2; ++i) {
    std::swap_ranges(vectors.begin() + i * d, vectors.begin() + (i + 1) * d,
                     vectors.begin() + (d - 1 - i) * d);
  }
  for (std::size_t i = 0; i < d; ++i) {
    double* row = vectors.data() + i * d;
    double largest = 0;
    for (std::size_t j = 0; j < d; ++j) largest = std::max(largest, std::abs(row[j]));
    const double* leader = std::find_if(row, row + d, [&](double component) {
      return std::abs(component) >= largest * (1 - 1e-6);
    });
    if (*leader < 0) {
      for (std::size_t j = 0; j < d; ++j) row[j] = -row[j];
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<double> RotatedOffDiagonalEnergy(const Spectrum& spectrum, const Kernels& kernels,
                                                int threads) {
  constexpr int kRows = 64;
  const int d = spectrum.dimensions();
  const int tasks = (d + kRows - 1) / kRows;
  std::vector<double> sums(tasks);
  MP_RETURN_IF_ERROR(ParallelFor(tasks, threads, [&](int task) {
    try {
      const int first = task * kRows, rows = std::min(kRows, d - first);
      std::vector<double> half(static_cast<std::size_t>(rows) * d), rotated(half.size());
      if (!kernels.multiply_f64(spectrum.vectors.data() + static_cast<std::size_t>(first) * d, rows,
                                d, spectrum.covariance.data(), half.data()) ||
          !kernels.multiply_transposed_f64(half.data(), rows, d, spectrum.vectors.data(), d,
                                           rotated.data())) {
        return false;
      }
      for (int r = 0; r < rows; ++r) rotated[static_cast<std::size_t>(r) * d + first + r] = 0;
      sums[task] = SquaredNorm(rotated);
      return true;
    } catch (const std::bad_alloc&) {
      return false;
    }
  }));
  double off = 0;
  for (const double sum : sums) off += sum;
  const double all = SquaredNorm(spectrum.covariance);
  return all > 0 ? off / all : 0.0;
}

absl::Status SetDctVariances(Spectrum& spectrum, const Dct& dct, int threads) {
  constexpr int kRows = 64;
  const int d = spectrum.dimensions();
  const std::size_t width = static_cast<std::size_t>(d);
  std::vector<double> half;
  try {
    half = spectrum.covariance;
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError(
        absl::StrCat("out of memory in the DCT of a ", d, " x ", d, " covariance"));
  }
  spectrum.dct.variances.assign(width, 0.0);
  // C D^T row by row, then the diagonal of D (C D^T).
  MP_RETURN_IF_ERROR(ParallelFor((d + kRows - 1) / kRows, threads, [&](int task) {
    std::vector<double> scratch;
    for (int i = task * kRows; i < std::min(d, (task + 1) * kRows); ++i) {
      dct.Forward(half.data() + static_cast<std::size_t>(i) * width, scratch);
    }
    return true;
  }));
  MP_RETURN_IF_ERROR(ParallelFor((d + kRows - 1) / kRows, threads, [&](int task) {
    for (int k = task * kRows; k < std::min(d, (task + 1) * kRows); ++k) {
      spectrum.dct.variances[static_cast<std::size_t>(k)] = dct.Coefficient(k, half.data() + k, d);
    }
    return true;
  }));
  for (double& value : spectrum.dct.variances) value = std::max(0.0, value);
  const double all = SquaredNorm(spectrum.covariance);
  const double kept = SquaredNorm(spectrum.dct.variances);
  spectrum.dct.off_diagonal_energy = all > 0 ? std::clamp(1 - kept / all, 0.0, 1.0) : 0.0;
  return absl::OkStatus();
}

}  // namespace mergeplan
