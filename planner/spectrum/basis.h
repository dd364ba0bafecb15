#pragma once

#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "planner/spectrum/spectrum.h"

namespace mergeplan {

// Coordinates in a basis of the spectrum: y = B (x - mean), with B the identity for "diagonal", the
// principal directions as rows for "pca" and the DCT for "dct". `samples` (n x d, row-major, in
// data units, which is after scaling) gives n x d coordinates, row-major. Component i of y has the
// variance FindBasis(basis)'s variances[i] over the data. INVALID_ARGUMENT where the length is no
// multiple of d; NOT_FOUND for an unknown basis; RESOURCE_EXHAUSTED. Time: n d^2 multiplications
// for "pca", n d for "diagonal".
absl::StatusOr<std::vector<double>> ProjectToBasis(const Spectrum& spectrum, std::string_view basis,
                                                   absl::Span<const double> samples);

// The way back: x = B^T y + mean, n x d. Errors and cost as above.
absl::StatusOr<std::vector<double>> FromBasis(const Spectrum& spectrum, std::string_view basis,
                                              absl::Span<const double> coordinates);

// The axes of a basis of the spectrum as rows, d x d; empty for "diagonal". O(d^2).
std::vector<double> BasisVectors(const Spectrum& spectrum, std::string_view basis);

}  // namespace mergeplan
