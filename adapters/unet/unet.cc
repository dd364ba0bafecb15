#include "adapters/unet/unet.h"

#include <c10/core/GradMode.h>
#include <algorithm>

#include <utility>

#include "absl/strings/str_cat.h"
#include "adapters/layers/caught.h"
#include "adapters/layers/model_folder.h"
#include "planner/base/file.h"
#include "planner/base/status_macros.h"

namespace mergeplan::unet {
namespace {

using layers::Caught;
using layers::Scope;
using layers::ShapeOf;

}  // namespace

UNet2d::UNet2d(const Config& c) : config_(c) {
  const Scope root(registry_);
  const std::int64_t first = c.block_out_channels.front();
  conv_in_ = layers::Conv(root / "conv_in", c.in_channels, first, 3, 1, 1);
  conditioning_ = Conditioning(root, c);
  for (std::int64_t k = 0; k < c.levels(); ++k) down_.emplace_back(root / "down_blocks" / k, c, k);
  for (std::int64_t k = 0; k < c.levels(); ++k) up_.emplace_back(root / "up_blocks" / k, c, k);
  if (c.mid_block) mid_.emplace_back(root / "mid_block", c);
  const std::int64_t groups = c.norm_num_groups.value_or(std::min<std::int64_t>(first / 4, 32));
  norm_out_ = layers::GroupNorm(root / "conv_norm_out", groups, first, c.norm_eps);
  conv_out_ = layers::Conv(root / "conv_out", first, c.out_channels, 3, 1, 1);
}

absl::StatusOr<std::unique_ptr<UNet2d>> UNet2d::Build(const Config& config,
                                                      const std::string& path) {
  std::unique_ptr<UNet2d> net;
  MP_RETURN_IF_ERROR(Caught(path, [&] { net.reset(new UNet2d(config)); }));
  if (!net->registry_.fault().empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": ", net->registry_.fault(),
                     " (block_out_channels, norm_num_groups, attention_head_dim)"));
  }
  return net;
}

absl::StatusOr<std::unique_ptr<UNet2d>> UNet2d::Create(const Config& config, std::uint64_t seed,
                                                       const std::string& path) {
  MP_ASSIGN_OR_RETURN(auto net, Build(config, path));
  MP_RETURN_IF_ERROR(Caught(path, [&] { net->registry_.Initialize(seed); }));
  return net;
}

absl::StatusOr<std::unique_ptr<UNet2d>> UNet2d::Load(const std::string& folder,
                                                     const LoadOptions& options) {
  MP_ASSIGN_OR_RETURN(const std::string found, layers::FindModelFolder(folder, "unet"));
  const std::string path = found + "/config.json";
  MP_ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  MP_ASSIGN_OR_RETURN(const Config config, ParseConfigText(text, path));
  MP_ASSIGN_OR_RETURN(auto net, Build(config, path));
  MP_ASSIGN_OR_RETURN(const auto files, layers::OpenWeights(found));
  MP_RETURN_IF_ERROR(layers::LoadWeights(net->registry_, files, options.dtype, options.device));
  return net;
}

absl::Status UNet2d::CheckInput(const at::Tensor& z) const {
  const std::int64_t multiple = config_.size_multiple();
  if (!z.defined() || z.dim() != 4 || z.size(1) != config_.in_channels || z.size(0) < 1 ||
      z.size(2) < 1 || z.size(3) < 1 || z.size(2) % multiple != 0 || z.size(3) % multiple != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "z ", z.defined() ? absl::StrCat("has shape ", ShapeOf(z)) : "is missing",
        ", expected [B, ", config_.in_channels, ", H, W] with H and W multiples of ", multiple));
  }
  return layers::CheckKind(z, conv_in_.weight, "z");
}

