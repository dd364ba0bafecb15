#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "planner/mixture/mixture.h"

namespace mergeplan {

// The file that WriteMixture puts the arrays in: `path` with .npz in place of .toml, or added.
std::string MixtureArraysPath(const std::string& path);

// Writes `path` (mixture.toml, format 1, see README.md) and the arrays beside it, both beside and
// renamed, the .npz first. Reading back gives the same value. INVALID_ARGUMENT where the file's
// name is not UTF-8.
absl::Status WriteMixture(const GaussianMixture& mixture, const std::string& path);

// Errors name the file and the key or array, what was found and what was expected:
// INVALID_ARGUMENT for a TOML file that is not one of these (syntax; unknown, missing or mistyped
// key) and for numbers that are no mixture (GaussianMixture::Create), DATA_LOSS for arrays that are
// missing, do not match their hash or have other names, shapes or types. Arrays are float32 or
// float64. The mixture's notes() say what was repaired.
absl::StatusOr<GaussianMixture> ReadMixture(const std::string& path);

}  // namespace mergeplan
