#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "adapters/encoding/progress_line.h"

namespace mergeplan::encoding {

// What `mergeplan decode` is asked for.
struct DecodeArguments {
  std::string input;  // as OpenLatents reads it
  std::string array;
  std::string vae;                   // as vae::OpenVae reads it
  std::vector<std::string> outputs;  // .npz or .npy: the pictures; .png: a grid of the first
  std::optional<std::string> shape;  // of a flat latent, "32x16x16"
  bool raw = false;                  // latents without the config's factor and shift
  std::string dtype = "uint8";       // or float32, as the network gives them
  std::int64_t first = 0;            // sample
  std::optional<std::int64_t> count;
  std::int64_t grid = 64;  // pictures of a .png
  int columns = 0;         // of it; 0: about as many as rows
  int batch = 16;
  std::int64_t tile = 0;  // pixels; larger pictures are decoded in tiles
  std::string device = "cpu";
  int threads = 0;
};

struct DecodeResult {
  std::int64_t samples = 0;
  double seconds = 0;  // of decoding alone
  std::string vae_kind, sha256;
  std::vector<std::int64_t> latent_shape, picture_shape;
  std::string pixels;  // the range of pictures stored as float32
  bool raw = false;    // as asked for, or as the folder of latents says
  // The folder of latents names another network's hash.
  bool other_network = false;
};

// Decodes batch by batch; memory holds a batch and the pictures of the grid. Files appear when all
// is done. Misuse names the flag; INVALID_ARGUMENT the shape that does not fit, FAILED_PRECONDITION
// the sample whose picture is not finite; CANCELLED, with nothing written, by Ctrl-C.
absl::StatusOr<DecodeResult> Decode(const DecodeArguments& arguments,
                                    const std::function<void(const CodingProgress&)>& progress);

}  // namespace mergeplan::encoding
