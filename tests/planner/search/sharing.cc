#include "tests/planner/search/sharing.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "planner/schedule/schedule.h"

namespace mergeplan {

SearchOptions SharingOptions(int blocks) {
  SearchOptions options;
  options.student_steps = blocks;
  options.threads = 1;
  return options;
}

Model CosineModel(int steps, std::vector<double> variances, Init init, Reference reference,
                  Budget budget) {
  ModelSpec spec;
  spec.schedule = CosineSchedule(steps);
  spec.variances = std::move(variances);
  spec.budget = budget;
  spec.init = init;
  spec.reference = reference;
  return *Model::Create(spec);
}

std::vector<double> LogSpaced(double low, double high, int count) {
  std::vector<double> out;
  for (int k = 0; k < count; ++k) {
    out.push_back(low * std::pow(high / low, static_cast<double>(k) / (count - 1)));
  }
  return out;
}

std::vector<double> RandomShares(std::mt19937_64& random, int merges) {
  std::vector<double> out(merges);
  const int style = std::uniform_int_distribution<int>(0, 3)(random);
  double sum = 0;
  for (double& x : out) {
    x = std::exponential_distribution<double>(1)(random);
    if (style == 1) x = std::pow(x, 6);
    sum += x;
  }
  for (double& x : out) x /= sum;
  if (style == 2 && merges > 0) {
    std::fill(out.begin(), out.end(), 0.0);
    out[std::uniform_int_distribution<int>(0, merges - 1)(random)] = 1;
  }
  return out;
}

std::vector<double> Amounts(const std::vector<double>& shares, double total) {
  std::vector<double> out = shares;
  for (double& x : out) x *= total;
  return out;
}

std::vector<double> PlainValue(const oracle::ProblemSpec& spec, const Plan& plan,
                               const std::vector<double>& time) {
  oracle::ProblemSpec slow = spec;
  slow.train_time = 0.1;
  const oracle::Problem problem(slow);
  const int T = problem.steps();
  std::vector<double> out;
  for (int k = 0; k < static_cast<int>(spec.lambda.size()); ++k) {
    std::vector<oracle::Wide> node;
    for (int t = 1; t <= T; ++t) node.push_back(problem.A(t, k));
    for (int m = 0; m < plan.size(); ++m) {
      const Merge& merge = plan.merges()[m];
      oracle::Wide product = 1;
      for (int child : merge.children) product *= node[child];
      const Range last = plan.range(merge.children.back());
      const oracle::Wide gamma = problem.Gamma(merge.last, k);
      const oracle::Wide merged = problem.Merge(merge.first, last.first - 1, merge.last, product,
                                                node[merge.children.back()], k);
      const oracle::Wide start = (merged - (1 - gamma) * product) / gamma;
      const double n = spec.alpha[merge.last] * spec.alpha[merge.last] * spec.lambda[k] +
                       spec.sigma[merge.last] * spec.sigma[merge.last];
      const oracle::Wide own = std::exp(-2 * time[m] * n);
      node.push_back((1 - own) * product + own * start);
    }
    oracle::Wide value = 1;
    for (int block : plan.blocks()) value *= node[block];
    out.push_back(oracle::ToDouble(value));
  }
  return out;
}

void ForGrid(int merges, int cells, std::vector<int>& at,
             const std::function<void(const std::vector<int>&)>& visit) {
  if (static_cast<int>(at.size()) == merges - 1) {
    at.push_back(cells);
    visit(at);
    at.pop_back();
    return;
  }
  for (int c = 0; c <= cells; ++c) {
    at.push_back(c);
    ForGrid(merges, cells - c, at, visit);
    at.pop_back();
  }
}

}  // namespace mergeplan
