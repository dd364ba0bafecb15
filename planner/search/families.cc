#include "planner/search/families.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "planner/operators/canonical.h"

namespace mergeplan::search {
namespace {

constexpr int kBorders = 128;

int Stride(int teacher_steps) { return (teacher_steps + kBorders - 1) / kBorders; }

std::vector<Range> Steps(int first, int last) {
  std::vector<Range> out;
  for (int t = first; t <= last; ++t) out.push_back(PlanBuilder::Step(t));
  return out;
}

// Carried values of parts, all dimensions together.
class Parts {
 public:
  explicit Parts(const Model& model) : model_(model), d_(model.dimensions()) {}

  // out = the product of the neighbours [i,m] and [m+1,j]; `out` may be one of them.
  void Product(int i, int m, int j, const double* u, const double* v, double* out) const {
    const Model::Join join = model_.ProductOf(i, m, j);
    for (int k = 0; k < d_; ++k) out[k] = join.u * u[k] + join.v * v[k] + join.uv * (u[k] * v[k]);
  }
  // out = the merge over [i,j] of a product whose noisiest child has the value v; `out` may be one
  // of them.
  void Merge(int i, int j, const double* product, const double* v, double* out) const {
    const absl::Span<const double> omg = model_.one_minus_gamma(j), g = model_.StartSlope(j);
    const absl::Span<const double> offset = model_.StartOffset(j);
    const bool child = model_.starts_from_child();
    for (int k = 0; k < d_; ++k) {
      const double start = child ? v[k] : model_.ConstantStart(i, j, k);
      out[k] = omg[k] * product[k] + g[k] * start + (offset.empty() ? 0 : offset[k]);
    }
  }
  double Objective(const double* carried) const {
    const Model::Affine map = model_.CarriedToValue(1, model_.steps());
    std::vector<double> value(d_);
    for (int k = 0; k < d_; ++k) value[k] = map.offset + map.scale * carried[k];
    return model_.Objective(value);
  }

 private:
  const Model& model_;
  const int d_;
};

}  // namespace

std::vector<MixedPlan> RateMixedPlans(const Model& model, bool nary,
                                      const std::function<bool()>& stop) {
  const int T = model.steps();
  const std::size_t d = static_cast<std::size_t>(model.dimensions());
  const Parts parts(model);
  std::vector<double> rest(static_cast<std::size_t>(T) * d);  // products of the steps t..T
  const auto of = [&rest, d](int t) { return rest.data() + static_cast<std::size_t>(t - 1) * d; };
  std::copy_n(model.Leaf(T).data(), d, of(T));
  for (int t = T - 1; t >= 1; --t) parts.Product(t, t, T, model.Leaf(t).data(), of(t + 1), of(t));
  std::vector<double> head(model.Leaf(1).begin(), model.Leaf(1).end()), x(d), product(d);
  std::vector<MixedPlan> out;
  const int stride = Stride(T);
  for (int c = 2; c < T; ++c) {
    if (stop && stop()) break;
    const double* leaf = model.Leaf(c).data();
    parts.Product(1, c - 1, c, head.data(), leaf, product.data());
    parts.Merge(1, c, product.data(), leaf, head.data());
    if ((c - 2) % stride != 0) continue;
    if (nary) {
      parts.Product(1, c, T, head.data(), of(c + 1), product.data());
      parts.Merge(1, T, product.data(), model.Leaf(T).data(), x.data());
      out.push_back({false, c, parts.Objective(x.data())});
    }
    parts.Merge(c, T, of(c), model.Leaf(T).data(), x.data());
    for (int t = c - 1; t >= 1; --t) {
      parts.Product(t, t, T, model.Leaf(t).data(), x.data(), product.data());
      parts.Merge(t, T, product.data(), x.data(), x.data());
    }
    out.push_back({true, c, parts.Objective(x.data())});
  }
  std::stable_sort(out.begin(), out.end(), [](const MixedPlan& a, const MixedPlan& b) {
    return a.objective < b.objective;
  });
  return out;
}

absl::StatusOr<Plan> Build(const MixedPlan& mixed, int teacher_steps) {
  const int c = mixed.border;
  PlanBuilder builder(teacher_steps);
  if (mixed.boot) {
    Range rest = builder.Merge(Steps(c, teacher_steps));
    for (int t = c - 1; t >= 1; --t) rest = builder.Merge({PlanBuilder::Step(t), rest});
    return builder.Finish({rest});
  }
  Range head = PlanBuilder::Step(1);
  for (int t = 2; t <= c; ++t) head = builder.Merge({head, PlanBuilder::Step(t)});
  std::vector<Range> children = Steps(c + 1, teacher_steps);
  children.insert(children.begin(), head);
  const Range top = builder.Merge(std::move(children));
  return builder.Finish({top});
}

void CanonicalPlans(int teacher_steps, int blocks, const std::function<bool(Plan)>& offer) {
  for (Strategy strategy : kStrategies) {
    absl::StatusOr<Plan> plan = CanonicalPlan(strategy, teacher_steps, blocks);
    if (plan.ok() && !offer(*std::move(plan))) return;
  }
}

void SimplePlans(int teacher_steps, int blocks, bool nary, const std::function<bool(Plan)>& offer) {
  bool more = true;
  const auto add = [&](absl::StatusOr<Plan> plan) {
    return more = !plan.ok() || offer(*std::move(plan));
  };
  CanonicalPlans(teacher_steps, blocks, add);
  if (!more) return;
  if (blocks > 1) {
    // One merged block among single steps: the plans with the fewest merges.
    for (int before = 0; before < blocks && blocks < teacher_steps; ++before) {
      PlanBuilder builder(teacher_steps);
      const int last = teacher_steps - (blocks - 1 - before);
      std::vector<Range> tops = Steps(1, before);
      tops.push_back(builder.Merge(Steps(before + 1, last)));
      for (const Range& step : Steps(last + 1, teacher_steps)) tops.push_back(step);
      if (!add(builder.Finish(tops))) return;
    }
    return;
  }
  for (int c = 2; c < teacher_steps; c += Stride(teacher_steps)) {
    if (!add(Build({true, c, 0}, teacher_steps))) return;
    if (nary && !add(Build({false, c, 0}, teacher_steps))) return;
  }
}

}  // namespace mergeplan::search
