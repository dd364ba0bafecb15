#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace mergeplan::network {

// Named tensors and texts in a .safetensors file, so that other tools can look into it.
struct TensorFile {
  std::map<std::string, std::string> metadata;
  std::vector<std::pair<std::string, at::Tensor>> tensors;  // names all different

  // Null where there is none of this name.
  const at::Tensor* Find(const std::string& name) const;
};

// Written beside and renamed. float64/32/16, bfloat16, int64, int32, uint8, bool, on any device.
// The SHA-256 of header and numbers is put into the metadata ("sha256").
absl::Status WriteTensorFile(const TensorFile& content, const std::string& path);
// On the CPU, bit by bit what was written, without "sha256", which is checked where it is there.
// NOT_FOUND; DATA_LOSS says what is damaged.
absl::StatusOr<TensorFile> ReadTensorFile(const std::string& path);

// Was the file written in this format, for what has this fingerprint? (Metadata "format" and
// "fingerprint".) FAILED_PRECONDITION, the second with `belongs`: "belongs to …".
absl::Status CheckOrigin(const TensorFile& file, const std::string& path, const std::string& format,
                         const std::string& fingerprint, const std::string& belongs);

}  // namespace mergeplan::network
