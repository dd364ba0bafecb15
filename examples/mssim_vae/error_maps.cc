// What distilled students of an analytic teacher over latents make of the same noise, decoded,
// beside what the surrogate teacher makes of it: a table of pixel-wise distances on stdout and a
// picture of error maps.
//
//   error_maps SPECTRUM.toml VAE OUT.png SAMPLES RUN...      RUN: folders of `mergeplan distill`
//
// A student's operator V and the reference's tau stand in RUN/result.npz, along the axes of the
// run's basis: a latent is mean + sum_k V_k z_k e_k with z ~ N(0, 1). Distances are sqrt(sum over
// pixels of the squared difference), pixels in [0, 1], in the mean over SAMPLES (8 or more). The
// picture's first row is the reference; then every run has a row of decoded samples and, beside
// them, their absolute differences, blue for none to red for the largest of the picture.

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/eye.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "adapters/layers/caught.h"
#include "adapters/noise/noise.h"
#include "adapters/vae_latent/vae.h"
#include "planner/base/file.h"
#include "planner/base/status_macros.h"
#include "planner/data/npz.h"
#include "planner/report/png.h"
#include "planner/runs/run_info.h"
#include "planner/spectrum/spectrum.h"

namespace mergeplan {
namespace {

constexpr std::int64_t kAtATime = 100, kShown = 8;
constexpr std::uint64_t kSeed = 2026;

struct Row {
  std::string run;
  at::Tensor shown, difference;  // [kShown, C, H, W], in [0, 1]
  double distance = 0, error = 0;
};

class Maps {
 public:
  static absl::StatusOr<Maps> Open(const std::string& spectrum_file, const std::string& vae_path,
                                   std::int64_t samples) {
    Maps maps;
    MP_ASSIGN_OR_RETURN(maps.spectrum_, ReadSpectrum(spectrum_file));
    MP_ASSIGN_OR_RETURN(maps.vae_, vae::OpenVae(vae_path));
    if (maps.spectrum_.shape.size() != 3) {
      return absl::InvalidArgumentError(
          absl::StrCat(spectrum_file, ": its samples are no latents, expected three sides"));
    }
    const auto d = static_cast<std::int64_t>(maps.spectrum_.mean.size());
    MP_RETURN_IF_ERROR(layers::Caught("noise", [&] {
      at::Tensor z = at::empty({samples, d}, at::kFloat);
      NoiseStream(kSeed, 0, 0, 0).FillAt(0, z.mutable_data_ptr<float>(), z.numel());
      maps.noise_ = z.to(at::kDouble);
    }));
    return maps;
  }

  absl::StatusOr<Row> Look(const std::string& run) {
    MP_ASSIGN_OR_RETURN(const RunInfo info, ReadRunInfo(run + "/run.toml"));
    MP_ASSIGN_OR_RETURN(const NpyArray value, ReadNpzArray(run + "/result.npz", "value"));
    MP_ASSIGN_OR_RETURN(const NpyArray tau, ReadNpzArray(run + "/result.npz", "tau"));
    Row row;
    row.run = run;
    absl::Status status;
    MP_RETURN_IF_ERROR(
        layers::Caught(run, [&] { status = Compare(info.basis, value, tau, &row); }));
    MP_RETURN_IF_ERROR(status);
    return row;
  }
  at::Tensor reference() const { return references_[0].narrow(0, 0, kShown); }

 private:
  absl::Status Compare(const std::string& basis, const NpyArray& value, const NpyArray& tau,
                       Row* row) {
    const c10::NoGradGuard no_gradients;
    const std::int64_t d = noise_.size(1);
    if (value.size() != d || tau.size() != d || (basis != "diagonal" && basis != "pca")) {
      return absl::InvalidArgumentError(absl::StrCat(
          row->run, ": has ", value.size(), " dimensions in the basis ", basis, ", expected ", d,
          " in diagonal or pca; give the spectrum that it was made of"));
    }
    const at::Tensor axes = basis == "pca" ? at::tensor(spectrum_.vectors, at::kDouble).view({d, d})
                                           : at::eye(d, at::kDouble);
    const at::Tensor mean = at::tensor(spectrum_.mean, at::kDouble);
    const at::Tensor V = at::tensor(value.values, at::kDouble);
    const at::Tensor T = at::tensor(tau.values, at::kDouble);
    row->error = (V - T).square().sum().item<double>();
    const bool known = tau_.defined();
    if (known && !tau_.equal(T)) {
      return absl::InvalidArgumentError(
          absl::StrCat(row->run, ": is compared with another reference than the runs before it"));
    }
    tau_ = T;
    double sum = 0;
    const std::int64_t samples = noise_.size(0);
    for (std::int64_t first = 0; first < samples; first += kAtATime) {
      const std::int64_t count = std::min(kAtATime, samples - first);
      const at::Tensor z = noise_.narrow(0, first, count);
      const auto pictures = [&](const at::Tensor& gain) -> absl::StatusOr<at::Tensor> {
        std::vector<std::int64_t> shape = {count};
        shape.insert(shape.end(), spectrum_.shape.begin(), spectrum_.shape.end());
        const at::Tensor latents = ((z * gain).matmul(axes) + mean).view(shape).to(at::kFloat);
        MP_ASSIGN_OR_RETURN(const at::Tensor x, vae_->Decode(vae_->Unscale(latents)));
        return ((x + 1) / 2).clamp(0, 1).to(at::kDouble);
      };
      MP_ASSIGN_OR_RETURN(const at::Tensor student, pictures(V));
      if (!known) {
        MP_ASSIGN_OR_RETURN(const at::Tensor made, pictures(T));
        references_.push_back(made);
      }
      const at::Tensor& reference = references_[static_cast<std::size_t>(first / kAtATime)];
      const at::Tensor difference = (student - reference).abs();
      sum += difference.square().flatten(1).sum(1).sqrt().sum().item<double>();
      if (first > 0) continue;
      row->shown = student.narrow(0, 0, kShown).clone();
      row->difference = difference.narrow(0, 0, kShown).clone();
    }
    row->distance = sum / static_cast<double>(samples);
    return absl::OkStatus();
  }

