#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace mergeplan::judge {

// What a small classifier is, beside its weights: config.json of its folder.
struct ClassifierConfig {
  std::string name;                               // "small Fashion-MNIST classifier"
  std::vector<std::int64_t> shape = {1, 28, 28};  // of a picture
  int classes = 10;
  std::array<int, 4> channels = {16, 32, 64, 64};  // of its convolutions; the last are the features
  double mean = 0, deviation = 1;  // of pixels 0..1, which it takes off and divides by
  double accuracy = 0;             // on pictures it was not trained on
  std::int64_t tested = 0;         // how many
  std::string training;            // how it was trained, for people
};

// A classifier of small pictures whose last layer but one is what pictures are compared by: four
// 3 x 3 convolutions with ReLU, halved by their largest value after the first and the second, the
// mean over the plane (the features, channels[3]), and one linear layer. On the CPU, float32.
class Classifier {
 public:
  // Random weights (He) by a seed.
  static absl::StatusOr<Classifier> Create(ClassifierConfig config, std::uint64_t seed);
  // FOLDER/config.json and FOLDER/classifier.safetensors. Errors name the file, and the key.
  static absl::StatusOr<Classifier> Load(const std::string& folder);
  absl::Status Save(const std::string& folder) const;

  // Pixels 0..255 [B, C, H, W], float32 -> [B, features]. Differentiable in the parameters.
  absl::StatusOr<at::Tensor> Features(const at::Tensor& pixels) const;
  // [B, classes] from features.
  at::Tensor Logits(const at::Tensor& features) const;

  // Leaves that ask for gradients, in an order that does not change.
  const std::vector<std::pair<std::string, at::Tensor>>& parameters() const { return parameters_; }
  const ClassifierConfig& config() const { return config_; }
  ClassifierConfig& config() { return config_; }
  int features() const { return config_.channels.back(); }
  std::int64_t size() const;  // parameters

 private:
  Classifier() = default;

  ClassifierConfig config_;
  std::vector<std::pair<std::string, at::Tensor>> parameters_;
};

}  // namespace mergeplan::judge
