#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace mergeplan {

// Bytes read once, front to back, through one buffer of fixed size.
class ByteStream {
 public:
  explicit ByteStream(std::string name) : name_(std::move(name)) {}
  virtual ~ByteStream() = default;
  ByteStream(const ByteStream&) = delete;
  ByteStream& operator=(const ByteStream&) = delete;

  // What errors call it: the path, or "path: member NAME".
  const std::string& name() const { return name_; }
  // All bytes from the first to the last, where that is known before reading.
  virtual std::optional<std::int64_t> size() const = 0;
  // The most bytes that the stored form can possibly hold, so that a header which declares more is
  // refused before anything is allocated for it.
  virtual std::int64_t size_limit() const = 0;

  // True where name() is the path of a file with exactly these bytes.
  virtual bool is_plain_file() const { return false; }

  // Fills `out` with the next `size` bytes; returns fewer only at the end.
  absl::StatusOr<std::size_t> Read(char* out, std::size_t size);
  // Passes over the next `size` bytes: by winding forward where that is possible.
  absl::Status Skip(std::int64_t size);
  // The next `size` bytes (at most 64 KiB) without consuming them; fewer only at the end. Valid
  // until the next call.
  absl::StatusOr<std::string_view> Peek(std::size_t size);
  // OK where nothing is left; checks what the format checks at its end (checksums).
  absl::Status ExpectEnd();
  // Bytes handed out by Read so far.
  std::int64_t position() const { return position_; }

 protected:
  // Reads up to `size` > 0 bytes; 0 means the end.
  virtual absl::StatusOr<std::size_t> ReadSome(char* out, std::size_t size) = 0;
  // Passes over `size` bytes; false where the stream can only be read.
  virtual absl::StatusOr<bool> Wind(std::int64_t /*size*/) { return false; }

 private:
  absl::Status Refill(std::size_t wanted);

  std::string name_;
  std::vector<char> buffer_;
  std::size_t begin_ = 0, end_ = 0;
  std::int64_t position_ = 0;
  bool at_end_ = false;
};

// A plain file. Anything but a regular file is an error that says what it is.
absl::StatusOr<std::unique_ptr<ByteStream>> OpenFile(const std::string& path);

// A gzip file decompressed while read, of one or several gzip members. Truncation and wrong
// checksums are DATA_LOSS.
absl::StatusOr<std::unique_ptr<ByteStream>> OpenGzip(const std::string& path);

// The first bytes of something in a form that fits an error message, e.g. "\x1f\x8b\x08" or "%PDF".
std::string Printable(std::string_view bytes, std::size_t most = 16);

}  // namespace mergeplan
