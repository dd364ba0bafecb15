#pragma once

#include <ATen/core/Tensor.h>

#include <string>

#include "absl/status/statusor.h"

namespace mergeplan::encoding {

// Where a network codes: `word` is that of --device, and LibTorch gets so many threads (0: all).
// Misuse for a word that is none; UNAVAILABLE says what is missing.
absl::StatusOr<at::Device> OpenPlace(const std::string& word, int threads);

}  // namespace mergeplan::encoding
