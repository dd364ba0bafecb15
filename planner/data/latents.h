#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"

namespace mergeplan {

// One sample as a file of its own, such as a member of a WebDataset tar: all of an .npy, or of the
// one tensor in what torch.save writes.
struct Latent {
  std::vector<std::int64_t> shape;  // {1} of a single number
  std::vector<double> values;
  bool is_pixels = false;  // unsigned bytes of more than one axis
};

// By the first bytes: an .npy, or a zip, as torch.save writes.
bool LooksLikeLatent(std::string_view start);

// Decodes a whole file into `latent`, whose memory is used again. Errors begin with `where`, and
// are those of the readers of these formats (npy.h, tensors.h).
absl::Status DecodeLatent(std::string_view bytes, const std::string& where, Latent& latent);

}  // namespace mergeplan
