#include "adapters/command/latent_data.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/cat.h>

#include <cstdio>
#include <cstdlib>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "adapters/cases/network_files.h"
#include "adapters/encoding/encode.h"
#include "adapters/encoding/place.h"
#include "adapters/encoding/progress_line.h"
#include "adapters/layers/caught.h"
#include "adapters/vae_latent/decoding.h"
#include "adapters/vae_latent/pictures.h"
#include "adapters/vae_latent/vae.h"
#include "planner/base/status_macros.h"
#include "planner/data/parts.h"
#include "planner/data/samples.h"

namespace mergeplan {
namespace {

// Pictures of --judge as the decoder gives them: brought to its size.
absl::StatusOr<at::Tensor> LoadPictures(const std::string& data, const std::string& array,
                                        std::int64_t rows, const vae::Decoding& decoding) {
  constexpr std::int64_t kAtATime = 64;
  MP_ASSIGN_OR_RETURN(const auto source, OpenSamples(data, {.array = array}));
  const std::vector<std::int64_t>& shape = decoding.picture_shape();
  // What a decoder gives, an encoder of the same pictures takes.
  vae::VaeDescription about = decoding.vae();
  about.image_channels = shape[0];
  about.reduction = 1;
  MP_ASSIGN_OR_RETURN(const vae::Pictures pictures,
                      vae::Pictures::Plan(*source, data, about, {shape[1], shape[2]}, ""));
  const std::int64_t d = source->dimensions();
  std::vector<double> numbers(static_cast<std::size_t>(kAtATime * d));
  std::vector<at::Tensor> parts;
  std::int64_t seen = 0;
  while (seen < rows) {
    const std::int64_t want = std::min(kAtATime, rows - seen);
    const auto room = absl::MakeSpan(numbers).first(static_cast<std::size_t>(want * d));
    MP_ASSIGN_OR_RETURN(const int got, source->Read(room));
    if (got == 0) break;
    MP_RETURN_IF_ERROR(layers::Caught(data, [&] {
      parts.push_back(pictures.Make(room.first(static_cast<std::size_t>(got * d)), got));
    }));
    seen += got;
  }
  if (parts.empty()) return absl::InvalidArgumentError(absl::StrCat(data, ": holds no samples"));
  at::Tensor all;
  MP_RETURN_IF_ERROR(layers::Caught(data, [&] { all = at::cat(parts); }));
  return all;
}

absl::Status CheckOptions(const DistillArguments& a, bool judged) {
  const LatentArguments& latents = a.latents;
  const char* given = latents.vae       ? "--vae"
                      : latents.encoder ? "--encoder"
                      : latents.size    ? "--size"
                      : latents.folder  ? "--latents"
                                        : nullptr;
  if (given == nullptr) return absl::OkStatus();
  for (const auto& text : {latents.vae, latents.encoder, latents.size, latents.folder}) {
    if (text && text->empty()) {
      return Misuse("--vae, --encoder, --size or --latents: is empty, expected a value");
    }
  }
  if (latents.vae && latents.encoder) {
    return Misuse("--vae: stands beside --encoder, expected one of the two");
  }
  if (!latents.vae && !latents.encoder) {
    return Misuse(absl::StrCat(given, ": has no effect without --vae or --encoder"));
  }
  if (!a.network.data && !(judged && latents.vae && !latents.size && !latents.folder)) {
    return Misuse(absl::StrCat(given, ": has no effect without pictures to encode, expected --data",
                               judged ? "" : "; bench also decodes with --vae what it judges"));
  }
  return absl::OkStatus();
}

}  // namespace

std::string CacheFolder(const std::string& name) {
  for (const auto& [variable, inside] :
       {std::pair{"XDG_CACHE_HOME", "/mergeplan/"}, std::pair{"HOME", "/.cache/mergeplan/"}}) {
    const char* value = std::getenv(variable);
    if (value != nullptr && *value != '\0') return absl::StrCat(value, inside, name);
  }
  return "";
}

absl::Status EncodeData(const Communicator& ranks, bool quiet, bool judged, DistillArguments* a) {
  MP_RETURN_IF_ERROR(CheckOptions(*a, judged));
  const LatentArguments& latents = a->latents;
  if (!a->network.data || (!latents.vae && !latents.encoder)) return absl::OkStatus();
  if (IsPartsFolder(*a->network.data)) {
    return Misuse(absl::StrCat("--data ", *a->network.data, ": holds latents already, which ",
                               latents.vae ? "--vae" : "--encoder",
                               " would encode; expected the pictures that they were made of, with "
                               "--latents ",
                               *a->network.data, " (nothing is encoded twice)"));
  }
  encoding::EncodeArguments encode;
  encode.input = *a->network.data;
  encode.array = a->network.array.value_or("");
  encode.vae = latents.vae.value_or("");
  encode.encoder = latents.encoder.value_or("");
  encode.size = latents.size;
  encode.limit = a->network.rows;
  encode.output = latents.folder.value_or("");
  encode.cache = CacheFolder("latents");
  if (encode.output.empty() && encode.cache.empty()) {
    return Misuse(
        "--latents: missing, and neither XDG_CACHE_HOME nor HOME says where latents may lie");
  }
  if (a->teacher) {
    MP_ASSIGN_OR_RETURN(const TeacherName teacher, ParseTeacher(*a->teacher));
    if (IsNetwork(teacher)) {
      MP_ASSIGN_OR_RETURN(encode.wanted_shape, ShapeOfNetwork(teacher));
    }
  }
  encode.device = a->device.value_or("cpu");
  encode.threads = a->threads;
  if (ranks.ranks() > 1) encode.shard = absl::StrCat(ranks.rank() + 1, "/", ranks.ranks());
  encoding::EncodeResult result;
  {
    encoding::ProgressLine line("encode", quiet || !ranks.first());
    const auto show = [&line](const encoding::CodingProgress& at) { line.Show(at); };
    absl::StatusOr<encoding::EncodeResult> made = encoding::Encode(encode, show);
    // All parts are there when all ranks have been here; a rank that failed is told by its own
    // error.
    MP_ASSIGN_OR_RETURN(const bool failed, ranks.Any(!made.ok()));
    if (!made.ok() && made.status().message().substr(0, 2) == "--") return AsMisuse(made.status());
    MP_RETURN_IF_ERROR(made.status());
    if (failed) return absl::InternalError("another process could not encode its pictures");
    result = *std::move(made);
  }
  MP_ASSIGN_OR_RETURN(const bool stopped, ranks.Any(result.stopped));
  if (stopped) {
    return absl::CancelledError(absl::StrCat("stopped while pictures were encoded into ",
                                             result.folder,
                                             "; the same command goes on where it was"));
  }
  if (!result.finished) {
    encode.shard.clear();
    MP_ASSIGN_OR_RETURN(result, encoding::Encode(encode, nullptr));
  }
  if (!quiet && ranks.first()) {
    std::fprintf(stderr, "%lld latents of %s in %s, %lld of them encoded now\n",
                 static_cast<long long>(result.samples), a->network.data->c_str(),
                 result.folder.c_str(), static_cast<long long>(result.encoded));
  }
  a->network.data = result.folder;
  a->network.array.reset();
  return absl::OkStatus();
}

judge::OpenDecoder DecoderOf(const DistillArguments& arguments) {
  if (!arguments.latents.vae) return nullptr;
  return [path = *arguments.latents.vae, device = arguments.device.value_or("cpu"),
          threads = arguments.threads](
             const std::vector<std::int64_t>& shape) -> absl::StatusOr<judge::Decoder> {
    vae::DecodingOptions options;
    MP_ASSIGN_OR_RETURN(options.device, encoding::OpenPlace(device, threads));
    MP_ASSIGN_OR_RETURN(auto opened, vae::OpenVae(path, options.device));
    MP_ASSIGN_OR_RETURN(vae::Decoding decoding,
                        vae::Decoding::Plan(std::move(opened), shape, "--teacher", options));
    const auto shared = std::make_shared<const vae::Decoding>(std::move(decoding));
    judge::Decoder out;
    out.shape = shared->picture_shape();
    out.scaling = shared->pixels();
    out.name = path;
    out.decode = [shared](const at::Tensor& latents) { return shared->Decode(latents); };
    out.reference = [shared](const std::string& data, const std::string& array, std::int64_t rows) {
      return LoadPictures(data, array, rows, *shared);
    };
    return out;
  };
}

}  // namespace mergeplan
