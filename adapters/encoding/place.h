#pragma once

#include <ATen/core/Tensor.h>

#include <string>

#include "absl/status/statusor.h"

namespace mergeplan::encoding {

// Where a network codes: `word` is that of --device, and LibTorch gets so many threads (0: all).
// Misuse for a word that is none; UNAVAILABLE says what is missing.
absl::StatusOr<at::Device> OpenPlace(const std::string& word, int threads);

// From now on memory that is freed stays with the process for the next batch: by default every
// large tensor is handed back to the system and comes anew, page by page, which takes a third of
// the time of small networks. Call it once, at the start of a command.
void KeepFreedMemory();

}  // namespace mergeplan::encoding
