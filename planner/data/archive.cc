#include "planner/data/archive.h"

#include <archive.h>
#include <archive_entry.h>

#include <algorithm>
#include <fstream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "planner/base/status_macros.h"

namespace mergeplan {
namespace {

constexpr std::size_t kBlock = std::size_t{1} << 18;
constexpr std::int64_t kDeflateRatio = 1032;  // see stream.cc

// A plain tar ends in blocks of zeros; libarchive takes one that was cut between two members for
// whole.
absl::Status CheckTarEnd(ByteStream& file) {
  constexpr std::int64_t kTarBlock = 512;
  MP_ASSIGN_OR_RETURN(const std::string_view start, file.Peek(2));
  if (start == "\x1f\x8b") return absl::OkStatus();
  const std::int64_t bytes = file.size().value_or(0);
  std::string last(static_cast<std::size_t>(kTarBlock), '\xff');
  if (bytes >= kTarBlock) {
    std::ifstream in(file.name(), std::ios::binary);
    in.seekg(bytes - kTarBlock);
    in.read(last.data(), kTarBlock);
  }
  if (last.find_first_not_of('\0') == std::string::npos) return absl::OkStatus();
  return absl::DataLossError(
      absl::StrCat(file.name(),
                   ": is truncated, its last block is no block of zeros, expected the end of a tar "
                   "archive: fetch or write it again"));
}

class MemberStream : public ByteStream {
 public:
  explicit MemberStream(std::unique_ptr<ArchiveReader> reader)
      : ByteStream(reader->where()), reader_(std::move(reader)) {}
  std::optional<std::int64_t> size() const override { return reader_->size(); }
  std::int64_t size_limit() const override { return reader_->size_limit(); }

 protected:
  absl::StatusOr<std::size_t> ReadSome(char* out, std::size_t size) override {
    return reader_->Read(out, size);
  }

 private:
  std::unique_ptr<ArchiveReader> reader_;
};

}  // namespace

ArchiveReader::~ArchiveReader() { archive_read_free(archive_); }

std::string ArchiveReader::where() const {
  return absl::StrCat(path_, ": member ", Printable(member_, 200));
}

std::int64_t ArchiveReader::size_limit() const {
  const std::int64_t possible = file_bytes_ * kDeflateRatio;
  return size_ ? std::min(*size_, possible) : possible;
}

absl::Status ArchiveReader::Fault(const std::string& where, const char* what) const {
  const char* text = archive_error_string(archive_);
  return absl::DataLossError(absl::StrCat(
      where, ": ", what, " (", Printable(text != nullptr ? text : "no reason given", 160),
      "), expected an intact ", zip_ ? "zip" : "tar", " archive: fetch or write it again"));
}

absl::StatusOr<std::unique_ptr<ArchiveReader>> ArchiveReader::OpenZip(const std::string& path) {
  return Open(path, true);
}
absl::StatusOr<std::unique_ptr<ArchiveReader>> ArchiveReader::OpenZipBytes(
    std::string_view bytes, const std::string& name) {
  archive* handle = archive_read_new();
  if (handle == nullptr) {
    return absl::ResourceExhaustedError(absl::StrCat(name, ": no memory to read the archive"));
  }
  std::unique_ptr<ArchiveReader> reader(new ArchiveReader(name, handle));
  reader->zip_ = true;
  reader->file_bytes_ = static_cast<std::int64_t>(bytes.size());
  archive_read_support_format_zip_seekable(handle);
  if (archive_read_open_memory(handle, bytes.data(), bytes.size()) != ARCHIVE_OK) {
    return reader->Fault(name, "cannot be opened");
  }
  return reader;
}
absl::StatusOr<std::unique_ptr<ArchiveReader>> ArchiveReader::OpenTar(const std::string& path) {
  return Open(path, false);
}

absl::StatusOr<std::unique_ptr<ArchiveReader>> ArchiveReader::Open(const std::string& path,
                                                                   bool zip) {
  // Says clearly where the file is missing, a folder or a pipe, and how long it is.
  MP_ASSIGN_OR_RETURN(const std::unique_ptr<ByteStream> probe, OpenFile(path));
  archive* handle = archive_read_new();
  if (handle == nullptr) {
    return absl::ResourceExhaustedError(absl::StrCat(path, ": no memory to read the archive"));
  }
  std::unique_ptr<ArchiveReader> reader(new ArchiveReader(path, handle));
  reader->zip_ = zip;
  reader->file_bytes_ = probe->size_limit();
  if (zip) {
    archive_read_support_format_zip_seekable(handle);
  } else {
    archive_read_support_format_tar(handle);
    archive_read_support_filter_gzip(handle);
    archive_read_set_option(handle, "tar", "read_concatenated_archives", "1");
    MP_RETURN_IF_ERROR(CheckTarEnd(*probe));
  }
  if (archive_read_open_filename(handle, path.c_str(), kBlock) != ARCHIVE_OK) {
    return reader->Fault(path, "cannot be opened");
  }
  return reader;
}

absl::StatusOr<bool> ArchiveReader::Next() {
  for (;;) {
    archive_entry* entry = nullptr;
    const int code = archive_read_next_header(archive_, &entry);
    if (code == ARCHIVE_EOF) return false;
    // ARCHIVE_RETRY too: libarchive would go on behind a damaged header, and lose members.
    if ((code != ARCHIVE_OK && code != ARCHIVE_WARN) || entry == nullptr) {
      return Fault(path_, member_.empty() ? "the first member cannot be read"
                                          : "the list of members cannot be read further");
    }
    const char* name = archive_entry_pathname_utf8(entry);
    if (name == nullptr) name = archive_entry_pathname(entry);
    member_ = name != nullptr ? name : "?";
    const auto type = archive_entry_filetype(entry);
    is_link_ = type == AE_IFLNK || archive_entry_hardlink(entry) != nullptr;
    if (type != AE_IFREG && !is_link_) continue;
    if (archive_entry_is_encrypted(entry) != 0) {
      return absl::InvalidArgumentError(
          absl::StrCat(where(), ": is encrypted, expected an archive without a password"));
    }
    size_ = std::nullopt;
    if (archive_entry_size_is_set(entry) != 0) {
      const std::int64_t size = archive_entry_size(entry);
      if (size < 0) return Fault(where(), "declares a negative size");
      size_ = size;
    }
    return true;
  }
}

absl::StatusOr<std::size_t> ArchiveReader::Read(char* out, std::size_t size) {
  const la_ssize_t n = archive_read_data(archive_, out, size);
  if (n < 0) return Fault(where(), "cannot be read to its end");
  return static_cast<std::size_t>(n);
}

std::unique_ptr<ByteStream> ArchiveReader::Stream(std::unique_ptr<ArchiveReader> reader) {
  return std::make_unique<MemberStream>(std::move(reader));
}

}  // namespace mergeplan
