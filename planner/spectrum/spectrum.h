#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "planner/spectrum/parts.h"

namespace mergeplan {

// How stored values become data: x = value * multiply + add. Text form: "none" (x = value), or
// "LOW:HIGH", the range that pixels 0..255 are mapped onto ("-1:1" is the default for pixels,
// "none" for floats).
struct Scaling {
  std::string text = "none";
  double multiply = 1;
  double add = 0;

  double Apply(double value) const { return value * multiply + add; }
  double Invert(double x) const { return (x - add) / multiply; }
  bool operator==(const Scaling&) const = default;
};
// INVALID_ARGUMENT, naming the text, unless it is one of the two forms with finite LOW < HIGH.
absl::StatusOr<Scaling> ParseScaling(std::string_view text);

enum class Regime { kLow, kHigh, kMixed };  // every lambda <= 1; every lambda > 1; else
std::string_view ToString(Regime regime);

// The data's variances along the axes of one basis, largest first in `pca`, in the data's order in
// `diagonal`; in `dct` coefficient (u, v) stands where the value (h, w) = (u, v) of its plane does.
struct Basis {
  std::string name;                    // "diagonal", "dct" or "pca"
  std::vector<double> variances;       // d
  std::vector<double> variances_low;   // d, confidence interval (see `confidence`)
  std::vector<double> variances_high;  // d
  double fraction_above_one = 0;       // share of dimensions with lambda > 1
  double off_diagonal_energy = 0;  // ||offdiag(C)||_F^2 / ||C||_F^2 of the covariance in this basis
  Regime regime = Regime::kLow;
  // How the interval was made: "fourth-moment" (valid for any distribution), "gaussian" (assumes
  // normal data) or "bootstrap"; see planner/spectrum/estimate.h.
  std::string interval;
  // Standardised third and fourth central moments along the axes (0 and 3 for normal data and where
  // there is no variance); d each, or empty where they were not measured.
  std::vector<double> skewness, kurtosis;

  bool operator==(const Basis&) const = default;
};
// Sets regime and fraction_above_one from the variances.
void SummarizeVariances(Basis& basis);

// As many samples as can be counted in the doubles that everything is computed in.
inline constexpr std::int64_t kMostSamples = std::int64_t{1} << 53;

// What `mergeplan analyze` finds out about a data set and writes to spectrum.toml with its .npz.
struct Spectrum {
  std::string source;         // path or name of the data as given
  std::string source_sha256;  // of the file; empty for folders
  std::vector<std::int64_t> shape;
  std::int64_t samples = 0;
  std::int64_t skipped = 0;
  // Which samples these are, so that none is merged twice (parts.h); empty where that is not known.
  std::vector<SpectrumPart> parts;
  Scaling scaling;
  double confidence = 0.95;
  // The covariance is (1 - shrinkage) S + shrinkage (tr S / d) I of the sample covariance S; 0
  // where `shrinkage_rule` is "none", else chosen by "oas" or "ledoit-wolf" (shrinkage.h).
  std::string shrinkage_rule = "none";
  double shrinkage = 0;

  std::vector<double> mean;  // d
  // d x d, row-major; or empty, where only the variances along the data's own axes were computed.
  // Then there is no other basis, and `diagonal.off_diagonal_energy` (0) means nothing.
  std::vector<double> covariance;
  // d x d, row-major: row i is the i-th principal direction (unit length). Empty, like `pca`, where
  // the principal directions were not computed.
  std::vector<double> vectors;
  // Where all principal directions would take too long: k leading ones (leading.h), k x d,
  // row-major, their variances with intervals (a basis of k axes, which is none of Bases()), and
  // how far from each variance an eigenvalue may be.
  std::vector<double> leading_vectors;
  Basis leading;
  std::vector<double> leading_errors;
  Basis diagonal;
  Basis dct;  // dct.h; its name is empty where the shape has no spatial axes or it was not computed
  Basis pca;
  std::string recommended_basis;  // the name of one of them
  std::string recommended_basis_reason;

  int dimensions() const { return static_cast<int>(mean.size()); }
  bool has_covariance() const { return !covariance.empty(); }
  bool has_pca() const { return !vectors.empty(); }
  bool has_leading() const { return !leading_vectors.empty(); }
  // The share of the total variance that the leading directions carry.
  double LeadingShare() const;
  bool has_dct() const { return !dct.variances.empty(); }
  // Those that there are: diagonal, then dct and pca. Valid as long as this object.
  std::vector<const Basis*> Bases() const;
  // "diagonal", "dct" or "pca"; NOT_FOUND names the ones there are. Valid as long as this object.
  absl::StatusOr<const Basis*> FindBasis(std::string_view name) const;

  bool operator==(const Spectrum&) const = default;
};

// The file that WriteSpectrum puts the arrays in: `path` with .npz in place of .toml, or added.
std::string SpectrumArraysPath(const std::string& path);

// Writes `path` (TOML, format version 1) and the arrays to SpectrumArraysPath(path), whose name
// (without the folder, so that both files can move together) and hash the TOML holds; both beside
// and renamed, the .npz first. Reading back gives the same value, bit by bit. INVALID_ARGUMENT
// where the spectrum is not whole (sizes, values that are not finite, scaling that is not what its
// text says), its source or the file's name is not UTF-8, or a file stands in the place of the
// .npz that is not a spectrum's: nobody's own arrays are replaced.
absl::Status WriteSpectrum(const Spectrum& spectrum, const std::string& path);
// Errors name the file, the key and what was expected: INVALID_ARGUMENT for a TOML file that is not
// one of these (syntax, unknown, missing or mistyped key, wrong version, contradicting values),
// DATA_LOSS for a .npz that is missing, does not match its hash or holds other arrays.
absl::StatusOr<Spectrum> ReadSpectrum(const std::string& path);

}  // namespace mergeplan
