#include "planner/search/shared/tree.h"

#include <algorithm>
#include <cmath>

namespace mergeplan::search {
namespace {

// Columns at a time: the values of all nodes then stay in the cache.
constexpr std::size_t kWidth = 32;

}  // namespace

SharedProblem::SharedProblem(const Model& of, double total_training)
    : model(&of), total(total_training) {
  for (int k = 0; k < of.dimensions(); ++k) {
    coordinate.push_back(k);
    weight.push_back(of.objective_weights()[k]);
    tau.push_back(of.tau()[k]);
  }
  Gather();
}

SharedProblem::SharedProblem(const Model& of, double total_training,
                             absl::Span<const Target> targets)
    : model(&of), total(total_training) {
  for (const Target& target : targets) {
    coordinate.push_back(target.coordinate);
    weight.push_back(target.weight);
    tau.push_back(target.tau);
  }
  Gather();
}

void SharedProblem::Gather() {
  const Budget& budget = model->budget();
  for (int t = 1; t <= model->steps(); ++t) {
    for (int k : coordinate) {
      const double n = model->n(t)[k];
      rate.push_back(budget.sgd ? std::log1p(-budget.StepSize(n)) : -2 * n);
      leaf.push_back(model->Leaf(t)[k]);
    }
  }
}

SharedTree::SharedTree(const SharedProblem& problem, const Plan& plan)
    : problem_(&problem), plan_(plan) {
  const Model& model = *problem.model;
  first_child_.push_back(0);
  for (const Merge& merge : plan_.merges()) {
    for (int node : merge.children) {
      const Range part = plan_.range(node);
      children_.push_back({node, part.first == merge.first
                                     ? Model::Join{}
                                     : model.ProductOf(merge.first, part.first - 1, part.last)});
    }
    first_child_.push_back(static_cast<int>(children_.size()));
    if (model.starts_from_child()) continue;
    for (int k : problem.coordinate) {
      start_.push_back(model.ConstantStart(merge.first, merge.last, k));
    }
  }
  for (const Range& block : plan_.BlockRanges()) {
    top_.push_back(model.CarriedToValue(block.first, block.last));
  }
  const std::size_t nodes = static_cast<std::size_t>(problem.steps()) + merges();
  node_.resize(nodes * kWidth);
  product_.resize(children_.size() * kWidth);
  gamma_.resize(2 * static_cast<std::size_t>(merges()) * kWidth);
  block_.resize(top_.size() * kWidth);
}

void SharedTree::Forward(absl::Span<const double> shares, std::size_t begin, std::size_t width,
                         double* value) {
  const int T = problem_->steps();
  for (int t = 1; t <= T; ++t) {
    std::copy_n(problem_->Leaf(t) + begin, width, &node_[static_cast<std::size_t>(t - 1) * kWidth]);
  }
  for (int m = 0; m < merges(); ++m) {
    const int level = plan_.merges()[m].last;
    const double amount = shares[m] * problem_->total;
    const double* rate = problem_->Rate(level) + begin;
    double* gamma = &gamma_[2 * static_cast<std::size_t>(m) * kWidth];
    double* rest = gamma + kWidth;  // 1 - gamma
    for (std::size_t x = 0; x < width; ++x) {
      const double e = amount * rate[x];
      if (e < -0.7) {
        gamma[x] = std::exp(e);
        rest[x] = 1 - gamma[x];
      } else {
        rest[x] = -std::expm1(e);
        gamma[x] = 1 - rest[x];
      }
    }
    const int from = first_child_[m], to = first_child_[m + 1];
    std::copy_n(&node_[static_cast<std::size_t>(children_[from].node) * kWidth], width,
                &product_[static_cast<std::size_t>(from) * kWidth]);
    for (int c = from + 1; c < to; ++c) {
      const Model::Join join = children_[c].join;
      const double* v = &node_[static_cast<std::size_t>(children_[c].node) * kWidth];
      const double* u = &product_[static_cast<std::size_t>(c - 1) * kWidth];
      double* p = &product_[static_cast<std::size_t>(c) * kWidth];
      for (std::size_t x = 0; x < width; ++x) {
        p[x] = join.u * u[x] + join.v * v[x] + join.uv * u[x] * v[x];
      }
    }
    const double* p = &product_[static_cast<std::size_t>(to - 1) * kWidth];
    const double* start = start_.empty()
                              ? &node_[static_cast<std::size_t>(children_[to - 1].node) * kWidth]
                              : &start_[static_cast<std::size_t>(m) * problem_->width() + begin];
    double* out = &node_[static_cast<std::size_t>(T + m) * kWidth];
    for (std::size_t x = 0; x < width; ++x) out[x] = rest[x] * p[x] + gamma[x] * start[x];
  }
  std::fill_n(value, width, 1.0);
  for (std::size_t b = 0; b < top_.size(); ++b) {
    const double* v = &node_[static_cast<std::size_t>(plan_.blocks()[b]) * kWidth];
    double* block = &block_[b * kWidth];
    for (std::size_t x = 0; x < width; ++x) {
      block[x] = top_[b].offset + top_[b].scale * v[x];
      value[x] *= block[x];
    }
  }
}

void SharedTree::Reverse(std::size_t begin, std::size_t width, const double* by_value,
                         double* gradient) {
  const int T = problem_->steps();
  by_node_.assign(node_.size(), 0.0);
  // The product of all other blocks, from both sides.
  std::vector<double> before(by_value, by_value + width), after(top_.size() * kWidth, 1.0);
  for (std::size_t b = top_.size() - 1; b > 0; --b) {
    for (std::size_t x = 0; x < width; ++x) {
      after[(b - 1) * kWidth + x] = after[b * kWidth + x] * block_[b * kWidth + x];
    }
  }
  for (std::size_t b = 0; b < top_.size(); ++b) {
    double* by = &by_node_[static_cast<std::size_t>(plan_.blocks()[b]) * kWidth];
    for (std::size_t x = 0; x < width; ++x) {
      by[x] = before[x] * after[b * kWidth + x] * top_[b].scale;
      before[x] *= block_[b * kWidth + x];
    }
  }
  double by_product[kWidth];
  for (int m = merges() - 1; m >= 0; --m) {
    const double* by = &by_node_[static_cast<std::size_t>(T + m) * kWidth];
    const double* gamma = &gamma_[2 * static_cast<std::size_t>(m) * kWidth];
    const double* rest = gamma + kWidth;
    const int from = first_child_[m], to = first_child_[m + 1];
    const std::size_t last = static_cast<std::size_t>(children_[to - 1].node) * kWidth;
    const double* p = &product_[static_cast<std::size_t>(to - 1) * kWidth];
    const double* start = start_.empty()
                              ? &node_[last]
                              : &start_[static_cast<std::size_t>(m) * problem_->width() + begin];
    const double* rate = problem_->Rate(plan_.merges()[m].last) + begin;
    double by_share = 0;
    for (std::size_t x = 0; x < width; ++x) {
      by_share += by[x] * (start[x] - p[x]) * gamma[x] * rate[x];
      by_product[x] = by[x] * rest[x];
    }
    gradient[m] += by_share * problem_->total;
    if (start_.empty()) {
      for (std::size_t x = 0; x < width; ++x) by_node_[last + x] += by[x] * gamma[x];
    }
    for (int c = to - 1; c > from; --c) {
      const Model::Join join = children_[c].join;
      const std::size_t child = static_cast<std::size_t>(children_[c].node) * kWidth;
      const double* u = &product_[static_cast<std::size_t>(c - 1) * kWidth];
      for (std::size_t x = 0; x < width; ++x) {
        by_node_[child + x] += by_product[x] * (join.v + join.uv * u[x]);
        by_product[x] *= join.u + join.uv * node_[child + x];
      }
    }
    const std::size_t child = static_cast<std::size_t>(children_[from].node) * kWidth;
    for (std::size_t x = 0; x < width; ++x) by_node_[child + x] += by_product[x];
  }
}

double SharedTree::Objective(absl::Span<const double> shares, double* gradient) {
  if (gradient != nullptr) std::fill_n(gradient, merges(), 0.0);
  double value[kWidth];
  double sum = 0;
  for (std::size_t begin = 0; begin < problem_->width(); begin += kWidth) {
    const std::size_t width = std::min(kWidth, problem_->width() - begin);
    Forward(shares, begin, width, value);
    for (std::size_t x = 0; x < width; ++x) {
      const double error = value[x] - problem_->tau[begin + x];
      const double weighted = problem_->weight[begin + x] * error;
      sum += weighted * error;
      value[x] = 2 * weighted;
    }
    if (gradient != nullptr) Reverse(begin, width, value, gradient);
  }
  return sum;
}

std::vector<double> SharedTree::Value(absl::Span<const double> shares) {
  std::vector<double> out(problem_->width());
  for (std::size_t begin = 0; begin < out.size(); begin += kWidth) {
    Forward(shares, begin, std::min(kWidth, out.size() - begin), &out[begin]);
  }
  return out;
}

}  // namespace mergeplan::search
