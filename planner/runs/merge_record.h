#pragma once

#include <cstdint>
#include <optional>

namespace mergeplan {

// What training one merge took and left.
struct MergeFigures {
  // Expected loss over z ~ N(0, n) before and after training: sum_k n_k (a_k - p_k)^2.
  double initial_loss = 0, final_loss = 0;
  std::int64_t updates = 0;
  std::int64_t teacher_calls = 0;  // single steps applied to single samples
  double seconds = 0;              // its share of the time of the merges that trained with it

  // final_loss / initial_loss; 0 where there was nothing to learn.
  double residual() const { return final_loss > 0 ? final_loss / initial_loss : 0.0; }
  bool operator==(const MergeFigures&) const = default;
};

// The same with the merge's place in the plan and the error of its operator against the product of
// the teacher's steps, sum_k w_k (prod_t A_t - V)^2, as the linear model predicts it (NaN where it
// does not) and as it is; and the gradient-flow time s that would have left the same loss.
struct MergeRecord : MergeFigures {
  int first = 0, last = 0;  // steps that it replaces, 1..T
  int round = 0;
  double predicted_error = 0, achieved_error = 0;
  // Of the achieved error, where it is a mean over drawn rows; none where it is exact.
  std::optional<double> standard_error = {};
  std::optional<double> effective_time;  // none where training was not linear, or did nothing

  bool operator==(const MergeRecord&) const = default;
};

}  // namespace mergeplan
