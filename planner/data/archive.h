#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "planner/data/stream.h"

struct archive;
struct archive_entry;

namespace mergeplan {

// The members of a .zip or .tar, one after another. Members that are not read are not decompressed.
class ArchiveReader {
 public:
  // The zip is read through its directory at the end (stored and deflated members, zip64).
  static absl::StatusOr<std::unique_ptr<ArchiveReader>> OpenZip(const std::string& path);
  // A zip in memory, which must stay; `name` is what errors call it.
  static absl::StatusOr<std::unique_ptr<ArchiveReader>> OpenZipBytes(std::string_view bytes,
                                                                     const std::string& name);
  // Plain or gzipped; archives written one behind the other in a file are read as one. A plain tar
  // that does not end in a block of zeros is refused: its end is missing.
  static absl::StatusOr<std::unique_ptr<ArchiveReader>> OpenTar(const std::string& path);
  ~ArchiveReader();
  ArchiveReader(const ArchiveReader&) = delete;
  ArchiveReader& operator=(const ArchiveReader&) = delete;

  const std::string& path() const { return path_; }
  // Moves to the next file (or link) in the archive, past folders; false at the end.
  absl::StatusOr<bool> Next();
  // True where the member is a symbolic or hard link, without content of its own.
  bool is_link() const { return is_link_; }
  // Of the current member: its name as stored, "path: member NAME" for errors, and its size.
  const std::string& member() const { return member_; }
  std::string where() const;
  std::optional<std::int64_t> size() const { return size_; }
  // The most bytes that the current member can hold, whatever its entry declares.
  std::int64_t size_limit() const;
  // Reads up to `size` bytes of the current member; 0 at its end, after its checksum was checked.
  absl::StatusOr<std::size_t> Read(char* out, std::size_t size);

  // A stream over the current member of `reader`, which it keeps.
  static std::unique_ptr<ByteStream> Stream(std::unique_ptr<ArchiveReader> reader);

 private:
  ArchiveReader(std::string path, archive* handle) : path_(std::move(path)), archive_(handle) {}
  static absl::StatusOr<std::unique_ptr<ArchiveReader>> Open(const std::string& path, bool zip);
  absl::Status Fault(const std::string& where, const char* what) const;

  std::string path_;
  archive* archive_;
  std::string member_;
  std::optional<std::int64_t> size_;
  std::int64_t file_bytes_ = 0;
  bool zip_ = false;
  bool is_link_ = false;
};

}  // namespace mergeplan
