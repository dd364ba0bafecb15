#include "adapters/encoding/encode.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/zeros_like.h>
#include <c10/core/InferenceMode.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "adapters/encoding/cache.h"
#include "adapters/encoding/place.h"
#include "adapters/layers/caught.h"
#include "adapters/noise/noise.h"
#include "adapters/runtime/signals.h"
#include "adapters/vae_latent/pictures.h"
#include "adapters/vae_latent/tiling.h"
#include "adapters/vae_latent/vae.h"
#include "planner/base/status_macros.h"
#include "planner/data/fingerprint.h"

namespace mergeplan::encoding {
namespace {

// Which parts this process encodes: those whose index leaves `rest` by division through `count`.
struct Share {
  std::int64_t rest = 0, count = 1;
  bool Mine(std::int64_t part) const { return part % count == rest; }
};

absl::StatusOr<Share> ParseShare(const std::string& text) {
  Share share;
  if (text.empty()) return share;
  const std::vector<std::string> parts = absl::StrSplit(text, '/');
  std::int64_t one = 0;
  if (parts.size() != 2 || !absl::SimpleAtoi(parts[0], &one) ||
      !absl::SimpleAtoi(parts[1], &share.count) || share.count < 1 || share.count > 1'000'000 ||
      one < 1 || one > share.count) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--shard ", text, ": expected INDEX/COUNT with 1 <= INDEX <= COUNT <= 1000000"));
  }
  share.rest = one - 1;
  return share;
}

class Encoder {
 public:
  Encoder(const EncodeArguments& arguments, vae::Vae& vae, const vae::Pictures& pictures,
          at::Device device)
      : arguments_(arguments), vae_(vae), pictures_(pictures), device_(device) {}

  // Adds the latents of `count` samples, the first of which is number `first` of the input.
  absl::Status Add(absl::Span<const double> rows, std::int64_t count, std::int64_t first,
                   CachePart* part) {
    const c10::InferenceMode inference;
    at::Tensor mean, log_variance;
    absl::Status encoded;
    MP_RETURN_IF_ERROR(layers::Caught(arguments_.input, [&] {
      absl::StatusOr<vae::Encoded> out = vae::EncodeInTiles(
          vae_, pictures_.Make(rows, count).to(device_), {.pixels = arguments_.tile});
      encoded = out.status();
      if (!out.ok()) return;
      mean = out->mean;
      log_variance = out->log_variance;
      if (arguments_.content == "sample")
        mean = mean + Noise(mean, first) * (log_variance * 0.5).exp();
      if (!arguments_.raw) {
        if (arguments_.content == "mean,log_variance") {
          // Scaling is affine: the deviation is multiplied by its slope alone.
          const at::Tensor slope =
              vae_.Scale(at::ones_like(mean)) - vae_.Scale(at::zeros_like(mean));
          log_variance = log_variance + 2 * slope.log();
        }
        mean = vae_.Scale(mean);
      }
    }));
    MP_RETURN_IF_ERROR(encoded);
    MP_RETURN_IF_ERROR(Append(mean, first, &part->arrays[0]));
    if (part->arrays.size() > 1) MP_RETURN_IF_ERROR(Append(log_variance, first, &part->arrays[1]));
    part->count += count;
    return absl::OkStatus();
  }

 private:
  // Fixed by seed and number of the sample alone.
  at::Tensor Noise(const at::Tensor& like, std::int64_t first) const {
    const std::int64_t each = like.numel() / like.size(0);
    at::Tensor noise = at::empty(like.sizes(), at::kFloat);
    NoiseStream(static_cast<std::uint64_t>(arguments_.seed), 0, 0, 0)
        .FillAt(static_cast<std::uint64_t>(first * each), noise.mutable_data_ptr<float>(),
                noise.numel());
    return noise.to(like.device());
  }

  absl::Status Append(const at::Tensor& values, std::int64_t first, std::vector<float>* to) const {
    const at::Tensor flat = values.to(at::kCPU, at::kFloat).contiguous();
    const float* from = flat.const_data_ptr<float>();
    const std::int64_t each = flat.numel() / flat.size(0);
    const float most = arguments_.dtype == "float16" ? 65504.0F : std::numeric_limits<float>::max();
    for (std::int64_t i = 0; i < flat.numel(); ++i) {
      if (std::abs(from[i]) <= most) continue;
      return absl::DataLossError(
          absl::StrCat(arguments_.input, ": sample ", first + i / each, " becomes a latent with ",
                       from[i], ", expected numbers that ", arguments_.dtype,
                       " holds; check the picture, --scale and the "
                       "network",
                       arguments_.dtype == "float16" ? ", or store --dtype float32" : ""));
    }
    to->insert(to->end(), from, from + flat.numel());
    return absl::OkStatus();
  }

