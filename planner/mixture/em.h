#pragma once

#include <Eigen/Core>
#include <cstddef>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "planner/mixture/mixture.h"

namespace mergeplan {

// The two steps of expectation-maximisation, for this folder (fit.h is what others use).

// A mixture while it is fitted. Column k is component k.
struct EmState {
  CovarianceKind kind = CovarianceKind::kDiagonal;
  int rank = 0;
  double floor = 0;  // least variance or eigenvalue, > 0
  Eigen::VectorXd weights;
  Eigen::MatrixXd means;                     // d x K
  Eigen::MatrixXd variances;                 // d x K of kDiagonal
  std::vector<Eigen::MatrixXd> covariances;  // of kFull
  std::vector<Eigen::MatrixXd> factors;      // d x rank, of kLowRank
  Eigen::VectorXd noise;                     // of kLowRank: variance of all other directions

  Eigen::Index components() const { return weights.size(); }
};

// Responsibilities (n x K, row-major) from the state; returns the log-likelihood of all rows.
// `log_densities` (n) receives that of each where it is not null.
absl::StatusOr<double> ExpectationStep(const EmState& state, absl::Span<const double> rows,
                                       int threads, std::vector<double>& responsibilities,
                                       std::vector<double>* log_densities);

// The state that is likeliest under these responsibilities. Components whose share is below half a
// sample are dropped.
absl::Status MaximisationStep(absl::Span<const double> rows,
                              const std::vector<double>& responsibilities, int threads,
                              EmState& state);

}  // namespace mergeplan
