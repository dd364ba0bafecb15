#pragma once

#include <vector>

namespace mergeplan::oracle {

// The affine mixture-of-experts student of the paper (eq:gmm_student_moe), one row at a time, layer
// by layer, in long double. Parameters in torch's order: gate.0.weight [H, d+M], gate.0.bias,
// gate.2.weight [E, H], gate.2.bias, expert.0.weight [H, M], expert.0.bias, expert.2.weight
// [E (d^2+d), H], expert.2.bias; an expert's numbers are A (row-major) and then b.
struct ExpertsNet {
  int d = 0, E = 0, H = 0, M = 0;
  std::vector<long double> parameters;

  // student(z, t) with time = t/T.
  std::vector<long double> Forward(const std::vector<double>& z, double time) const;
  // Mean over the rows of the squared error summed over the dimensions; z and target are rows x d.
  long double Loss(const std::vector<double>& z, const std::vector<double>& target,
                   double time) const;
  // The derivative of Loss by every parameter in `which`, by central differences of width `width`.
  std::vector<long double> Gradient(const std::vector<double>& z, const std::vector<double>& target,
                                    double time, const std::vector<int>& which, long double width);
};

}  // namespace mergeplan::oracle
