#include "adapters/network/measure.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "adapters/network/try.h"
#include "planner/base/status_macros.h"

namespace mergeplan::network {
namespace {

constexpr std::int64_t kKept = std::int64_t{512} << 20;

absl::Status GoOn(const std::function<bool()>& stop) {
  if (!stop || !stop()) return absl::OkStatus();
  return absl::CancelledError("stopped while errors were measured");
}

// `body` gets rows and their labels.
template <typename Body>
absl::StatusOr<at::Tensor> ByBlocks(const at::Tensor& z, const at::Tensor& label,
                                    std::int64_t block, const std::function<bool()>& stop,
                                    Body&& body) {
  const c10::NoGradGuard no_gradients;
  std::vector<at::Tensor> parts;
  for (std::int64_t begin = 0; begin < z.size(0); begin += block) {
    MP_RETURN_IF_ERROR(GoOn(stop));
    const std::int64_t rows = std::min(block, z.size(0) - begin);
    MP_ASSIGN_OR_RETURN(
        at::Tensor part,
        body(z.narrow(0, begin, rows), label.defined() ? label.narrow(0, begin, rows) : label));
    parts.push_back(std::move(part));
  }
  return Try("measuring", [&]() -> absl::StatusOr<at::Tensor> { return at::cat(parts); });
}

}  // namespace

void HeldOut::Keep(const at::Tensor& states) {
  bytes_ += static_cast<std::int64_t>(states.nbytes());
}

RowStream HeldOut::StreamOf(int level) const {
  RowStream stream;
  stream.seed = seed_;
  stream.last = level;
  stream.lane = Lane::kHeldOut;
  return stream;
}

at::Tensor HeldOut::Labels(int level) const { return inputs_->Labels(StreamOf(level), 0, rows_); }

absl::StatusOr<at::Tensor> HeldOut::States(int level) {
  const auto known = known_.find(level);
  if (known != known_.end()) return known->second.at(level);
  const RowStream stream = StreamOf(level);
  std::vector<at::Tensor> parts;
  for (std::int64_t begin = 0; begin < rows_; begin += block_) {
    MP_RETURN_IF_ERROR(GoOn(stop_));
    MP_ASSIGN_OR_RETURN(at::Tensor part,
                        inputs_->Draw(level, stream, static_cast<std::uint64_t>(begin),
                                      std::min(block_, rows_ - begin)));
    parts.push_back(std::move(part));
  }
  return Try("measuring", [&]() -> absl::StatusOr<at::Tensor> {
    at::Tensor z = at::cat(parts);
    if (bytes_ > kKept) known_.clear(), bytes_ = 0;
    known_[level][level] = z;
    Keep(z);
    return z;
  });
}

absl::StatusOr<at::Tensor> HeldOut::Teacher(int level, int to) {
  MP_ASSIGN_OR_RETURN(at::Tensor z, States(level));
  const at::Tensor label = Labels(level);
  int from = level;
  // From the nearest state above that is known.
  for (const auto& [reached, state] : known_[level]) {
    if (reached >= to) {
      from = reached;
      z = state;
      break;
    }
  }
  for (int t = from; t > to; --t) {
    MP_ASSIGN_OR_RETURN(z, Run({{t, t - 1, -1, 0}}, z, label));
    if (bytes_ < kKept) {
      known_[level][t - 1] = z;
      Keep(z);
    }
  }
  return z;
}

absl::StatusOr<at::Tensor> HeldOut::Run(const std::vector<Link>& links, const at::Tensor& z,
                                        const at::Tensor& label) const {
  return ByBlocks(z, label, block_, stop_, [&](const at::Tensor& part, const at::Tensor& classes) {
    return Apply(links, frozen_, part, classes);
  });
}

absl::StatusOr<at::Tensor> HeldOut::Jump(Module& module, const at::Tensor& z, int from, int landing,
                                         const at::Tensor& label) const {
  return ByBlocks(z, label, block_, stop_, [&](const at::Tensor& part, const at::Tensor& classes) {
    return frozen_.student->Jump(module, part, from, landing, classes);
  });
}

absl::StatusOr<ErrorEstimate> SquaredDistance(const at::Tensor& a, const at::Tensor& b) {
  return Try("measuring", [&]() -> absl::StatusOr<ErrorEstimate> {
    const c10::NoGradGuard no_gradients;
    const at::Tensor distances = (a.to(at::kCPU, at::kDouble) - b.to(at::kCPU, at::kDouble))
                                     .flatten(1)
                                     .square()
                                     .sum(1)
                                     .contiguous();
    const auto* values = distances.const_data_ptr<double>();
    ErrorEstimate out;
    out.rows = distances.numel();
    double deviations = 0;
    for (std::int64_t r = 0; r < out.rows; ++r) {  // Welford's recursion
      const double before = values[r] - out.mean;
      out.mean += before / static_cast<double>(r + 1);
      deviations += before * (values[r] - out.mean);
    }
    const auto n = static_cast<double>(out.rows);
    if (out.rows > 1) out.standard_error = std::sqrt(deviations / (n - 1) / n);
    return out;
  });
}

}  // namespace mergeplan::network
