// The test of a run against draws of the exact law.

#include <Eigen/Core>
#include <algorithm>
#include <atomic>
#include <cmath>
#include <functional>
#include <limits>
#include <numbers>
#include <numeric>
#include <random>
#include <thread>

#include "absl/random/gaussian_distribution.h"
#include "absl/strings/str_format.h"
#include "planner/operators/law.h"
#include "planner/operators/law_internal.h"

namespace mergeplan {
namespace {

// Calls work(0..count-1) from so many threads.
void InParallel(int threads, int count, const std::function<void(int)>& work) {
  std::atomic<int> next = 0;
  const auto loop = [&] {
    for (int i = next++; i < count; i = next++) work(i);
  };
  std::vector<std::thread> others;
  for (int t = 1; t < std::min(threads, count); ++t) others.emplace_back(loop);
  loop();
  for (std::thread& other : others) other.join();
}

// chi^2_B / B: a square of a normal number for B = 1, else the method of Marsaglia and Tsang (2000)
// for the gamma distribution with shape B / 2 >= 1, twice as fast here as std::gamma_distribution.
class MeanSquare {
 public:
  explicit MeanSquare(int batch)
      : batch_(batch), d_(batch / 2.0 - 1.0 / 3), c_(1 / std::sqrt(9 * std::max(d_, 0.1))) {}

  double operator()(std::mt19937_64& engine) {
    if (batch_ == 1) {
      const double x = normal_(engine);
      return x * x;
    }
    for (;;) {
      const double x = normal_(engine);
      const double root = 1 + c_ * x;
      if (root <= 0) continue;
      const double v = root * root * root;
      const double u = static_cast<double>(engine() >> 11) * 0x1p-53;
      const double x2 = x * x;
      if (u < 1 - 0.0331 * x2 * x2 || std::log(u) < 0.5 * x2 + d_ * (1 - v + std::log(v))) {
        return 2 * d_ * v / batch_;
      }
    }
  }

 private:
  int batch_;
  double d_, c_;
  absl::gaussian_distribution<double> normal_;
};

// A value that chi^2_B / B exceeds with a probability below 1e-12 or so (Wilson and Hilferty; too
// large for small B, which does no harm).
double LargestMeanSquare(int batch) {
  const double v = 2.0 / (9.0 * batch);
  const double root = 1 - v + 7.5 * std::sqrt(v);
  return root * root * root;
}

double NormalTail(double z) { return 0.5 * std::erfc(z / std::numbers::sqrt2); }

// The monotone map that makes a shifted lognormal with the given first three moments standard
// normal; below (or above) its support it is infinite.
class NormalScale {
 public:
  NormalScale(double mean, double variance, double skewness)
      : mean_(mean), sd_(std::sqrt(variance)), sign_(skewness < 0 ? -1 : 1) {
    // (w + 2) sqrt(w - 1) = |skewness| with w = exp(shape^2); in r = sqrt(w - 1) it is r^3 + 3 r =
    // |skewness|, and r = 2 sinh(asinh(|skewness| / 2) / 3).
    r_ = 2 * std::sinh(std::asinh(std::abs(skewness) / 2) / 3);
  }

  double operator()(double x) const {
    const double y = sign_ * (x - mean_) / sd_;
    if (r_ < 1e-7) return sign_ * y;
    if (y * r_ <= -1) return -sign_ * std::numeric_limits<double>::infinity();
    const double log_w = std::log1p(r_ * r_);
    return sign_ * (std::log1p(y * r_) + log_w / 2) / std::sqrt(log_w);
  }

 private:
  double mean_, sd_, sign_, r_;
};

// One tail of the law: P(V <= x) from the draws, continued below their 1 % point on the normal
// scale. `direction` = -1 mirrors everything: P(V >= x).
class Tail {
 public:
  // Reorders the draws. Both must outlive the tail.
  Tail(std::vector<double>& draws, const NormalScale& scale, double direction)
      : draws_(draws),
        scale_(scale),
        direction_(direction),
        tail_count_(std::max<std::ptrdiff_t>(50, static_cast<std::ptrdiff_t>(draws.size() / 100))) {
    std::nth_element(draws.begin(), draws.begin() + (tail_count_ - 1), draws.end(),
                     [&](double a, double b) { return direction * a < direction * b; });
    tail_point_ = draws[tail_count_ - 1];
    at_tail_point_ = NormalTail(-direction_ * scale_(tail_point_));
  }

