#include "adapters/calibrate/probes.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/roll.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <set>
#include <utility>

#include "adapters/network/try.h"
#include "planner/base/memory.h"
#include "planner/base/status_macros.h"

namespace mergeplan::calibrate {
namespace {

using network::ErrorEstimate;
using network::Link;
using network::SquaredDistance;
using network::Try;

constexpr double kHalf = 0.5;

class Clock {
 public:
  explicit Clock(double* seconds) : seconds_(seconds) {}
  ~Clock() {
    *seconds_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
  }
  Clock(const Clock&) = delete;
  Clock& operator=(const Clock&) = delete;

 private:
  double* seconds_;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

absl::Status Stopped(Pilots& pilots) {
  if (!pilots.options().stop || !pilots.options().stop()) return absl::OkStatus();
  return absl::CancelledError("stopped while distances and gains were measured");
}

absl::StatusOr<at::Tensor> Mix(double p, const at::Tensor& a, double q, const at::Tensor& b) {
  return Try("measuring", [&]() -> absl::StatusOr<at::Tensor> {
    const c10::NoGradGuard no_gradients;
    return a * p + b * q;
  });
}

// All starts of merges that end at one level.
class StartsAt {
 public:
  StartsAt(Pilots& pilots, int last) : pilots_(pilots), last_(last) {}

  // Walks the teacher down.
  absl::Status Walk(std::int64_t* calls) {
    MP_ASSIGN_OR_RETURN(at::Tensor z, pilots_.held_out().States(last_));
    MP_RETURN_IF_ERROR(CheckMemory("the teacher's states on the way down from one level",
                                   static_cast<double>(z.nbytes()) * last_));
    const at::Tensor label = pilots_.held_out().Labels(last_);
    states_.resize(last_ + 1);
    states_[last_] = z;
    for (int t = last_; t > 0; --t) {
      MP_RETURN_IF_ERROR(Stopped(pilots_));
      MP_ASSIGN_OR_RETURN(states_[t - 1],
                          pilots_.held_out().Run({Link{t, t - 1, -1, 0}}, states_[t], label));
      *calls += z.size(0);
    }
    const Init init = pilots_.options().init;
    const bool whole = init == Init::kJump || init == Init::kChildJump;
    MP_ASSIGN_OR_RETURN(
        jump_, pilots_.held_out().Jump(pilots_.student(), z, last_, whole ? 0 : last_ - 1, label));
    return absl::OkStatus();
  }
  const at::Tensor& state(int level) const { return states_[level]; }

  // What the merge [first, last] starts as; `start`: the first step of its noisiest child.
  absl::StatusOr<at::Tensor> At(int first, int start) const {
    const Schedule& schedule = pilots_.steps().schedule();
    const Init init = pilots_.options().init;
    const int to = first - 1, j = last_;
    const auto D = [&](int a, int b) { return SignalNoiseDeterminant(schedule, a, b); };
    if (init == Init::kTeacher) return jump_;
    if (init == Init::kChild) return start == j ? jump_ : states_[start - 1];
    if (init == Init::kJump || start == j) {
      // From where the network lands at level 0 to where it lands at `to`: the same x0 estimate.
      return Mix(D(to, j) / D(0, j), jump_, D(0, to) / D(0, j), states_[j]);
    }
    return Mix(D(to, j) / D(start - 1, j), states_[start - 1], -D(to, start - 1) / D(start - 1, j),
               states_[j]);
  }

