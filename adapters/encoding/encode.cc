#include "adapters/encoding/encode.h"

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "adapters/encoding/cache.h"
#include "adapters/encoding/encoder.h"
#include "adapters/encoding/share.h"
#include "adapters/runtime/signals.h"
#include "planner/base/status_macros.h"
#include "planner/data/fingerprint.h"

namespace mergeplan::encoding {
namespace {

absl::Status Put(const at::Tensor& values, std::size_t array, PartInProgress* part) {
  return part->Add(array,
                   {values.const_data_ptr<float>(), static_cast<std::size_t>(values.numel())});
}

// Whatever is wanted where nothing is said; a network of vectors takes latents of as many values.
bool Fit(const std::vector<std::int64_t>& latent, const std::vector<std::int64_t>& wanted) {
  if (wanted.empty() || latent == wanted) return true;
  const std::int64_t values = std::accumulate(latent.begin(), latent.end(), std::int64_t{1},
                                              std::multiplies<std::int64_t>());
  return wanted.size() == 1 && values == wanted[0];
}

}  // namespace

absl::StatusOr<EncodeResult> Encode(const EncodeArguments& arguments,
                                    const std::function<void(const CodingProgress&)>& progress) {
  MP_ASSIGN_OR_RETURN(const Share share, ParseShare(arguments.shard));
  MP_ASSIGN_OR_RETURN(Encoder encoder, Encoder::Open(arguments));
  SampleSource& source = encoder.source();
  EncodeResult result = encoder.Description();
  if (!Fit(result.latent_shape, arguments.wanted_shape)) {
    return absl::InvalidArgumentError(absl::StrCat(
        arguments.input, ": its pictures become latents of the shape [",
        absl::StrJoin(result.latent_shape, ", "), "], expected the network's, [",
        absl::StrJoin(arguments.wanted_shape, ", "),
        "]; --size makes pictures larger or smaller, and the number of channels is the encoder's"));
  }

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
      {"scale", encoder.pictures().scaling().text},
      {"content", arguments.content},
      {"seed", arguments.content == "sample" ? absl::StrCat(arguments.seed) : "none"},
      {"units", arguments.raw ? "of the encoder" : "of the denoiser"}};
  if (arguments.limit) description.made_of["limit"] = absl::StrCat(*arguments.limit);
  result.folder = arguments.output;
  if (result.folder.empty()) {
    result.folder = absl::StrCat(arguments.cache, "/", description.Identity().substr(0, 16));
  }
  MP_ASSIGN_OR_RETURN(const LatentCache cache, LatentCache::Open(result.folder, description));

  const auto started = std::chrono::steady_clock::now();
  const std::int64_t each = arguments.part_samples;
  const std::int64_t limit = arguments.limit.value_or(std::numeric_limits<std::int64_t>::max());
  std::optional<std::int64_t> total = source.size();
  if (total) total = std::min(*total, limit);
  const auto done = [&](std::int64_t part) {
    const std::optional<std::int64_t> count = cache.Has(part);
    const std::int64_t whole = total ? std::min(each, *total - part * each) : each;
    return count && *count == whole;
  };
  // Part k belongs to process k mod count.
  const auto mine_is = [&](std::int64_t part) { return part % share.count == share.index - 1; };
  // What stands before the first part that is still to do is passed over, not decoded. Where the
  // input does not say how long it is, only a part that is there says that it goes on.
  std::int64_t part_index = 0;
  while ((!total || part_index * each < *total) && part_index * each < limit &&
         (done(part_index) || (total && !mine_is(part_index)))) {
    ++part_index;
  }
  std::int64_t seen = std::min(part_index * each, limit);
  if (total) seen = std::min(seen, *total);
  MP_RETURN_IF_ERROR(source.Skip(seen));
  std::vector<double> rows(static_cast<std::size_t>(arguments.batch * source.dimensions()));
  bool more = true;
  while (more) {
    const bool mine = mine_is(part_index) && !done(part_index);
    std::optional<PartInProgress> part;
    if (mine) {
      MP_ASSIGN_OR_RETURN(part, cache.Begin(part_index));
    }
    std::int64_t in_part = 0;
    while (in_part < each) {
      if (StopRequested()) {
        result.stopped = true;
        result.samples = total.value_or(seen);
        if (mine) result.encoded -= in_part;  // nothing of a part that is not whole is kept
        return result;
      }
      const std::int64_t want =
          std::min({std::int64_t{arguments.batch}, each - in_part, limit - seen});
      if (want == 0) {
        more = false;
        break;
      }
      MP_ASSIGN_OR_RETURN(const int got,
                          source.Read(absl::MakeSpan(rows).first(
                              static_cast<std::size_t>(want * source.dimensions()))));
      more = got > 0;
      if (!more) break;
      if (mine) {
        const auto begin = std::chrono::steady_clock::now();
        MP_ASSIGN_OR_RETURN(const Latents latents,
                            encoder.Encode(absl::MakeConstSpan(rows).first(
                                               static_cast<std::size_t>(got * source.dimensions())),
                                           got, seen));
        result.seconds +=
            std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
        MP_RETURN_IF_ERROR(Put(latents.mean, 0, &*part));
        if (latents.log_variance.defined()) {
          MP_RETURN_IF_ERROR(Put(latents.log_variance, 1, &*part));
        }
        result.encoded += got;
      }
      in_part += got;
      seen += got;
      if (progress) progress({seen, total});
    }
    if (mine && in_part > 0 && cache.Has(part_index) != in_part)
      MP_RETURN_IF_ERROR(cache.Write(*part));
    ++part_index;
  }
  result.samples = seen;
  MP_ASSIGN_OR_RETURN(result.finished, cache.Finish(seen));
  result.loop_seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
  return result;
}

}  // namespace mergeplan::encoding
