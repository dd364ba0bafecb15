#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace mergeplan::layers {

// How a tensor begins in a network that is made and not loaded: as PyTorch's own layers begin.
struct Start {
  enum class Kind { kZeros, kOnes, kUniform, kNormal } kind = Kind::kZeros;
  double scale = 0;  // kUniform: from -scale to scale; kNormal: standard deviation
};

// A named leaf of a network.
struct Leaf {
  std::string name;
  std::vector<std::int64_t> shape;
  at::Tensor tensor;  // empty until it is allocated; the object stays the same
  bool trainable = true;
  Start start;

  std::int64_t count() const {
    std::int64_t count = 1;
    for (const std::int64_t extent : shape) count *= extent;
    return count;
  }
};

// The leaves of a network, in the order in which its layers were made. Layers hold the same tensor
// objects, which are never replaced: only what they contain is.
class Registry {
 public:
  at::Tensor Add(std::string name, std::vector<std::int64_t> shape, Start start,
                 bool trainable = true);

  std::vector<Leaf>& leaves() { return leaves_; }
  const std::vector<Leaf>& leaves() const { return leaves_; }

  // What cannot be about a layer that was being made; the first stays. Networks ask when they are
  // complete.
  void Fail(std::string fault) {
    if (fault_.empty()) fault_ = std::move(fault);
  }
  const std::string& fault() const { return fault_; }

  // Memory for one leaf, not yet filled.
  static void Allocate(Leaf& leaf, at::ScalarType dtype, at::Device device);
  // Allocates and fills all of them from the seed, float32 on the CPU.
  void Initialize(std::uint64_t seed);
  // Other memory, the same values; gradients are dropped.
  void Move(at::Device device, at::ScalarType dtype);
  // Takes values, dtype, device, layout and requires_grad from a registry of the same leaves.
  void CopyFrom(const Registry& other);

 private:
  std::vector<Leaf> leaves_;
  std::string fault_;
};

// Where a layer is being made: names begin with the prefix.
class Scope {
 public:
  explicit Scope(Registry& registry) : registry_(&registry) {}
  Scope operator/(const std::string& name) const {
    Scope inner = *this;
    inner.prefix_ += name + ".";
    return inner;
  }
  Scope operator/(std::int64_t index) const { return *this / std::to_string(index); }
  at::Tensor Add(const std::string& name, std::vector<std::int64_t> shape, Start start,
                 bool trainable = true) const {
    return registry_->Add(prefix_ + name, std::move(shape), start, trainable);
  }

  // `what` goes on behind the layer's name.
  void Fail(const std::string& what) const {
    registry_->Fail(prefix_.substr(0, prefix_.size() - 1) + what);
  }

 private:
  Registry* registry_;
  std::string prefix_;
};

}  // namespace mergeplan::layers
