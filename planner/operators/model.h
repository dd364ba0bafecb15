#pragma once

#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "planner/operators/budget.h"
#include "planner/operators/tables.h"
#include "planner/operators/terms.h"
#include "planner/plan/plan.h"
#include "planner/schedule/schedule.h"

namespace mergeplan {

// What is asked of a planner, in native units. See Model.
struct ModelSpec {
  Schedule schedule;
  std::vector<double> variances;  // d values >= 0, of the data as the user has it
  std::vector<double> weights;    // d values >= 0, or empty: all 1
  Budget budget;
  Init init = Init::kChild;
  Reference reference = Reference::kSurrogate;
};

// The linear-Gaussian model of distillation, as tables: everything that planning, evaluating and
// executing need to know about a problem, per level t = 1..T and dimension k = 0..d-1 (diagonal
// operators, as:real_data_distribution).
//
//   n[t]  = alpha_t^2 lambda + sigma_t^2                                  variance of z_t
//   A[t]  = (alpha_{t-1} alpha_t lambda + sigma_{t-1} sigma_t) / n[t] eq:single_operator_formula
//   gamma[t] prop:student_gradient_flow, or SGD
//
// with lambda = variance / data_scale^2. Values of merges obey
//   V = (1 - gamma_j) V(c_1)...V(c_k) + gamma_j c0                       eq:recursive_merge
// The paper's equation is the start `child`.
//
// Carried form. Partial plans are computed in a form in which every start is one formula: for
// child, teacher and jump it is V itself, for child-jump the implied x0 coefficient x (V =
// (sigma_{i-1} + x D(i-1,j)) / sigma_j), since p V + q would cancel. Two neighbours [i,m], [m+1,j]
// with carried values u, v have the product
//   join.u * u + join.v * v + join.uv * u * v                            (all coefficients >= 0)
// and a merge over [i,j] of a product P with noisiest child v is (1 - gamma_j) P + gamma_j start,
// where start is v itself (child, child-jump) or a constant (teacher: A_j, jump: J(i,j)). All of it
// increases in u and v.
//
// A model may also be made of bare tables (ModelTables): then the carried form is V, merges start
// as p_j v + q_j, and there is no schedule, variance, budget, start or reference by name. What asks
// for one of these ends the program with a message: ask has_schedule() before.
class Model {
 public:
  // Checks sizes, finiteness, signs, the budget's step size, and that the reference has a meaning
  // for the schedule.
  static absl::StatusOr<Model> Create(ModelSpec spec);
  // Errors as CheckTables.
  static absl::StatusOr<Model> FromTables(ModelTables tables);

  int steps() const { return steps_; }
  int dimensions() const { return static_cast<int>(objective_weights_.size()); }

  // ---- of models with a schedule only
  bool has_schedule() const { return !tables_.has_value(); }
  const ModelSpec& spec() const { return Spec(); }
  const Schedule& schedule() const { return Spec().schedule; }
  const Budget& budget() const { return Spec().budget; }
  Init init() const { return Spec().init; }
  Reference reference() const { return Spec().reference; }
  absl::Span<const double> lambda() const { return Spec(), lambda_; }
  absl::Span<const double> n(int t) const { return Spec(), Row(n_, t); }

  // ---- of models of tables only
  const ModelTables& tables() const;

  // ---- of both
  // Weights of the squared errors in native units: weight_k data_scale^2; of tables, as given.
  absl::Span<const double> objective_weights() const { return objective_weights_; }
  absl::Span<const double> A(int t) const { return Row(a_, t); }
  absl::Span<const double> gamma(int t) const { return Row(gamma_, t); }
  absl::Span<const double> one_minus_gamma(int t) const { return Row(one_minus_gamma_, t); }

  // tau of the reference asked for (of tables, as given), and the two that are always reported (of
  // tables only that of the teacher, the product of the A).
  absl::Span<const double> tau() const;
  absl::Span<const double> tau(Reference reference) const;

