#include "adapters/experts/network.h"

#include <cmath>
#include <cstddef>

#include "absl/strings/str_cat.h"
#include "planner/mixture/row_numbers.h"

namespace mergeplan::experts {
namespace {

// The streams of a seed; trainers and executors use numbers from 1 on.
constexpr std::uint32_t kInitialStream = 0;

absl::Status CheckSize(const char* what, int found, int most) {
  if (found >= 1 && found <= most) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("student network: ", what, " is ", found, ", expected 1 to ", most));
}

}  // namespace

absl::Status Validate(const NetworkShape& shape) {
  for (const absl::Status& status :
       {CheckSize("the number of dimensions", shape.dimensions, 1 << 14),
        CheckSize("the number of experts", shape.experts, kMaxExperts),
        CheckSize("the number of hidden units", shape.hidden, kMaxHidden),
        CheckSize("the size of the time embedding", shape.embedding, kMaxHidden)}) {
    if (!status.ok()) return status;
  }
  if (shape.embedding % 2 != 0) {
    return absl::InvalidArgumentError(absl::StrCat("student network: the time embedding has ",
                                                   shape.embedding,
                                                   " numbers, expected an even size"));
  }
  if (shape.parameters() > kMaxParameters) {
    return absl::InvalidArgumentError(absl::StrCat("student network: ", shape.parameters(),
                                                   " parameters, expected at most ", kMaxParameters,
                                                   "; use fewer experts or hidden units"));
  }
  return absl::OkStatus();
}

std::vector<double> Embedding(int size, double u) {
  std::vector<double> out(size);
  for (int i = 1; i <= size / 2; ++i) {
    const double w = std::pow(10000.0, -2.0 * i / size);
    out[2 * i - 2] = std::sin(w * u);
    out[2 * i - 1] = std::cos(w * u);
  }
  return out;
}

std::vector<double> InitialParameters(const NetworkShape& shape, std::uint64_t seed) {
  std::vector<double> out(shape.parameters());
  mixture::RowNumbers numbers(seed, kInitialStream, 0);
  const auto fill = [&](std::int64_t begin, std::int64_t end, std::int64_t inputs) {
    const double bound = 1 / std::sqrt(static_cast<double>(inputs));
    for (std::int64_t i = begin; i < end; ++i) out[i] = bound * (2 * numbers.NextUniform() - 1);
  };
  fill(shape.gate_w1(), shape.gate_w2(), shape.inputs());
  fill(shape.gate_w2(), shape.expert_w1(), shape.hidden);
  fill(shape.expert_w1(), shape.expert_w2(), shape.embedding);
  fill(shape.expert_w2(), shape.parameters(), shape.hidden);
  return out;
}

void FoldWrapper(const NetworkShape& shape, double p, double q, std::vector<double>& parameters) {
  // p (I + O_A) + q I = I + (p O_A + (p + q - 1) I).
  for (std::int64_t i = shape.expert_w2(); i < shape.parameters(); ++i) parameters[i] *= p;
  for (int e = 0; e < shape.experts; ++e) {
    double* bias = parameters.data() + shape.expert_b2() +
                   static_cast<std::ptrdiff_t>(e) * shape.expert_numbers();
    for (int i = 0; i < shape.dimensions; ++i) {
      bias[static_cast<std::ptrdiff_t>(i) * shape.dimensions + i] += p + q - 1;
    }
  }
}

}  // namespace mergeplan::experts
