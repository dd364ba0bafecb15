#include "adapters/encoding/decode.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/isfinite.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <string_view>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "adapters/encoding/latents.h"
#include "adapters/encoding/place.h"
#include "adapters/judge/grid.h"
#include "adapters/runtime/arguments.h"
#include "adapters/runtime/output_files.h"
#include "adapters/runtime/signals.h"
#include "adapters/vae_latent/decoding.h"
#include "adapters/vae_latent/vae.h"
#include "planner/base/file.h"
#include "planner/base/status_macros.h"
#include "planner/data/npz_stream.h"
#include "planner/spectrum/spectrum.h"

namespace mergeplan::encoding {
namespace {

bool IsGrid(const std::string& output) { return absl::EndsWith(output, ".png"); }

// Where the pictures go: files of all of them, and the first few for grids.
class Outputs {
 public:
  Outputs(const DecodeArguments& arguments, const vae::Decoding& decoding)
      : arguments_(arguments), decoding_(decoding) {}

  absl::Status Open(std::int64_t samples) {
    std::vector<std::int64_t> shape = {samples};
    const auto& picture = decoding_.picture_shape();
    shape.insert(shape.end(), picture.begin(), picture.end());
    for (const std::string& output : arguments_.outputs) {
      if (IsGrid(output)) {
        const absl::Status drawn = judge::CheckPicture(picture);
        if (!drawn.ok()) {
          return Misuse(absl::StrCat("-o ", output, ": ", std::string(drawn.message()),
                                     "; write an .npz instead"));
        }
        in_grid_ = std::min(arguments_.grid, samples);
        continue;
      }
      MP_ASSIGN_OR_RETURN(NpzStream file,
                          NpzStream::Create(output, "pictures", Bytes() ? "|u1" : "<f4", shape));
      files_.push_back(std::make_unique<NpzStream>(std::move(file)));
    }
    return absl::OkStatus();
  }

  absl::Status Add(const at::Tensor& pictures) {
    const float* numbers = pictures.const_data_ptr<float>();
    const std::int64_t each = pictures.numel() / pictures.size(0);
    const std::int64_t wanted = std::min(pictures.size(0), in_grid_ - kept_);
    if (wanted > 0) {
      shown_.insert(shown_.end(), numbers, numbers + wanted * each);
      kept_ += wanted;
    }
    if (files_.empty()) return absl::OkStatus();
    at::Tensor stored = pictures;
    if (Bytes()) {
      // As a file of pictures would hold them.
      MP_ASSIGN_OR_RETURN(const Scaling pixels, ParseScaling(decoding_.pixels()));
      stored = pictures.sub(pixels.add).div(pixels.multiply).clamp(0, 255).round().to(at::kByte);
    }
    const std::string_view bytes(static_cast<const char*>(stored.const_data_ptr()),
                                 static_cast<std::size_t>(stored.nbytes()));
    for (const auto& file : files_) MP_RETURN_IF_ERROR(file->Append(bytes));
    return absl::OkStatus();
  }

  absl::Status Finish() {
    // Made before the first file is renamed.
    std::string png;
    if (in_grid_ > 0) {
      judge::GridOptions options;
      options.columns = arguments_.columns;
      MP_ASSIGN_OR_RETURN(
          png, judge::GridPng(shown_, decoding_.picture_shape(), decoding_.pixels(), options));
    }
    for (const auto& file : files_) MP_RETURN_IF_ERROR(file->Finish());
    for (const std::string& output : arguments_.outputs) {
      if (IsGrid(output)) MP_RETURN_IF_ERROR(WriteFileAtomically(output, png));
    }
    return absl::OkStatus();
  }

 private:
  bool Bytes() const { return arguments_.dtype == "uint8"; }

