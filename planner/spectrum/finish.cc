#include "planner/spectrum/finish.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "planner/base/status_macros.h"
#include "planner/spectrum/intervals.h"
#include "planner/spectrum/parallel.h"
#include "planner/spectrum/principal.h"
#include "planner/spectrum/shrinkage.h"

namespace mergeplan {
namespace {

// The cheapest basis whose energy off the diagonal is under the bound, or as far under it as these
// samples can tell.
void Recommend(Spectrum& spectrum, double bound) {
  const double all = SquaredNorm(spectrum.covariance);
  double trace = 0;
  for (const double variance : spectrum.diagonal.variances) trace += variance;
  const auto percent = [](double share) {
    std::string text = absl::StrFormat("%.2f", 100 * share);
    return text + " %";
  };
  const std::string limit = absl::StrFormat("%.4g %%", 100 * bound);
  std::string before;
  for (const Basis* basis : spectrum.Bases()) {
    const double energy = basis->off_diagonal_energy;
    // What unrelated dimensions with these variances would show in this many samples.
    const double chance = all > 0 ? (trace * trace - SquaredNorm(basis->variances)) /
                                        (static_cast<double>(spectrum.samples - 1) * all)
                                  : 0.0;
    const bool own = basis == &spectrum.diagonal;
    const std::string place = own ? "the diagonal" : absl::StrCat("that of ", basis->name);
    const std::string found = absl::StrCat(
        before, percent(energy), own ? " of the covariance's energy is off " : " off ", place);
    const std::string by_chance =
        absl::StrFormat("unrelated dimensions would show %s on average in %d samples",
                        percent(chance), spectrum.samples);
    spectrum.recommended_basis = basis->name;
    if (!spectrum.has_covariance()) {
      spectrum.recommended_basis_reason = "only the data's own axes were looked at";
      return;
    }
    if (spectrum.Bases().size() == 1) {
      spectrum.recommended_basis_reason = "no other basis was computed";
      return;
    }
    if (basis == &spectrum.pca) {
      spectrum.recommended_basis_reason = before;
      spectrum.recommended_basis_reason.resize(before.size() - 2);
      return;
    }
    if (energy <= bound) {
      spectrum.recommended_basis_reason =
          absl::StrCat(found, ", not more than the ", limit, " up to which these axes do");
      return;
    }
    if (energy - chance <= bound) {
      spectrum.recommended_basis_reason =
          absl::StrCat(found, ", but ", by_chance, ": as far as these can tell, not more than ",
                       limit, " beyond chance");
      return;
    }
    absl::StrAppend(
        &before, percent(energy),
        own ? " of the covariance's energy is off the diagonal" : absl::StrCat(" off ", place),
        "; ", by_chance, ", and the rest is more than the ", limit, " up to which ",
        own ? "the data's own axes" : "these axes", " do; ");
  }
  // Neither will do, and there are no principal directions.
  const auto least = [](const Basis* a, const Basis* b) {
    return a->off_diagonal_energy < b->off_diagonal_energy;
  };
  const std::vector<const Basis*> bases = spectrum.Bases();
  const Basis* best = *std::min_element(bases.begin(), bases.end(), least);
  spectrum.recommended_basis = best->name;
  spectrum.recommended_basis_reason =
      absl::StrCat(before, "of the bases that were computed this one has the least");
}

absl::Status CheckFinite(const Spectrum& spectrum) {
  const double norm =
      SquaredNorm(spectrum.has_covariance() ? spectrum.covariance : spectrum.diagonal.variances);
  if (std::isfinite(norm)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("the values are too large for their covariance to be computed in float64 "
                   "under the scaling \"",
                   spectrum.scaling.text, "\"; choose a smaller range"));
}

}  // namespace

bool WantsAllDirections(const EstimateOptions& options, int d) {
  return options.want_pca && !options.want_leading && d <= options.pca_up_to;
}

bool WantsLeadingDirections(const EstimateOptions& options, int d) {
  return options.leading > 0 &&
         (options.want_leading || (options.want_pca && d > options.pca_up_to));
}

LeadingOptions LeadingOptionsOf(const EstimateOptions& options) {
  LeadingOptions out;
  out.count = options.leading;
  out.seed = options.seed;
  out.stop = options.stop;
  return out;
}

absl::Status FinishSpectrum(Spectrum& spectrum, const EstimateOptions& options,
                            const SecondPassReader& second) {
  const std::size_t d = spectrum.mean.size();
  const Kernels& kernels = options.kernels != nullptr ? *options.kernels : BestKernels();
  const int threads = ThreadCount(options.threads);
  MP_RETURN_IF_ERROR(CheckFinite(spectrum));
  MP_RETURN_IF_ERROR(CheckShrinkageRule(options.shrinkage_rule));

  spectrum.diagonal.name = "diagonal";
  if (spectrum.has_covariance()) spectrum.diagonal.variances.resize(d);
  for (std::size_t i = 0; spectrum.has_covariance() && i < d; ++i) {
    spectrum.diagonal.variances[i] = spectrum.covariance[i * d + i];
  }
  double off = 0;
  for (std::size_t i = 0; i < spectrum.covariance.size(); ++i) {
    if (i % (d + 1) != 0) off += spectrum.covariance[i] * spectrum.covariance[i];
  }
  const double all = SquaredNorm(spectrum.covariance);
  spectrum.diagonal.off_diagonal_energy = all > 0 ? off / all : 0.0;

  std::optional<Dct> dct;
  if (const auto axes = SpatialAxesOf(spectrum.shape); axes && options.want_dct) {
    dct.emplace(*axes);
    spectrum.dct.name = "dct";
    MP_RETURN_IF_ERROR(SetDctVariances(spectrum, *dct, threads));
  }
  const bool all_directions = WantsAllDirections(options, static_cast<int>(d));
  if (spectrum.has_covariance() && WantsLeadingDirections(options, static_cast<int>(d))) {
    MP_RETURN_IF_ERROR(SetLeadingDirections(
        spectrum, TimesKeptCovariance(spectrum, kernels, threads), LeadingOptionsOf(options)));
  }
  if (all_directions) {
    spectrum.pca.name = "pca";
    MP_RETURN_IF_ERROR(SetPrincipalDirections(spectrum, kernels, options.stop));
    MP_ASSIGN_OR_RETURN(spectrum.pca.off_diagonal_energy,
                        RotatedOffDiagonalEnergy(spectrum, kernels, threads));
  }
  std::optional<double> fourth_norm;
  std::optional<SecondPass> measured;
  const bool needs_norm = options.shrinkage_rule == "ledoit-wolf";
  Basis& turned = all_directions ? spectrum.pca : spectrum.leading;
  if (second &&
      (all_directions || spectrum.has_leading() || dct || needs_norm || options.bootstrap > 0)) {
    MP_ASSIGN_OR_RETURN(SecondPass pass,
                        second(all_directions ? spectrum.vectors : spectrum.leading_vectors,
                               dct ? &*dct : nullptr));
    turned.skewness = std::move(pass.pca_skewness);
    turned.kurtosis = std::move(pass.pca_kurtosis);
    spectrum.dct.skewness = std::move(pass.dct_skewness);
    spectrum.dct.kurtosis = std::move(pass.dct_kurtosis);
    fourth_norm = pass.fourth_norm;
    measured = std::move(pass);
  }
  const auto bases = {&spectrum.diagonal, &spectrum.dct, &spectrum.pca, &spectrum.leading};
  for (Basis* basis : bases) {
    if (basis->variances.empty()) continue;
    SetIntervals(*basis, spectrum.samples, options.confidence);
  }
  if (options.bootstrap > 0) {
    if (!measured) {
      return absl::InvalidArgumentError(
          "the bootstrap needs a second pass over the data, which is not there; leave it out");
    }
    SetBootstrapIntervals(spectrum.diagonal, measured->diagonal_errors, options.confidence);
    if (dct) SetBootstrapIntervals(spectrum.dct, measured->dct_errors, options.confidence);
    if (!turned.variances.empty()) {
      SetBootstrapIntervals(turned, measured->pca_errors, options.confidence);
    }
  }
  if (options.shrinkage_rule == "oas") {
    Shrink(spectrum, "oas", OasIntensity(spectrum));
  } else if (needs_norm) {
    if (!fourth_norm) {
      return absl::InvalidArgumentError(
          "shrinkage by ledoit-wolf needs a second pass over the data, which is not there; use "
          "oas");
    }
    Shrink(spectrum, "ledoit-wolf", LedoitWolfIntensity(spectrum, *fourth_norm));
  }
  for (Basis* basis : bases) {
    if (!basis->variances.empty()) SummarizeVariances(*basis);
  }
  Recommend(spectrum, options.off_diagonal_bound);
  return absl::OkStatus();
}

}  // namespace mergeplan
