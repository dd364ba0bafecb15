#include "adapters/judge/features.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/_upsample_bicubic2d_aa.h>
#include <ATen/ops/isfinite.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "adapters/judge/classifier.h"
#include "adapters/network/try.h"
#include "planner/base/file.h"
#include "planner/base/status_macros.h"
#include "planner/spectrum/spectrum.h"

namespace mergeplan::judge {
namespace {

constexpr std::int64_t kBlock = 256;

class ClassifierFeatures : public Features {
 public:
  ClassifierFeatures(Classifier classifier, std::string id, bool resize)
      : classifier_(std::move(classifier)),
        name_(absl::StrCat(
            classifier_.config().name, " (", classifier_.features(), " features; not Inception",
            resize ? absl::StrCat("; of pictures brought to ", Height(), " x ", Width()) : "",
            ")")),
        id_(std::move(id)),
        resize_(resize) {}

  absl::StatusOr<at::Tensor> Of(const at::Tensor& pixels) const override {
    const c10::NoGradGuard no_gradients;
    at::Tensor seen = pixels;
    if (resize_) {
      MP_RETURN_IF_ERROR(network::Try("features", [&]() -> absl::Status {
        seen = at::_upsample_bicubic2d_aa(pixels, {Height(), Width()}, /*align_corners=*/false)
                   .clamp(0, 255)
                   .round();
        return absl::OkStatus();
      }));
    }
    MP_ASSIGN_OR_RETURN(const at::Tensor features, classifier_.Features(seen));
    return features.to(at::kDouble);
  }
  const std::string& name() const override { return name_; }
  const std::string& id() const override { return id_; }

 private:
  std::int64_t Height() const { return classifier_.config().shape[1]; }
  std::int64_t Width() const { return classifier_.config().shape[2]; }

  Classifier classifier_;
  std::string name_, id_;
  bool resize_;
};

}  // namespace

std::string ShippedFeatures() {
  if (const char* set = std::getenv("MERGEPLAN_FEATURES"); set != nullptr && *set != '\0') {
    return set;
  }
  std::error_code ec;
  // libexec/mergeplan/mergeplan-torch -> share/mergeplan/features
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", ec);
  const std::filesystem::path beside =
      self.parent_path().parent_path().parent_path() / "share" / "mergeplan" / "features";
  return beside.string();
}

absl::StatusOr<std::unique_ptr<Features>> OpenFeatures(const std::string& path,
                                                       const std::vector<std::int64_t>& shape,
                                                       bool resize) {
  std::error_code ec;
  const bool shipped = path.empty();
  const std::string folder = shipped ? ShippedFeatures() : path;
  if (!shipped && !std::filesystem::is_directory(folder, ec)) return OpenScriptFeatures(folder);
  absl::StatusOr<Classifier> classifier = Classifier::Load(folder);
  if (!classifier.ok()) {
    if (!shipped) return classifier.status();
    return absl::Status(classifier.status().code(),
                        absl::StrCat(std::string(classifier.status().message()),
                                     ": the classifier that comes with mergeplan; name another by "
                                     "--features, or its folder by MERGEPLAN_FEATURES"));
  }
  std::vector<std::int64_t> found = shape;
  if (found.size() == 2) found.insert(found.begin(), 1);
  const std::vector<std::int64_t>& known = classifier->config().shape;
  const bool same = found == known;
  if (!same && !(resize && found.size() == 3 && found[0] == known[0])) {
    return absl::InvalidArgumentError(absl::StrCat(
        folder, ": ", classifier->config().name, " knows pictures of the shape [",
        absl::StrJoin(classifier->config().shape, ", "), "], the samples have [",
        absl::StrJoin(shape, ", "),
        "]; give a TorchScript network for them by --features FILE.ts, or train a classifier "
        "(mergeplan features)"));
  }
  MP_ASSIGN_OR_RETURN(const std::string config, Sha256OfFile(folder + "/config.json"));
  MP_ASSIGN_OR_RETURN(const std::string weights, Sha256OfFile(folder + "/classifier.safetensors"));
  return std::make_unique<ClassifierFeatures>(*std::move(classifier), Sha256(config + weights),
                                              !same);
}

absl::StatusOr<at::Tensor> ToPixels(const at::Tensor& samples, const std::string& scaling) {
  return network::Try("features", [&]() -> absl::StatusOr<at::Tensor> {
    const c10::NoGradGuard no_gradients;
    at::Tensor x = samples.to(at::kCPU, at::kFloat);
    if (!scaling.empty() && scaling != "none") {
      MP_ASSIGN_OR_RETURN(const Scaling pixels, ParseScaling(scaling));
      x = ((x.to(at::kDouble) - pixels.add) / pixels.multiply).clamp(0, 255).round().to(at::kFloat);
    }
    return x.dim() == 3 ? x.unsqueeze(1) : x;
  });
}

absl::StatusOr<FeatureRows> Extract(const Features& features, const at::Tensor& samples,
                                    const std::string& scaling, const std::function<bool()>& stop) {
  FeatureRows out;
  const std::int64_t rows = samples.size(0);
  for (std::int64_t begin = 0; begin < rows; begin += kBlock) {
    if (stop()) return absl::CancelledError("stopped by a signal");
    const std::int64_t count = std::min(kBlock, rows - begin);
    MP_ASSIGN_OR_RETURN(const at::Tensor pixels,
                        ToPixels(samples.narrow(0, begin, count), scaling));
    MP_ASSIGN_OR_RETURN(const at::Tensor found, features.Of(pixels));
    MP_RETURN_IF_ERROR(network::Try("features", [&]() -> absl::Status {
      if (found.dim() != 2 || found.size(0) != count || found.size(1) < 1 ||
          (out.dimensions != 0 && found.size(1) != out.dimensions)) {
        return absl::InvalidArgumentError(
            absl::StrCat(features.name(), ": gave features of the shape [",
                         absl::StrJoin(found.sizes(), ", "), "] for ", count, " samples"));
      }
      if (!at::isfinite(found).all().item<bool>()) {
        return absl::FailedPreconditionError(
            absl::StrCat(features.name(), ": gave features that are not finite"));
      }
      out.dimensions = static_cast<int>(found.size(1));
      const at::Tensor values = found.to(at::kDouble).contiguous();
      const auto* data = values.const_data_ptr<double>();
      out.values.insert(out.values.end(), data, data + values.numel());
      return absl::OkStatus();
    }));
  }
  return out;
}

}  // namespace mergeplan::judge