  const DecodeArguments& arguments_;
  const vae::Decoding& decoding_;
  std::vector<std::unique_ptr<NpzStream>> files_;
  std::int64_t in_grid_ = 0, kept_ = 0;
  std::vector<float> shown_;
};

absl::Status CheckDecode(const DecodeArguments& arguments) {
  MP_RETURN_IF_ERROR(
      CheckOutputFiles(arguments.outputs, {".png", ".npz", ".npy"}, {arguments.input}));
  if (arguments.dtype != "uint8" && arguments.dtype != "float32") {
    return Misuse(absl::StrCat("--dtype ", arguments.dtype, ": expected uint8 or float32"));
  }
  return absl::OkStatus();
}

absl::Status CheckFinite(const at::Tensor& pictures, const DecodeArguments& arguments,
                         std::int64_t first) {
  const at::Tensor finite = at::isfinite(pictures).flatten(1).all(1);
  const bool* rows = finite.const_data_ptr<bool>();
  for (std::int64_t k = 0; k < finite.numel(); ++k) {
    if (rows[k]) continue;
    return absl::FailedPreconditionError(absl::StrCat(
        arguments.input, ": sample ", first + k, " becomes a picture with numbers that are not ",
        "finite, expected finite ones; check the latents, their units (--raw) and the network"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<DecodeResult> Decode(const DecodeArguments& arguments,
                                    const std::function<void(const CodingProgress&)>& progress) {
  MP_RETURN_IF_ERROR(CheckDecode(arguments));
  vae::DecodingOptions options;
  options.tile = arguments.tile;
  if (arguments.shape) {
    absl::StatusOr<std::vector<std::int64_t>> shape = vae::ParseLatentShape(*arguments.shape);
    if (!shape.ok()) return Misuse(std::string(shape.status().message()));
    options.shape = *shape;
  }
  MP_ASSIGN_OR_RETURN(options.device, OpenPlace(arguments.device, arguments.threads));
  MP_ASSIGN_OR_RETURN(LatentInput input, OpenLatents(arguments.input, arguments.array));
  if (arguments.first >= input.size) {
    return Misuse(absl::StrCat("--first ", arguments.first, ": ", arguments.input, " has ",
                               input.size, " samples, the first is number 0"));
  }
  const std::int64_t samples = std::min(arguments.count.value_or(input.size),  //
                                        input.size - arguments.first);
  MP_ASSIGN_OR_RETURN(std::shared_ptr<vae::Vae> vae, vae::OpenVae(arguments.vae, options.device));
  options.raw = arguments.raw || input.raw;
  MP_ASSIGN_OR_RETURN(const vae::Decoding decoding,
                      vae::Decoding::Plan(vae, input.source->shape(), arguments.input, options));
  DecodeResult result;
  result.vae_kind = vae->description().kind;
  result.sha256 = vae->description().sha256;
  result.latent_shape = decoding.latent_shape();
  result.picture_shape = decoding.picture_shape();
  result.pixels = decoding.pixels();
  result.raw = options.raw;
  result.other_network = !input.vae_sha256.empty() && input.vae_sha256 != result.sha256;
  Outputs outputs(arguments, decoding);
  MP_RETURN_IF_ERROR(outputs.Open(samples));
  MP_RETURN_IF_ERROR(input.source->Skip(arguments.first));
  const std::int64_t d = input.source->dimensions();
  std::vector<double> rows(static_cast<std::size_t>(arguments.batch * d));
  while (result.samples < samples) {
    if (StopRequested()) return absl::CancelledError("stopped by a signal, nothing was written");
    const std::int64_t want = std::min<std::int64_t>(arguments.batch, samples - result.samples);
    MP_ASSIGN_OR_RETURN(
        const int got,
        input.source->Read(absl::MakeSpan(rows).first(static_cast<std::size_t>(want * d))));
    if (got == 0) {
      return absl::DataLossError(absl::StrCat(arguments.input, ": ends after ",
                                              arguments.first + result.samples,
                                              " samples, expected ", input.size));
    }
    const auto begin = std::chrono::steady_clock::now();
    at::Tensor latents = at::empty({got, d}, at::kFloat);
    std::transform(rows.begin(), rows.begin() + got * d, latents.mutable_data_ptr<float>(),
                   [](double x) { return static_cast<float>(x); });
    MP_ASSIGN_OR_RETURN(const at::Tensor pictures, decoding.Decode(latents));
    MP_RETURN_IF_ERROR(CheckFinite(pictures, arguments, arguments.first + result.samples));
    result.seconds +=
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    MP_RETURN_IF_ERROR(outputs.Add(pictures));
    result.samples += got;
    if (progress) progress({result.samples, samples});
  }
  MP_RETURN_IF_ERROR(outputs.Finish());
  return result;
}

}  // namespace mergeplan::encoding