  Spectrum spectrum_;
  std::unique_ptr<vae::Vae> vae_;
  at::Tensor noise_, tau_;
  std::vector<at::Tensor> references_;  // decoded, kAtATime each
};

// Blue, green, yellow, red.
std::vector<double> HeatColour(double share) {
  const auto ramp = [&](double centre) {
    return std::min(1.0, std::max(0.0, 1.5 - std::abs(4 * share - centre)));
  };
  return {ramp(3), ramp(2), ramp(1)};
}

// [8, C, H, W] side by side: [H, 8 W, 3].
at::Tensor Strip(const at::Tensor& pictures, bool heat, double most) {
  const at::Tensor grey = pictures.mean(1);
  const std::int64_t H = grey.size(1), W = grey.size(2);
  const at::Tensor flat = grey.permute({1, 0, 2}).reshape({H, kShown * W}).contiguous();
  const auto* values = flat.const_data_ptr<double>();
  at::Tensor out = at::empty({H, kShown * W, 3}, at::kDouble);
  auto* to = out.mutable_data_ptr<double>();
  for (std::int64_t k = 0; k < flat.numel(); ++k) {
    const std::vector<double> colour =
        heat ? HeatColour(most > 0 ? values[k] / most : 0) : std::vector<double>(3, values[k]);
    for (int c = 0; c < 3; ++c) to[3 * k + c] = colour[static_cast<std::size_t>(c)];
  }
  return out;
}

absl::Status Run(const std::vector<std::string>& arguments, std::int64_t samples) {
  MP_ASSIGN_OR_RETURN(Maps maps, Maps::Open(arguments[0], arguments[1], samples));
  std::vector<Row> rows;
  for (std::size_t k = 4; k < arguments.size(); ++k) {
    MP_ASSIGN_OR_RETURN(Row row, maps.Look(arguments[k]));
    rows.push_back(std::move(row));
  }
  std::string png;
  absl::Status drawn;
  MP_RETURN_IF_ERROR(layers::Caught(arguments[2], [&] {
    double most = 0;
    for (const Row& row : rows) most = std::max(most, row.difference.mean(1).max().item<double>());
    const at::Tensor none = at::zeros_like(maps.reference());
    std::vector<at::Tensor> lines = {
        at::cat({Strip(maps.reference(), false, 1), Strip(none, true, 1)}, 1)};
    for (const Row& row : rows) {
      lines.push_back(at::cat({Strip(row.shown, false, 1), Strip(row.difference, true, most)}, 1));
    }
    const at::Tensor picture = at::cat(lines).mul(255).round().to(at::kByte).contiguous();
    const auto encoded = EncodePng(
        static_cast<int>(picture.size(1)), static_cast<int>(picture.size(0)), 3,
        {picture.const_data_ptr<std::uint8_t>(), static_cast<std::size_t>(picture.numel())});
    drawn = encoded.ok() ? WriteFileAtomically(arguments[2], *encoded) : encoded.status();
    std::printf("| run | error of the operator | pixel distance |\n|---|---|---|\n");
    for (const Row& row : rows) {
      std::printf("| %s | %.4g | %.4g |\n", row.run.substr(row.run.rfind('/') + 1).c_str(),
                  row.error, row.distance);
    }
    std::printf("\nred is a difference of %.3g\n", most);
  }));
  return drawn;
}

}  // namespace
}  // namespace mergeplan

int main(int argc, char** argv) {
  std::int64_t samples = 0;
  if (argc < 6 || !absl::SimpleAtoi(argv[4], &samples) || samples < 8 || samples > 1000000) {
    std::fprintf(
        stderr,
        "error_maps: expected SPECTRUM.toml VAE OUT.png SAMPLES RUN..., 8 samples or more\n");
    return 2;
  }
  const absl::Status status = mergeplan::Run({argv + 1, argv + argc}, samples);
  if (status.ok()) return 0;
  std::fprintf(stderr, "error_maps: %s\n", std::string(status.message()).c_str());
  return 1;
}
