#pragma once

#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "planner/plan/plan.h"

namespace mergeplan {

// The strategies of the paper as plans (tab:distillation_methods). `blocks` = N > 1 uses the
// strategy inside N equal blocks with borders at floor(k T / N + 0.5).
//
//   vanilla      one merge of all steps
//   progressive  pairs from the clean end, level by level; an odd one at the noisy end waits
//   boot         from the noisy end: (1 (2 (3 ... (T-1 T))))
//   consistency  from the clean end: ((((1 2) 3) ...) T)
enum class Strategy { kVanilla, kProgressive, kBoot, kConsistency };

inline constexpr Strategy kStrategies[] = {Strategy::kVanilla, Strategy::kProgressive,
                                           Strategy::kBoot, Strategy::kConsistency};

std::string_view ToString(Strategy strategy);
absl::StatusOr<Strategy> ParseStrategy(std::string_view word);

// T >= 1, 1 <= N <= T; INVALID_ARGUMENT otherwise. O(T).
absl::StatusOr<Plan> CanonicalPlan(Strategy strategy, int teacher_steps, int blocks = 1);

// The N ranges with borders at floor(k T / N + 0.5).
std::vector<Range> EqualBlocks(int teacher_steps, int blocks);

}  // namespace mergeplan
