#include "planner/choice/fewer_blocks.h"

#include <chrono>
#include <utility>

#include "planner/base/status_macros.h"

namespace mergeplan {

std::vector<int> FewerBlocks(int blocks) {
  std::vector<int> out;
  if (blocks <= 8) {
    for (int n = blocks - 1; n >= 1; --n) out.push_back(n);
  } else {
    for (int n = blocks / 2; n >= 1; n /= 2) out.push_back(n);
  }
  return out;
}

const FewerBlocksAnswer::Try* FewerBlocksAnswer::Best() const {
  const Try* best = nullptr;
  for (const Try& one : tries) {
    if (!one.better) continue;
    if (best == nullptr || one.result.objective < best->result.objective) best = &one;
  }
  return best;
}

absl::StatusOr<FewerBlocksAnswer> TryFewerBlocks(const Model& model, const SearchResult& asked,
                                                 SearchOptions options) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point begin = Clock::now();
  const double limit = options.time_limit_seconds;
  const std::vector<int> numbers = FewerBlocks(options.student_steps);
  FewerBlocksAnswer out;
  for (std::size_t k = 0; k < numbers.size(); ++k) {
    const double left = limit - std::chrono::duration<double>(Clock::now() - begin).count();
    const auto open = static_cast<double>(numbers.size() - k);
    if (!(left > 0) || (options.interrupted && options.interrupted())) {
      out.left_out = static_cast<int>(numbers.size() - k);
      break;
    }
    options.student_steps = numbers[k];
    options.time_limit_seconds = left / open;
    MP_ASSIGN_OR_RETURN(SearchResult result, Solve(model, options));
    FewerBlocksAnswer::Try one;
    one.student_steps = numbers[k];
    // Equal up to rounding is not better: then it is a matter of taste.
    one.better = result.objective + result.tolerance < asked.objective - asked.tolerance;
    one.certain = one.better && result.objective + result.tolerance < asked.lower_bound;
    one.result = std::move(result);
    out.tries.push_back(std::move(one));
  }
  return out;
}

}  // namespace mergeplan
