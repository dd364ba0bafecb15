#include "adapters/python/src/spectrum_state.h"

#include <nanobind/nanobind.h>

#include <utility>

#include "adapters/python/src/errors.h"

namespace mergeplan::python {
namespace {

namespace nb = nanobind;

BasisState StateOf(const Basis& b) {
  return {b.name,     b.variances, b.variances_low, b.variances_high, b.off_diagonal_energy,
          b.interval, b.skewness,  b.kurtosis};
}

Basis FromState(BasisState state) {
  Basis b;
  std::tie(b.name, b.variances, b.variances_low, b.variances_high, b.off_diagonal_energy,
           b.interval, b.skewness, b.kurtosis) = std::move(state);
  SummarizeVariances(b);
  return b;
}

}  // namespace

LeadingState StateOf(const LeadingDirections& leading) {
  const size_t k = leading.errors.size();
  return {StateOf(leading.basis), leading.errors,
          ToNumpy(leading.vectors, {k, leading.vectors.size() / k}), leading.share};
}

LeadingDirections FromState(LeadingState state) {
  LeadingDirections out;
  NumpyArray vectors;
  BasisState basis;
  std::tie(basis, out.errors, vectors, out.share) = std::move(state);
  out.basis = FromState(std::move(basis));
  out.vectors = Copy(vectors);
  return out;
}

SpectrumState StateOf(const SpectrumValue& value) {
  if (!value.of_data) return {value.basis, value.given.variances, std::nullopt};
  const Spectrum& s = *value.of_data;
  std::vector<BasisState> bases;
  for (const Basis* basis : s.Bases()) bases.push_back(StateOf(*basis));
  const std::optional<LeadingDirections> leading = LeadingOf(s);
  return {value.basis, std::nullopt,
          DataState(s.source, s.source_sha256, s.shape, s.samples, s.skipped, s.scaling.text,
                    s.confidence, s.shrinkage_rule, s.shrinkage, ToNumpy(s.mean),
                    ToNumpy(s.covariance), ToNumpy(s.vectors), std::move(bases),
                    s.recommended_basis, s.recommended_basis_reason,
                    leading ? std::optional(StateOf(*leading)) : std::nullopt)};
}

SpectrumValue FromState(SpectrumState state) {
  auto& [basis, given, data] = state;
  if (given) return ValueOrRaise(Given(*std::move(given)));
  if (!data) throw nb::value_error("mergeplan.Spectrum: a pickled state with nothing in it");
  Spectrum s;
  std::string scaling;
  NumpyArray mean, covariance, vectors;
  std::vector<BasisState> bases;
  std::optional<LeadingState> leading;
  std::tie(s.source, s.source_sha256, s.shape, s.samples, s.skipped, scaling, s.confidence,
           s.shrinkage_rule, s.shrinkage, mean, covariance, vectors, bases, s.recommended_basis,
           s.recommended_basis_reason, leading) = *std::move(data);
  s.scaling = ValueOrRaise(ParseScaling(scaling));
  s.mean = Copy(mean);
  s.covariance = Copy(covariance);
  s.vectors = Copy(vectors);
  for (BasisState& one : bases) {
    Basis b = FromState(std::move(one));
    (b.name == "dct" ? s.dct : b.name == "pca" ? s.pca : s.diagonal) = std::move(b);
  }
  if (leading) {
    LeadingDirections kept = FromState(*std::move(leading));
    s.leading = std::move(kept.basis);
    s.leading_errors = std::move(kept.errors);
    s.leading_vectors = std::move(kept.vectors);
  }
  return ValueOrRaise(InBasis(std::move(s), basis));
}

}  // namespace mergeplan::python