  // ---- the carried form
  struct Join {
    double u, v, uv;
  };
  Join ProductOf(int i, int m, int j) const;  // neighbours [i,m] and [m+1,j]
  // Carried value of step t (d values).
  absl::Span<const double> Leaf(int t) const { return Row(carried_leaf_, t); }
  // Is the carried form the implied x0 coefficient (child-jump)? Otherwise it is V.
  bool carries_x0() const { return has_schedule() && spec_.init == Init::kChildJump; }
  // Does a merge start from its noisiest child (in carried form)? Of tables, with
  //   (1 - gamma_j) product + StartSlope(j) v + StartOffset(j).
  bool starts_from_child() const {
    return !has_schedule() || spec_.init == Init::kChild || spec_.init == Init::kChildJump;
  }
  // gamma_j, of tables gamma_j p_j: what a merge that starts from its noisiest child has of it.
  absl::Span<const double> StartSlope(int j) const {
    return Row(start_slope_.empty() ? gamma_ : start_slope_, j);
  }
  // gamma_j q_j of tables; empty where all q are 0 and for models with a schedule.
  absl::Span<const double> StartOffset(int j) const {
    return start_offset_.empty() ? absl::Span<const double>() : Row(start_offset_, j);
  }
  // Otherwise: the constant start of dimension k for a merge over [i,j].
  double ConstantStart(int i, int j, int k) const;
  // V = offset + scale * carried, for a node over [i,j].
  struct Affine {
    double offset, scale;
  };
  Affine CarriedToValue(int i, int j) const;

  // ---- values of whole plans
  // Carried values of all nodes of the plan (see Plan for ids), node-major: (T + merges) x d. O((T
  // + M) d).
  std::vector<double> CarriedNodeValues(const Plan& plan) const;
  // V of every node, node-major.
  std::vector<double> NodeValues(const Plan& plan) const;
  // V of the whole student: the product of the blocks (d values). O(M d) time, O(M) memory besides
  // the result.
  std::vector<double> Value(const Plan& plan) const;
  // sum_k w_k (tau_k - V_k)^2, in native units; without a reference, against tau().
  double Objective(absl::Span<const double> value) const;
  double Objective(absl::Span<const double> value, Reference reference) const;
  double Objective(const Plan& plan) const;
  // Bound on the rounding error of Objective(plan), and of sums of squares over as many columns:
  // sum_k w_k (2 |tau - V| delta + delta^2) + (d + 4) 2^-53 objective, delta = 16 T 2^-53 max(V,
  // tau), with the magnitude of CheckTables in the maximum, and what the exponents of the gammas
  // lose where V is little more than they are.
  double Tolerance(absl::Span<const double> value) const;
  double Tolerance(absl::Span<const double> value, Reference reference) const;
  // That delta, of coordinate k.
  double Rounding(int k, double value, double tau) const;

  // The same problem under another budget (e.g. the equal-total one). FAILED_PRECONDITION for
  // tables, in which the budget stands already.
  absl::StatusOr<Model> WithBudget(const Budget& budget) const;

 private:
  absl::Span<const double> Row(const std::vector<double>& table, int t) const {
    const size_t d = objective_weights_.size();
    return absl::MakeConstSpan(table).subspan(static_cast<size_t>(t - 1) * d, d);
  }
  const ModelSpec& Spec() const {
    if (!has_schedule()) [[unlikely]]
      NoSchedule();
    return spec_;
  }
  [[noreturn]] static void NoSchedule();
  double ObjectiveAgainst(absl::Span<const double> tau, absl::Span<const double> value) const;
  double ToleranceAgainst(absl::Span<const double> tau, absl::Span<const double> value) const;

  // Carried values of all nodes in the dimensions begin..begin+width-1, node-major.
  void CarriedNodeValues(const Plan& plan, size_t begin, size_t width,
                         absl::Span<double> values) const;

  int steps_ = 0;
  ModelSpec spec_;                     // nothing in it where there are tables
  std::optional<ModelTables> tables_;  // T, d, p, q, tau and weights; A and gamma stand below
  std::vector<double> lambda_, objective_weights_;
  std::vector<double> n_, a_, gamma_, one_minus_gamma_;  // T x d
  std::vector<double> carried_leaf_;                     // T x d
  std::vector<double> tau_surrogate_, tau_teacher_, tau_data_;
  // Of tables.
  std::vector<double> start_slope_, start_offset_;  // T x d, or empty where all p are 1, all q 0
  std::vector<double> magnitude_;                   // d
};

}  // namespace mergeplan
