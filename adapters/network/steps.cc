#include "adapters/network/steps.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/full.h>
#include <ATen/ops/tensor.h>

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "adapters/network/cuda/landing.h"
#include "adapters/network/try.h"
#include "adapters/network/wrapper.h"
#include "planner/base/status_macros.h"

namespace mergeplan::network {
namespace {

at::ScalarType TypeOf(const std::string& word) {
  if (word == "float64") return at::kDouble;
  if (word == "float16") return at::kHalf;
  if (word == "bfloat16") return at::kBFloat16;
  return at::kFloat;
}

}  // namespace

NetworkSteps::NetworkSteps(Signature signature, Schedule schedule, std::vector<LevelInput> inputs,
                           Precision precision)
    : signature_(std::move(signature)),
      schedule_(std::move(schedule)),
      inputs_(std::move(inputs)),
      precision_(precision),
      type_(TypeOf(signature_.dtype)) {}

absl::StatusOr<NetworkSteps> NetworkSteps::Create(const Signature& signature,
                                                  const Schedule& schedule, Precision precision) {
  MP_RETURN_IF_ERROR(Validate(signature, "the network's signature"));
  MP_ASSIGN_OR_RETURN(std::vector<LevelInput> inputs, LevelInputs(signature, schedule));
  return NetworkSteps(signature, schedule, std::move(inputs), precision);
}

absl::StatusOr<at::Tensor> NetworkSteps::Jump(Module& module, const at::Tensor& z, int from, int to,
                                              const at::Tensor& label) const {
  MP_ASSIGN_OR_RETURN(const Landing landing, LandingAt(signature_, schedule_, from, to));
  return Try("jump", [&]() -> absl::StatusOr<at::Tensor> {
    const LevelInput& input = inputs_[from];
    const auto time_type = signature_.integer_time ? at::kLong : type_;
    const at::Tensor time = at::full({z.size(0)}, input.time, z.options().dtype(time_type));
    at::Tensor seen = input.scale == 1 ? z : z * input.scale;
    absl::StatusOr<at::Tensor> out = [&] {
      const Autocast autocast(precision_, z.device().type());
      return module.Forward(seen.to(type_), time, label);
    }();
    MP_RETURN_IF_ERROR(out.status());
    return Land(z, *out, {landing.state, landing.output, {}, {}});
  });
}

absl::StatusOr<at::Tensor> NetworkSteps::JumpRows(Module& module, const at::Tensor& z,
                                                  absl::Span<const int> from,
                                                  absl::Span<const int> to,
                                                  const at::Tensor& label) const {
  const auto rows = static_cast<std::size_t>(z.size(0));
  if (from.size() != rows || to.size() != rows) {
    return absl::InvalidArgumentError(
        absl::StrCat("levels of ", from.size(), " and ", to.size(), " rows for ", rows, " states"));
  }
  std::vector<double> times(rows), scales(rows), state(rows), output(rows);
  for (std::size_t r = 0; r < rows; ++r) {
    if (r > 0 && from[r] == from[r - 1] && to[r] == to[r - 1]) {
      state[r] = state[r - 1], output[r] = output[r - 1];
    } else {
      MP_ASSIGN_OR_RETURN(const Landing landing, LandingAt(signature_, schedule_, from[r], to[r]));
      state[r] = landing.state, output[r] = landing.output;
    }
    times[r] = inputs_[from[r]].time, scales[r] = inputs_[from[r]].scale;
  }
  return Try("jump", [&]() -> absl::StatusOr<at::Tensor> {
    std::vector<std::int64_t> column(z.dim(), 1);
    column[0] = z.size(0);
    const auto each = [&](const std::vector<double>& values) {
      return at::tensor(values, at::kDouble).to(z.options()).view(column);
    };
    const at::Tensor time = at::tensor(times, at::kDouble)
                                .to(z.options().dtype(signature_.integer_time ? at::kLong : type_));
    const at::Tensor seen = z * each(scales);
    absl::StatusOr<at::Tensor> out = [&] {
      const Autocast autocast(precision_, z.device().type());
      return module.Forward(seen.to(type_), time, label);
    }();
    MP_RETURN_IF_ERROR(out.status());
    return Land(z, *out, {0, 0, each(state), each(output)});
  });
}

}  // namespace mergeplan::network
