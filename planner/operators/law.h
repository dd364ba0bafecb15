#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "planner/operators/model.h"
#include "planner/plan/plan.h"

namespace mergeplan {

// What a plan that is executed with stochastic gradient descent ends at. An update with a fresh
// batch of B inputs of variance n takes the distance to the target times 1 - g y, g = 2 lr
// feature_norm n, y ~ chi^2_B / B. So a merge over [i,j] in one dimension has
//   V = P + Gamma (c0 - P),   Gamma = product over k updates of (1 - g y_u),
// P the product of its children, independent for all merges of a plan.

// ---- Moments.

// The first four moments of the value of the whole student, one entry per dimension. They are exact
// (up to rounding; a spread below about 1e-75 of the value counts as none).
struct ValueLaw {
  std::vector<double> mean;  // the deterministic prediction, Model::Value
  std::vector<double> variance;
  std::vector<double> skewness, excess_kurtosis;  // 0 where the variance is, or beyond doubles
};

// INVALID_ARGUMENT unless the budget is SGD. O((T + M) d).
absl::StatusOr<ValueLaw> LawOfValue(const Model& model, const Plan& plan);

// E sum_k w_k (tau_k - V_k)^2 = sum_k w_k ((tau_k - E V_k)^2 + Var V_k), in native units.
double ExpectedObjective(const Model& model, const ValueLaw& law, Reference reference);

// ---- Test of a run against the law.

// Rounding of a run's arithmetic, relative to max(V, tau).
inline constexpr double kRoundingFloat64 = 1e-12;
inline constexpr double kRoundingFloat32 = 1e-12 * 536870912.0;  // 2^29 times as coarse

struct LawTestOptions {
  int draws = 10000;  // at least 1000
  std::uint64_t seed = 1;
  double rounding = kRoundingFloat64;
  int threads = 2;
};

// Is an achieved value a draw of the exact law? The shrinkages of `merges` merges are drawn once,
// all updates of all of them, and serve for every plan with at most so many merges.
//
// The p-value of a dimension is two-sided, twice the smaller tail, and the largest over achieved +-
// rounding max(achieved, tau). A tail of 1 % or more is a share of the draws. Beyond the draws'
// 1 % point u it is 1 % Phi(h(x))/Phi(h(u)): the draws place the tail, and its decay is the normal
// one on the scale h on which a shifted lognormal with the exact mean, variance and skewness of the
// law is standard normal (the skewness can have either sign, and 0 gives the normal law). For
// hundreds of updates with batches like 64 the law is nearly lognormal or normal, its kurtosis
// agrees with that scale to 0.001, and tails of 1e-7 are right within the ten per cent that 10,000
// draws leave. For few, large updates a light tail of 1e-6 comes out up to a third too heavy.
//
// The inputs of different dimensions are shared between dimensions within a draw. That changes
// nothing here: every p-value looks at one dimension, and Holm's procedure holds whatever the
// dependence.
class LawTest {
 public:
  // Draws. INVALID_ARGUMENT unless the budget is SGD, draws >= 1000 and merges >= 0. O(merges draws
  // updates) time, merges draws 64 bytes. The result depends on the options but the threads.
  static absl::StatusOr<LawTest> Create(const Model& model, int merges,
                                        const LawTestOptions& options = {});

  // p-values for the achieved value of the whole student in one run (d numbers) or several runs of
  // the same plan (run-major, a multiple of d). INVALID_ARGUMENT for a plan with other T or more
  // merges than prepared, or a wrong number of values; a value that is not finite has p = 0. O(M
  // draws d).
  absl::StatusOr<std::vector<double>> PValues(const Plan& plan,
                                              absl::Span<const double> achieved) const;

  // The draws of the value in dimension k: `draws` numbers. Same conditions on the plan.
  absl::StatusOr<std::vector<double>> Draws(const Plan& plan, int dimension) const;

 private:
  // log Gamma / -g as a polynomial in g, by its values at so many Chebyshev points.
  static constexpr int kNodes = 8;
  // Draws that are made and evaluated together, with a random stream of their own.
  static constexpr int kBlock = 256;

  LawTest(const Model& model, const LawTestOptions& options) : model_(model), options_(options) {}

  absl::Status CheckPlan(const Plan& plan) const;
  int Blocks() const { return (options_.draws + kBlock - 1) / kBlock; }
  // The y of one merge and one block of draws, update-major: [update][kBlock].
  std::vector<double> Inputs(int merge, int block) const;
  void DrawBlock(int merge, int block);
  // Values of dimensions first..first+count-1, [dimension][draw].
  std::vector<double> Simulate(const Plan& plan, int first, int count) const;
  void SimulateBlock(const Plan& plan, int block, int first, int count, double* out) const;

  Model model_;
  LawTestOptions options_;
  int merges_ = 0;
  double direct_above_ = 0;  // larger g are multiplied out update by update
  double node_g_[kNodes] = {};
  std::vector<double> nodes_;    // [merge][block][node][kBlock]
  std::vector<double> weights_;  // [t][dimension][node]: -g times the interpolation weights
};

// Holm's step-down procedure: which hypotheses are rejected with a probability of at most `level`
// that a true one is among them, whatever the dependence. O(m log m).
std::vector<bool> HolmReject(absl::Span<const double> p_values, double level);

}  // namespace mergeplan
