#pragma once

#include <functional>
#include <vector>

#include "planner/search/shared/ends.h"

namespace mergeplan::search {

// A lower bound that looks at all coordinates together, for the starts child and teacher, any
// number of blocks and any allocation.
//
// Proof. In the terms of ends.h, a student's value is V_k = E[prod_{t in R_k} A_{t,k}] with R_k the
// random set of the steps that are not dropped; T is always in it. Let every merge m have one
// random number u_m, uniform on [0,1], for all coordinates, and be skipped in coordinate k where
// u_m < gamma_{m,k}: that leaves every V_k as it is. Input variances grow with lambda, so gamma
// falls with it: where a merge is skipped for a variance it is skipped for all smaller ones, and a
// done merge keeps what a skipped one does, and more. So R_k is part of R_l where lambda_k <=
// lambda_l: a step that is dropped for a variance is dropped for all smaller ones, a step that is
// kept is kept for all larger ones. Cut the coordinates at a border b in lambda. Of each step t one
// of two things then holds: it is dropped for all lambda <= b, or it is kept for all lambda > b.
// Hence the vector V lies in the convex hull of the vectors with the components
//   A_{T,k} prod_{t<T} (1 or A_{t,k}),
// where for each step t either the lower coordinates have 1, or the upper ones have A_{t,k}, and
// the rest is free. It also lies within the ends of every coordinate. Let psi_k be convex, and on
// the ends no larger than w_k (tau_k - V_k)^2; with any point x and subgradient c of sum psi at x,
//   objective >= sum psi_k(V_k) >= sum psi_k(x_k) + c (V - x) >= sum psi_k(x_k) - c x + min_F c F
// over the vectors F above. (Frank and Wolfe's bound.) The last minimum is over 2^(T-1) choices, by
// branch and bound: with some of the choices made, c_k F_k = c_k exp(y_k), y_k the sum of
// logarithms over the steps, is at least its tangent where c_k > 0, at least its chord between the
// ends of y_k where c_k < 0; both are sums over the steps, whose minimum is found step by step. The
// least bound of the open branches is a bound whenever the search ends.
//
// Coordinates in which some A_t is 0 add only the distance to their ends, and so do some of them
// where T d is beyond five million. Returns at least
// DistanceToEnds, up to rounding. `border`: b above; `enough` ends the work when the bound reaches
// it.
double DroppedStepsBound(const SharedProblem& problem, int blocks, const Ends& ends, double border,
                         double enough, const std::function<bool()>& stop);

}  // namespace mergeplan::search
