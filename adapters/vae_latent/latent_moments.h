#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "adapters/vae_latent/cuda/kernels.h"
#include "planner/spectrum/from_moments.h"

namespace mergeplan {

// Central moments up to the fourth and, if wanted, the covariance of latents where they lie: on the
// device of the first batch, summed in float64 there: on CUDA by kernels of ours in one pass
// (cuda/kernels.h), elsewhere, for integers, and in programs built without nvcc by LibTorch's. The
// covariance is a matrix product. Batches are centred on their own mean and joined by the pairwise
// formulas that AddMoments uses. For training code that has its latents on a GPU; what Python has
// as mergeplan.torch.LatentMoments.
//
//   LatentMoments moments;
//   for (at::Tensor x : batches) MP_RETURN_IF_ERROR(moments.Add(x));
//   MP_ASSIGN_OR_RETURN(CentralMoments sums, moments.Sums());
//   MP_ASSIGN_OR_RETURN(Spectrum spectrum, SpectrumFromMoments(std::move(sums), {}));
class LatentMoments {
 public:
  explicit LatentMoments(bool covariance = true) : covariance_(covariance) {}
  // With these kernels wherever the latents lie; they must outlive this object. For tests.
  LatentMoments(bool covariance, const latents_device::Kernels& kernels)
      : covariance_(covariance), kernels_(&kernels) {}

  // A batch of shape (n, ...), any real dtype; n d^2 multiplications. INVALID_ARGUMENT where it has
  // less than two axes, samples of another shape than the first batch's, complex numbers, or a
  // value that is not finite or too large to be squared (naming the dimension); RESOURCE_EXHAUSTED
  // where memory is short. Nothing is added then. Waits for the device once.
  absl::Status Add(const at::Tensor& latents);

  std::int64_t count() const { return sums_ ? sums_->count : 0; }
  // What was summed, on the host. FAILED_PRECONDITION where nothing was.
  absl::StatusOr<CentralMoments> Sums() const;

 private:
  struct OnDevice {
    std::int64_t count = 0;
    at::Tensor mean, m2, m3, m4, comoment;  // float64, d each and d x d
  };
  // What measures such rows; null: LibTorch.
  const latents_device::Kernels* KernelsFor(const at::Tensor& rows) const;
  static OnDevice Measure(const at::Tensor& rows, bool covariance);
  static OnDevice MeasureBy(const latents_device::Kernels& kernels, const at::Tensor& rows,
                            bool covariance);
  static void Join(const OnDevice& b, OnDevice& a);

  bool covariance_;
  const latents_device::Kernels* kernels_ = nullptr;
  std::vector<std::int64_t> shape_;
  std::optional<OnDevice> sums_;
};

}  // namespace mergeplan
