#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace mergeplan {

// One tensor of a .safetensors file.
struct SafetensorsEntry {
  std::string name;
  std::string dtype;  // as the format spells it: "F64", "F32", "F16", "BF16", "I64", "U8", …
  std::vector<std::int64_t> shape;  // empty for a single number
  std::int64_t begin = 0;           // bytes from the start of the file
  std::int64_t end = 0;

  std::int64_t bytes() const { return end - begin; }
};

// Bytes of one element; 0 for a dtype that we do not know.
int SafetensorsElementSize(std::string_view dtype);

// What the header says: a JSON object of its first bytes, behind 8 for its length.
struct SafetensorsHeader {
  std::vector<SafetensorsEntry> entries;  // in the order of their bytes
  std::map<std::string, std::string> metadata;
};
// The longest that the format's own library takes.
inline constexpr std::int64_t kMostSafetensorsHeader = 100'000'000;
// Reads the text of a header and checks that the tensors have as many bytes as their shapes say
// (those of a type that we know) and fill the file without gaps or overlaps. DATA_LOSS, saying what
// was found and what was expected.
absl::StatusOr<SafetensorsHeader> ParseSafetensorsHeader(std::string_view text,
                                                         std::int64_t file_size,
                                                         const std::string& path);

// A .safetensors file whose header has been read and checked: every tensor has a known type and as
// many bytes as its shape says, and together they fill the file without gaps or overlaps, so that a
// file cut short or with something behind it is found before anything is read from it.
class SafetensorsFile {
 public:
  // DATA_LOSS where the file is damaged, saying what was found and what was expected.
  static absl::StatusOr<std::unique_ptr<SafetensorsFile>> Open(const std::string& path);
  ~SafetensorsFile();
  SafetensorsFile(const SafetensorsFile&) = delete;
  SafetensorsFile& operator=(const SafetensorsFile&) = delete;

  const std::string& path() const { return path_; }
  // In the order of their bytes.
  const std::vector<SafetensorsEntry>& entries() const { return entries_; }
  const std::map<std::string, std::string>& metadata() const { return metadata_; }

  // Fills `out` with bytes of an entry from `offset` on. May be called from several threads.
  absl::Status Read(const SafetensorsEntry& entry, std::int64_t offset, absl::Span<char> out) const;

 private:
  SafetensorsFile(std::string path, int fd) : path_(std::move(path)), fd_(fd) {}

  std::string path_;
  int fd_;
  std::vector<SafetensorsEntry> entries_;
  std::map<std::string, std::string> metadata_;
};

// One tensor to write. `bytes` is asked for once, when its turn comes, and its answer must stay
// valid until the next is asked for: nothing needs to lie in memory twice.
struct SafetensorsTensor {
  std::string name;
  std::string dtype;
  std::vector<std::int64_t> shape;
  std::function<absl::StatusOr<std::string_view>()> bytes;
  // Asked again and again, for the next piece, until the shape is full; an empty piece is an error.
  bool in_pieces = false;
};

// Writes a file beside `path`, syncs and renames it. The bytes depend on the content only and are
// those of the format's own library: wide types first, then by name, the data at a multiple of 8
// bytes. A name given twice, an unknown dtype and a wrong number of bytes are INVALID_ARGUMENT.
absl::Status WriteSafetensors(const std::string& path, std::vector<SafetensorsTensor> tensors,
                              const std::map<std::string, std::string>& metadata);

// Which file holds which tensor, from a model.safetensors.index.json ("weight_map"). Names of files
// that lead out of the index's own folder are INVALID_ARGUMENT.
absl::StatusOr<std::map<std::string, std::string>> ReadSafetensorsIndex(const std::string& path);

}  // namespace mergeplan
