#include "planner/data/npz_stream.h"

#include <archive.h>
#include <archive_entry.h>

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "planner/base/file.h"
#include "planner/base/status_macros.h"
#include "planner/data/npy.h"

namespace mergeplan {

struct NpzStream::State {
  State(std::string p, AtomicFile f) : path(std::move(p)), file(std::move(f)) {}
  ~State() {
    if (zip != nullptr) archive_write_free(zip);
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  // Called by libarchive.
  static la_ssize_t Write(archive*, void* self, const void* data, std::size_t size) {
    auto* state = static_cast<State*>(self);
    // A file that failed once gets nothing more: archive_write_free still wants to end the zip.
    if (!state->status.ok()) return -1;
    state->status = state->file.Append({static_cast<const char*>(data), size});
    return state->status.ok() ? static_cast<la_ssize_t>(size) : -1;
  }
  absl::Status Fault() const {
    if (!status.ok()) return status;
    const char* text = zip != nullptr ? archive_error_string(zip) : nullptr;
    return absl::InternalError(
        absl::StrCat(path, ": cannot be written: ", text != nullptr ? text : "no memory"));
  }
  absl::Status Begin(const std::string& name, std::int64_t size) {
    zip = archive_write_new();
    if (zip == nullptr || archive_write_set_format_zip(zip) != ARCHIVE_OK ||
        archive_write_zip_set_compression_store(zip) != ARCHIVE_OK ||
        archive_write_set_bytes_in_last_block(zip, 1) != ARCHIVE_OK ||
        archive_write_open(zip, this, nullptr, &State::Write, nullptr) != ARCHIVE_OK) {
      return Fault();
    }
    const std::unique_ptr<archive_entry, void (*)(archive_entry*)> entry(archive_entry_new(),
                                                                         &archive_entry_free);
    if (entry == nullptr) return Fault();
    archive_entry_set_pathname(entry.get(), absl::StrCat(name, ".npy").c_str());
    archive_entry_set_filetype(entry.get(), AE_IFREG);
    archive_entry_set_perm(entry.get(), 0644);
    archive_entry_set_size(entry.get(), static_cast<la_int64_t>(size));
    archive_entry_set_mtime(entry.get(), 0, 0);  // as NpzWriter has it
    return archive_write_header(zip, entry.get()) == ARCHIVE_OK ? absl::OkStatus() : Fault();
  }
  absl::Status Put(std::string_view bytes) {
    if (zip == nullptr) return file.Append(bytes);
    for (std::size_t done = 0; done < bytes.size();) {
      const la_ssize_t n = archive_write_data(zip, bytes.data() + done, bytes.size() - done);
      if (n <= 0) return Fault();
      done += static_cast<std::size_t>(n);
    }
    return absl::OkStatus();
  }

  std::string path;
  AtomicFile file;
  archive* zip = nullptr;  // null: an .npy
  absl::Status status;
  std::int64_t left = 0;  // bytes
};

NpzStream::NpzStream(std::unique_ptr<State> state) : state_(std::move(state)) {}
NpzStream::NpzStream(NpzStream&&) noexcept = default;
NpzStream::~NpzStream() = default;

absl::StatusOr<NpzStream> NpzStream::Create(const std::string& path, const std::string& name,
                                            const std::string& descr,
                                            const std::vector<std::int64_t>& shape) {
  MP_ASSIGN_OR_RETURN(const ElementType type, ParseDescr(descr, path));
  MP_ASSIGN_OR_RETURN(const std::int64_t count, CountElements(shape, type.size, path));
  MP_ASSIGN_OR_RETURN(AtomicFile file, AtomicFile::Create(path));
  auto state = std::make_unique<State>(path, std::move(file));
  state->left = count * type.size;
  const std::string header = NpyHeaderBytes(descr, shape);
  if (!absl::EndsWith(path, ".npy")) {
    MP_RETURN_IF_ERROR(state->Begin(name, static_cast<std::int64_t>(header.size()) + state->left));
  }
  MP_RETURN_IF_ERROR(state->Put(header));
  return NpzStream(std::move(state));
}

absl::Status NpzStream::Append(std::string_view bytes) {
  if (static_cast<std::int64_t>(bytes.size()) > state_->left) {
    return absl::InvalidArgumentError(absl::StrCat(state_->path, ": ", bytes.size(),
                                                   " bytes more, expected at most ", state_->left,
                                                   " for its shape"));
  }
  state_->left -= static_cast<std::int64_t>(bytes.size());
  return state_->Put(bytes);
}

absl::Status NpzStream::Finish() {
  if (state_->left != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(state_->path, ": lacks ", state_->left, " bytes of its shape"));
  }
  if (state_->zip != nullptr && archive_write_close(state_->zip) != ARCHIVE_OK) {
    return state_->Fault();
  }
  return state_->file.Commit();
}

}  // namespace mergeplan
