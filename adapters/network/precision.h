#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string_view>

#include "absl/status/statusor.h"

namespace mergeplan::network {

// The numbers inside a network's forward and backward passes. Parameters, states, losses and
// moments keep the type of the parameters.
enum class Precision { kFull, kBfloat16, kFloat16 };
// "full", "bf16", "fp16".
std::string_view ToString(Precision precision);
absl::StatusOr<Precision> ParsePrecision(std::string_view word);

// LibTorch's autocast for as long as it lives; nothing for kFull.
class Autocast {
 public:
  Autocast(Precision precision, at::DeviceType device);
  ~Autocast();
  Autocast(const Autocast&) = delete;
  Autocast& operator=(const Autocast&) = delete;

 private:
  Precision precision_;
  at::DeviceType device_;
  bool enabled_before_ = false;
  at::ScalarType type_before_ = at::ScalarType::Float;
};

// What a loss in fp16 is multiplied with, so that small gradients do not vanish: halved after an
// update whose gradient is not finite, which is skipped, doubled after `growth_interval` good ones.
// PyTorch's GradScaler with its defaults. 1 and fixed for the other precisions.
class LossScale {
 public:
  static constexpr std::int64_t kGrowthInterval = 2000;
  explicit LossScale(Precision precision)
      : on_(precision == Precision::kFloat16), scale_(on_ ? 65536.0 : 1.0) {}

  bool on() const { return on_; }
  double scale() const { return scale_; }
  std::int64_t good() const { return good_; }
  // After an update; false where the scale has fallen to nothing and there is no hope.
  bool Update(bool finite);
  void Restore(double scale, std::int64_t good) { scale_ = scale, good_ = good; }

 private:
  bool on_;
  double scale_;
  std::int64_t good_ = 0;  // since the scale last changed
};

}  // namespace mergeplan::network
