// Moments of the value of a plan that is executed with SGD.

#include <algorithm>
#include <array>
#include <cmath>

#include "absl/strings/str_format.h"
#include "planner/operators/law.h"
#include "planner/operators/law_internal.h"

namespace mergeplan {
namespace {

// Mean and central moments 2..4 of one random number.
struct Moments {
  double mean = 0, c2 = 0, c3 = 0, c4 = 0;

  bool fixed() const { return c2 == 0; }
  Moments Scaled(double scale) const {
    const double s2 = scale * scale;
    return {mean * scale, c2 * s2, c3 * s2 * scale, c4 * s2 * s2};
  }
};

// Central moments of a polynomial sum_s coefficient[s] prod_{v in s} x_v in three independent
// centred numbers; s is a set of {1, 2, 4} and coefficient[0] is ignored.
Moments CentralMoments(const std::array<double, 8>& coefficient, const Moments& a, const Moments& b,
                       const Moments& c) {
  const double ma[5] = {1, 0, a.c2, a.c3, a.c4};
  const double mb[5] = {1, 0, b.c2, b.c3, b.c4};
  const double mc[5] = {1, 0, c.c2, c.c3, c.c4};
  const auto degree = [](int s, int v) { return (s >> v) & 1; };
  // The square, by degrees 0..2 in each number. The polynomial's own mean is zero.
  double square[3][3][3] = {};
  for (int s = 1; s < 8; ++s) {
    for (int r = 1; r < 8; ++r) {
      square[degree(s, 0) + degree(r, 0)][degree(s, 1) + degree(r, 1)]
            [degree(s, 2) + degree(r, 2)] += coefficient[s] * coefficient[r];
    }
  }
  Moments out;
  for (int i = 0; i < 3; ++i) {
    for (int j = 0; j < 3; ++j) {
      for (int k = 0; k < 3; ++k) {
        const double q = square[i][j][k];
        if (q == 0) continue;
        out.c2 += q * ma[i] * mb[j] * mc[k];
        for (int s = 1; s < 8; ++s) {
          out.c3 += q * coefficient[s] * ma[i + degree(s, 0)] * mb[j + degree(s, 1)] *
                    mc[k + degree(s, 2)];
        }
        for (int x = 0; x < 3; ++x) {
          for (int y = 0; y < 3; ++y) {
            for (int z = 0; z < 3; ++z) {
              out.c4 += q * square[x][y][z] * ma[i + x] * mb[j + y] * mc[k + z];
            }
          }
        }
      }
    }
  }
  return out;
}

// join.u u + join.v v + join.uv u v of independent u and v.
Moments Product(const Model::Join& join, const Moments& u, const Moments& v) {
  Moments out;
  if (!u.fixed() || !v.fixed()) {
    out = CentralMoments({0, join.u + join.uv * v.mean, join.v + join.uv * u.mean, join.uv}, u, v,
                         Moments{});
  }
  out.mean = join.u * u.mean + join.v * v.mean + join.uv * u.mean * v.mean;
  return out;
}

// P + Gamma (start - P), P the product of u and v; start is v or a constant.
Moments MergeMoments(const Model::Join& join, const Moments& u, const Moments& v,
                     const Moments& gamma, bool starts_from_v, double constant) {
  const double pu = join.u + join.uv * v.mean, pv = join.v + join.uv * u.mean;
  const double s = starts_from_v ? 1 : 0;
  const double product = join.u * u.mean + join.v * v.mean + join.uv * u.mean * v.mean;
  const double distance = (starts_from_v ? v.mean : constant) - product;
  const double g = gamma.mean;
  Moments out = CentralMoments(
      {0, (1 - g) * pu, (1 - g) * pv + g * s, (1 - g) * join.uv, distance, -pu, s - pv, -join.uv},
      u, v, gamma);
  out.mean = product + g * distance;
  return out;
}

// Below this the square of a mean is no normal number beside what it stands with.
constexpr double kTinyMean = 1e-70;

// Moments of Gamma = prod of (1 - g y_u), y ~ chi^2_B / B. With h = g / (1 - g) and w = y - 1,
// Gamma / E Gamma = prod (1 - h w), whose raw moments are 1 + eta_p to the number of updates.
Moments ShrinkageMoments(const Budget& budget, double n) {
  const double g = budget.StepSize(n), h = g / (1 - g);
  const double updates = static_cast<double>(budget.iterations), b = budget.batch;
  const double w2 = 2 / b, w3 = 8 / (b * b), w4 = 12 / (b * b) + 48 / (b * b * b);
  if (budget.Gamma(n) < kTinyMean) {
    // Small batches and large steps: a mean whose square is no number any more beside moments that
    // may be huge. Raw moments of one update, raised; the mean hardly matters to the central ones.
    const auto raised = [&](double moment) {
      const double size = std::exp(updates * std::log(std::abs(moment)));
      return moment < 0 && budget.iterations % 2 != 0 ? -size : size;
    };
    const double k = 1 - g;
    const double mean = budget.Gamma(n), second = raised(k * k + g * g * w2);
    const double third = raised(k * k * k + 3 * k * g * g * w2 - g * g * g * w3);
    const double fourth = raised(k * k * k * k + 6 * k * k * g * g * w2 - 4 * k * g * g * g * w3 +
                                 g * g * g * g * w4);
    if (second < kNegligibleSecondMoment) return {mean, 0, 0, 0};
    return {mean, second, third - 3 * mean * second, fourth - 4 * mean * third};
  }
  const double h2 = h * h;
  Moments relative;
  if (updates * h2 < 1e-9) {
    // The first terms of the expansion in h; the differences below would cancel.
    relative.c2 = updates * h2 * w2;
    relative.c3 = -updates * h2 * h * w3 + 6 * updates * updates * h2 * h2 * w2 * w2;
    relative.c4 = updates * h2 * h2 * w4 + 3 * updates * (updates - 1) * h2 * h2 * w2 * w2;
  } else {
    // A third moment can be negative: 1 - g y has both signs.
    const auto raised = [&](double eta) {
      return eta > -0.5 ? std::expm1(updates * std::log1p(eta)) : std::pow(1 + eta, updates) - 1;
    };
    const double r2 = raised(h2 * w2);
    const double r3 = raised(3 * h2 * w2 - h2 * h * w3);
    const double r4 = raised(6 * h2 * w2 - 4 * h2 * h * w3 + h2 * h2 * w4);
    relative = {0, r2, r3 - 3 * r2, r4 - 4 * r3 + 6 * r2};
  }
  const double gamma = budget.Gamma(n);
  Moments out = relative.Scaled(gamma);
  // Too small to matter, or so small and so wild that the product of huge and tiny is no number.
  if (SecondMomentOfShrinkage(budget, n) < kNegligibleSecondMoment) return {gamma, 0, 0, 0};
  out.mean = gamma;
  return out;
}

}  // namespace

double SecondMomentOfShrinkage(const Budget& budget, double n) {
  const double g = budget.StepSize(n);
  const double per_update = (1 - g) * (1 - g) + 2 * g * g / budget.batch;
  return std::exp(static_cast<double>(budget.iterations) * std::log(per_update));
}

absl::Status CheckSgd(const Model& model) {
  if (!model.has_schedule()) {
    return absl::InvalidArgumentError(
        "the law of a run needs an SGD budget, but the model is given by tables, which say only "
        "what "
        "merges learn on average");
  }
  if (model.budget().sgd) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrFormat(
      "the law of a run needs an SGD budget (learning rate and iterations), found %s",
      model.budget().ToString()));
}

