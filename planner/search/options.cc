#include "planner/search/options.h"

#include "absl/strings/str_format.h"

namespace mergeplan::search {

absl::Status CheckOptions(const Model& model, const SearchOptions& options) {
  if (options.student_steps < 1 || options.student_steps > model.steps()) {
    return absl::InvalidArgumentError(
        absl::StrFormat("student steps is %d, expected 1..%d (the teacher's steps)",
                        options.student_steps, model.steps()));
  }
  if (!(options.gap >= 0) || options.gap >= 1) {
    return absl::InvalidArgumentError(
        absl::StrFormat("gap is %g, expected 0 <= gap < 1", options.gap));
  }
  if (options.max_merges < 0 || options.max_rounds < 0) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "at most %d merges and %d rounds asked for, expected 0 (any number) or more",
        options.max_merges, options.max_rounds));
  }
  if (options.groups < 0) {
    return absl::InvalidArgumentError(
        absl::StrFormat("groups is %d, expected 0 (automatic) or more", options.groups));
  }
  if (!(options.time_limit_seconds > 0)) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "time limit is %g seconds, expected a positive number", options.time_limit_seconds));
  }
  return absl::OkStatus();
}

double Deadline::Seconds() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
}

bool Deadline::Stop() {
  if (interrupted_) return true;
  if (options_.interrupted && options_.interrupted()) {
    interrupted_ = true;
  } else if (Seconds() > options_.time_limit_seconds) {
    stopped_ = true;
  }
  return interrupted_ || stopped_;
}

}  // namespace mergeplan::search
