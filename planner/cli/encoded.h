#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace mergeplan::cli {

struct DataFlags;

// Flags that turn pictures into latents before they are analysed, as `mergeplan encode` has them.
struct EncodingFlags {
  std::string vae, encoder;  // one of them: asked for
  std::string size;
  std::int64_t limit = 0;  // 0: all
  std::string content = "mean";
  bool raw = false;
  std::int64_t tile = 0;
  std::string device = "cpu";

  bool asked() const { return !vae.empty() || !encoder.empty(); }
};
void AddEncodingFlags(CLI::App& app, EncodingFlags& flags);
// Misuse for flags of encoding without --vae or --encoder, and beside them for what cannot be had.
absl::Status CheckEncoding(const DataFlags& flags);

// Encodes the pictures, or their part, by `mergeplan encode -o -` in a child process, and returns a
// path by which the latents can be opened as often as needed, an .npy. They lie in an unnamed file
// in TMPDIR, which goes with this process. A second call returns the same path. What went wrong in
// the child is on stderr already, and comes back as Told.
absl::StatusOr<std::string> EncodedLatents(const DataFlags& flags);

}  // namespace mergeplan::cli
