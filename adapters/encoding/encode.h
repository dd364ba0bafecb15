#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "adapters/encoding/progress_line.h"

namespace mergeplan::encoding {

// What `mergeplan encode` is asked for.
struct EncodeArguments {
  std::string input;  // as OpenSamples reads it
  std::string array;
  std::string vae;                   // as vae::OpenVae reads it; or
  std::string encoder;               // as vae::OpenEncoder does
  std::string output;                // folder; empty: in `cache`
  std::string cache;                 // a folder of its own in there, named by what it is made of
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
  // Of EncodeToDescriptor: INVALID_ARGUMENT for larger latents, before anything is encoded.
  std::int64_t most_dimensions = std::numeric_limits<std::int64_t>::max();
  // Of one latent, what will take them: INVALID_ARGUMENT for others, before anything is encoded.
  // Empty: whatever the encoder gives.
  std::vector<std::int64_t> wanted_shape;
  std::string device = "cpu";
  int threads = 0;
  std::int64_t tile = 0;  // pixels; larger pictures are encoded in tiles
};

struct EncodeResult {
  std::string folder;
  std::int64_t samples = 0;  // of the input
  std::int64_t encoded = 0;  // by this process, now
  bool finished = false;     // latents.toml is written
  bool stopped = false;      // by Ctrl-C
  double seconds = 0;        // of encoding alone
  double loop_seconds = 0;   // with reading and writing; not of loading the network
  std::string vae_kind, sha256;
  std::vector<std::int64_t> image_shape, latent_shape;  // of one sample
  bool grey_repeated = false;  // grey pictures for a network of several channels
};

// Encodes part by part; parts that are there already are passed over. Memory holds a batch, the
// part waits on disk. INVALID_ARGUMENT names the flag or the sample; errors of OpenSamples,
// OpenVae, OpenEncoder, LatentCache.
absl::StatusOr<EncodeResult> Encode(const EncodeArguments& arguments,
                                    const std::function<void(const CodingProgress&)>& progress);

// The same as one .npy, written to an open file or pipe as it is encoded; nothing is kept of it.
// With `shard` I/N it is the I-th of N neighbouring parts, cut where `analyze --shard` cuts the
// latents of all. Where the pictures do not say how many they are, they are counted first, by
// reading them. Room for all of it is taken at once where the descriptor is a file:
// RESOURCE_EXHAUSTED before anything is encoded. Not for two arrays (INVALID_ARGUMENT).
absl::StatusOr<EncodeResult> EncodeToDescriptor(
    const EncodeArguments& arguments, int descriptor,
    const std::function<void(const CodingProgress&)>& progress);

}  // namespace mergeplan::encoding
