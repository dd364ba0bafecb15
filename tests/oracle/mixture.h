#pragma once

#include <vector>

#include "tests/oracle/problem.h"

namespace mergeplan::oracle {

// A Gaussian mixture with full covariances in quadruple precision.
struct Mixture {
  int K = 0, d = 0;
  std::vector<Wide> weights, means, covariances;  // K, K x d, K x d x d

  // Sigma_k = Diag(variances) + factors factors^T, `rank` columns; both are K x d (x rank).
  void SetCovariances(const std::vector<double>& variances, const std::vector<double>& factors,
                      int rank);
};

// What the optimal teacher makes of z: the step from (alpha, sigma) to (to_alpha, to_sigma),
// written from eq:gmm_denoiser and eq:denosing_process with dense inverses, and its derivative by
// dual numbers, a direction at a time. sigma > 0.
struct MixtureStep {
  std::vector<Wide> out;       // d: to_alpha E[x_0 | z] + to_sigma (z - alpha E[x_0 | z]) / sigma
  std::vector<Wide> jacobian;  // d x d, row i is the derivative of out[i]
  std::vector<Wide> r;         // K
  Wide log_density = 0;
  // Of the components, for judging how hard the problem is: C^-1 (z - alpha mean), its product with
  // z - alpha mean, the trace of C^-1, and where the component alone would lead.
  std::vector<Wide> pull;      // K x d
  std::vector<Wide> distance;  // K
  std::vector<Wide> trace;     // K
  std::vector<Wide> alone;     // K x d
};
MixtureStep StepMixture(const Mixture& mixture, double alpha, double sigma, double to_alpha,
                        double to_sigma, const std::vector<double>& z);

}  // namespace mergeplan::oracle
