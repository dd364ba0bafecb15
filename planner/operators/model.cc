#include "planner/operators/model.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "absl/strings/str_format.h"
#include "planner/base/status_macros.h"

namespace mergeplan {
namespace {

absl::Status CheckNonNegative(absl::Span<const double> values, const char* what) {
  for (size_t k = 0; k < values.size(); ++k) {
    if (!std::isfinite(values[k]) || values[k] < 0) {
      return absl::InvalidArgumentError(
          absl::StrFormat("%s %d is %g, expected a finite number >= 0", what, k + 1, values[k]));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Model> Model::Create(ModelSpec spec) {
  MP_RETURN_IF_ERROR(ValidateSchedule(spec.schedule));
  const size_t d = spec.variances.size();
  if (d == 0) return absl::InvalidArgumentError("variances: none given, expected at least one");
  MP_RETURN_IF_ERROR(CheckNonNegative(spec.variances, "variance"));
  if (!spec.weights.empty() && spec.weights.size() != d) {
    return absl::InvalidArgumentError(
        absl::StrFormat("weights: %d given for %d variances", spec.weights.size(), d));
  }
  MP_RETURN_IF_ERROR(CheckNonNegative(spec.weights, "weight"));

  const std::vector<double>& alpha = spec.schedule.alpha;
  const std::vector<double>& sigma = spec.schedule.sigma;
  const int T = spec.schedule.steps();
  if (spec.reference == Reference::kData) {
    const double end = alpha[T] * alpha[T] + sigma[T] * sigma[T];
    if (std::abs(end - 1) > 0.01) {
      return absl::InvalidArgumentError(
          absl::StrFormat("reference data: sampling starts from unit noise, but alpha_T^2 + "
                          "sigma_T^2 is %g for schedule %s; use "
                          "reference surrogate or teacher",
                          end, spec.schedule.spec));
    }
  }

  Model model;
  const double data_scale2 = spec.schedule.data_scale * spec.schedule.data_scale;
  model.lambda_ = spec.variances;
  for (double& v : model.lambda_) v /= data_scale2;
  model.objective_weights_ = spec.weights.empty() ? std::vector<double>(d, 1.0) : spec.weights;
  for (double& w : model.objective_weights_) w *= data_scale2;

  const size_t size = static_cast<size_t>(T) * d;
  for (auto* table :
       {&model.n_, &model.a_, &model.gamma_, &model.one_minus_gamma_, &model.carried_leaf_}) {
    table->resize(size);
  }
  double largest_n = 0;
  for (int t = 1; t <= T; ++t) {
    for (size_t k = 0; k < d; ++k) {
      const size_t at = static_cast<size_t>(t - 1) * d + k;
      const double lambda = model.lambda_[k];
      const double n = alpha[t] * alpha[t] * lambda + sigma[t] * sigma[t];
      if (!(n > 0)) {
        return absl::InvalidArgumentError(absl::StrFormat(
            "variance %d is %g and sigma %g at t = %d: the variance of z_t underflows, expected "
            "more noise",
            k + 1, spec.variances[k], sigma[t], t));
      }
      model.n_[at] = n;
      model.a_[at] = (alpha[t - 1] * alpha[t] * lambda + sigma[t - 1] * sigma[t]) / n;
      model.carried_leaf_[at] =
          spec.init == Init::kChildJump ? alpha[t] * lambda / n : model.a_[at];
      largest_n = std::max(largest_n, n);
    }
  }
  if (!std::isfinite(largest_n)) {
    return absl::InvalidArgumentError("variances: too large, the variance of z_t overflows");
  }
  MP_RETURN_IF_ERROR(spec.budget.Validate(largest_n));
  for (size_t at = 0; at < size; ++at) {
    model.gamma_[at] = spec.budget.Gamma(model.n_[at]);
    model.one_minus_gamma_[at] = spec.budget.OneMinusGamma(model.n_[at]);
  }

  model.tau_surrogate_.assign(d, 1.0);
  model.tau_teacher_.assign(d, 1.0);
  model.tau_data_.resize(d);
  for (size_t k = 0; k < d; ++k) {
    for (int t = 1; t <= T; ++t) {
      const double a = model.a_[static_cast<size_t>(t - 1) * d + k];
      model.tau_teacher_[k] *= a;
      model.tau_surrogate_[k] *= model.lambda_[k] <= 1 || a >= 1 ? a : 1.0;
    }
    model.tau_data_[k] = std::sqrt(model.lambda_[k]);
    const double scale =
        std::max({model.tau_surrogate_[k], model.tau_teacher_[k], model.tau_data_[k], 1.0});
    if (!(model.objective_weights_[k] * scale * scale < 1e300 / static_cast<double>(d))) {
      return absl::InvalidArgumentError(
          absl::StrFormat("variance %d is %g with the weight %g: the objective could overflow, "
                          "expected smaller numbers",
                          k + 1, spec.variances[k], model.objective_weights_[k]));
    }
  }
  model.steps_ = T;
  model.spec_ = std::move(spec);
  return model;
}

absl::StatusOr<Model> Model::FromTables(ModelTables tables) {
  Model model;
  MP_ASSIGN_OR_RETURN(model.magnitude_, CheckTables(tables));
  const size_t d = static_cast<size_t>(tables.dimensions);
  model.steps_ = tables.steps;
  model.objective_weights_ = tables.weights.empty() ? std::vector<double>(d, 1.0) : tables.weights;
  model.a_ = tables.a;
  model.carried_leaf_ = tables.a;
  model.gamma_ = tables.gamma;
  model.one_minus_gamma_ = tables.gamma;
  for (double& g : model.one_minus_gamma_) g = 1 - g;
  const auto scaled = [&](const std::vector<double>& factor) {
    std::vector<double> out = tables.gamma;
    for (size_t at = 0; at < out.size(); ++at) out[at] *= factor[at];
    return out;
  };
  if (!tables.p.empty()) model.start_slope_ = scaled(tables.p);
  if (!tables.q.empty()) model.start_offset_ = scaled(tables.q);
  model.tau_teacher_.assign(d, 1.0);
  for (size_t at = 0; at < model.a_.size(); ++at) model.tau_teacher_[at % d] *= model.a_[at];
  if (tables.tau.empty()) tables.tau = model.tau_teacher_;
  model.tables_ = std::move(tables);
  return model;
}

void Model::NoSchedule() {
  std::fputs("mergeplan: a model of tables was asked for its schedule, variances or budget\n",
             stderr);
  std::abort();
}

const ModelTables& Model::tables() const {
  if (tables_) return *tables_;
  std::fputs("mergeplan: a model with a schedule was asked for its tables\n", stderr);
  std::abort();
}

absl::Span<const double> Model::tau() const {
  return tables_ ? absl::MakeConstSpan(tables_->tau) : tau(spec_.reference);
}

absl::Span<const double> Model::tau(Reference reference) const {
  if (reference != Reference::kTeacher) Spec();
  switch (reference) {
    case Reference::kSurrogate:
      return tau_surrogate_;
    case Reference::kTeacher:
      return tau_teacher_;
    case Reference::kData:
      break;
  }
  return tau_data_;
}

Model::Join Model::ProductOf(int i, int m, int j) const {
  if (!carries_x0()) return {0, 0, 1};
  const Schedule& s = spec_.schedule;
  const double left = SignalNoiseDeterminant(s, i - 1, m);
  const double right = SignalNoiseDeterminant(s, m, j);
  const double whole = s.sigma[m] * SignalNoiseDeterminant(s, i - 1, j);
  return {left * s.sigma[m] / whole, s.sigma[i - 1] * right / whole, left * right / whole};
}

double Model::ConstantStart(int i, int j, int k) const {
  if (init() == Init::kTeacher) return A(j)[k];
  const Schedule& s = spec_.schedule;
  return (s.alpha[i - 1] * s.alpha[j] * lambda_[k] + s.sigma[i - 1] * s.sigma[j]) / n(j)[k];
}

Model::Affine Model::CarriedToValue(int i, int j) const {
  if (!carries_x0()) return {0, 1};
  const Schedule& s = spec_.schedule;
  return {s.sigma[i - 1] / s.sigma[j], SignalNoiseDeterminant(s, i - 1, j) / s.sigma[j]};
}

void Model::CarriedNodeValues(const Plan& plan, size_t begin, size_t width,
                              absl::Span<double> values) const {
  const int T = steps();
  for (int t = 1; t <= T; ++t) {
    const absl::Span<const double> leaf = Leaf(t).subspan(begin, width);
    std::copy(leaf.begin(), leaf.end(), values.begin() + static_cast<size_t>(t - 1) * width);
  }
  std::vector<double> product(width);
  for (int k = 0; k < plan.size(); ++k) {
    const Merge& merge = plan.merges()[k];
    const double* first = &values[static_cast<size_t>(merge.children.front()) * width];
    std::copy(first, first + width, product.begin());
    for (size_t c = 1; c < merge.children.size(); ++c) {
      const Range part = plan.range(merge.children[c]);
      const Join join = ProductOf(merge.first, part.first - 1, part.last);
      const double* v = &values[static_cast<size_t>(merge.children[c]) * width];
      for (size_t x = 0; x < width; ++x) {
        product[x] = join.u * product[x] + join.v * v[x] + join.uv * product[x] * v[x];
      }
    }
    const double* last = &values[static_cast<size_t>(merge.children.back()) * width];
    double* out = &values[static_cast<size_t>(T + k) * width];
    const absl::Span<const double> g = StartSlope(merge.last).subspan(begin, width);
    const absl::Span<const double> omg = one_minus_gamma(merge.last).subspan(begin, width);
    const absl::Span<const double> offset = StartOffset(merge.last);
    for (size_t x = 0; x < width; ++x) {
      const double start =
          starts_from_child() ? last[x]
                              : ConstantStart(merge.first, merge.last, static_cast<int>(begin + x));
      out[x] = omg[x] * product[x] + g[x] * start;
    }
    if (offset.empty()) continue;
    for (size_t x = 0; x < width; ++x) out[x] += offset[begin + x];
  }
}

std::vector<double> Model::CarriedNodeValues(const Plan& plan) const {
  const size_t d = objective_weights_.size();
  std::vector<double> values(static_cast<size_t>(steps() + plan.size()) * d);
  CarriedNodeValues(plan, 0, d, absl::MakeSpan(values));
  return values;
}

std::vector<double> Model::NodeValues(const Plan& plan) const {
  std::vector<double> values = CarriedNodeValues(plan);
  const size_t d = objective_weights_.size();
  for (size_t node = 0; node * d < values.size(); ++node) {
    const Range range = plan.range(static_cast<int>(node));
    const Affine map = CarriedToValue(range.first, range.last);
    for (size_t k = 0; k < d; ++k)
      values[node * d + k] = map.offset + map.scale * values[node * d + k];
  }
  return values;
}

std::vector<double> Model::Value(const Plan& plan) const {
  // A few dimensions at a time: the values of all nodes then stay in the cache.
  constexpr size_t kWidth = 64;
  const size_t d = objective_weights_.size();
  std::vector<double> nodes(static_cast<size_t>(steps() + plan.size()) * std::min(d, kWidth));
  std::vector<double> out(d, 1.0);
  for (size_t begin = 0; begin < d; begin += kWidth) {
    const size_t width = std::min(kWidth, d - begin);
    CarriedNodeValues(plan, begin, width, absl::MakeSpan(nodes));
    for (int block : plan.blocks()) {
      const Range range = plan.range(block);
      const Affine map = CarriedToValue(range.first, range.last);
      for (size_t k = 0; k < width; ++k) {
        out[begin + k] *= map.offset + map.scale * nodes[static_cast<size_t>(block) * width + k];
      }
    }
  }
  return out;
}

double Model::ObjectiveAgainst(absl::Span<const double> tau, absl::Span<const double> value) const {
  // Compensated, so that the error of the sum does not grow with the dimensions.
  double sum = 0, lost = 0;
  for (size_t k = 0; k < value.size(); ++k) {
    const double error = tau[k] - value[k];
    const double term = objective_weights_[k] * error * error;
    const double next = sum + term;
    lost += sum >= term ? (sum - next) + term : (term - next) + sum;
    sum = next;
  }
  return sum + lost;
}

double Model::Objective(absl::Span<const double> value, Reference reference) const {
  return ObjectiveAgainst(tau(reference), value);
}
double Model::Objective(absl::Span<const double> value) const {
  return ObjectiveAgainst(tau(), value);
}
double Model::Objective(const Plan& plan) const { return Objective(Value(plan)); }

double Model::Rounding(int k, double value, double tau) const {
  const double magnitude = magnitude_.empty() ? 0.0 : magnitude_[static_cast<size_t>(k)];
  const double most = std::max({value, tau, magnitude});
  double units = 16.0 * steps() * most;
  if (has_schedule()) {
    // What the exponent of gamma loses. It matters where a value is little more than gamma.
    for (int t = 1; t <= steps(); ++t) {
      const double relative = budget().GammaRounding(n(t)[k]);
      if (relative > 8) units += relative * std::min(most, gamma(t)[k] * std::max(1.0, most));
    }
  }
  return 0x1p-53 * units;
}

double Model::ToleranceAgainst(absl::Span<const double> tau, absl::Span<const double> value) const {
  double sum = 0, objective = 0;
  for (size_t k = 0; k < value.size(); ++k) {
    const double delta = Rounding(static_cast<int>(k), value[k], tau[k]);
    const double error = std::abs(tau[k] - value[k]);
    sum += objective_weights_[k] * (2 * error * delta + delta * delta);
    objective += objective_weights_[k] * error * error;
  }
  // The squares, their weights and their sum; bounds are summed plainly over as many columns.
  return sum + (4.0 + static_cast<double>(value.size())) * 0x1p-53 * objective;
}

double Model::Tolerance(absl::Span<const double> value, Reference reference) const {
  return ToleranceAgainst(tau(reference), value);
}
double Model::Tolerance(absl::Span<const double> value) const {
  return ToleranceAgainst(tau(), value);
}

absl::StatusOr<Model> Model::WithBudget(const Budget& budget) const {
  if (!has_schedule()) {
    return absl::FailedPreconditionError(
        "another budget: the model is given by tables, in which the budget stands already");
  }
  ModelSpec spec = spec_;
  spec.budget = budget;
  return Create(std::move(spec));
}

}  // namespace mergeplan
