#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"

namespace mergeplan {

// A file that TensorBoard reads: records of a length, its masked CRC-32C, a serialized
// tensorflow.Event and the CRC of that.
class EventFile {
 public:
  EventFile() { Clear(); }

  // One number of the series `tag` (UTF-8; a '/' groups series) at `step`.
  void AddScalar(const std::string& tag, std::int64_t step, double value);
  // What has been added so far, written anew: beside and renamed.
  absl::Status Write(const std::string& path);
  // What has been added since the last Write or Append, at the end of that file: programs that
  // watch it see it grow. O(new).
  absl::Status Append(const std::string& path);

 private:
  void Clear();
  std::string bytes_;
  std::size_t written_ = 0;
};

// CRC-32C (Castagnoli), as records use it.
std::uint32_t Crc32c(const std::string& bytes);

}  // namespace mergeplan
