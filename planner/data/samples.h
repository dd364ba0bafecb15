#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "planner/data/window.h"

namespace mergeplan {

struct SamplesOptions {
  std::string
      array;  // which array of an .npz; empty: the only one, or an error that lists the names. Of a
              // tar: the ending of the members that count, such as npy or latent.pth
  bool skip_nonfinite = false;  // leave out samples with NaN or infinity instead of failing
  bool keep_nonfinite = false;  // hand them out: somebody else looks
};

// Rows of a plain file, of which any may be read at any time, from several threads at once.
class RowFile {
 public:
  virtual ~RowFile() = default;
  virtual std::int64_t rows() const = 0;
  // Does float hold every value that can be stored, without rounding?
  virtual bool fits_float() const = 0;
  // Puts rows first .. first + count - 1 into `out` (count x dimensions), as stored; NaN and
  // infinity too. DATA_LOSS where the file has become shorter.
  virtual absl::Status Read(std::int64_t first, std::int64_t count, float* out) const = 0;
  virtual absl::Status Read(std::int64_t first, std::int64_t count, double* out) const = 0;
  // The same rows where they lie, if they lie there as numbers of type T, which can be read in
  // place; else null, as where the file cannot be mapped: Read serves then.
  template <typename T>
  std::unique_ptr<FileWindow> View(std::int64_t first, std::int64_t count) const {
    return ViewOf(sizeof(T), first, count);
  }
  // View for floating-point numbers of so many bytes.
  virtual std::unique_ptr<FileWindow> ViewOf(std::size_t /*size*/, std::int64_t /*first*/,
                                             std::int64_t /*count*/) const {
    return nullptr;
  }
};

// A stream of samples of one shape, in the order of the file. Values are as stored (pixels 0..255);
// scaling is the caller's. Memory does not grow with the number of samples.
class SampleSource {
 public:
  virtual ~SampleSource() = default;

  // Shape of one sample, e.g. {28, 28} or {3, 32, 32} (images: channels first; grey images {H, W}).
  virtual const std::vector<std::int64_t>& shape() const = 0;
  // True where the values are pixels, 0..255: pictures, and unsigned bytes in an array of more than
  // one axis (a list of bytes is labels).
  virtual bool is_pixels() const = 0;
  // How many samples there are in all, where the format says so before reading (before skipping).
  virtual std::optional<std::int64_t> size() const = 0;
  // Fills `rows` (max_rows x dimensions, row-major) and returns how many samples it holds; 0 at the
  // end. Errors name the file, the sample and what was expected; with NaN the number of the sample
  // and the flag
  // --skip-nonfinite.
  virtual absl::StatusOr<int> Read(absl::Span<double> rows) = 0;
  // Passes over the next `count` samples (fewer at the end) without looking at them; at the start
  // only. By reading, unless the format can do better.
  virtual absl::Status Skip(std::int64_t count);
  // The same samples in any order, where they lie in a plain file row by row; else null. Valid as
  // long as the source; nothing that one reads moves the other.
  virtual const RowFile* row_file() const { return nullptr; }
  // Samples left out so far because they were not finite.
  virtual std::int64_t skipped() const = 0;

  std::int64_t dimensions() const;
};

// Opens .npy, .npz, .safetensors, .pt (torch.save of tensors), IDX (with or without gzip), a folder
// of PNG/JPEG (sorted by name, recursively), a WebDataset .tar of PNG/JPEG or of .npy/.pth with one
// sample in each, a folder of such .tar files (in order), or a folder of latents that `mergeplan
// encode` wrote (parts.h). The content decides, not the file's
// name, where it can. A path with *, ? or [ that is no file is a pattern: all files that match,
// sorted, one behind the other.
absl::StatusOr<std::unique_ptr<SampleSource>> OpenSamples(const std::string& path,
                                                          const SamplesOptions& options);

}  // namespace mergeplan
