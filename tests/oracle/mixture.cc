#include "tests/oracle/mixture.h"

#include <quadmath.h>

#include <cstdlib>

namespace mergeplan::oracle {
namespace {

// A number and its derivative.
struct Dual {
  Wide value = 0, slope = 0;
};
Dual operator+(Dual x, Dual y) { return {x.value + y.value, x.slope + y.slope}; }
Dual operator-(Dual x, Dual y) { return {x.value - y.value, x.slope - y.slope}; }
Dual operator*(Dual x, Dual y) {
  return {x.value * y.value, x.slope * y.value + x.value * y.slope};
}
Dual operator/(Dual x, Dual y) {
  const Wide q = x.value / y.value;
  return {q, (x.slope - q * y.slope) / y.value};
}
Dual Exp(Dual x) {
  const Wide e = expq(x.value);
  return {e, e * x.slope};
}
Dual Constant(Wide x) { return {x, 0}; }

// C = L L^T; the inverse and log det.
std::vector<Wide> Inverse(std::vector<Wide> c, int d, Wide* log_det) {
  std::vector<Wide> inverse(static_cast<std::size_t>(d) * d, 0);
  for (int i = 0; i < d; ++i) {
    for (int j = 0; j <= i; ++j) {
      Wide sum = c[i * d + j];
      for (int l = 0; l < j; ++l) sum -= c[i * d + l] * c[j * d + l];
      if (i == j && !(sum > 0)) std::abort();
      c[i * d + j] = i == j ? sqrtq(sum) : sum / c[j * d + j];
    }
  }
  *log_det = 0;
  for (int i = 0; i < d; ++i) *log_det += 2 * logq(c[i * d + i]);
  for (int column = 0; column < d; ++column) {
    std::vector<Wide> x(d, 0);
    for (int i = 0; i < d; ++i) {
      Wide sum = i == column ? 1 : 0;
      for (int l = 0; l < i; ++l) sum -= c[i * d + l] * x[l];
      x[i] = sum / c[i * d + i];
    }
    for (int i = d - 1; i >= 0; --i) {
      Wide sum = x[i];
      for (int l = i + 1; l < d; ++l) sum -= c[l * d + i] * x[l];
      x[i] = sum / c[i * d + i];
    }
    for (int i = 0; i < d; ++i) inverse[i * d + column] = x[i];
  }
  return inverse;
}

}  // namespace

void Mixture::SetCovariances(const std::vector<double>& variances,
                             const std::vector<double>& factors, int rank) {
  covariances.assign(static_cast<std::size_t>(K) * d * d, 0);
  for (int k = 0; k < K; ++k) {
    for (int i = 0; i < d; ++i) {
      covariances[(k * d + i) * d + i] += variances[k * d + i];
      for (int j = 0; j < d; ++j) {
        for (int l = 0; l < rank; ++l) {
          covariances[(k * d + i) * d + j] +=
              static_cast<Wide>(factors[(k * d + i) * rank + l]) * factors[(k * d + j) * rank + l];
        }
      }
    }
  }
}

MixtureStep StepMixture(const Mixture& mixture, double alpha, double sigma, double to_alpha,
                        double to_sigma, const std::vector<double>& z) {
  const int K = mixture.K, d = mixture.d;
  if (!(sigma > 0) || static_cast<int>(z.size()) != d) std::abort();
  const Wide a = alpha, s = sigma;
  std::vector<std::vector<Wide>> inverse(K);
  std::vector<Wide> log_det(K);
  MixtureStep result;
  for (int k = 0; k < K; ++k) {
    std::vector<Wide> c(static_cast<std::size_t>(d) * d);
    for (int i = 0; i < d * d; ++i) c[i] = a * a * mixture.covariances[k * d * d + i];
    for (int i = 0; i < d; ++i) c[i * d + i] += s * s;
    inverse[k] = Inverse(c, d, &log_det[k]);
    Wide trace = 0;
    for (int i = 0; i < d; ++i) trace += inverse[k][i * d + i];
    result.trace.push_back(trace);
  }
  result.out.resize(d);
  result.jacobian.resize(static_cast<std::size_t>(d) * d);
  for (int direction = 0; direction < d; ++direction) {
    std::vector<Dual> state(d);
    for (int i = 0; i < d; ++i) state[i] = {z[i], i == direction ? Wide{1} : Wide{0}};
    std::vector<std::vector<Dual>> pull(K, std::vector<Dual>(d)), x0 = pull;
    std::vector<Dual> log_density(K), distance(K);
    Wide most = -HUGE_VALQ;
    for (int k = 0; k < K; ++k) {
      std::vector<Dual> u(d);
      for (int i = 0; i < d; ++i) u[i] = state[i] - Constant(a * mixture.means[k * d + i]);
      for (int i = 0; i < d; ++i) {
        for (int j = 0; j < d; ++j) {
          pull[k][i] = pull[k][i] + Constant(inverse[k][i * d + j]) * u[j];
        }
        distance[k] = distance[k] + u[i] * pull[k][i];
      }
      for (int i = 0; i < d; ++i) {
        x0[k][i] = Constant(mixture.means[k * d + i]);
        for (int j = 0; j < d; ++j) {
          x0[k][i] = x0[k][i] + Constant(a * mixture.covariances[(k * d + i) * d + j]) * pull[k][j];
        }
      }
      const Wide constant = logq(mixture.weights[k]) - (log_det[k] + d * logq(2 * acosq(-1))) / 2;
      log_density[k] = Constant(constant) - distance[k] * Constant(Wide{1} / 2);
      if (log_density[k].value > most) most = log_density[k].value;
    }
    Dual total = Constant(0);
    std::vector<Dual> r(K);
    for (int k = 0; k < K; ++k) {
      r[k] = Exp(log_density[k] - Constant(most));
      total = total + r[k];
    }
    for (int k = 0; k < K; ++k) r[k] = r[k] / total;
    for (int i = 0; i < d; ++i) {
      Dual x = Constant(0);
      for (int k = 0; k < K; ++k) x = x + r[k] * x0[k][i];
      const Dual noise = (state[i] - Constant(a) * x) / Constant(s);
      const Dual out = Constant(to_alpha) * x + Constant(to_sigma) * noise;
      result.out[i] = out.value;
      result.jacobian[i * d + direction] = out.slope;
    }
    if (direction > 0) continue;
    result.log_density = most + logq(total.value);
    for (int k = 0; k < K; ++k) {
      result.r.push_back(r[k].value);
      result.distance.push_back(distance[k].value);
      for (int i = 0; i < d; ++i) {
        const Wide x = x0[k][i].value;
        result.pull.push_back(pull[k][i].value);
        result.alone.push_back(to_alpha * x + to_sigma * (z[i] - a * x) / s);
      }
    }
  }
  return result;
}

}  // namespace mergeplan::oracle
