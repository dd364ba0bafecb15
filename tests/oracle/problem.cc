#include "tests/oracle/problem.h"

#include <cstddef>
#include <cstdlib>
#include <utility>

// From libquadmath. Its header is GCC's own and out of sight of Clang's tools.
extern "C" {
__float128 expq(__float128);
__float128 sqrtq(__float128);
__float128 fabsq(__float128);
int quadmath_snprintf(char* text, size_t size, const char* format, ...);
}

namespace mergeplan::oracle {
namespace {

void Require(bool condition) {
  if (!condition) std::abort();
}

}  // namespace

double ToDouble(Wide x) { return static_cast<double>(x); }

std::string ToString(Wide x) {
  char text[64];
  quadmath_snprintf(text, sizeof text, "%.30Qg", x);
  return text;
}

Problem::Problem(ProblemSpec spec) : spec_(std::move(spec)) {
  const int T = steps(), d = dimensions();
  Require(T >= 1 && d >= 1);
  Require(spec_.weights.empty() || static_cast<int>(spec_.weights.size()) == d);
  if (has_tables()) {
    a_.resize(1);
    gamma_.resize(1);
    const auto& tables = spec_.tables;
    for (int t = 1; t <= T; ++t) {
      a_.emplace_back(tables.a[t - 1].begin(), tables.a[t - 1].end());
      gamma_.emplace_back(tables.gamma.at(t - 1).begin(), tables.gamma.at(t - 1).end());
      for (const auto* row :
           {&tables.a[t - 1], &tables.gamma[t - 1], &tables.p.at(t - 1), &tables.q.at(t - 1)}) {
        Require(static_cast<int>(row->size()) == d);
      }
    }
    return;
  }
  Require(spec_.sigma.size() == spec_.alpha.size());
  Require(spec_.gamma.empty() || static_cast<int>(spec_.gamma.size()) == T);
  a_.assign(T + 1, std::vector<Wide>(d));
  gamma_.assign(T + 1, std::vector<Wide>(d));
  for (int t = 1; t <= T; ++t) {
    for (int k = 0; k < d; ++k) {
      a_[t][k] = Jump(t, t, k);
      gamma_[t][k] = spec_.gamma.empty() ? expq(-2 * Wide(spec_.train_time) * N(t, k))
                                         : Wide(spec_.gamma[t - 1].at(k));
    }
  }
}

Wide Problem::N(int t, int k) const {
  const Wide alpha = spec_.alpha[t], sigma = spec_.sigma[t];
  return alpha * alpha * spec_.lambda[k] + sigma * sigma;
}

Wide Problem::Jump(int i, int j, int k) const {
  const Wide alpha = spec_.alpha[j], sigma = spec_.sigma[j];
  return (alpha * spec_.alpha[i - 1] * spec_.lambda[k] + sigma * spec_.sigma[i - 1]) / N(j, k);
}

Wide Problem::Tau(int k, Reference reference) const {
  if (reference == Reference::kData) return sqrtq(spec_.lambda[k]);
  Wide tau = 1;
  for (int t = 1; t <= steps(); ++t) {
    const bool replaced = reference == Reference::kSurrogate && spec_.lambda[k] > 1 && a_[t][k] < 1;
    if (!replaced) tau *= a_[t][k];
  }
  return tau;
}

Wide Problem::Merge(int i, int m, int j, Wide product, Wide last, int k) const {
  if (has_tables()) {
    const Wide start = Wide(spec_.tables.p[j - 1][k]) * last + spec_.tables.q[j - 1][k];
    return (1 - gamma_[j][k]) * product + gamma_[j][k] * start;
  }
  Wide start = last;
  if (spec_.init == Init::kTeacher) start = a_[j][k];
  if (spec_.init == Init::kJump) start = Jump(i, j, k);
  if (spec_.init == Init::kChildJump) {
    // The DDIM step to level b from level j with the estimate x z of the clean data is
    // z (alpha_b x + sigma_b (1 - alpha_j x) / sigma_j). Solve it for x at b = m, use it at
    // b = i - 1.
    const Wide alpha = spec_.alpha[j], sigma = spec_.sigma[j];
    const auto determinant = [&](int b) { return spec_.alpha[b] * sigma - alpha * spec_.sigma[b]; };
    const Wide p = determinant(i - 1) / determinant(m);
    const Wide q =
        -(Wide(spec_.alpha[i - 1]) * spec_.sigma[m] - Wide(spec_.alpha[m]) * spec_.sigma[i - 1]) /
        determinant(m);
    start = p * last + q;
  }
  return (1 - gamma_[j][k]) * product + gamma_[j][k] * start;
}

std::vector<std::vector<Wide>> Problem::NodeValues(const Plan& plan) const {
  const int T = steps(), d = dimensions();
  Require(plan.teacher_steps() == T);
  std::vector<std::vector<Wide>> values(a_.begin() + 1, a_.end());
  for (const mergeplan::Merge& merge : plan.merges()) {
    const int last = merge.children.back();
    std::vector<Wide> value(d);
    for (int k = 0; k < d; ++k) {
      Wide product = 1;
      for (int child : merge.children) product *= values[child][k];
      value[k] =
          Merge(merge.first, plan.range(last).first - 1, merge.last, product, values[last][k], k);
    }
    values.push_back(std::move(value));
  }
  return values;
}

std::vector<Wide> Problem::Value(const Plan& plan) const {
  const std::vector<std::vector<Wide>> nodes = NodeValues(plan);
  std::vector<Wide> value(dimensions(), 1);
  for (int block : plan.blocks()) {
    for (int k = 0; k < dimensions(); ++k) value[k] *= nodes[block][k];
  }
  return value;
}

Wide Problem::Objective(const std::vector<Wide>& value) const {
  Wide sum = 0;
  for (int k = 0; k < dimensions(); ++k) {
    const Wide error = Tau(k) - value[k];
    sum += weight(k) * error * error;
  }
  return sum;
}

double Problem::Tolerance(const Plan& plan) const {
  const std::vector<Wide> value = Value(plan);
  Wide sum = 0;
  for (int k = 0; k < dimensions(); ++k) {
    const Wide tau = Tau(k);
    const Wide delta = Wide(16.0 * steps() * 0x1p-53) * (value[k] > tau ? value[k] : tau);
    sum += weight(k) * (2 * fabsq(tau - value[k]) * delta + delta * delta);
  }
  return ToDouble(sum);
}

}  // namespace mergeplan::oracle
