#pragma once

#include <string>
#include <vector>

#include "planner/operators/terms.h"
#include "planner/plan/plan.h"

namespace mergeplan::oracle {

// IEEE quadruple precision: 34 digits. An objective is a square of differences of such numbers, so
// it has an absolute error of about 1e-33.
__extension__ typedef __float128 Wide;

double ToDouble(Wide x);
// 30 significant digits, for messages.
std::string ToString(Wide x);

// A planning problem in raw arrays, with exact float64 inputs.
struct ProblemSpec {
  std::vector<double> alpha;    // T+1, level 0 is the clean end
  std::vector<double> sigma;    // T+1
  std::vector<double> lambda;   // d
  std::vector<double> weights;  // d, or empty: all 1
  double train_time = 0;        // s: gamma_t = exp(-2 s n_t)
  // T rows (t = 1..T) of d numbers that are used in place of exp(-2 s n_t), or empty.
  std::vector<std::vector<double>> gamma;
  Init init = Init::kChild;
  Reference reference = Reference::kSurrogate;

  // A problem of bare tables in place of all the above but the weights: T rows (t = 1..T) of d
  // numbers each, and d numbers tau. A merge that ends in level j starts as p_j V(c_k) + q_j. Empty
  // `a`: no tables.
  struct Tables {
    std::vector<std::vector<double>> a, gamma, p, q;
    std::vector<double> tau;
  } tables;
};

// Plain evaluation of plans, written from the definitions only: no carried forms, no tables but the
// steps, nothing shared with planner/operators. Indices t run 1..T and k runs 0..d-1.
class Problem {
 public:
  // The sizes of `spec` must agree; this is test code and aborts if they do not.
  explicit Problem(ProblemSpec spec);

  const ProblemSpec& spec() const { return spec_; }
  bool has_tables() const { return !spec_.tables.a.empty(); }
  int steps() const {
    return static_cast<int>(has_tables() ? spec_.tables.a.size() : spec_.alpha.size() - 1);
  }
  int dimensions() const {
    return static_cast<int>(has_tables() ? spec_.tables.tau.size() : spec_.lambda.size());
  }

  Wide weight(int k) const { return spec_.weights.empty() ? 1 : spec_.weights[k]; }
  // alpha_t^2 lambda + sigma_t^2.
  Wide N(int t, int k) const;
  // The teacher's jump from level j to level i-1; the single step is Jump(t, t, k).
  Wide Jump(int i, int j, int k) const;
  Wide A(int t, int k) const { return a_[t][k]; }
  Wide Gamma(int t, int k) const { return gamma_[t][k]; }
  Wide Tau(int k) const {
    return has_tables() ? Wide(spec_.tables.tau[k]) : Tau(k, spec_.reference);
  }
  Wide Tau(int k, Reference reference) const;

  // Value of a merge of i..j whose children have the product `product`, the noisiest child being
  // m+1..j with value `last`: (1 - gamma_j) product + gamma_j c0.
  Wide Merge(int i, int m, int j, Wide product, Wide last, int k) const;

  // Value of every node of the plan (ids as in Plan): [node][k].
  std::vector<std::vector<Wide>> NodeValues(const Plan& plan) const;
  // Value of the whole student: the product of the blocks, d numbers.
  std::vector<Wide> Value(const Plan& plan) const;
  // sum_k w_k (tau_k - V_k)^2 for the reference of the problem.
  Wide Objective(const Plan& plan) const { return Objective(Value(plan)); }
  Wide Objective(const std::vector<Wide>& value) const;
  // Absolute error that a careful float64 evaluation of Objective(plan) may have:
  // sum_k w_k (2 |tau - V| delta + delta^2), delta = 16 T 2^-53 max(V, tau).
  double Tolerance(const Plan& plan) const;

 private:
  ProblemSpec spec_;
  std::vector<std::vector<Wide>> a_, gamma_;  // [t][k], row 0 unused
};

}  // namespace mergeplan::oracle
