#pragma once

#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "adapters/denoising/options.h"

namespace mergeplan::autoencoding {

// Of the multiscale structural similarity: as many weights as its paper has.
inline constexpr int kMostScales = 5;

enum class LossKind {
  kMsSsim,   // 1 - MS-SSIM
  kSquared,  // mean squared error of values in [-1, 1]
};

// How an autoencoder is trained, apart from the network and the data.
struct Options {
  // Optimizer, updates, batch, average, mirroring, precision, seed; its loss, levels and weighting
  // are not used.
  denoising::Options training;
  LossKind loss = LossKind::kMsSsim;
  // What a nat of the divergence of the latents' law from N(0, I), summed over a picture's
  // dimensions, weighs beside the loss. 2.5e-4 is what the MSSIM-VAE in public use has
  // (PyTorch-VAE: kld_weight 0.00025).
  double kl_weight = 2.5e-4;
  // Of MS-SSIM; 0: what the pictures allow (MsSsimOptions::For).
  std::int64_t window = 0;
  int scales = 0;

  // Of the options by their names without dashes; those left out have their defaults.
  // INVALID_ARGUMENT names the option, what was found and what is expected.
  static absl::StatusOr<Options> Parse(std::map<std::string, std::string> texts);
  // All of them, such that Parse gives the same.
  std::map<std::string, std::string> Texts() const;
  // Those that decide numbers.
  std::map<std::string, std::string> DecidingTexts() const;
};

}  // namespace mergeplan::autoencoding
