#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "planner/data/npy.h"
#include "planner/data/samples.h"
#include "planner/data/stream.h"

namespace mergeplan {

// What every reader shares: samples that are not finite are counted and left out, or are an error;
// an error comes back on every later call.
class CheckedSource : public SampleSource {
 public:
  const std::vector<std::int64_t>& shape() const override { return shape_; }
  bool is_pixels() const override { return is_pixels_; }
  std::optional<std::int64_t> size() const override { return size_; }
  std::int64_t skipped() const override { return skipped_; }
  absl::StatusOr<int> Read(absl::Span<double> rows) final;

 protected:
  CheckedSource(std::string name, const SamplesOptions& options)
      : name_(std::move(name)),
        skip_nonfinite_(options.skip_nonfinite),
        keep_nonfinite_(options.keep_nonfinite) {}

  // Fills up to `most` rows and returns how many; 0 at the end, after checking it.
  virtual absl::StatusOr<int> Fill(double* rows, int most) = 0;

  const std::string& name() const { return name_; }
  // Counts samples that a Skip has passed over.
  void PassOver(std::int64_t count) { seen_ += count; }
  // Sets what a source must know before the first Read. Shapes with no value or more than 2^28 are
  // errors.
  absl::Status Describe(std::vector<std::int64_t> shape, bool is_pixels,
                        std::optional<std::int64_t> size, bool may_be_nonfinite);

 private:
  absl::StatusOr<int> ReadChecked(absl::Span<double> rows);
  absl::Status Nonfinite(absl::Span<double> rows, const double* begin, int bad_row, int filled);

  std::string name_;  // what errors call it
  bool skip_nonfinite_, keep_nonfinite_;
  std::vector<std::int64_t> shape_;
  std::int64_t dimensions_ = 0;
  bool is_pixels_ = false;
  bool may_be_nonfinite_ = true;
  std::optional<std::int64_t> size_;
  std::int64_t seen_ = 0;     // samples taken from Fill
  std::int64_t skipped_ = 0;  // of these, left out
  absl::Status status_;
};

// An .npy, plain or inside a gzip file or an .npz. Rows of C order are streamed. In Fortran order
// the values of a sample lie far apart: a plain file is read at several places at once, any other
// stream goes into an unnamed file in the folder for temporary files first. With `one_sample` all
// of the array is one sample.
absl::StatusOr<std::unique_ptr<SampleSource>> OpenNpySamples(std::unique_ptr<ByteStream> in,
                                                             const SamplesOptions& options,
                                                             bool one_sample = false);

// An IDX file, plain or gzipped.
absl::StatusOr<std::unique_ptr<SampleSource>> OpenIdxSamples(std::unique_ptr<ByteStream> in,
                                                             const SamplesOptions& options);
bool LooksLikeIdx(std::string_view start);

// Rows of stored numbers, first axis first, from a stream that stands at the first of them.
absl::StatusOr<std::unique_ptr<SampleSource>> OpenRows(std::unique_ptr<ByteStream> in,
                                                       const ElementType& type,
                                                       absl::Span<const std::int64_t> shape,
                                                       const SamplesOptions& options);

// A folder of pictures or of tars, and a single tar.
absl::StatusOr<std::unique_ptr<SampleSource>> OpenFolderSamples(const std::string& path,
                                                                const SamplesOptions& options);
absl::StatusOr<std::unique_ptr<SampleSource>> OpenTarSamples(std::vector<std::string> paths,
                                                             const SamplesOptions& options);
// By the checksum of the first header; needs 512 bytes.
bool LooksLikeTar(std::string_view start);

// The shape of one sample of an array, {1} where the array has one axis. Errors where there is no
// first axis, no sample, or where the elements are byte strings.
absl::StatusOr<std::vector<std::int64_t>> SampleShape(const ElementType& type,
                                                      absl::Span<const std::int64_t> shape,
                                                      const std::string& where);

}  // namespace mergeplan
