#include "adapters/judge/classifier_training.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "adapters/linear/recipe.h"
#include "adapters/network/data.h"
#include "adapters/network/optimizer.h"
#include "adapters/network/try.h"
#include "adapters/noise/noise.h"
#include "planner/base/status_macros.h"
#include "planner/data/samples.h"

namespace mergeplan::judge {
namespace {

constexpr std::int64_t kTestedAtATime = 512;
constexpr int kMostClasses = 65536;

// A random order of 0 .. n-1, named by (seed, epoch).
at::Tensor Order(std::uint64_t seed, int epoch, std::int64_t n) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(n));
  std::iota(order.begin(), order.end(), 0);
  const StreamName name = StreamName::Of(seed, epoch + 1, epoch + 1, 1);
  for (std::int64_t i = n - 1; i > 0; --i) {  // Fisher and Yates
    const std::uint64_t word = name.Words(static_cast<std::uint64_t>(i)).w[0];
    std::swap(order[static_cast<std::size_t>(i)],
              order[static_cast<std::size_t>(word * static_cast<std::uint64_t>(i + 1) >> 32)]);
  }
  return at::tensor(order, at::kLong);
}

}  // namespace

absl::StatusOr<Labelled> ReadLabelled(const std::string& data, const std::string& labels) {
  MP_ASSIGN_OR_RETURN(const std::unique_ptr<SampleSource> source, OpenSamples(data, {}));
  std::vector<std::int64_t> shape = source->shape();
  if (shape.size() == 2) shape.insert(shape.begin(), 1);
  if (shape.size() != 3) {
    return absl::InvalidArgumentError(
        absl::StrCat(data, ": holds no pictures, expected samples [H, W] or [C, H, W]"));
  }
  Labelled out;
  MP_ASSIGN_OR_RETURN(out.pixels, network::LoadData(data, {}, "none", shape));
  MP_ASSIGN_OR_RETURN(const at::Tensor classes, network::LoadData(labels, {}, "none", {1}));
  return network::Try(labels, [&]() -> absl::StatusOr<Labelled> {
    if (out.pixels.min().item<float>() < 0 || out.pixels.max().item<float>() > 255) {
      return absl::InvalidArgumentError(
          absl::StrCat(data, ": holds numbers outside of 0..255, expected pixels"));
    }
    if (classes.size(0) != out.pixels.size(0)) {
      return absl::InvalidArgumentError(absl::StrCat(labels, ": has ", classes.size(0),
                                                     " classes for the ", out.pixels.size(0),
                                                     " pictures of ", data));
    }
    const at::Tensor found = classes.flatten();
    const float least = found.min().item<float>(), most = found.max().item<float>();
    if (!(least >= 0 && most < kMostClasses) || !found.floor().equal(found)) {
      return absl::InvalidArgumentError(
          absl::StrCat(labels, ": holds numbers from ", least, " to ", most,
                       ", expected classes: integers from 0 to ", kMostClasses - 1));
    }
    out.labels = found.to(at::kLong);
    return out;
  });
}

absl::StatusOr<Classifier> TrainClassifier(const Labelled& data, const std::string& name,
                                           const ClassifierTraining& options) {
  const std::int64_t n = data.pixels.size(0);
  const std::int64_t batch = std::min<std::int64_t>(options.batch, n);
  const std::int64_t steps = n / batch;
  ClassifierConfig config;
  config.name = name;
  config.shape.assign(data.pixels.sizes().begin() + 1, data.pixels.sizes().end());
  config.classes = static_cast<int>(data.labels.max().item<std::int64_t>()) + 1;
  config.mean = data.pixels.to(at::kDouble).mean().item<double>() / 255;
  config.deviation = data.pixels.to(at::kDouble).std().item<double>() / 255;
  config.training =
      absl::StrFormat("%d pictures, %d epochs, AdamW with rate %g and batch %d, seed %u", n,
                      options.epochs, options.lr, batch, options.seed);
  MP_ASSIGN_OR_RETURN(Classifier out, Classifier::Create(std::move(config), options.seed));
  const std::int64_t updates = steps * options.epochs;
  MP_ASSIGN_OR_RETURN(
      const Recipe recipe,
      Recipe::Parse({{"optimizer", "adamw"},
                     {"lr-schedule", "cosine"},
                     {"warmup", absl::StrCat(std::min<std::int64_t>(200, updates / 10))}}));
  std::vector<at::Tensor> parameters;
  for (const auto& [key, tensor] : out.parameters()) parameters.push_back(tensor);
  MP_ASSIGN_OR_RETURN(network::Optimizer optimizer,
                      network::Optimizer::Create(parameters, recipe, options.lr, updates));
  for (int epoch = 0; epoch < options.epochs; ++epoch) {
    const at::Tensor order = Order(options.seed, epoch, n);
    double sum = 0;
    for (std::int64_t step = 0; step < steps; ++step) {
      if (options.stop()) return absl::CancelledError("stopped by a signal");
      MP_RETURN_IF_ERROR(network::Try("classifier", [&]() -> absl::Status {
        const at::Tensor rows = order.narrow(0, step * batch, batch);
        MP_ASSIGN_OR_RETURN(const at::Tensor features,
                            out.Features(data.pixels.index_select(0, rows)));
        const at::Tensor loss =
            at::cross_entropy_loss(out.Logits(features), data.labels.index_select(0, rows));
        loss.backward();
        sum += loss.item<double>();
        return absl::OkStatus();
      }));
      MP_ASSIGN_OR_RETURN(const network::Optimizer::Result moved,
                          optimizer.Step(epoch * steps + step));
      if (!moved.finite || !std::isfinite(sum)) {
        return absl::FailedPreconditionError(absl::StrCat(
            "the loss of update ", epoch * steps + step + 1, " is not finite; use a smaller rate"));
      }
    }
    options.epoch(epoch + 1, sum / static_cast<double>(steps));
  }
  return out;
}

absl::StatusOr<double> Accuracy(const Classifier& classifier, const Labelled& data) {
  const c10::NoGradGuard no_gradients;
  std::int64_t right = 0;
  const std::int64_t n = data.pixels.size(0);
  for (std::int64_t begin = 0; begin < n; begin += kTestedAtATime) {
    const std::int64_t rows = std::min(kTestedAtATime, n - begin);
    MP_ASSIGN_OR_RETURN(const at::Tensor features,
                        classifier.Features(data.pixels.narrow(0, begin, rows)));
    right += (classifier.Logits(features).argmax(1) == data.labels.narrow(0, begin, rows))
                 .sum()
                 .item<std::int64_t>();
  }
  return static_cast<double>(right) / static_cast<double>(n);
}

}  // namespace mergeplan::judge
