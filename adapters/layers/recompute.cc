#include "adapters/layers/recompute.h"

#include <ATen/Context.h>
#include <ATen/core/Generator.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>

#include <mutex>
#include <utility>

namespace mergeplan::layers {
namespace {

using Part = std::function<at::Tensor(const std::vector<at::Tensor>& inputs)>;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

struct Held : torch::CustomClassHolder {
  Part part;
  size_t inputs = 0;        // of the tensors saved, the first are inputs
  at::Generator generator;  // undefined: draws nothing
  at::Tensor state;
};

at::Generator GeneratorOf(const at::Tensor& x) {
  return at::globalContext().defaultGenerator(x.device());
}

at::Tensor StateOf(at::Generator generator) {
  const std::lock_guard<std::mutex> lock(generator.mutex());
  return generator.get_state();
}

void SetState(at::Generator generator, const at::Tensor& state) {
  const std::lock_guard<std::mutex> lock(generator.mutex());
  generator.set_state(state);
}

class Forgetful : public torch::autograd::Function<Forgetful> {
 public:
  static at::Tensor forward(AutogradContext* ctx, at::TensorList tensors,
                            const c10::intrusive_ptr<Held>& held) {
    if (held->generator.defined()) held->state = StateOf(held->generator);
    ctx->saved_data["held"] = c10::IValue::make_capsule(held);
    ctx->save_for_backward(tensors.vec());
    return held->part(
        {tensors.begin(), tensors.begin() + static_cast<std::ptrdiff_t>(held->inputs)});
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& gradients) {
    const auto held = c10::static_intrusive_pointer_cast<Held>(ctx->saved_data["held"].toCapsule());
    const variable_list saved = ctx->get_saved_variables();
    std::vector<at::Tensor> inputs;
    variable_list wanted;
    std::vector<size_t> places;  // of what is wanted, among the tensors
    for (size_t k = 0; k < saved.size(); ++k) {
      at::Tensor tensor = saved[k];
      if (k < held->inputs && tensor.defined()) {
        // Cut off, so that the gradient stops here.
        tensor = tensor.detach().requires_grad_(saved[k].requires_grad());
      }
      if (k < held->inputs) inputs.push_back(tensor);
      if (tensor.defined() && tensor.requires_grad()) {
        wanted.push_back(tensor);
        places.push_back(k);
      }
    }
    at::Tensor state_now;
    if (held->generator.defined()) {
      state_now = StateOf(held->generator);
      SetState(held->generator, held->state);
    }
    at::Tensor out;
    {
      const c10::AutoGradMode with_gradients(true);
      out = held->part(inputs);
    }
    if (held->generator.defined()) SetState(held->generator, state_now);
    const variable_list found =
        torch::autograd::grad({out}, wanted, {gradients[0]}, std::nullopt,
                              /*create_graph=*/false, /*allow_unused=*/true);
    variable_list all(saved.size() + 1);  // nothing for the part itself
    for (size_t k = 0; k < places.size(); ++k) all[places[k]] = found[k];
    return all;
  }
};

}  // namespace

at::Tensor Recompute(const Part& part, const std::vector<at::Tensor>& inputs,
                     const std::vector<at::Tensor>& parameters, bool draws) {
  if (!c10::GradMode::is_enabled()) return part(inputs);
  auto held = c10::make_intrusive<Held>();
  held->part = part;
  held->inputs = inputs.size();
  if (draws) held->generator = GeneratorOf(inputs.front());
  variable_list tensors(inputs.begin(), inputs.end());
  tensors.insert(tensors.end(), parameters.begin(), parameters.end());
  return Forgetful::apply(at::TensorList(tensors), held);
}

}  // namespace mergeplan::layers
