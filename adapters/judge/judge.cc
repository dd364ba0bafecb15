#include "adapters/judge/judge.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/isfinite.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "adapters/judge/grid.h"
#include "adapters/judge/neighbours.h"
#include "adapters/judge/sample_noise.h"
#include "adapters/network/data.h"
#include "adapters/network/signature.h"
#include "adapters/network/try.h"
#include "planner/base/file.h"
#include "planner/base/memory.h"
#include "planner/base/status_macros.h"
#include "planner/spectrum/spectrum.h"

namespace mergeplan::judge {
namespace {

// The teacher's own samples for a reference must not be those that are judged.
constexpr std::uint64_t kOtherNoise = 0x7265666572656e63;
// Samples, and numbers, of the teacher's that distances are measured from.
constexpr std::int64_t kMostDistances = 256, kMostKept = std::int64_t{1} << 26;

std::string_view Bytes(const at::Tensor& tensor) {
  return {static_cast<const char*>(tensor.const_data_ptr()),
          static_cast<std::size_t>(tensor.nbytes())};
}

}  // namespace

absl::StatusOr<at::Tensor> Judge::Draw(const Generate& generate, std::uint64_t seed,
                                       std::int64_t count,
                                       const std::function<bool()>& stop) const {
  const c10::NoGradGuard no_gradients;
  std::vector<at::Tensor> parts;
  for (std::int64_t begin = 0; begin < count; begin += options_.batch) {
    if (stop()) return absl::CancelledError("stopped by a signal");
    MP_ASSIGN_OR_RETURN(const at::Tensor noise,
                        SampleNoise(seed, static_cast<std::uint64_t>(begin),
                                    std::min(options_.batch, count - begin), noise_shape_));
    MP_ASSIGN_OR_RETURN(at::Tensor x, generate(noise, static_cast<std::uint64_t>(begin)));
    if (decoder_) {
      MP_ASSIGN_OR_RETURN(x, decoder_->decode(x));
    }
    parts.push_back(x.to(at::kCPU, at::kFloat));
  }
  return network::Try("samples", [&]() -> absl::StatusOr<at::Tensor> {
    at::Tensor all = at::cat(parts).contiguous();
    if (!at::isfinite(all).all().item<bool>()) {
      return absl::FailedPreconditionError(
          "its samples hold numbers that are not finite, expected finite ones");
    }
    return all;
  });
}

absl::Status Judge::Prepare(const std::vector<std::int64_t>& shape, const std::string& scaling,
                            const Generate& teacher, const std::function<bool()>& stop) {
  if (prepared_) return absl::OkStatus();
  noise_shape_ = shape;
  if (open_decoder_) {
    MP_ASSIGN_OR_RETURN(decoder_, open_decoder_(shape));
  }
  shape_ = decoder_ ? decoder_->shape : shape;
  scaling_ = decoder_ ? decoder_->scaling : scaling;
  if (compares()) {
    const std::int64_t least = std::max(2, options_.neighbours + 1);
    if (options_.samples < least) {
      return absl::InvalidArgumentError(absl::StrCat(
          "--judge-samples ", options_.samples, ": expected ", least,
          " or more, which a covariance and ", options_.neighbours, " nearest neighbours need"));
    }
    double numbers = static_cast<double>(options_.samples);
    for (const std::int64_t side : shape_) numbers *= static_cast<double>(side);
    MP_RETURN_IF_ERROR(CheckMemory(absl::StrCat("--judge-samples ", options_.samples),
                                   numbers * static_cast<double>(sizeof(float))));
    MP_ASSIGN_OR_RETURN(features_, OpenFeatures(options_.features, shape_, decoder_.has_value()));
    MP_RETURN_IF_ERROR(MakeReference(teacher, stop));
    if (reference_.rows < least) {
      return absl::InvalidArgumentError(absl::StrCat("--judge ", options_.data, ": has ",
                                                     reference_.rows, " samples, expected ", least,
                                                     " or more"));
    }
  }
  prepared_ = true;
  return absl::OkStatus();
}

absl::Status Judge::MakeReference(const Generate& teacher, const std::function<bool()>& stop) {
  at::Tensor samples;
  if (options_.data == "teacher") {
    MP_ASSIGN_OR_RETURN(samples, Draw(teacher, options_.seed ^ kOtherNoise,
                                      std::min(options_.rows, options_.samples), stop));
  } else if (decoder_) {
    MP_ASSIGN_OR_RETURN(samples, decoder_->reference(options_.data, options_.array, options_.rows));
  } else {
    SamplesOptions read;
    read.array = options_.array;
    MP_ASSIGN_OR_RETURN(samples,
                        network::LoadData(options_.data, read, scaling_, shape_, options_.rows));
  }
  samples = samples.contiguous();
  const std::string key = Sha256(absl::StrCat(
      "mergeplan reference statistics 1\n", Sha256(Bytes(samples)), "\n", samples.size(0), " [",
      absl::StrJoin(shape_, ","), "] ", scaling_, "\n", options_.samples, "\n", features_->id()));
  const std::string path =
      options_.cache.empty() ? "" : absl::StrCat(options_.cache, "/", key, ".safetensors");
  if (!path.empty() && ReadCache(path)) {
    from_cache_ = true;
    return absl::OkStatus();
  }
  MP_ASSIGN_OR_RETURN(FeatureRows rows,
                      Extract(*features_, samples, network::PixelScaling(scaling_), stop));
  MP_ASSIGN_OR_RETURN(reference_, FitFeatures(rows.values, rows.dimensions));
  const std::int64_t kept = std::min(reference_.rows, options_.samples);
  rows.values.resize(static_cast<std::size_t>(kept * rows.dimensions));
  manifold_ = std::move(rows.values);
  return path.empty() ? absl::OkStatus() : WriteCache(path);
}

absl::StatusOr<Verdict> Judge::Look(const Generate& generate, const std::string& name,
                                    const std::function<bool()>& stop) const {
  const auto start = std::chrono::steady_clock::now();
  MP_ASSIGN_OR_RETURN(
      const at::Tensor samples,
      Draw(generate, options_.seed, compares() ? options_.samples : options_.grid, stop));
  MP_ASSIGN_OR_RETURN(Verdict out, Compare(samples, name, stop));
  if (teacher_.defined()) {
    MP_ASSIGN_OR_RETURN(out.distance, Distance(samples));
  }
  out.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return out;
}

absl::StatusOr<Verdict> Judge::LookAtTeacher(const Generate& teacher, const std::string& name,
                                             const std::function<bool()>& stop) {
  const auto start = std::chrono::steady_clock::now();
  MP_ASSIGN_OR_RETURN(
      const at::Tensor samples,
      Draw(teacher, options_.seed, compares() ? options_.samples : options_.grid, stop));
  MP_ASSIGN_OR_RETURN(Verdict out, Compare(samples, name, stop));
  MP_RETURN_IF_ERROR(network::Try("samples", [&]() -> absl::Status {
    const std::int64_t each = samples.numel() / samples.size(0);
    const std::int64_t kept =
        std::clamp<std::int64_t>(kMostKept / each, 1, std::min(kMostDistances, samples.size(0)));
    teacher_ = samples.narrow(0, 0, kept).clone();
    return absl::OkStatus();
  }));
  out.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return out;
}

absl::StatusOr<double> Judge::Distance(const at::Tensor& samples) const {
  // Pixels 0..255 are `multiply` times 255 wide in the data.
  double unit = 1;
  if (!scaling_.empty() && scaling_ != "none") {
    MP_ASSIGN_OR_RETURN(const Scaling scaling, ParseScaling(scaling_));
    unit = 255 * scaling.multiply;
  }
  double mean = 0;
  MP_RETURN_IF_ERROR(network::Try("samples", [&]() -> absl::Status {
    const at::Tensor apart = samples.narrow(0, 0, teacher_.size(0)) - teacher_;
    mean = apart.flatten(1).square().mean(1).sqrt().mean().item<double>() / std::abs(unit);
    return absl::OkStatus();
  }));
  return mean;
}

// Draws and compares samples that are there.
absl::StatusOr<Verdict> Judge::Compare(const at::Tensor& samples, const std::string& name,
                                       const std::function<bool()>& stop) const {
  const bool drawn = !options_.folder.empty() && !name.empty() && CheckPicture(shape_).ok();
  Verdict out;
  out.compared = compares();
  out.samples = samples.size(0);
  if (drawn) {
    const std::int64_t shown = std::min<std::int64_t>(options_.grid, samples.size(0));
    const auto numbers = static_cast<std::size_t>(samples.numel() / samples.size(0) * shown);
    MP_ASSIGN_OR_RETURN(const std::string png, GridPng({samples.const_data_ptr<float>(), numbers},
                                                       shape_, network::PixelScaling(scaling_)));
    out.grid = name + ".png";
    MP_RETURN_IF_ERROR(WriteFileAtomically(options_.folder + "/" + out.grid, png));
  }
  if (compares()) {
    MP_ASSIGN_OR_RETURN(const FeatureRows rows,
                        Extract(*features_, samples, network::PixelScaling(scaling_), stop));
    MP_ASSIGN_OR_RETURN(const FeatureGaussian own, FitFeatures(rows.values, rows.dimensions));
    MP_ASSIGN_OR_RETURN(out.frechet, FrechetDistance(own, reference_));
    // Sets of one size, since the manifold grows with its members.
    const std::size_t same = std::min(rows.values.size(), manifold_.size());
    MP_ASSIGN_OR_RETURN(
        const PrecisionRecall shares,
        NeighbourPrecisionRecall({manifold_.data(), same}, {rows.values.data(), same},
                                 rows.dimensions, options_.neighbours));
    out.precision = shares.precision;
    out.recall = shares.recall;
  }
  return out;
}

std::string Judge::About() const {
  if (!compares()) return "";
  return absl::StrCat(
      "Frechet distance of ", options_.samples, " samples from seed ", options_.seed, " to ",
      reference_.rows, " of ",
      options_.data == "teacher" ? "the teacher's, from other noise" : options_.data,
      decoder_ ? absl::StrCat(", decoded by ", decoder_->name) : "", ", in features of ",
      features_name(), "; precision and recall with ", options_.neighbours, " neighbours of ",
      std::min(reference_.rows, options_.samples), " samples each");
}

}  // namespace mergeplan::judge
