#include "adapters/unet/embeddings.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/isfinite.h>

#include <cmath>
#include <numbers>
#include <string>

#include "absl/strings/str_cat.h"
#include "adapters/layers/caught.h"
#include "planner/base/status_macros.h"

namespace mergeplan::unet {
namespace {

using layers::Activate;
using layers::Activation;
using layers::Linear;
using layers::Scope;
using layers::ShapeOf;

// Whole numbers 0 .. rows-1?
absl::Status CheckIndex(const at::Tensor& index, std::int64_t rows, const char* what) {
  if (!index.is_cpu() || index.numel() == 0) return absl::OkStatus();
  const at::Tensor wide = index.detach().to(at::kDouble);
  if (!wide.isfinite().all().item<bool>()) {
    return absl::InvalidArgumentError(absl::StrCat(what, " holds a number that is not finite"));
  }
  const double low = wide.min().item<double>(), high = wide.max().item<double>();
  if (low < 0 || high > static_cast<double>(rows - 1) ||
      !wide.eq(wide.floor()).all().item<bool>()) {
    return absl::InvalidArgumentError(absl::StrCat(
        what, " goes from ", low, " to ", high, ", expected whole numbers from 0 to ", rows - 1));
  }
  return absl::OkStatus();
}

}  // namespace

at::Tensor Sinusoids(const at::Tensor& time, std::int64_t width, double freq_shift,
                     bool cosine_first) {
  const std::int64_t half = width / 2;
  at::Tensor exponent = at::arange(0, half, at::TensorOptions(at::kFloat).device(time.device()));
  exponent.mul_(-std::log(10000.0)).div_(static_cast<double>(half) - freq_shift);
  const at::Tensor angle = time.to(at::kFloat).unsqueeze(1).mul(exponent.exp_().unsqueeze(0));
  const at::Tensor both = cosine_first ? at::cat({angle.cos(), angle.sin()}, 1)
                                       : at::cat({angle.sin(), angle.cos()}, 1);
  return width % 2 == 0 ? both : at::constant_pad_nd(both, {0, 1});
}

Conditioning::Conditioning(const Scope& scope, const Config& c)
    : kind_(c.time_embedding),
      class_kind_(c.class_embedding),
      width_(c.block_out_channels[0]),
      steps_(c.num_train_timesteps),
      classes_(c.num_class_embeds),
      out_(c.time_embedding_dim),
      freq_shift_(c.freq_shift),
      cosine_first_(c.flip_sin_to_cos) {
  if (kind_ == TimeEmbedding::kFourier) {
    frequencies_ =
        (scope / "time_proj")
            .Add("weight", {width_}, {layers::Start::Kind::kNormal, 16}, /*trainable=*/false);
  } else if (kind_ == TimeEmbedding::kLearned) {
    steps_table_ = layers::Embedding(scope / "time_proj", steps_, width_);
  }
  const std::int64_t in = c.time_inputs();
  time1_ = Linear(scope / "time_embedding" / "linear_1", in, out_);
  time2_ = Linear(scope / "time_embedding" / "linear_2", out_, out_);
  if (class_kind_ == ClassEmbedding::kTable) {
    class_table_ = layers::Embedding(scope / "class_embedding", classes_, out_);
  } else if (class_kind_ == ClassEmbedding::kTimestep) {
    class1_ = Linear(scope / "class_embedding" / "linear_1", in, out_);
    class2_ = Linear(scope / "class_embedding" / "linear_2", out_, out_);
  }
}

absl::Status Conditioning::Check(std::int64_t batch, const at::Tensor& time,
                                 const at::Tensor& label) const {
  const auto check_time = [&](const at::Tensor& t, const char* what) -> absl::Status {
    if (t.dim() != 1 || t.size(0) != batch) {
      return absl::InvalidArgumentError(
          absl::StrCat(what, " has shape ", ShapeOf(t), ", expected [", batch, "]"));
    }
    if (t.is_complex() || t.scalar_type() == at::kBool) {
      return absl::InvalidArgumentError(
          absl::StrCat(what, " is of type ", at::toString(t.scalar_type()), ", expected numbers"));
    }
    if (kind_ == TimeEmbedding::kLearned) return CheckIndex(t, steps_, what);
    if (!t.is_cpu() || batch == 0) return absl::OkStatus();
    if (!t.detach().isfinite().all().item<bool>()) {
      return absl::InvalidArgumentError(absl::StrCat(what, " holds a number that is not finite"));
    }
    // Its logarithm is taken and the output divided by it.
    if (kind_ == TimeEmbedding::kFourier && !t.gt(0).all().item<bool>()) {
      return absl::InvalidArgumentError(absl::StrCat(
          what, " holds a number that is not positive, which fourier embeddings need"));
    }
    return absl::OkStatus();
  };
  if (!time.defined()) return absl::InvalidArgumentError("time is missing");
  MP_RETURN_IF_ERROR(check_time(time, "time"));
  if (class_kind_ == ClassEmbedding::kNone) {
    if (!label.defined()) return absl::OkStatus();
    return absl::InvalidArgumentError("label was given to a network without class embedding");
  }
  if (!label.defined()) {
    return absl::InvalidArgumentError("label is missing, the network is class conditional");
  }
  if (class_kind_ == ClassEmbedding::kTimestep) return check_time(label, "label");
  if (class_kind_ == ClassEmbedding::kIdentity) {
    if (label.dim() == 2 && label.size(0) == batch && label.size(1) == out_)
      return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat("label has shape ", ShapeOf(label),
                                                   ", expected [", batch, ", ", out_,
                                                   "]: class_embed_type is identity"));
  }
  if (label.dim() != 1 || label.size(0) != batch ||
      !at::isIntegralType(label.scalar_type(), false)) {
    return absl::InvalidArgumentError(
        absl::StrCat("label is ", at::toString(label.scalar_type()), " of shape ", ShapeOf(label),
                     ", expected whole numbers of shape [", batch, "]"));
  }
  return CheckIndex(label, classes_, "label");
}

at::Tensor Conditioning::Projected(const at::Tensor& time) const {
  const at::ScalarType dtype = time1_.weight.scalar_type();
  switch (kind_) {
    case TimeEmbedding::kFourier: {
      // log in the precision of the time, as the class does; of whole numbers in float32.
      const bool whole = at::isIntegralType(time.scalar_type(), false);
      const at::Tensor x = (whole ? time.to(at::kFloat) : time).log().unsqueeze(1);
      const at::Tensor angle =
          x.mul(frequencies_.unsqueeze(0)).mul(2).mul(std::numbers::pi_v<double>);
      return at::cat({angle.sin(), angle.cos()}, 1).to(dtype);
    }
    case TimeEmbedding::kLearned:
      return steps_table_(time.to(at::kLong));
    case TimeEmbedding::kPositional:
      break;
  }
  return Sinusoids(time, width_, freq_shift_, cosine_first_).to(dtype);
}

at::Tensor Conditioning::Forward(const at::Tensor& time, const at::Tensor& label) const {
  at::Tensor h = time2_(Activate(Activation::kSilu, time1_(Projected(time))));
  switch (class_kind_) {
    case ClassEmbedding::kNone:
      return h;
    case ClassEmbedding::kTable:
      return h.add(class_table_(label.to(at::kLong)));
    case ClassEmbedding::kTimestep:
      return h.add(class2_(Activate(Activation::kSilu, class1_(Projected(label)))));
    case ClassEmbedding::kIdentity:
      break;
  }
  return h.add(label.to(h.scalar_type()));
}

}  // namespace mergeplan::unet