  const EncodeArguments& arguments_;
  vae::Vae& vae_;
  const vae::Pictures& pictures_;
  at::Device device_;
};

absl::Status CheckContent(const EncodeArguments& arguments, const vae::VaeDescription& vae) {
  const std::string& content = arguments.content;
  if (content != "mean" && content != "mean,log_variance" && content != "sample") {
    return absl::InvalidArgumentError(
        absl::StrCat("--content ", content, ": expected mean, mean,log_variance or sample"));
  }
  if (content != "mean" && !vae.has_variance) {
    return absl::InvalidArgumentError(absl::StrCat("--content ", content, ": ", vae.path, " (",
                                                   vae.kind,
                                                   ") gives a mean only; expected --content mean"));
  }
  if (arguments.dtype != "float32" && arguments.dtype != "float16") {
    return absl::InvalidArgumentError(
        absl::StrCat("--dtype ", arguments.dtype, ": expected float32 or float16"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<EncodeResult> Encode(const EncodeArguments& arguments,
                                    const std::function<void(const CodingProgress&)>& progress) {
  MP_ASSIGN_OR_RETURN(const Share share, ParseShare(arguments.shard));
  vae::PictureSize size;
  if (arguments.size) {
    MP_ASSIGN_OR_RETURN(size, vae::ParsePictureSize(*arguments.size));
  }
  MP_ASSIGN_OR_RETURN(const at::Device device, OpenPlace(arguments.device, arguments.threads));
  MP_ASSIGN_OR_RETURN(const auto vae, vae::OpenVae(arguments.vae, device));
  MP_RETURN_IF_ERROR(CheckContent(arguments, vae->description()));
  SamplesOptions reading;
  reading.array = arguments.array;
  MP_ASSIGN_OR_RETURN(const auto source, OpenSamples(arguments.input, reading));
  MP_ASSIGN_OR_RETURN(const vae::Pictures pictures,
                      vae::Pictures::Plan(*source, arguments.input, vae->description(), size,
                                          arguments.scale.value_or("")));

  EncodeResult result;
  result.vae_kind = vae->description().kind;
  result.sha256 = vae->description().sha256;
  result.image_shape = pictures.shape();
  result.grey_repeated = pictures.grey_repeated();
  const std::int64_t by = vae->description().reduction;
  result.latent_shape = {vae->description().latent_channels, pictures.shape()[1] / by,
                         pictures.shape()[2] / by};

  CacheDescription description;
  description.part_samples = arguments.part_samples;
  description.shape = result.latent_shape;
  description.arrays = {"latents"};
  if (arguments.content == "mean,log_variance") description.arrays.push_back("log_variance");
  description.dtype = arguments.dtype == "float16" ? "F16" : "F32";
  MP_ASSIGN_OR_RETURN(const std::string input, FingerprintOfInput(arguments.input));
  description.made_of = {
      {"input", input},
      {"array", arguments.array},
      {"vae", result.vae_kind},
      {"vae_sha256", result.sha256},
      {"size", arguments.size.value_or("as it is")},
      {"tile", arguments.tile > 0 ? absl::StrCat(arguments.tile) : "none"},
      {"scale", pictures.scaling().text},
      {"content", arguments.content},
      {"seed", arguments.content == "sample" ? absl::StrCat(arguments.seed) : "none"},
      {"units", arguments.raw ? "of the encoder" : "of the denoiser"}};
  if (arguments.limit) description.made_of["limit"] = absl::StrCat(*arguments.limit);
  MP_ASSIGN_OR_RETURN(const LatentCache cache, LatentCache::Open(arguments.output, description));

  Encoder encoder(arguments, *vae, pictures, device);
  const std::int64_t each = arguments.part_samples;
  const std::int64_t limit = arguments.limit.value_or(std::numeric_limits<std::int64_t>::max());
  std::optional<std::int64_t> total = source->size();
  if (total) total = std::min(*total, limit);
  const auto done = [&](std::int64_t part) {
    const std::optional<std::int64_t> count = cache.Has(part);
    const std::int64_t whole = total ? std::min(each, *total - part * each) : each;
    return count && *count == whole;
  };
  // What stands before the first part that is still to do is passed over, not decoded. Where the
  // input does not say how long it is, only a part that is there says that it goes on.
  std::int64_t part_index = 0;
  while ((!total || part_index * each < *total) && part_index * each < limit &&
         (done(part_index) || (total && !share.Mine(part_index)))) {
    ++part_index;
  }
  std::int64_t seen = std::min(part_index * each, limit);
  if (total) seen = std::min(seen, *total);
  MP_RETURN_IF_ERROR(source->Skip(seen));
  std::vector<double> rows(static_cast<std::size_t>(arguments.batch * source->dimensions()));
  bool more = true;
  while (more) {
    CachePart part;
    part.index = part_index;
    part.arrays.resize(description.arrays.size());
    const bool mine = share.Mine(part_index) && !done(part_index);
    std::int64_t in_part = 0;
    while (in_part < each) {
      if (StopRequested()) {
        result.stopped = true;
        result.samples = seen;
        return result;
      }
      const std::int64_t want =
          std::min({std::int64_t{arguments.batch}, each - in_part, limit - seen});
      if (want == 0) {
        more = false;
        break;
      }
      MP_ASSIGN_OR_RETURN(const int got,
                          source->Read(absl::MakeSpan(rows).first(
                              static_cast<std::size_t>(want * source->dimensions()))));
      more = got > 0;
      if (!more) break;
      if (mine) {
        const auto begin = std::chrono::steady_clock::now();
        MP_RETURN_IF_ERROR(encoder.Add(
            absl::MakeConstSpan(rows).first(static_cast<std::size_t>(got * source->dimensions())),
            got, seen, &part));
        result.seconds +=
            std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
        result.encoded += got;
      }
      in_part += got;
      seen += got;
      if (progress) progress({seen, total});
    }
    if (mine && in_part > 0 && cache.Has(part_index) != in_part)
      MP_RETURN_IF_ERROR(cache.Write(part));
    ++part_index;
  }
  result.samples = seen;
  MP_ASSIGN_OR_RETURN(result.finished, cache.Finish(seen));
  return result;
}

}  // namespace mergeplan::encoding
