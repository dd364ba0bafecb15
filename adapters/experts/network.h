#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"

namespace mergeplan::experts {

// The sizes of a time-conditioned affine mixture of experts (eq:gmm_student_moe,
// subsec:gaussian_mixtures_dataset):
//
//   w(z, t)      = softmax(W2 relu(W1 [z; emb(t/T)] + b1) + b2)          gate: weights
//   A(t), b(t)   = I + O_A, O_b  with  O = V2 relu(V1 emb(t/T) + c1) + c2  experts
//   student(z,t) = sum_e w_e(z, t) (A_e(t) z + b_e(t))
//
// The defaults are the paper's: 12,088 parameters for d = 2.
struct NetworkShape {
  int dimensions = 2;  // d
  int experts = 8;     // E
  int hidden = 64;     // H, of both nets
  int embedding = 64;  // M, even

  bool operator==(const NetworkShape&) const = default;

  // The numbers of one expert: A (d x d, row-major), then b (d).
  int expert_numbers() const { return dimensions * dimensions + dimensions; }

  // Where each part begins in the vector of parameters, in the order in which torch would list
  // them; every weight is [out, in], row-major.
  std::int64_t gate_w1() const { return 0; }                                         // H x (d + M)
  std::int64_t gate_b1() const { return hidden * inputs(); }                         // H
  std::int64_t gate_w2() const { return gate_b1() + hidden; }                        // E x H
  std::int64_t gate_b2() const { return gate_w2() + one * experts * hidden; }        // E
  std::int64_t expert_w1() const { return gate_b2() + experts; }                     // H x M
  std::int64_t expert_b1() const { return expert_w1() + one * hidden * embedding; }  // H
  std::int64_t expert_w2() const { return expert_b1() + hidden; }              // E (d^2 + d) x H
  std::int64_t expert_b2() const { return expert_w2() + outputs() * hidden; }  // E (d^2 + d)
  std::int64_t parameters() const { return expert_b2() + outputs(); }

  std::int64_t inputs() const { return one * dimensions + embedding; }
  std::int64_t outputs() const { return one * experts * expert_numbers(); }

 private:
  static constexpr std::int64_t one = 1;  // so that products are 64 bits wide
};

inline constexpr int kMaxExperts = 4096;
inline constexpr int kMaxHidden = 65536;
inline constexpr std::int64_t kMaxParameters = std::int64_t{1} << 28;

// INVALID_ARGUMENT names the size: 1 <= d, 1 <= E <= kMaxExperts, 1 <= H and M <= kMaxHidden, M
// even, at most kMaxParameters parameters.
absl::Status Validate(const NetworkShape& shape);

// emb(u) = (sin(w_1 u), cos(w_1 u), ..., sin(w_{M/2} u), cos(w_{M/2} u)), w_i = 10000^(-2i/M).
std::vector<double> Embedding(int size, double u);

// Parameters as torch.nn.Linear starts them: weights and biases uniform within
// +-1/sqrt(inputs of the layer). A function of the seed.
std::vector<double> InitialParameters(const NetworkShape& shape, std::uint64_t seed);

// Turns the student F of these parameters into p F(z) + q z, exactly and at every t: the weights of
// a softmax sum to 1, so A_e becomes p A_e + q I and b_e becomes p b_e, which the last layer of the
// expert net can say. This is how a DDIM wrapper is put in front of a student (see README.md).
void FoldWrapper(const NetworkShape& shape, double p, double q, std::vector<double>& parameters);

}  // namespace mergeplan::experts
