#pragma once

#include <functional>
#include <limits>
#include <random>
#include <vector>

#include "planner/operators/model.h"
#include "planner/search/search.h"
#include "tests/oracle/problem.h"

namespace mergeplan {

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Options with one thread.
SearchOptions SharingOptions(int blocks = 1);

Model CosineModel(int steps, std::vector<double> variances, Init init = Init::kChild,
                  Reference reference = Reference::kSurrogate, Budget budget = Budget::Flow(1.0));

std::vector<double> LogSpaced(double low, double high, int count);

// A point of the simplex: uniform, near a corner, or a corner.
std::vector<double> RandomShares(std::mt19937_64& random, int merges);

std::vector<double> Amounts(const std::vector<double>& shares, double total);

// The student's value with a training of its own for each merge, from the definitions, in quadruple
// precision: the oracle's merge at its own gamma gives away where the merge starts.
std::vector<double> PlainValue(const oracle::ProblemSpec& spec, const Plan& plan,
                               const std::vector<double>& time);

// Every way to share out `cells` cells over the merges (at least one). `at` is empty at first.
void ForGrid(int merges, int cells, std::vector<int>& at,
             const std::function<void(const std::vector<int>&)>& visit);

}  // namespace mergeplan