absl::StatusOr<ValueLaw> LawOfValue(const Model& model, const Plan& plan) {
  if (absl::Status status = CheckSgd(model); !status.ok()) return status;
  const int T = model.steps();
  if (plan.teacher_steps() != T) {
    return absl::InvalidArgumentError(
        absl::StrFormat("plan has %d teacher steps, the model %d", plan.teacher_steps(), T));
  }
  ValueLaw law;
  law.mean = model.Value(plan);
  const bool from_child = model.starts_from_child();
  std::vector<Moments> nodes(static_cast<size_t>(T + plan.size()));
  for (int k = 0; k < model.dimensions(); ++k) {
    for (int t = 1; t <= T; ++t) nodes[t - 1] = {model.Leaf(t)[k], 0, 0, 0};
    for (int m = 0; m < plan.size(); ++m) {
      const Merge& merge = plan.merges()[m];
      Moments cleaner = nodes[merge.children.front()];
      int border = plan.range(merge.children.front()).last;
      for (size_t c = 1; c + 1 < merge.children.size(); ++c) {
        const int last = plan.range(merge.children[c]).last;
        cleaner =
            Product(model.ProductOf(merge.first, border, last), cleaner, nodes[merge.children[c]]);
        border = last;
      }
      nodes[T + m] = MergeMoments(
          model.ProductOf(merge.first, border, merge.last), cleaner, nodes[merge.children.back()],
          ShrinkageMoments(model.budget(), model.n(merge.last)[k]), from_child,
          from_child ? 0 : model.ConstantStart(merge.first, merge.last, k));
    }
    Moments value = {1, 0, 0, 0};
    for (int block : plan.blocks()) {
      const Range range = plan.range(block);
      const Model::Affine map = model.CarriedToValue(range.first, range.last);
      Moments part = nodes[block].Scaled(map.scale);
      part.mean += map.offset;
      value = Product({0, 0, 1}, value, part);
    }
    const bool spread = value.c2 > 1e-150 * value.mean * value.mean && value.c2 > 0;
    law.variance.push_back(spread ? value.c2 : 0);
    // 0 too where they are beyond all numbers.
    const double skewness = value.c3 / (value.c2 * std::sqrt(value.c2));
    const double kurtosis = value.c4 / value.c2 / value.c2 - 3;
    law.skewness.push_back(spread && std::isfinite(skewness) ? skewness : 0);
    law.excess_kurtosis.push_back(spread && std::isfinite(kurtosis) ? kurtosis : 0);
  }
  return law;
}

double ExpectedObjective(const Model& model, const ValueLaw& law, Reference reference) {
  double sum = model.Objective(law.mean, reference);
  for (size_t k = 0; k < law.variance.size(); ++k) {
    sum += model.objective_weights()[k] * law.variance[k];
  }
  return sum;
}

}  // namespace mergeplan
