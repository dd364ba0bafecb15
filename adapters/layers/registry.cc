#include "adapters/layers/registry.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <c10/core/GradMode.h>

namespace mergeplan::layers {

at::Tensor Registry::Add(std::string name, std::vector<std::int64_t> shape, Start start,
                         bool trainable) {
  Leaf& leaf = leaves_.emplace_back();
  leaf.name = std::move(name);
  leaf.shape = std::move(shape);
  leaf.start = start;
  leaf.trainable = trainable;
  leaf.tensor = at::empty({0}, at::kFloat);
  leaf.tensor.set_requires_grad(trainable);
  return leaf.tensor;
}

void Registry::Allocate(Leaf& leaf, at::ScalarType dtype, at::Device device) {
  leaf.tensor.set_data(at::empty(leaf.shape, at::TensorOptions(dtype).device(device)));
}

void Registry::Initialize(std::uint64_t seed) {
  const c10::AutoGradMode no_gradients(false);
  const at::Generator generator = at::detail::createCPUGenerator(seed);
  for (Leaf& leaf : leaves_) {
    Allocate(leaf, at::kFloat, at::kCPU);
    switch (leaf.start.kind) {
      case Start::Kind::kZeros:
        leaf.tensor.zero_();
        break;
      case Start::Kind::kOnes:
        leaf.tensor.fill_(1);
        break;
      case Start::Kind::kUniform:
        leaf.tensor.uniform_(-leaf.start.scale, leaf.start.scale, generator);
        break;
      case Start::Kind::kNormal:
        leaf.tensor.normal_(0, leaf.start.scale, generator);
        break;
    }
  }
}

void Registry::Move(at::Device device, at::ScalarType dtype) {
  const c10::AutoGradMode no_gradients(false);
  for (Leaf& leaf : leaves_) {
    if (leaf.tensor.device() == device && leaf.tensor.scalar_type() == dtype) continue;
    leaf.tensor.mutable_grad() = at::Tensor();
    leaf.tensor.set_data(leaf.tensor.to(device, dtype));
  }
}

void Registry::CopyFrom(const Registry& other) {
  const c10::AutoGradMode no_gradients(false);
  for (size_t k = 0; k < leaves_.size(); ++k) {
    const at::Tensor& from = other.leaves_[k].tensor;
    // In the layout of the other, too.
    leaves_[k].tensor.set_data(at::empty_like(from));
    leaves_[k].tensor.copy_(from);
    leaves_[k].tensor.set_requires_grad(from.requires_grad());
  }
}

}  // namespace mergeplan::layers
