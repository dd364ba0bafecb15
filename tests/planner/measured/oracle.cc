#include "tests/planner/measured/oracle.h"

#include <cmath>

#include "tests/oracle/enumerate.h"

namespace mergeplan::oracle {
namespace {

long double Residual(const RandomCase& c, int i, int j, std::int64_t u) {
  std::int64_t left_at = 0;
  long double left = 1;
  for (const std::int64_t right_at : c.updates) {
    const long double right = c.residual.at({i, j, right_at});
    if (u <= right_at) {
      const long double share =
          static_cast<long double>(u - left_at) / static_cast<long double>(right_at - left_at);
      return left + (right - left) * share;
    }
    left_at = right_at;
    left = right;
  }
  return left;
}

long double Gain(const RandomCase& c, int i, int m) { return m < i ? 1.0L : c.gain.at({i, m}); }

// Adds up by the rule.
class Adder {
 public:
  explicit Adder(Combine combine) : combine_(combine) {}
  void Add(long double error) { sum_ += combine_ == Combine::kSum ? error : error * error; }
  long double Total() const { return combine_ == Combine::kSum ? sum_ : std::sqrt(sum_); }

 private:
  Combine combine_;
  long double sum_ = 0;
};

long double NodeError(const RandomCase& c, const Plan& plan, int node,
                      const std::vector<std::int64_t>& updates, Combine combine) {
  if (plan.is_step(node)) return 0;
  const int k = node - plan.teacher_steps();
  const Merge& merge = plan.merges()[k];
  Adder error(combine);
  for (const int child : merge.children) {
    error.Add(Gain(c, merge.first, plan.range(child).first - 1) *
              NodeError(c, plan, child, updates, combine));
  }
  const int start = plan.range(merge.children.back()).first;
  error.Add(Residual(c, merge.first, merge.last, updates[k]) *
            c.distance.at({merge.first, start, merge.last}));
  error.Add(c.floor.at({merge.first, merge.last}));
  return error.Total();
}

void Allocate(const RandomCase& c, const Plan& plan, std::int64_t left, Combine combine,
              std::vector<std::int64_t>& updates, long double& best) {
  const int k = static_cast<int>(updates.size());
  if (k == plan.size()) {
    if (left > 0 && plan.size() > 0) return;
    const long double error = StudentError(c, plan, updates, combine);
    if (best < 0 || error < best) best = error;
    return;
  }
  const std::int64_t others = plan.size() - k - 1;
  for (std::int64_t u = others == 0 ? left : 1; u >= 1 && u + others <= left; ++u) {
    updates.push_back(u);
    Allocate(c, plan, left - u, combine, updates, best);
    updates.pop_back();
  }
}

}  // namespace

long double StudentError(const RandomCase& c, const Plan& plan,
                         const std::vector<std::int64_t>& updates, Combine combine) {
  Adder error(combine);
  for (const int block : plan.blocks()) {
    error.Add(Gain(c, 1, plan.range(block).first - 1) *
              NodeError(c, plan, block, updates, combine));
  }
  return error.Total();
}

bool Keeps(const Plan& plan, const Limits& limits) {
  if (limits.max_merges > 0 && plan.size() > limits.max_merges) return false;
  for (const Merge& merge : plan.merges()) {
    const auto children = static_cast<int>(merge.children.size());
    if (limits.max_children > 0 && children > limits.max_children) return false;
  }
  return true;
}

long double LeastError(const RandomCase& c, int blocks, std::int64_t updates, Combine combine,
                       const Limits& limits) {
  long double best = -1;
  for (const Plan& plan : AllPlans(c.steps, blocks, Space::kNary)) {
    if (!Keeps(plan, limits)) continue;
    const long double error =
        StudentError(c, plan, std::vector<std::int64_t>(plan.size(), updates), combine);
    if (best < 0 || error < best) best = error;
  }
  return best;
}

long double LeastSharedError(const RandomCase& c, const Plan& plan, std::int64_t total,
                             Combine combine) {
  long double best = -1;
  std::vector<std::int64_t> updates;
  Allocate(c, plan, total, combine, updates, best);
  return best;
}

long double LeastSharedError(const RandomCase& c, int blocks, std::int64_t total, Combine combine,
                             const Limits& limits) {
  long double best = -1;
  for (const Plan& plan : AllPlans(c.steps, blocks, Space::kNary)) {
    if (!Keeps(plan, limits)) continue;
    const long double error = LeastSharedError(c, plan, total, combine);
    if (error >= 0 && (best < 0 || error < best)) best = error;
  }
  return best;
}

}  // namespace mergeplan::oracle
