#pragma once

#include <cmath>
#include <numbers>
#include <random>
#include <utility>
#include <vector>

#include "planner/operators/model.h"
#include "planner/schedule/schedule.h"
#include "tests/oracle/problem.h"

namespace mergeplan {

inline constexpr Init kInits[] = {Init::kChild, Init::kTeacher, Init::kJump, Init::kChildJump};
inline constexpr Reference kReferences[] = {Reference::kSurrogate, Reference::kTeacher,
                                            Reference::kData};

inline double Uniform(std::mt19937_64& rng, double low, double high) {
  return std::uniform_real_distribution<double>(low, high)(rng);
}
inline double LogUniform(std::mt19937_64& rng, double low, double high) {
  return std::exp(Uniform(rng, std::log(low), std::log(high)));
}
inline int RandomInt(std::mt19937_64& rng, int low, int high) {
  return std::uniform_int_distribution<int>(low, high)(rng);
}

inline Schedule Arrays(std::vector<double> alpha, std::vector<double> sigma) {
  Schedule s;
  s.spec = s.name = "arrays";
  s.alpha = std::move(alpha);
  s.sigma = std::move(sigma);
  s.level_scale.assign(s.alpha.size(), 1.0);
  return s;
}

// A variance preserving schedule with random angles between 0 (clean) and 90 degrees (pure noise).
inline Schedule RandomPreserving(std::mt19937_64& rng, int T) {
  std::vector<double> gaps;
  double sum = 0;
  for (int t = 0; t < T; ++t) sum += gaps.emplace_back(Uniform(rng, 0.1, 1));
  std::vector<double> alpha = {1}, sigma = {0};
  double angle = 0;
  for (int t = 1; t <= T; ++t) {
    angle += gaps[t - 1] / sum * std::numbers::pi / 2;
    alpha.push_back(t == T ? 0 : std::cos(angle));
    sigma.push_back(t == T ? 1 : std::sin(angle));
  }
  return Arrays(std::move(alpha), std::move(sigma));
}

// Flow matching in raw coordinates: alpha = 1 - sigma, at random times.
inline Schedule RandomFlow(std::mt19937_64& rng, int T) {
  std::vector<double> gaps;
  double sum = 0;
  for (int t = 0; t < T; ++t) sum += gaps.emplace_back(Uniform(rng, 0.1, 1));
  std::vector<double> alpha = {1}, sigma = {0};
  double time = 0;
  for (int t = 1; t <= T; ++t) {
    time += gaps[t - 1] / sum;
    alpha.push_back(t == T ? 0 : 1 - time);
    sigma.push_back(t == T ? 1 : time);
  }
  return Arrays(std::move(alpha), std::move(sigma));
}

inline oracle::Problem OracleProblem(const Schedule& schedule, std::vector<double> lambda,
                                     double train_time, Init init,
                                     Reference reference = Reference::kSurrogate,
                                     std::vector<double> weights = {}) {
  oracle::ProblemSpec spec;
  spec.alpha = schedule.alpha;
  spec.sigma = schedule.sigma;
  spec.lambda = std::move(lambda);
  spec.weights = std::move(weights);
  spec.train_time = train_time;
  spec.init = init;
  spec.reference = reference;
  return oracle::Problem(std::move(spec));
}

// The same problem for the library. Native units are those of the schedule.
inline ModelSpec SpecOf(const Schedule& schedule, std::vector<double> lambda, Budget budget,
                        Init init, Reference reference = Reference::kSurrogate) {
  ModelSpec spec;
  spec.schedule = schedule;
  spec.variances = std::move(lambda);
  spec.budget = budget;
  spec.init = init;
  spec.reference = reference;
  return spec;
}

}  // namespace mergeplan
