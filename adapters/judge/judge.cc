#include "adapters/judge/judge.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/isfinite.h>

#include <algorithm>
#include <chrono>
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
#include "planner/base/status_macros.h"

namespace mergeplan::judge {
namespace {

// The teacher's own samples for a reference must not be those that are judged.
constexpr std::uint64_t kOtherNoise = 0x7265666572656e63;

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
                                    std::min(options_.batch, count - begin), shape_));
    MP_ASSIGN_OR_RETURN(const at::Tensor x, generate(noise));
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
  shape_ = shape;
  scaling_ = scaling;
  if (compares()) {
    const std::int64_t least = std::max(2, options_.neighbours + 1);
    if (options_.samples < least) {
      return absl::InvalidArgumentError(absl::StrCat(
          "--judge-samples ", options_.samples, ": expected ", least,
          " or more, which a covariance and ", options_.neighbours, " nearest neighbours need"));
    }
    MP_ASSIGN_OR_RETURN(features_, OpenFeatures(options_.features, shape));
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
  const bool drawn = !options_.folder.empty() && !name.empty() && CheckPicture(shape_).ok();
  Verdict out;
  out.compared = compares();
  out.samples = compares() ? options_.samples : options_.grid;
  MP_ASSIGN_OR_RETURN(const at::Tensor samples, Draw(generate, options_.seed, out.samples, stop));
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
  out.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return out;
}

std::string Judge::About() const {
  if (!compares()) return "";
  return absl::StrCat(
      "Frechet distance of ", options_.samples, " samples from seed ", options_.seed, " to ",
      reference_.rows, " of ",
      options_.data == "teacher" ? "the teacher's, from other noise" : options_.data,
      ", in features of ", features_name(), "; precision and recall with ", options_.neighbours,
      " neighbours of ", std::min(reference_.rows, options_.samples), " samples each");
}

}  // namespace mergeplan::judge
