#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "planner/base/unnamed_file.h"

namespace mergeplan::encoding {

// Latents of a data set in a folder: parts of `part_samples` samples each, in order, as
// part-000000.safetensors and so on, every one written whole or not at all, and latents.toml, which
// is there when all parts are. Any number of processes may write parts of one folder.

// What a cache was made of. Two runs with the same description may go on with each other's parts.
struct CacheDescription {
  std::map<std::string, std::string>
      made_of;  // goes into latents.toml and, hashed, into every part
  std::int64_t part_samples = 1024;
  std::vector<std::int64_t> shape;  // of one latent: [C, h, w]
  std::vector<std::string> arrays;  // "latents", "log_variance"
  std::string dtype = "F32";        // or F16

  std::string Identity() const;  // SHA-256
};

// One part while it is made. Its values wait in files without names in the cache's folder, so that
// memory holds what is added at a time.
class PartInProgress {
 public:
  // `values` are whole latents of array number `array`, row-major. Errors of UnnamedFile.
  absl::Status Add(std::size_t array, absl::Span<const float> values);
  std::int64_t index() const { return index_; }

 private:
  friend class LatentCache;
  PartInProgress(std::int64_t index, bool halves) : index_(index), halves_(halves) {}

  std::int64_t index_;
  bool halves_;
  std::vector<UnnamedFile> files_;    // one for every array
  std::vector<std::int64_t> values_;  // in each of them
  std::string bytes_;                 // of what is added
};

class LatentCache {
 public:
  // Makes the folder. FAILED_PRECONDITION where it holds parts or latents of another description,
  // with what differs.
  static absl::StatusOr<LatentCache> Open(const std::string& folder, CacheDescription description);

  const CacheDescription& description() const { return description_; }
  const std::string& folder() const { return folder_; }

  // Samples of part `index` where it is there, whole and of this description; else nothing. Reads
  // its header only.
  std::optional<std::int64_t> Has(std::int64_t index) const;
  absl::StatusOr<PartInProgress> Begin(std::int64_t index) const;
  // INVALID_ARGUMENT unless all arrays have as many latents, and one at least.
  absl::Status Write(const PartInProgress& part) const;
  // All samples are known to be `samples`: writes latents.toml if all parts are there, and says
  // whether it did. More than one process may do so: they write the same bytes.
  absl::StatusOr<bool> Finish(std::int64_t samples) const;

 private:
  LatentCache(std::string folder, CacheDescription description)
      : folder_(std::move(folder)),
        description_(std::move(description)),
        identity_(description_.Identity()) {}
  std::string PartPath(std::int64_t index) const;

  std::string folder_;
  CacheDescription description_;
  std::string identity_;
};

}  // namespace mergeplan::encoding