  double operator()(double x) const {
    const auto total = static_cast<double>(draws_.size());
    if (direction_ * x >= direction_ * tail_point_) {
      const auto count = std::count_if(draws_.begin(), draws_.end(),
                                       [&](double v) { return direction_ * v <= direction_ * x; });
      return static_cast<double>(count) / total;
    }
    if (!(at_tail_point_ > 0)) return 0;
    const double share = NormalTail(-direction_ * scale_(x)) / at_tail_point_;
    return static_cast<double>(tail_count_) / total * std::min(1.0, share);
  }

 private:
  const std::vector<double>& draws_;
  const NormalScale& scale_;
  double direction_;
  std::ptrdiff_t tail_count_;
  double tail_point_ = 0, at_tail_point_ = 0;
};

}  // namespace

absl::StatusOr<LawTest> LawTest::Create(const Model& model, int merges,
                                        const LawTestOptions& options) {
  if (absl::Status status = CheckSgd(model); !status.ok()) return status;
  if (options.draws < 1000 || merges < 0 || options.threads < 1 || !(options.rounding >= 0)) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "law test with %d draws, %d merges, %d threads, rounding %g: expected at least 1000 draws, "
        "0 merges, 1 thread and a rounding >= 0",
        options.draws, merges, options.threads, options.rounding));
  }
  LawTest test(model, options);
  test.merges_ = merges;
  const Budget& budget = model.budget();

  // The range of g to interpolate over: as far as Gamma matters, and far from 1 / y.
  double largest = 0;
  for (int t = 2; t <= model.steps(); ++t) {
    for (double n : model.n(t)) {
      if (SecondMomentOfShrinkage(budget, n) >= kNegligibleSecondMoment) {
        largest = std::max(largest, budget.StepSize(n));
      }
    }
  }
  test.direct_above_ = std::min(largest, 0.7 / LargestMeanSquare(budget.batch));
  double barycentric[kNodes];
  for (int c = 0; c < kNodes; ++c) {
    const double angle = std::numbers::pi * (2 * c + 1) / (2 * kNodes);
    test.node_g_[c] = test.direct_above_ * (1 + std::cos(angle)) / 2;
    barycentric[c] = (c % 2 == 0 ? 1 : -1) * std::sin(angle);
  }
  const int d = model.dimensions();
  test.weights_.assign(static_cast<size_t>(model.steps()) * d * kNodes, 0.0);
  for (int t = 1; t <= model.steps(); ++t) {
    for (int k = 0; k < d; ++k) {
      const double g = budget.StepSize(model.n(t)[k]);
      double* w = &test.weights_[(static_cast<size_t>(t - 1) * d + k) * kNodes];
      double sum = 0;
      for (int c = 0; c < kNodes; ++c) {
        if (g == test.node_g_[c]) {
          std::fill(w, w + kNodes, 0.0);
          w[c] = sum = 1;
          break;
        }
        w[c] = barycentric[c] / (g - test.node_g_[c]);
        sum += w[c];
      }
      for (int c = 0; c < kNodes; ++c) w[c] *= -g / sum;
    }
  }

  const int blocks = test.Blocks();
  test.nodes_.resize(static_cast<size_t>(merges) * blocks * kNodes * kBlock);
  if (largest > 0) {
    InParallel(options.threads, merges * blocks,
               [&](int i) { test.DrawBlock(i / blocks, i % blocks); });
  }
  return test;
}

std::vector<double> LawTest::Inputs(int merge, int block) const {
  std::seed_seq seeds{static_cast<std::uint32_t>(options_.seed),
                      static_cast<std::uint32_t>(options_.seed >> 32),
                      static_cast<std::uint32_t>(merge), static_cast<std::uint32_t>(block)};
  std::mt19937_64 engine(seeds);
  MeanSquare mean_square(model_.budget().batch);
  std::vector<double> y(static_cast<size_t>(model_.budget().iterations) * kBlock);
  for (double& value : y) value = mean_square(engine);
  return y;
}

