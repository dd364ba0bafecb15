#include "adapters/network/cuda/landing.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/empty_strided.h>
#include <torch/csrc/autograd/custom_function.h>

#include <string>

#include "adapters/stream/stream.h"

namespace mergeplan::network {
namespace {

using network_device::Kernels;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

void* Stream(const at::Tensor& tensor) {
  const absl::StatusOr<void*> stream = StreamOf(tensor);
  TORCH_CHECK(stream.ok(), std::string(stream.status().message()));
  return *stream;
}
void Check(const absl::Status& status) { TORCH_CHECK(status.ok(), std::string(status.message())); }

const void* Data(const at::Tensor& tensor) {
  return tensor.defined() ? tensor.const_data_ptr() : nullptr;
}
std::int64_t OfARow(const at::Tensor& z) { return z.numel() / z.size(0); }

at::Tensor LandBy(const Kernels& kernels, const at::Tensor& z, const at::Tensor& out,
                  const LandingFactors& f) {
  at::Tensor landed = at::empty_strided(z.sizes(), z.strides(), z.options());
  Check(kernels.Run(Stream(z), network_device::LandArgs{
                                   z.numel(), OfARow(z), *NumberOf(out.scalar_type()),
                                   z.const_data_ptr(), out.const_data_ptr(), f.state, f.output,
                                   Data(f.states), Data(f.outputs), landed.mutable_data_ptr()}));
  return landed;
}

class Landing : public torch::autograd::Function<Landing> {
 public:
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& z, const at::Tensor& out,
                            const LandingFactors& factors, const Kernels* kernels) {
    ctx->saved_data["output"] = factors.output;
    ctx->saved_data["kernels"] = reinterpret_cast<std::int64_t>(kernels);
    ctx->saved_data["number"] = static_cast<std::int64_t>(out.scalar_type());
    ctx->saved_data["strides"] = out.strides();
    ctx->save_for_backward({factors.outputs});
    return LandBy(*kernels, z, out, factors);
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& gradients) {
    at::Tensor gradient = gradients[0];
    const at::Tensor outputs = ctx->get_saved_variables()[0];
    const auto type = static_cast<at::ScalarType>(ctx->saved_data["number"].toInt());
    const std::vector<std::int64_t> strides = ctx->saved_data["strides"].toIntVector();
    if (!gradient.strides().equals(strides)) {
      gradient = at::empty_strided(gradient.sizes(), strides, gradient.options()).copy_(gradient);
    }
    at::Tensor pulled =
        at::empty_strided(gradient.sizes(), strides, gradient.options().dtype(type));
    const auto* kernels = reinterpret_cast<const Kernels*>(ctx->saved_data["kernels"].toInt());
    Check(kernels->Run(
        Stream(gradient),
        network_device::PullArgs{gradient.numel(), OfARow(gradient), *NumberOf(type),
                                 gradient.const_data_ptr(), ctx->saved_data["output"].toDouble(),
                                 Data(outputs), pulled.mutable_data_ptr()}));
    return {at::Tensor(), pulled, at::Tensor(), at::Tensor()};
  }
};

// Can the kernels read them?
bool Fits(const at::Tensor& z, const at::Tensor& out) {
  const auto number = NumberOf(out.scalar_type());
  const bool wide = number == device::Number::kDouble;
  return number && z.scalar_type() == (wide ? at::kDouble : at::kFloat) && z.numel() > 0 &&
         z.device() == out.device() && z.sizes().equals(out.sizes()) &&
         z.strides().equals(out.strides()) && z.is_non_overlapping_and_dense() &&
         (z.size(0) == 1 || z.stride(0) == OfARow(z));
}

}  // namespace

at::Tensor Land(const at::Tensor& z, const at::Tensor& out, const LandingFactors& f,
                const Kernels* kernels) {
  if (kernels == nullptr && z.is_cuda()) kernels = network_device::CudaKernels();
  const bool gradients = c10::GradMode::is_enabled();
  if (kernels == nullptr || (gradients && z.requires_grad()) || !Fits(z, out)) {
    const at::Tensor same = out.to(z.scalar_type());
    return f.states.defined() ? z * f.states + same * f.outputs : z * f.state + same * f.output;
  }
  if (!gradients || !out.requires_grad()) return LandBy(*kernels, z, out, f);
  return Landing::apply(z, out, f, kernels);
}

}  // namespace mergeplan::network
