#include "adapters/autoencoding/data.h"

#include <ATen/ops/cat.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "adapters/network/try.h"
#include "adapters/vae_latent/pictures.h"
#include "planner/base/memory.h"
#include "planner/base/status_macros.h"
#include "planner/data/samples.h"

namespace mergeplan::autoencoding {
namespace {

constexpr std::int64_t kRowsAtATime = 256;

}  // namespace

absl::StatusOr<TrainingPictures> LoadPictures(const DataRequest& request, const vae::Config& config,
                                              const std::string& model) {
  SamplesOptions reading;
  reading.array = request.array;
  MP_ASSIGN_OR_RETURN(const std::unique_ptr<SampleSource> source,
                      OpenSamples(request.path, reading));
  vae::PictureSize size;
  if (!request.size.empty()) {
    MP_ASSIGN_OR_RETURN(size, vae::ParsePictureSize(request.size));
  }
  vae::VaeDescription about;
  about.path = model;
  about.image_channels = config.in_channels;
  about.reduction = config.reduction();
  MP_ASSIGN_OR_RETURN(const vae::Pictures pictures,
                      vae::Pictures::Plan(*source, request.path, about, size, request.scaling));
  const std::vector<std::int64_t>& shape = pictures.shape();
  if (source->size()) {
    const std::int64_t rows =
        request.rows > 0 ? std::min(request.rows, *source->size()) : *source->size();
    // Twice: the parts, and all of them in one.
    MP_RETURN_IF_ERROR(CheckMemory(
        absl::StrCat(request.path, ": its ", rows, " pictures"),
        2 * static_cast<double>(rows) * static_cast<double>(shape[0] * shape[1] * shape[2]) * 4));
  }
  const std::int64_t d = source->dimensions();
  std::vector<double> block(static_cast<std::size_t>(kRowsAtATime * d));
  std::vector<at::Tensor> parts;
  std::int64_t rows = 0;
  while (request.rows == 0 || rows < request.rows) {
    MP_ASSIGN_OR_RETURN(std::int64_t found, source->Read(absl::MakeSpan(block)));
    if (found == 0) break;
    if (request.rows > 0) found = std::min(found, request.rows - rows);
    MP_RETURN_IF_ERROR(network::Try(request.path, [&]() -> absl::Status {
      parts.push_back(pictures.Make(
          absl::MakeConstSpan(block).first(static_cast<std::size_t>(found * d)), found));
      return absl::OkStatus();
    }));
    rows += found;
  }
  if (rows == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(request.path, ": holds no pictures, expected one or more to train on"));
  }
  return network::Try(request.path, [&]() -> absl::StatusOr<TrainingPictures> {
    return TrainingPictures{at::cat(parts), pictures.scaling().text};
  });
}

}  // namespace mergeplan::autoencoding
