#include "adapters/network/optimizer.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/_foreach_lerp.h>
#include <ATen/ops/_foreach_mul.h>
#include <ATen/ops/_foreach_norm.h>
#include <ATen/ops/_fused_adam.h>
#include <ATen/ops/_fused_adamw.h>
#include <ATen/ops/_fused_sgd.h>
#include <ATen/ops/full.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "adapters/network/tensor_list.h"
#include "adapters/network/try.h"
#include "planner/base/status_macros.h"

namespace mergeplan::network {
namespace {

std::vector<at::Tensor> ZerosLike(const std::vector<at::Tensor>& tensors) {
  std::vector<at::Tensor> out;
  out.reserve(tensors.size());
  for (const at::Tensor& tensor : tensors) out.push_back(at::zeros_like(tensor));
  return out;
}

}  // namespace

absl::StatusOr<Optimizer> Optimizer::Create(std::vector<at::Tensor> parameters,
                                            const Recipe& recipe, double lr, std::int64_t updates) {
  if (!(lr > 0) || !std::isfinite(lr)) {
    return absl::InvalidArgumentError(
        absl::StrCat("the learning rate is ", lr, ", expected a positive number"));
  }
  if (recipe.draws != Draws::kSamples || recipe.student != StudentKind::kStep) {
    return absl::InvalidArgumentError(
        "--draws and --student belong to linear students; leave them out for a network");
  }
  MP_RETURN_IF_ERROR(recipe.Validate(updates, 1));
  if (parameters.empty()) {
    return absl::InvalidArgumentError(
        "the student has no parameter that can be trained; save the TorchScript without freezing "
        "it");
  }
  return Try("optimizer", [&]() -> absl::StatusOr<Optimizer> {
    const c10::NoGradGuard no_gradients;
    Optimizer out;
    out.recipe_ = recipe;
    out.lr_ = lr;
    out.updates_ = updates;
    out.parameters_ = std::move(parameters);
    const bool sgd = recipe.optimizer == OptimizerKind::kSgd;
    if (!sgd || recipe.momentum > 0) out.first_ = ZerosLike(out.parameters_);
    if (!sgd) {
      out.second_ = ZerosLike(out.parameters_);
      for (const at::Tensor& parameter : out.parameters_) {
        out.counts_.push_back(at::full({}, 0, parameter.options().dtype(at::kFloat)));
      }
    }
    if (recipe.ema > 0) out.average_ = Copies(out.parameters_);
    out.fused_average_ = FusedAverage::Create(out.average_, out.parameters_);
    return out;
  });
}

void Optimizer::Clear() {
  for (at::Tensor& parameter : parameters_) parameter.mutable_grad().reset();
}

absl::StatusOr<Optimizer::Result> Optimizer::Step(std::int64_t update, double scale) {
  return Try("optimizer", [&]() -> absl::StatusOr<Result> {
    const c10::NoGradGuard no_gradients;
    std::vector<at::Tensor> gradients;
    gradients.reserve(parameters_.size());
    for (const at::Tensor& parameter : parameters_) {
      const at::Tensor& gradient = parameter.grad();
      gradients.push_back(gradient.defined() ? gradient : at::zeros_like(parameter));
    }
    if (scale != 1) at::_foreach_mul_(gradients, 1 / scale);
    Result result;
    result.norm = at::stack(at::_foreach_norm(gradients, 2)).to(at::kDouble).norm().item<double>();
    result.finite = std::isfinite(result.norm);
    if (!result.finite) {
      Clear();
      return result;
    }
    if (recipe_.clip_norm > 0) {
      at::_foreach_mul_(gradients, std::min(1.0, recipe_.clip_norm / (result.norm + 1e-6)));
    }
    const double rate = lr_ * recipe_.RateFactor(update, updates_);
    ++steps_;
    for (at::Tensor& count : counts_) count.fill_(static_cast<double>(steps_));
    switch (recipe_.optimizer) {
      case OptimizerKind::kSgd:
        at::_fused_sgd_(parameters_, gradients, first_, recipe_.weight_decay, recipe_.momentum,
                        rate, /*dampening=*/0, /*nesterov=*/false, /*maximize=*/false,
                        /*is_first_step=*/false);
        break;
      case OptimizerKind::kAdam:
        at::_fused_adam_(parameters_, gradients, first_, second_, {}, counts_, rate, recipe_.beta1,
                         recipe_.beta2, recipe_.weight_decay, recipe_.eps, /*amsgrad=*/false,
                         /*maximize=*/false);
        break;
      case OptimizerKind::kAdamW:
        at::_fused_adamw_(parameters_, gradients, first_, second_, {}, counts_, rate, recipe_.beta1,
                          recipe_.beta2, recipe_.weight_decay, recipe_.eps,
                          /*amsgrad=*/false, /*maximize=*/false);
        break;
    }
    if (fused_average_ != nullptr) {
      MP_RETURN_IF_ERROR(fused_average_->Move(1 - recipe_.ema));
    } else if (!average_.empty()) {
      at::_foreach_lerp_(average_, parameters_, 1 - recipe_.ema);
    }
    Clear();
    return result;
  });
}

Optimizer::State Optimizer::Save() const {
  return {steps_, Copies(first_), Copies(second_), Copies(average_)};
}

absl::Status Optimizer::Restore(const State& state) {
  if (state.steps < 0 || !Fit(state.first, first_) || !Fit(state.second, second_) ||
      !Fit(state.average, average_)) {
    return absl::DataLossError(
        "saved state: moments or average do not fit the student's parameters and its optimizer");
  }
  return Try("saved state", [&] {
    const c10::NoGradGuard no_gradients;
    steps_ = state.steps;
    CopyInto(state.first, first_);
    CopyInto(state.second, second_);
    CopyInto(state.average, average_);
    return absl::OkStatus();
  });
}

absl::Status NotFiniteAt(const std::string& what, std::int64_t update, std::int64_t updates) {
  // Before the first update no rate has done anything yet.
  return absl::FailedPreconditionError(absl::StrCat(
      what, " at update ", update + 1, " of ", updates,
      ", expected finite numbers; the state keeps the parameters from before it. ",
      update == 0 ? "Nothing has been trained yet, so the network itself or its data give such "
                    "numbers: look at `mergeplan model` and `mergeplan analyze` of them, or use "
                    "--precision full"
                  : "Lower the learning rate (--lr), or use --clip-norm, --warmup or --precision "
                    "full"));
}

}  // namespace mergeplan::network
