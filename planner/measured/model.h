#pragma once

#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "planner/measured/tables.h"
#include "planner/plan/plan.h"

namespace mergeplan {

// A number that follows from the measured ones: constant + sum of weight * entry, with weights >= 0
// that, the constant included, add up to 1. So it lies between the entries that it comes from and
// rises with each of them.
struct Form {
  double constant = 0;
  absl::InlinedVector<std::pair<int, double>, 4> terms;  // entry, weight

  // `scenario`: one number for every entry.
  double At(absl::Span<const double> scenario) const {
    double sum = constant;
    for (const auto& [entry, weight] : terms) sum += weight * scenario[entry];
    return sum;
  }
};

// What is left of a merge's distance as a function of the number of updates: linear between knots,
// 1 at the first, which is at 0 updates, and constant after the last. Never rises.
struct Curve {
  struct Knot {
    std::int64_t updates;
    double left;
  };
  std::vector<Knot> knots;

  double At(std::int64_t updates) const;  // O(log knots)
};

// The measured model (the second model of the design): errors of merges that add up.
//
//   e([i,j]) = sum over children c of Lambda(i, c.first-1) e(c) + r(i,j,u) g(i,a,j) + f(i,j)
//   e(step) = 0,  e(student) = sum over blocks b of Lambda(1, b.first-1) e(b)
//
// (a: first step of the noisiest child; Lambda of an empty range is 1), or with the squares of all
// terms under a root (Combine::kRms). README.md says why the gain and the distance depend on these
// ranges and on nothing else, and how numbers between the measured ones are found. A value:
// immutable, cheap to copy, safe to share between threads.
class MeasuredModel {
 public:
  // Checks what CheckEntries does, and that every table has its corners, no range twice, every
  // start or none, and residuals that fall with the updates. INVALID_ARGUMENT names table and
  // range. O(entries log entries).
  static absl::StatusOr<MeasuredModel> Create(MeasuredTables tables);

  const MeasuredTables& tables() const { return state_->tables; }
  int steps() const { return state_->tables.teacher_steps; }
  // Does any distance depend on the start of the merge?
  bool start_matters() const { return state_->start_matters; }
  // Is every residual curve convex in the updates (from 1 on)? Then all curves between are too.
  bool convex() const { return state_->convex; }

  // ---- Scenarios: one number for every entry of the tables. All values, all low or all high ends.
  const std::vector<double>& values() const { return state_->values; }
  const std::vector<double>& lows() const { return state_->lows; }
  const std::vector<double>& highs() const { return state_->highs; }
  // A random scenario: every entry on its own, as often below its value as above it, evenly within
  // [low, value] and within [value, high]. The residuals of one range are drawn together, so that
  // they fall with the updates. Each call takes the same number of draws from `random`.
  void Draw(std::mt19937_64& random, std::vector<double>& scenario) const;

  // ---- Interpolated numbers. O(log entries).
  Form Gain(int i, int m) const;             // 1 <= i, m <= T-1; 1 where m < i
  Form Distance(int i, int a, int j) const;  // 1 <= i < a <= j <= T
  Form Residual(int i, int j, std::int64_t updates) const;
  Form Floor(int i, int j) const;
  // Distance(i, a, j) for a = i+1..j into out[a-i-1]. O(j - i) beyond the search.
  void Distances(int i, int j, absl::Span<const double> scenario, absl::Span<double> out) const;
  Curve ResidualCurve(int i, int j, absl::Span<const double> scenario) const;

 private:
  // A measured range. Its entries stand in order of `at`.
  struct Group {
    int first = 0, last = 0;
    struct Member {
      std::int64_t at;  // distance: steps that the noisiest child has beyond one; residual: updates
      int entry;        // index into scenarios
    };
    std::vector<Member> members;
  };
  // The measured ranges of a table by the number of their steps, then by their first step.
  struct Grid {
    int least_span = 1;
    int last = 0;  // the largest step
    std::vector<std::vector<Group>> spans;
  };
  using Near = absl::InlinedVector<std::pair<const Group*, double>, 4>;  // weights add up to 1

  struct State {
    MeasuredTables tables;
    bool start_matters = false;
    bool convex = true;
    std::vector<double> values, lows, highs;
    Grid gain, distance, residual, floor;
  };

  static absl::StatusOr<Grid> MakeGrid(const std::string& name,
                                       const std::vector<MeasuredEntry>& entries, int least_span,
                                       int last, int offset);
  static absl::Status CheckStarts(State& state);
  static absl::Status CheckResiduals(State& state);
  static Near Around(const Grid& grid, int first, int last);

  std::shared_ptr<const State> state_;
};

}  // namespace mergeplan
