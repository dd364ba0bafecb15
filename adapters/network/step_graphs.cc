#include "adapters/network/step_graphs.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/_foreach_norm.h>
#include <ATen/ops/_foreach_sub.h>
#include <ATen/ops/_foreach_zero.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/full.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros_like.h>

#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "adapters/network/tensor_list.h"
#include "planner/base/status_macros.h"

namespace mergeplan::network {
namespace {

double NormOf(const std::vector<at::Tensor>& tensors) {
  return at::stack(at::_foreach_norm(tensors, 2)).to(at::kDouble).norm().item<double>();
}

}  // namespace

StepGraphs::StepGraphs(std::shared_ptr<GraphEngine> engine, std::vector<at::Tensor> parameters,
                       std::size_t tasks, std::function<void(const std::string&)> note)
    : engine_(std::move(engine)),
      parameters_(std::move(parameters)),
      places_(tasks),
      note_(std::move(note)) {}

void StepGraphs::Begin() {
  if (!on()) return;
  const c10::NoGradGuard no_gradients;
  if (gradients_.empty()) {
    for (const at::Tensor& parameter : parameters_) {
      gradients_.push_back(at::zeros_like(parameter));
    }
  } else {
    at::_foreach_zero_(gradients_);
  }
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    parameters_[i].mutable_grad() = gradients_[i];
  }
}

bool StepGraphs::Fits(const std::vector<at::Tensor>& found, const std::vector<at::Tensor>& own) {
  if (found.size() != own.size()) return false;
  for (std::size_t i = 0; i < own.size(); ++i) {
    const at::Tensor &a = found[i], &b = own[i];
    if (a.defined() != b.defined()) return false;
    if (!a.defined()) continue;
    if (!a.sizes().equals(b.sizes()) || !a.strides().equals(b.strides()) ||
        a.scalar_type() != b.scalar_type() || a.device() != b.device()) {
      return false;
    }
  }
  return true;
}

absl::StatusOr<double> StepGraphs::ByOperations(const std::vector<at::Tensor>& inputs,
                                                double weight, const Loss& loss) {
  MP_ASSIGN_OR_RETURN(const at::Tensor number, loss(inputs));
  const double value = number.item<double>();
  (number * weight).backward();
  return value;
}

absl::Status StepGraphs::Capture(Place& place, const Loss& loss) {
  // The work owns what it uses, and knows nothing that changes from one update to the next.
  const auto work = [buffers = place.buffers, loss]() -> absl::Status {
    MP_ASSIGN_OR_RETURN(const at::Tensor number, loss(buffers->inputs));
    buffers->loss = number.detach();
    (number * buffers->weight).backward();
    return absl::OkStatus();
  };
  MP_ASSIGN_OR_RETURN(place.graph, engine_->Capture(work));
  return absl::OkStatus();
}

absl::StatusOr<double> StepGraphs::Replay(Place& place, const std::vector<at::Tensor>& inputs,
                                          double weight) {
  Buffers& buffers = *place.buffers;
  {
    const c10::NoGradGuard no_gradients;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (inputs[i].defined()) buffers.inputs[i].copy_(inputs[i]);
    }
    buffers.weight.fill_(weight);
  }
  MP_RETURN_IF_ERROR(place.graph->Replay());
  return buffers.loss.item<double>();
}

absl::StatusOr<double> StepGraphs::Check(Place& place, const std::vector<at::Tensor>& inputs,
                                         double weight, const Loss& loss) {
  const std::vector<at::Tensor> before = Copies(gradients_);
  MP_ASSIGN_OR_RETURN(const double found, Replay(place, inputs, weight));
  const std::vector<at::Tensor> replayed = Copies(gradients_);
  {
    const c10::NoGradGuard no_gradients;
    CopyInto(before, gradients_);
  }
  MP_ASSIGN_OR_RETURN(const double value, ByOperations(inputs, weight, loss));
  const c10::NoGradGuard no_gradients;
  at::_foreach_sub_(replayed, gradients_);
  const double apart = NormOf(replayed);
  at::_foreach_sub_(before, gradients_);
  const double size = NormOf(before);
  // Nothing is known of what overflows: the next batch may tell.
  if (!std::isfinite(value) || !std::isfinite(size)) return value;
  const bool agree =
      std::abs(found - value) <= kTolerance * std::abs(value) && apart <= kTolerance * size;
  place.checked = agree;
  if (!agree) {
    GiveUp(absl::StrCat("its first replay gave the loss ", found, " where the operations give ",
                        value, ", and gradients ", apart, " apart, whose norm is ", size));
  }
  return value;
}

void StepGraphs::GiveUp(const std::string& why) {
  engine_.reset();
  for (Place& place : places_) place = Place();
  if (note_) {
    note_(absl::StrCat("the training goes on without a CUDA graph of its step: ", why,
                       " (--cuda-graph no: without a try)"));
  }
}

absl::StatusOr<double> StepGraphs::Run(std::size_t task, const std::vector<at::Tensor>& inputs,
                                       double weight, const Loss& loss) {
  if (!on()) return ByOperations(inputs, weight, loss);
  Place& place = places_[task];
  if (place.buffers == nullptr || !Fits(inputs, place.buffers->inputs)) {
    place = Place();
    place.buffers = std::make_shared<Buffers>();
    const c10::NoGradGuard no_gradients;
    for (const at::Tensor& input : inputs) {
      place.buffers->inputs.push_back(input.defined() ? at::empty_like(input) : at::Tensor());
      if (input.defined()) place.buffers->inputs.back().copy_(input);
    }
  }
  if (place.seen < kWarmUp) {
    ++place.seen;
    return ByOperations(inputs, weight, loss);
  }
  if (place.graph == nullptr) {
    // In the loss's own type, in which LibTorch takes a number that multiplies it.
    const at::ScalarType type =
        parameters_.front().scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
    place.buffers->weight = at::full({}, weight, parameters_.front().options().dtype(type));
    place.buffers->weight.set_requires_grad(false);
    if (const absl::Status status = Capture(place, loss); !status.ok()) {
      GiveUp(std::string(status.message()));
      return ByOperations(inputs, weight, loss);
    }
  }
  return place.checked ? Replay(place, inputs, weight) : Check(place, inputs, weight, loss);
}

}  // namespace mergeplan::network
