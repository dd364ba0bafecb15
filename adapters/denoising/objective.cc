#include "adapters/denoising/objective.h"

#include <ATen/TensorOperators.h>

#include <utility>

#include "planner/base/status_macros.h"

namespace mergeplan::denoising {
namespace {

class Denoising : public Objective {
 public:
  Denoising(Batches batches, network::Precision precision)
      : batches_(std::move(batches)), precision_(precision) {}

  absl::StatusOr<Loss> Of(network::Module& network, std::uint64_t number) const override {
    MP_ASSIGN_OR_RETURN(const Batch batch, batches_.Draw(number));
    absl::StatusOr<at::Tensor> out = [&] {
      const network::Autocast autocast(precision_, batch.input.device().type());
      return network.Forward(batch.input, batch.time, batch.label);
    }();
    MP_RETURN_IF_ERROR(out.status());
    if (!out->sizes().equals(batch.target.sizes())) {
      return absl::InvalidArgumentError(
          "the network's output has another shape than its input, expected the same");
    }
    const at::Tensor errors =
        (out->to(batch.target.scalar_type()) - batch.target).flatten(1).square().mean(1);
    return Loss{(errors * batch.weight).mean(), {}};
  }

 private:
  Batches batches_;
  network::Precision precision_;
};

}  // namespace

std::unique_ptr<Objective> DenoisingObjective(Batches batches, network::Precision precision) {
  return std::make_unique<Denoising>(std::move(batches), precision);
}

}  // namespace mergeplan::denoising
