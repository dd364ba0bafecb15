#include "tests/oracle/experts_net.h"

#include <cmath>
#include <cstddef>

namespace mergeplan::oracle {
namespace {

using Vector = std::vector<long double>;

// Reads a linear layer [out, in] with its bias at `*at`, moves `*at` behind it and applies it.
Vector Linear(const Vector& parameters, std::size_t* at, std::size_t out, const Vector& x) {
  Vector y(out);
  const std::size_t bias = *at + out * x.size();
  for (std::size_t i = 0; i < out; ++i) {
    y[i] = parameters[bias + i];
    for (std::size_t j = 0; j < x.size(); ++j) y[i] += parameters[*at + i * x.size() + j] * x[j];
  }
  *at = bias + out;
  return y;
}

Vector Relu(Vector x) {
  for (long double& value : x) value = value > 0 ? value : 0;
  return x;
}

}  // namespace

std::vector<long double> ExpertsNet::Forward(const std::vector<double>& z, double time) const {
  Vector embedding;
  for (int i = 1; i <= M / 2; ++i) {
    const long double w = std::pow(10000.0L, -2.0L * i / M);
    embedding.push_back(std::sin(w * time));
    embedding.push_back(std::cos(w * time));
  }
  Vector input(z.begin(), z.end());
  input.insert(input.end(), embedding.begin(), embedding.end());
  std::size_t at = 0;
  const Vector gate_hidden = Relu(Linear(parameters, &at, H, input));
  const Vector logits = Linear(parameters, &at, E, gate_hidden);
  const Vector expert_hidden = Relu(Linear(parameters, &at, H, embedding));
  const std::size_t n = d * d + d;
  const Vector out = Linear(parameters, &at, E * n, expert_hidden);

  long double top = logits[0];
  for (const long double logit : logits) top = std::fmax(top, logit);
  long double sum = 0;
  for (const long double logit : logits) sum += std::exp(logit - top);
  Vector y(d, 0.0L);
  for (int e = 0; e < E; ++e) {
    const long double weight = std::exp(logits[e] - top) / sum;
    for (int i = 0; i < d; ++i) {
      long double led = z[i] + out[e * n + d * d + i];
      for (int j = 0; j < d; ++j) led += out[e * n + i * d + j] * z[j];
      y[i] += weight * led;
    }
  }
  return y;
}

long double ExpertsNet::Loss(const std::vector<double>& z, const std::vector<double>& target,
                             double time) const {
  const std::size_t rows = z.size() / d;
  long double sum = 0;
  for (std::size_t r = 0; r < rows; ++r) {
    const Vector y = Forward({z.begin() + r * d, z.begin() + (r + 1) * d}, time);
    for (int i = 0; i < d; ++i) {
      const long double error = y[i] - target[r * d + i];
      sum += error * error;
    }
  }
  return sum / rows;
}

std::vector<long double> ExpertsNet::Gradient(const std::vector<double>& z,
                                              const std::vector<double>& target, double time,
                                              const std::vector<int>& which, long double width) {
  Vector out;
  for (const int i : which) {
    const long double kept = parameters[i];
    parameters[i] = kept + width;
    const long double above = Loss(z, target, time);
    parameters[i] = kept - width;
    const long double below = Loss(z, target, time);
    parameters[i] = kept;
    out.push_back((above - below) / (2 * width));
  }
  return out;
}

}  // namespace mergeplan::oracle
