#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "adapters/encoding/progress_line.h"

namespace mergeplan::encoding {

// What `mergeplan encode` is asked for.
struct EncodeArguments {
  std::string input;  // as OpenSamples reads it
  std::string array;
  std::string vae;                   // as vae::OpenVae reads it
  std::string output;                // folder
  std::optional<std::string> size;   // "128" or "128x96": pictures are resized to it
  std::optional<std::string> scale;  // how values become data; pixels: what the VAE takes
  std::string content = "mean";      // mean, mean,log_variance or sample
  bool raw = false;  // as the encoder gives them, without the config's factor and shift
  std::string dtype = "float32";      // or float16
  std::optional<std::int64_t> limit;  // samples from the first; none: all
  int batch = 16;
  std::int64_t part_samples = 1024;
  std::int64_t seed = 0;  // of --content sample
  std::string shard;      // "1/4"; under mpirun rank and ranks
  std::string device = "cpu";
  int threads = 0;
  std::int64_t tile = 0;  // pixels; larger pictures are encoded in tiles
};

struct EncodeResult {
  std::int64_t samples = 0;  // of the input
  std::int64_t encoded = 0;  // by this process, now
  bool finished = false;     // latents.toml is written
  bool stopped = false;      // by Ctrl-C
  double seconds = 0;        // of encoding alone
  std::string vae_kind, sha256;
  std::vector<std::int64_t> image_shape, latent_shape;  // of one sample
  bool grey_repeated = false;  // grey pictures for a network of several channels
};

// Encodes part by part; parts that are there already are passed over. Memory holds a batch and a
// part. INVALID_ARGUMENT names the flag or the sample; errors of OpenSamples, OpenVae, LatentCache.
absl::StatusOr<EncodeResult> Encode(const EncodeArguments& arguments,
                                    const std::function<void(const CodingProgress&)>& progress);

}  // namespace mergeplan::encoding