 private:
  Pilots& pilots_;
  int last_;
  std::vector<at::Tensor> states_;  // by level
  at::Tensor jump_;
};

// Carries two states down together and measures how their distance grows.
absl::StatusOr<std::vector<double>> Follow(Pilots& pilots, int level, const at::Tensor& base,
                                           const at::Tensor& off, const at::Tensor& label,
                                           std::int64_t* calls) {
  MP_ASSIGN_OR_RETURN(const ErrorEstimate before, SquaredDistance(base, off));
  std::vector<double> out;
  if (!(before.mean > 0)) return out;
  MP_ASSIGN_OR_RETURN(at::Tensor both, Try("measuring", [&]() -> absl::StatusOr<at::Tensor> {
                        return at::cat({base, off});
                      }));
  const std::int64_t rows = base.size(0);
  const at::Tensor labels = label.defined() ? at::cat({label, label}) : label;
  out.resize(level);
  for (int t = level; t > 0; --t) {
    MP_RETURN_IF_ERROR(Stopped(pilots));
    MP_ASSIGN_OR_RETURN(both, pilots.held_out().Run({Link{t, t - 1, -1, 0}}, both, labels));
    *calls += 2 * rows;
    MP_ASSIGN_OR_RETURN(const ErrorEstimate after,
                        SquaredDistance(both.narrow(0, 0, rows), both.narrow(0, rows, rows)));
    out[t - 1] = after.mean / before.mean;
    if (!std::isfinite(out[t - 1])) {
      return absl::FailedPreconditionError(
          "an error that is carried down by the teacher's steps is not finite; check the teacher");
    }
  }
  return out;
}

absl::StatusOr<at::Tensor> Rows(Pilots& pilots, int level) {
  MP_ASSIGN_OR_RETURN(const at::Tensor z, pilots.held_out().States(level));
  return z.narrow(0, 0, std::min(z.size(0), kGainRows));
}

at::Tensor LabelsOfRows(Pilots& pilots, int level) {
  const at::Tensor label = pilots.held_out().Labels(level);
  return label.defined() ? label.narrow(0, 0, std::min(label.size(0), kGainRows)) : label;
}

void SampleVariances(const at::Tensor& samples, double data_scale, Measurements* out) {
  const c10::NoGradGuard no_gradients;
  const at::Tensor flat = samples.to(at::kCPU, at::kDouble).flatten(1).contiguous();
  const std::int64_t n = flat.size(0), d = flat.size(1);
  const auto* x = flat.const_data_ptr<double>();
  std::vector<double> variances(d);
  double total = 0;
  for (std::int64_t k = 0; k < d; ++k) {
    double mean = 0, squares = 0;
    for (std::int64_t r = 0; r < n; ++r) mean += x[r * d + k] / static_cast<double>(n);
    for (std::int64_t r = 0; r < n; ++r) {
      squares += (x[r * d + k] - mean) * (x[r * d + k] - mean);
    }
    variances[k] = squares / static_cast<double>(n - 1) * data_scale * data_scale;
    total += variances[k];
  }
  constexpr std::int64_t kMost = 4096;
  out->dimensions = d;
  if (d > kMost) variances = {total / static_cast<double>(d)};
  out->variances = std::move(variances);
}

}  // namespace

absl::Status MeasureDistances(Pilots& pilots, const Design& design, Measurements* out) {
  const Clock clock(&out->probe_seconds);
  const Init init = pilots.options().init;
  const bool from_child = init == Init::kChild || init == Init::kChildJump;
  const int T = out->teacher_steps;
  for (const int last : design.ends) {
    StartsAt starts(pilots, last);
    MP_RETURN_IF_ERROR(starts.Walk(&out->probe_calls));
    for (const int steps : design.ends) {
      if (steps > last) break;
      const int first = last - steps + 1;
      for (const int depth : StartDepths(steps, T)) {
        const int start = last - depth;
        MP_ASSIGN_OR_RETURN(const at::Tensor from, starts.At(first, start));
        MP_ASSIGN_OR_RETURN(const ErrorEstimate error,
                            SquaredDistance(from, starts.state(first - 1)));
        if (!std::isfinite(error.mean)) {
          return absl::FailedPreconditionError(
              "the distance between a start and its target is not finite; check the teacher and "
              "the schedule");
        }
        out->distances.push_back(
            {first, from_child ? start : 0, last, error.mean, error.standard_error});
        if (!from_child) break;
      }
    }
    if (last == T) SampleVariances(starts.state(0), out->data_scale, out);
  }
  return absl::OkStatus();
}

absl::Status MeasureGains(Pilots& pilots, const Design& design, Measurements* out) {
  const Clock clock(&out->probe_seconds);
  const int T = out->teacher_steps;
  const int middle = std::max(3, static_cast<int>(std::lround(std::sqrt(T))));
  for (const int level : design.levels) {
    const std::set<int> ends{std::min(level + 2, T), std::min(level + middle, T), T};
    bool found = false;
    for (const int last : ends) {
      if (last < level + 2) continue;
      MP_ASSIGN_OR_RETURN(const at::Tensor z, Rows(pilots, last));
      const at::Tensor label = LabelsOfRows(pilots, last);
      MP_ASSIGN_OR_RETURN(const at::Tensor base,
                          pilots.held_out().Run({Link{last, level, -1, 0}}, z, label));
      out->probe_calls += (last - level) * z.size(0);
      MP_ASSIGN_OR_RETURN(const at::Tensor start,
                          pilots.held_out().Jump(pilots.student(), z, last,
                                                 pilots.LandingOf({level + 1, last}), label));
      MP_ASSIGN_OR_RETURN(const at::Tensor off, Mix(1 - kHalf, base, kHalf, start));
      GainProbe probe{level, last, false, {}};
      MP_ASSIGN_OR_RETURN(probe.squared,
                          Follow(pilots, level, base, off, label, &out->probe_calls));
      if (probe.squared.empty()) continue;  // no error to follow
      found = true;
      out->gains.push_back(std::move(probe));
    }
    if (found) continue;
    // No merge makes an error here (the noisiest level, a start that is right): no plan asks for
    // this number, which stands at the tables' corner. The states' own differences serve.
    MP_ASSIGN_OR_RETURN(const at::Tensor z, Rows(pilots, level));
    MP_ASSIGN_OR_RETURN(const at::Tensor off, Mix(1 - 1e-2, z, 1e-2, at::roll(z, 1, 0)));
    GainProbe probe{level, level + 1, false, {}};
    MP_ASSIGN_OR_RETURN(probe.squared, Follow(pilots, level, z, off, LabelsOfRows(pilots, level),
                                              &out->probe_calls));
    if (probe.squared.empty()) {
      return absl::FailedPreconditionError(
          "held-out rows are all the same, expected states that differ; check the inputs");
    }
    out->gains.push_back(std::move(probe));
  }
  return absl::OkStatus();
}

absl::Status MeasureTrainedGain(Pilots& pilots, Range range, network::Module& network,
                                Measurements* out) {
  const Clock clock(&out->probe_seconds);
  const int level = range.first - 1;
  if (level < 1) return absl::OkStatus();
  MP_ASSIGN_OR_RETURN(const at::Tensor z, Rows(pilots, range.last));
  const at::Tensor label = LabelsOfRows(pilots, range.last);
  MP_ASSIGN_OR_RETURN(const at::Tensor base,
                      pilots.held_out().Run({Link{range.last, level, -1, 0}}, z, label));
  out->probe_calls += (range.last - level) * z.size(0);
  MP_ASSIGN_OR_RETURN(const at::Tensor off, pilots.held_out().Jump(network, z, range.last,
                                                                   pilots.LandingOf(range), label));
  GainProbe probe{level, range.last, true, {}};
  MP_ASSIGN_OR_RETURN(probe.squared, Follow(pilots, level, base, off, label, &out->probe_calls));
  if (!probe.squared.empty()) out->gains.push_back(std::move(probe));
  return absl::OkStatus();
}

}  // namespace mergeplan::calibrate