void LawTest::DrawBlock(int merge, int block) {
  const std::vector<double> y = Inputs(merge, block);
  double* nodes = &nodes_[(static_cast<size_t>(merge) * Blocks() + block) * kNodes * kBlock];
  for (int c = 0; c < kNodes; ++c) {
    const double g = node_g_[c];
    double* out = nodes + static_cast<size_t>(c) * kBlock;
    std::vector<double> product(kBlock, 1.0);
    std::vector<double> log_sum(kBlock, 0.0);
    for (size_t u = 0; u * kBlock < y.size(); ++u) {
      const double* row = &y[u * kBlock];
      for (int r = 0; r < kBlock; ++r) product[r] *= std::max(1 - g * row[r], 1e-9);
      if (u % 32 == 31 || (u + 1) * kBlock == y.size()) {
        for (int r = 0; r < kBlock; ++r) {
          log_sum[r] += std::log(product[r]);
          product[r] = 1;
        }
      }
    }
    for (int r = 0; r < kBlock; ++r) out[r] = log_sum[r] / -g;
  }
}

absl::Status LawTest::CheckPlan(const Plan& plan) const {
  if (plan.teacher_steps() != model_.steps() || plan.size() > merges_) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "plan has %d teacher steps and %d merges, expected %d steps and at most the %d merges that "
        "the law test was made for",
        plan.teacher_steps(), plan.size(), model_.steps(), merges_));
  }
  return absl::OkStatus();
}

void LawTest::SimulateBlock(const Plan& plan, int block, int first, int count, double* out) const {
  using Row = Eigen::Array<double, kBlock, 1>;
  const int T = model_.steps(), d = model_.dimensions(), draws = options_.draws;
  const bool from_child = model_.starts_from_child();
  std::vector<Row> values(plan.size());
  std::vector<std::vector<double>> inputs(plan.size());  // only where multiplied out
  Row product, gamma, other;
  // A node's values: a row of draws, or the same number in all of them.
  const auto load = [&](int node, int k, Row& to) {
    if (plan.is_step(node)) {
      to.setConstant(model_.Leaf(node + 1)[k]);
    } else {
      to = values[node - T];
    }
  };
  for (int k = first; k < first + count; ++k) {
    for (int m = 0; m < plan.size(); ++m) {
      const Merge& merge = plan.merges()[m];
      const int j = merge.last;
      const double n = model_.n(j)[k], g = model_.budget().StepSize(n);
      // The children that are single steps have one value for all draws.
      double fixed = 0;
      bool is_fixed = true;
      for (size_t c = 0; c < merge.children.size(); ++c) {
        const int child = merge.children[c];
        const bool step = plan.is_step(child);
        if (c == 0) {
          is_fixed = step;
          if (step) {
            fixed = model_.Leaf(child + 1)[k];
          } else {
            product = values[child - T];
          }
          continue;
        }
        const Range part = plan.range(child);
        const Model::Join join = model_.ProductOf(merge.first, part.first - 1, part.last);
        if (step) {
          const double v = model_.Leaf(child + 1)[k];
          const double slope = join.u + join.uv * v, offset = join.v * v;
          if (is_fixed) {
            fixed = slope * fixed + offset;
          } else {
            product = slope * product + offset;
          }
        } else if (is_fixed) {
          product = (join.v + join.uv * fixed) * values[child - T] + join.u * fixed;
          is_fixed = false;
        } else {
          const Row& v = values[child - T];
          product = join.u * product + join.v * v + join.uv * product * v;
        }
      }
      if (is_fixed) product.setConstant(fixed);

      Row& value = values[m];
      if (SecondMomentOfShrinkage(model_.budget(), n) < kNegligibleSecondMoment) {
        value = product;
        continue;
      }
      if (g <= direct_above_) {
        const double* w = &weights_[(static_cast<size_t>(j - 1) * d + k) * kNodes];
        const double* nodes =
            &nodes_[(static_cast<size_t>(m) * Blocks() + block) * kNodes * kBlock];
        gamma = w[0] * Eigen::Map<const Row>(nodes);
        for (int c = 1; c < kNodes; ++c) {
          gamma += w[c] * Eigen::Map<const Row>(nodes + static_cast<size_t>(c) * kBlock);
        }
        gamma = gamma.exp();
      } else {
        if (inputs[m].empty()) inputs[m] = Inputs(m, block);
        gamma.setOnes();
        for (size_t u = 0; u * kBlock < inputs[m].size(); ++u) {
          gamma *= 1 - g * Eigen::Map<const Row>(&inputs[m][u * kBlock]);
        }
      }
      if (from_child) {
        load(merge.children.back(), k, other);
        value = product + gamma * (other - product);
      } else {
        value = product + gamma * (model_.ConstantStart(merge.first, j, k) - product);
      }
    }
    product.setOnes();
    for (int node : plan.blocks()) {
      const Range range = plan.range(node);
      const Model::Affine map = model_.CarriedToValue(range.first, range.last);
      load(node, k, other);
      product *= map.offset + map.scale * other;
    }
    const int begin = block * kBlock, size = std::min(kBlock, draws - begin);
    std::copy(product.data(), product.data() + size,
              out + static_cast<size_t>(k - first) * draws + begin);
  }
}

