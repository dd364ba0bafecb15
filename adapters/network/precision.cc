#include "adapters/network/precision.h"

#include <ATen/autocast_mode.h>

#include <string>

#include "absl/strings/str_cat.h"

namespace mergeplan::network {

std::string_view ToString(Precision precision) {
  switch (precision) {
    case Precision::kFull:
      return "full";
    case Precision::kBfloat16:
      return "bf16";
    case Precision::kFloat16:
      break;
  }
  return "fp16";
}

absl::StatusOr<Precision> ParsePrecision(std::string_view word) {
  for (const Precision precision : {Precision::kFull, Precision::kBfloat16, Precision::kFloat16}) {
    if (word == ToString(precision)) return precision;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("precision '", std::string(word), "' is unknown, expected full, bf16 or fp16"));
}

Autocast::Autocast(Precision precision, at::DeviceType device)
    : precision_(precision), device_(device) {
  if (precision_ == Precision::kFull) return;
  enabled_before_ = at::autocast::is_autocast_enabled(device_);
  type_before_ = at::autocast::get_autocast_dtype(device_);
  at::autocast::set_autocast_enabled(device_, true);
  at::autocast::set_autocast_dtype(device_,
                                   precision_ == Precision::kBfloat16 ? at::kBFloat16 : at::kHalf);
  at::autocast::increment_nesting();
}

Autocast::~Autocast() {
  if (precision_ == Precision::kFull) return;
  if (at::autocast::decrement_nesting() == 0) at::autocast::clear_cache();
  at::autocast::set_autocast_enabled(device_, enabled_before_);
  at::autocast::set_autocast_dtype(device_, type_before_);
}

bool LossScale::Update(bool finite) {
  if (!on_) return finite;
  if (!finite) {
    scale_ /= 2;
    good_ = 0;
    return scale_ >= 1e-10;
  }
  if (++good_ == kGrowthInterval) {
    scale_ *= 2;
    good_ = 0;
  }
  return true;
}

}  // namespace mergeplan::network