at::Tensor UNet2d::Run(const at::Tensor& z, const at::Tensor& time, const at::Tensor& label) const {
  at::Tensor picture = config_.center_input_sample ? z.mul(2).sub(1) : z;
  Pass pass;
  // All resnets begin with the activation of the same vector.
  pass.time = layers::Activate(layers::ActivationOf(config_.activation),
                               conditioning_.Forward(time, label));
  pass.training = training_;
  pass.checkpoint = checkpointing_ && c10::GradMode::is_enabled();
  at::Tensor x = conv_in_(picture);
  std::vector<at::Tensor> skips = {x};
  for (const DownBlock& block : down_) x = block.Forward(std::move(x), picture, skips, pass);
  for (const MidBlock& block : mid_) x = block.Forward(std::move(x), pass);
  picture = at::Tensor();
  for (const UpBlock& block : up_) x = block.Forward(std::move(x), picture, skips, pass);
  x = conv_out_(layers::Activate(layers::Activation::kSilu, norm_out_(x)));
  if (picture.defined()) x.add_(picture);
  if (config_.time_embedding == TimeEmbedding::kFourier) {
    x = x.div(time.to(x.scalar_type()).view({-1, 1, 1, 1}));
  }
  return x;
}

absl::StatusOr<at::Tensor> UNet2d::Forward(const at::Tensor& z, const at::Tensor& time,
                                           const at::Tensor& label) {
  MP_RETURN_IF_ERROR(CheckInput(z));
  at::Tensor out;
  absl::Status checked;
  MP_RETURN_IF_ERROR(Caught("UNet2DModel", [&] {
    checked = conditioning_.Check(z.size(0), time, label);
    if (!checked.ok()) return;
    const at::Tensor there = time.to(z.device());
    out = Run(z, there, label.defined() ? label.to(z.device()) : label);
  }));
  MP_RETURN_IF_ERROR(checked);
  return out;
}

std::vector<network::Module::Named> UNet2d::Parameters() const {
  std::vector<Named> named;
  for (const layers::Leaf& leaf : registry_.leaves()) {
    if (leaf.trainable) named.emplace_back(leaf.name, leaf.tensor);
  }
  return named;
}

std::vector<network::Module::Named> UNet2d::Buffers() const {
  std::vector<Named> named;
  for (const layers::Leaf& leaf : registry_.leaves()) {
    if (!leaf.trainable) named.emplace_back(leaf.name, leaf.tensor);
  }
  return named;
}

absl::StatusOr<std::unique_ptr<network::Module>> UNet2d::Clone() const {
  MP_ASSIGN_OR_RETURN(auto copy, Build(config_, "clone"));
  MP_RETURN_IF_ERROR(Caught("clone", [&] { copy->registry_.CopyFrom(registry_); }));
  copy->training_ = training_;
  copy->checkpointing_ = checkpointing_;
  return copy;
}

absl::Status UNet2d::To(at::Device device, at::ScalarType dtype) {
  if (layers::SafetensorsDtype(dtype).empty()) {
    return absl::InvalidArgumentError(absl::StrCat("a network cannot be ", at::toString(dtype),
                                                   ", expected Float, Half, BFloat16 or Double"));
  }
  return Caught("moving the network", [&] { registry_.Move(device, dtype); });
}

absl::Status UNet2d::SaveAs(const std::string& path, const layers::SaveOptions& options) const {
  nlohmann::json source = config_.source;
  if (!source.contains("_class_name")) source["_class_name"] = "UNet2DModel";
  absl::Status written;
  MP_RETURN_IF_ERROR(Caught(path, [&] {
    written = layers::WriteModelFolder(path, [&](const std::string& folder) -> absl::Status {
      MP_RETURN_IF_ERROR(WriteFileAtomically(folder + "/config.json", ConfigText(source)));
      return layers::WriteWeights(registry_, folder, options);
    });
  }));
  return written;
}

std::vector<BlockFacts> UNet2d::Blocks() const {
  std::vector<BlockFacts> facts;
  for (const DownBlock& block : down_) facts.push_back(block.facts());
  for (const MidBlock& block : mid_) facts.push_back(block.facts());
  for (const UpBlock& block : up_) facts.push_back(block.facts());
  return facts;
}

}  // namespace mergeplan::unet