std::vector<double> LawTest::Simulate(const Plan& plan, int first, int count) const {
  std::vector<double> out(static_cast<size_t>(count) * options_.draws);
  InParallel(options_.threads, Blocks(),
             [&](int block) { SimulateBlock(plan, block, first, count, out.data()); });
  return out;
}

absl::StatusOr<std::vector<double>> LawTest::Draws(const Plan& plan, int dimension) const {
  if (absl::Status status = CheckPlan(plan); !status.ok()) return status;
  if (dimension < 0 || dimension >= model_.dimensions()) {
    return absl::InvalidArgumentError(
        absl::StrFormat("dimension %d, expected 0..%d", dimension, model_.dimensions() - 1));
  }
  return Simulate(plan, dimension, 1);
}

absl::StatusOr<std::vector<double>> LawTest::PValues(const Plan& plan,
                                                     absl::Span<const double> achieved) const {
  if (absl::Status status = CheckPlan(plan); !status.ok()) return status;
  const int d = model_.dimensions(), draws = options_.draws;
  if (achieved.empty() || achieved.size() % d != 0) {
    return absl::InvalidArgumentError(
        absl::StrFormat("%d achieved values, expected %d or a multiple of it", achieved.size(), d));
  }
  const absl::StatusOr<ValueLaw> law = LawOfValue(model_, plan);
  if (!law.ok()) return law.status();
  std::vector<double> p(achieved.size(), 0.0);
  constexpr int kAtOnce = 256;  // bounds the memory
  for (int first = 0; first < d; first += kAtOnce) {
    const int count = std::min(kAtOnce, d - first);
    const std::vector<double> values = Simulate(plan, first, count);
    InParallel(options_.threads, count, [&](int i) {
      const int k = first + i;
      const auto begin = values.begin() + static_cast<std::ptrdiff_t>(i) * draws;
      std::vector<double> sample(begin, begin + draws);
      const NormalScale scale(law->mean[k], law->variance[k], law->skewness[k]);
      const Tail below(sample, scale, 1), above(sample, scale, -1);
      for (size_t at = k; at < achieved.size(); at += d) {
        const double x = achieved[at];
        if (!std::isfinite(x)) continue;
        const double rounding = options_.rounding * std::max(std::abs(x), model_.tau()[k]);
        p[at] = std::min(1.0, 2 * std::min(below(x + rounding), above(x - rounding)));
      }
    });
  }
  return p;
}

std::vector<bool> HolmReject(absl::Span<const double> p_values, double level) {
  std::vector<size_t> order(p_values.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(),
            [&](size_t a, size_t b) { return p_values[a] < p_values[b]; });
  std::vector<bool> rejected(p_values.size(), false);
  for (size_t i = 0; i < order.size(); ++i) {
    if (!(p_values[order[i]] <= level / static_cast<double>(order.size() - i))) break;
    rejected[order[i]] = true;
  }
  return rejected;
}

}  // namespace mergeplan
