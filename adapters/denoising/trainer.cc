#include "adapters/denoising/trainer.h"

#include <ATen/Context.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/_foreach_lerp.h>

#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "adapters/network/tensor_list.h"
#include "adapters/network/trainable.h"
#include "adapters/network/try.h"
#include "adapters/noise/noise.h"
#include "planner/base/status_macros.h"

namespace mergeplan::denoising {
namespace {

using network::Copies;
using network::CopyInto;
using network::Fit;
using network::Module;

std::vector<at::Tensor> Tensors(const std::vector<Module::Named>& named) {
  std::vector<at::Tensor> out;
  out.reserve(named.size());
  for (const auto& [name, tensor] : named) out.push_back(tensor);
  return out;
}

}  // namespace

Trainer::Trainer(std::unique_ptr<Module> module, std::unique_ptr<Objective> objective,
                 const Options& options, network::Precision precision, network::Optimizer optimizer)
    : module_(std::move(module)),
      objective_(std::move(objective)),
      options_(options),
      precision_(precision),
      optimizer_(std::move(optimizer)),
      scale_(precision) {
  if (options_.ema > 0) average_ = Copies(optimizer_.parameters());
}

absl::StatusOr<std::unique_ptr<Trainer>> Trainer::Create(std::unique_ptr<Module> module,
                                                         Batches batches, const Options& options) {
  MP_ASSIGN_OR_RETURN(const network::Precision precision,
                      network::ParsePrecision(options.precision));
  return Create(std::move(module), DenoisingObjective(std::move(batches), precision), options);
}

absl::StatusOr<std::unique_ptr<Trainer>> Trainer::Create(std::unique_ptr<Module> module,
                                                         std::unique_ptr<Objective> objective,
                                                         const Options& options) {
  MP_ASSIGN_OR_RETURN(const network::Precision precision,
                      network::ParsePrecision(options.precision));
  MP_ASSIGN_OR_RETURN(std::vector<at::Tensor> parameters, network::TrainableParameters(*module));
  MP_ASSIGN_OR_RETURN(network::Optimizer optimizer,
                      network::Optimizer::Create(std::move(parameters), options.recipe, options.lr,
                                                 options.iterations));
  module->SetTraining(true);
  return std::unique_ptr<Trainer>(new Trainer(std::move(module), std::move(objective), options,
                                              precision, std::move(optimizer)));
}

std::int64_t Trainer::parameters() const {
  std::int64_t count = 0;
  for (const at::Tensor& parameter : optimizer_.parameters()) count += parameter.numel();
  return count;
}

absl::Status Trainer::NotFinite(const std::string& what) const {
  return network::NotFiniteAt(what, updates_, options_.iterations);
}

absl::Status Trainer::Pass(std::uint64_t number, Update* update) {
  return network::Try("training", [&]() -> absl::Status {
    // What the network draws by itself.
    const StreamName own = StreamName::Of(static_cast<std::uint64_t>(options_.seed), 0, 0, 15);
    const PhiloxWords words = own.Words(number);
    at::manual_seed(std::uint64_t{words.w[0]} << 32 | words.w[1]);
    MP_ASSIGN_OR_RETURN(const Objective::Loss loss, objective_->Of(*module_, number));
    const auto value = loss.value.item<double>();
    if (std::isfinite(value)) {
      (loss.value * (scale_.scale() / options_.recipe.accumulate)).backward();
    }
    const auto passes = static_cast<double>(options_.recipe.accumulate);
    update->loss += value / passes;
    update->parts.resize(loss.parts.size());
    for (std::size_t k = 0; k < loss.parts.size(); ++k) update->parts[k] += loss.parts[k] / passes;
    return absl::OkStatus();
  });
}

absl::Status Trainer::Average() {
  if (average_.empty()) return absl::OkStatus();
  return network::Try("average", [&]() -> absl::Status {
    const c10::NoGradGuard no_gradients;
    at::_foreach_lerp_(average_, optimizer_.parameters(),
                       1 - KeptByAverage(options_.ema, updates_));
    return absl::OkStatus();
  });
}

absl::StatusOr<Trainer::Update> Trainer::Step() {
  const auto fail = [&](absl::Status status) {
    optimizer_.Clear();
    return status;
  };
  const auto accumulate = static_cast<std::uint64_t>(options_.recipe.accumulate);
  Update update;
  update.lr = options_.lr * options_.recipe.RateFactor(updates_, options_.iterations);
  update.norm = std::numeric_limits<double>::quiet_NaN();
  for (std::uint64_t a = 0; a < accumulate; ++a) {
    const absl::Status pass = Pass(static_cast<std::uint64_t>(updates_) * accumulate + a, &update);
    if (!pass.ok()) return fail(pass);
  }
  bool finite = std::isfinite(update.loss);
  if (!finite && !scale_.on()) return fail(NotFinite(absl::StrCat("the loss is ", update.loss)));
  if (finite) {
    const auto result = optimizer_.Step(updates_, scale_.scale());
    if (!result.ok()) return fail(result.status());
    finite = result->finite;
    update.norm = result->norm;
  }
  const double scale = scale_.scale();
  const std::int64_t good = scale_.good();
  if (!scale_.Update(finite)) {
    scale_.Restore(scale, good);
    return fail(NotFinite(absl::StrCat("the gradient is not finite",
                                       scale_.on() ? ", at any scale of the loss," : "")));
  }
  update.skipped = !finite;
  if (finite) {
    MP_RETURN_IF_ERROR(Average());
  } else {
    optimizer_.Clear();
    ++skipped_;
  }
  ++updates_;
  return update;
}

TrainerState Trainer::Save() const {
  const c10::NoGradGuard no_gradients;
  TrainerState state;
  state.updates = updates_;
  state.skipped = skipped_;
  state.scale = scale_.scale();
  state.good = scale_.good();
  state.parameters = Copies(optimizer_.parameters());
  state.buffers = Copies(Tensors(module_->Buffers()));
  state.average = Copies(average_);
  state.optimizer = optimizer_.Save();
  return state;
}

absl::Status Trainer::Restore(const TrainerState& state) {
  const std::vector<at::Tensor> buffers = Tensors(module_->Buffers());
  if (state.updates < 0 || state.updates > options_.iterations || state.skipped < 0 ||
      state.skipped > state.updates || !(state.scale > 0) || !std::isfinite(state.scale) ||
      !Fit(state.parameters, optimizer_.parameters()) || !Fit(state.buffers, buffers) ||
      !Fit(state.average, average_)) {
    return absl::DataLossError("saved state: does not fit the network, its average or its updates");
  }
  MP_RETURN_IF_ERROR(optimizer_.Restore(state.optimizer));
  return network::Try("saved state", [&]() -> absl::Status {
    const c10::NoGradGuard no_gradients;
    CopyInto(state.parameters, optimizer_.parameters());
    CopyInto(state.buffers, buffers);
    CopyInto(state.average, average_);
    updates_ = state.updates;
    skipped_ = state.skipped;
    scale_.Restore(state.scale, state.good);
    return absl::OkStatus();
  });
}

absl::StatusOr<std::unique_ptr<Module>> Trainer::Trained() const {
  MP_ASSIGN_OR_RETURN(std::unique_ptr<Module> copy, module_->Clone());
  copy->SetTraining(false);
  if (average_.empty()) return copy;
  MP_ASSIGN_OR_RETURN(const std::vector<at::Tensor> parameters,
                      network::TrainableParameters(*copy));
  MP_RETURN_IF_ERROR(network::Try("average", [&]() -> absl::Status {
    const c10::NoGradGuard no_gradients;
    CopyInto(average_, parameters);
    return absl::OkStatus();
  }));
  return copy;
}

}  // namespace mergeplan::denoising
