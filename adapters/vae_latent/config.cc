#include "adapters/vae_latent/config.h"

#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"
#include "adapters/layers/options.h"
#include "planner/base/status_macros.h"
#include "planner/schedule/json_text.h"

namespace mergeplan::vae {
namespace {

using layers::Options;

constexpr std::int64_t kMost = 1 << 20;
constexpr size_t kMostLevels = 16;

void TakeBlocks(Options& options, const std::string& key, const std::string& plain,
                const std::string& attention, std::vector<bool>& out) {
  const nlohmann::json* value = options.Find(key);
  if (value == nullptr && !options.IsNull(key)) return;
  if (value == nullptr || !value->is_array() || value->empty() || value->size() > kMostLevels) {
    return options.Expect(key, absl::StrCat("a list of 1 to ", kMostLevels, " block types"));
  }
  out.clear();
  for (const nlohmann::json& element : *value) {
    const auto k = options.WordOf(key, element, {plain, attention});
    if (!k) return;
    out.push_back(*k == 1);
  }
}

// A number per latent channel, or null.
void TakePerChannel(Options& options, const std::string& key, std::int64_t channels, bool positive,
                    std::vector<double>& out) {
  const nlohmann::json* value = options.Find(key);
  if (value == nullptr) return;
  const std::string expected =
      absl::StrCat("null or a list of ", channels, positive ? " positive numbers" : " numbers");
  if (!value->is_array() || static_cast<std::int64_t>(value->size()) != channels) {
    return options.Expect(key, expected);
  }
  for (const nlohmann::json& element : *value) {
    if (!element.is_number() || (positive && element.get<double>() <= 0)) {
      return options.Expect(key, expected);
    }
    out.push_back(element.get<double>());
  }
}

// Takes sample_size, force_upcast and the like, which say how pipelines use the model.
void TakeForPipelines(Options& options, Config& c) {
  options.Number("scaling_factor", 1e-6, 1e6, c.scaling_factor);
  if (options.Find("shift_factor") != nullptr) {
    options.Number("shift_factor", -1e6, 1e6, c.shift_factor);
  }
  bool upcast = false;
  options.Bool("force_upcast", upcast);
}

void TakeKl(Options& options, Config& c) {
  TakeBlocks(options, "down_block_types", "DownEncoderBlock2D", "AttnDownEncoderBlock2D",
             c.down_attention);
  TakeBlocks(options, "up_block_types", "UpDecoderBlock2D", "AttnUpDecoderBlock2D", c.up_attention);
  options.Counts("block_out_channels", 1, kMost, c.block_out_channels);
  options.Count("layers_per_block", 1, 1000, c.layers_per_block);
  options.Count("norm_num_groups", 1, kMost, c.norm_num_groups);
  options.Bool("use_quant_conv", c.quant_conv);
  options.Bool("use_post_quant_conv", c.post_quant_conv);
  options.Bool("mid_block_add_attention", c.mid_attention);
  TakePerChannel(options, "latents_mean", c.latent_channels, false, c.latents_mean);
  TakePerChannel(options, "latents_std", c.latent_channels, true, c.latents_std);
  options.Find("sample_size");
  const size_t levels = c.block_out_channels.size();
  if (options.ok() && (c.down_attention.size() != levels || c.up_attention.size() != levels)) {
    options.Fail(
        "block_out_channels",
        absl::StrCat(" has ", levels, " levels, down_block_types ", c.down_attention.size(),
                     ", up_block_types ", c.up_attention.size(), "; expected as many of each"));
  }
  if (c.latents_mean.empty() != c.latents_std.empty()) {
    options.Expect("latents_std", "a list where latents_mean is one, null where it is null");
  }
}

// Stages that follow each other have the same width.
void TakeStages(Options& options, const std::string& coder, std::int64_t& width,
                std::vector<std::int64_t>& blocks) {
  const std::string widths_key = coder + "_block_out_channels",
                    blocks_key = "num_" + coder + "_blocks";
  std::vector<std::int64_t> widths(blocks.size(), width);
  options.Counts(widths_key, 1, kMost, widths);
  options.Counts(blocks_key, 0, 1000, blocks);
  if (!options.ok()) return;
  if (widths.size() != blocks.size() || widths.size() > kMostLevels) {
    return options.Fail(widths_key,
                        absl::StrCat(" has ", widths.size(), " stages, ", blocks_key, " ",
                                     blocks.size(), "; expected as many, at most ", kMostLevels));
  }
  if (std::count(widths.begin(), widths.end(), widths[0]) !=
      static_cast<std::ptrdiff_t>(widths.size())) {
    return options.Expect(widths_key, "the same number for all stages");
  }
  width = widths[0];
}

void TakeTiny(Options& options, Config& c) {
  TakeStages(options, "encoder", c.encoder_width, c.encoder_blocks);
  TakeStages(options, "decoder", c.decoder_width, c.decoder_blocks);
  options.Word("upsample_fn", {"nearest"});
  options.Count("upsampling_scaling_factor", 1, 64, c.upsampling);
  // For the pipelines that want latents in [0, 1].
  double number = 0;
  options.Number("latent_magnitude", 1e-6, 1e6, number);
  options.Number("latent_shift", -1e6, 1e6, number);
  options.Find("block_out_channels");
}

}  // namespace

std::int64_t Config::reduction() const {
  const size_t levels = tiny ? encoder_blocks.size() : block_out_channels.size();
  return std::int64_t{1} << (levels - 1);
}

absl::StatusOr<Config> ParseConfig(const nlohmann::json& json, const std::string& path) {
  if (!json.is_object()) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": is ", json.type_name(), ", expected an object of options"));
  }
  const std::string name = json.contains("_class_name") && json["_class_name"].is_string()
                               ? json["_class_name"].get<std::string>()
                               : "";
  if (name != "AutoencoderKL" && name != "AutoencoderTiny") {
    return absl::InvalidArgumentError(absl::StrCat(
        path, ": _class_name is \"", name, "\", expected AutoencoderKL or AutoencoderTiny"));
  }
  Config c;
  c.tiny = name == "AutoencoderTiny";
  if (c.tiny) {
    c.activation = "relu";
    c.scaling_factor = 1;
  }
  Options options(json, path);
  options.Count("in_channels", 1, kMost, c.in_channels);
  options.Count("out_channels", 1, kMost, c.out_channels);
  options.Count("latent_channels", 1, kMost, c.latent_channels);
  options.Activation("act_fn", c.activation);
  TakeForPipelines(options, c);
  if (c.tiny) {
    TakeTiny(options, c);
  } else {
    TakeKl(options, c);
  }
  MP_RETURN_IF_ERROR(options.Finish(name));
  c.source = json;
  return c;
}

absl::StatusOr<Config> ParseConfigText(std::string_view text, const std::string& path) {
  MP_ASSIGN_OR_RETURN(const nlohmann::json json, ParseJson(text, path));
  return ParseConfig(json, path);
}

}  // namespace mergeplan::vae
